//! `queuekeeper demo`, the real program: its output, and that it leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "demo"]
mod demo {
    mod consistent;
    mod monitoring;
    mod opening;
    mod program;
    mod readme;
    mod refused;
    mod show;
}
