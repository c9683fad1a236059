//! `queuekeeper demo`, the real program: its output, and that it leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "demo"]
mod demo {
    mod consistent;
    mod documented;
    mod monitoring;
    mod opening;
    mod program;
    mod refused;
    mod show;
}
