//! The output of commands: tables and sentences for people, JSON for programs.
//!
//! The text of a znode may come from any client, and a terminal executes control sequences: invisible characters are
//! escaped.

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
    /// Whether the output is JSON.
    pub(super) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Writes a result.
    pub(super) fn show<T: Serialize>(self, answer: &T, people: impl FnOnce(&mut Screen)) -> anyhow::Result<()> {
        if self.is_json() {
            return write(&json::text(answer)?);
        }
        let mut screen = Screen::new();
        people(&mut screen);
        write(screen.text())
    }
}

/// Writes to standard output. A closed pipe is not an error.
pub(super) fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}

/// Writes a note to standard error, separate from the result.
pub(super) fn note(text: &str) {
    // Nothing else could be done about it.
    let _ = writeln!(std::io::stderr(), "{}", crate::views::show::visible(text));
}

/// Whether standard input and error are a terminal, so that a user can be prompted.
pub(super) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
