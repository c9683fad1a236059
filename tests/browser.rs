//! The pages in a real browser: Chromium, as Debian has it, with its `chromedriver`.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "browser"]
mod browser {
    mod charts;
    mod chromium;
    mod cross_site;
    mod hostile;
    mod live;
    mod selected;
    mod served;
    mod tour;
}
