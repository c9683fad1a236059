//! How answers are shown: to people in tables and sentences, to programs as JSON.
//!
//! What a znode holds is anybody's text, and a terminal obeys some texts: nothing is written that would not show.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};
use serde::Serialize;

mod json;
mod progress;
mod screen;
mod table;

pub(super) use progress::{Bar, Spinner};
pub(super) use screen::Screen;
pub(super) use table::{Column, Table};

/// How to show what is found.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct OutputArgs {
    /// Tables for people, or JSON for programs, with the field names of the API
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

impl OutputArgs {
    /// Whether it is for a program.
    pub(super) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Shows an answer.
    pub(super) fn show<T: Serialize>(self, answer: &T, people: impl FnOnce(&mut Screen)) -> anyhow::Result<()> {
        if self.is_json() {
            return write(&json::text(answer)?);
        }
        let mut screen = Screen::new();
        people(&mut screen);
        write(screen.text())
    }
}

/// Writes to standard output. Whoever closes it has read enough.
pub(super) fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}

/// Says something beside the answer, on standard error: it is for people and never in the way of a program.
pub(super) fn note(text: &str) {
    // Nothing else could be done about it.
    let _ = writeln!(std::io::stderr(), "{}", crate::views::show::visible(text));
}

/// Whether there is somebody to ask.
pub(super) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
