//! The progress of long operations, on standard error if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::output;

/// The minimum interval between updates.
const EVERY: Duration = Duration::from_millis(200);

/// A line on the terminal that is written over and over.
pub(super) struct ProgressLine {
    is_shown: bool,
    last: Option<Instant>,
    /// Whether there is a text on the line.
    is_used: bool,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: None, is_used: false }
    }

    /// Shows what `text` gives, unless something was shown just before.
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_shown && self.last.is_none_or(|last| last.elapsed() >= EVERY) {
            self.last = Some(Instant::now());
            self.is_used = true;
            // It is for the eyes alone: where it cannot be written, the work goes on.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", text());
        }
    }

    /// Empties the line, for what is written where it is.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_used) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What is written to standard output while work goes on, with a line of progress below it.
pub(super) struct Lines {
    progress: ProgressLine,
    written: anyhow::Result<()>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { progress: ProgressLine::new(), written: Ok(()) }
    }

    /// Shows what `text` gives as progress, unless something was shown just before.
    pub(super) fn progress(&mut self, text: impl FnOnce() -> String) {
        self.progress.show(text);
    }

    /// Writes whole lines, unless some before could not be written.
    pub(super) fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            self.progress.clear();
            self.written = output::write(text);
        }
    }

    /// Writes to standard error.
    pub(super) fn note(&mut self, text: &str) {
        self.progress.clear();
        output::note(text);
    }

    /// Ends the progress.
    ///
    /// # Errors
    /// When something could not be written.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.written
    }
}
