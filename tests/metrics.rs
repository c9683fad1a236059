//! The exposition, read by others than ourselves.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "support"]
mod support {
    pub(crate) mod figures;
}

#[path = "metrics"]
mod metrics {
    mod daemons;
    mod documented;
    mod exposition;
    mod golden;
    mod mill;
    mod prometheus;
}
