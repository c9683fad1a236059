//! The output of commands: tables and sentences for people, JSON for programs, CSV of lists for spreadsheets.
//!
//! The text of a znode may come from any client, and a terminal executes control sequences: invisible characters are
//! escaped.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, Args, ValueEnum};
use serde::Serialize;
use utoipa::ToSchema;

use super::UsageError;
use crate::views::csv::Columns;

mod display;
mod json;
mod progress;
mod screen;
mod table;

pub(super) use display::Display;
pub(super) use progress::{Bar, Spinner, Transfer};
pub(super) use screen::Screen;
pub(super) use table::{Column, Table};

/// How to show what is found.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct OutputArgs {
    /// Tables for people, or JSON or CSV for programs, with the field names of the API
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table", help_heading = None::<&str>)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

impl OutputArgs {
    /// Whether the output is JSON.
    pub(super) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Whether the output is CSV.
    pub(super) fn is_csv(self) -> bool {
        self.format == Format::Csv
    }

    /// Refuses CSV for the result of an action, which is no list.
    ///
    /// # Errors
    /// When it is requested.
    pub(super) fn check_action(self) -> Result<(), UsageError> {
        if self.format == Format::Csv {
            return Err(UsageError::flag(
                "--output",
                "csv is available for lists only; use json for the result of an action",
            ));
        }
        Ok(())
    }

    /// Writes a list.
    pub(super) fn list<L: Serialize, T: Serialize + ToSchema>(
        self,
        list: &L,
        items: &[T],
        people: impl FnOnce(&mut Screen),
    ) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            let columns = Columns::<T>::new();
            return write(&(columns.header() + &columns.rows(items)));
        }
        self.show(list, people)
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

/// The argument for the format, of a command that shows no list.
pub(super) fn without_csv(format: Arg) -> Arg {
    let formats = [Format::Table, Format::Json].iter().filter_map(ValueEnum::to_possible_value);
    let parser = PossibleValuesParser::new(formats).try_map(|name| Format::from_str(&name, false));
    format.value_parser(parser).help("Tables for people, or JSON for programs, with the field names of the API")
}

/// Writes to standard output. A closed pipe is not an error.
pub(super) fn write(text: &str) -> anyhow::Result<()> {
    write_while_open(text)?;
    Ok(())
}

/// The same; `false` once the pipe is closed.
pub(super) fn write_while_open(text: &str) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        wrote => wrote.map(|()| true),
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
