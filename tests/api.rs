//! The API and the pages of lists, as served by the real program: described, fuzzed, and with hostile znodes.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

#[path = "api"]
mod api {
    mod described;
    mod hostile;
}
