//! The pages in a real browser: Debian's Chromium, driven through its ChromeDriver.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "support"]
mod support {
    pub(crate) mod wait;
}

#[path = "browser"]
mod browser {
    mod chromium;
    mod hostile;
    mod live;
    mod served;
    mod tour;
}
