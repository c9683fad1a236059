//! The progress of long operations, on standard error if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The minimum interval between updates.
const EVERY: Duration = Duration::from_millis(200);

/// A line on the terminal that is written over and over.
pub(super) struct ProgressLine {
    is_shown: bool,
    last: Option<Instant>,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: None }
    }

    /// Shows what `text` gives, unless something was shown just before.
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_shown && self.last.is_none_or(|last| last.elapsed() >= EVERY) {
            self.last = Some(Instant::now());
            // It is for the eyes alone: where it cannot be written, the work goes on.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", text());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
