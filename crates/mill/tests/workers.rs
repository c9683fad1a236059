//! Workers, on a catalogue of their own.

#[path = "workers"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod workers {
    mod idle;
    mod run;
}
