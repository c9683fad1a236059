//! What is shown again and again: in place on a terminal, one block after the other elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde::Serialize;

use super::{OutputArgs, Screen, json, write_while_open};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";

/// Shows the cursor again and returns to what was there before.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Puts the cursor into the first place.
const HOME: &str = "\u{1b}[H";

/// Clears the rest of a line.
const CLEAR_LINE: &str = "\u{1b}[K";

/// Clears everything from here on.
const CLEAR_BELOW: &str = "\u{1b}[J";

/// How many rows a terminal has that does not say so.
const ROWS: u16 = 24;

/// Where it is shown. A terminal is as it was before when this is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Display {
    output: OutputArgs,
    is_in_place: bool,
    /// The last line on a terminal.
    footer: String,
    is_first: bool,
}

impl Display {
    /// Prepares the terminal, if standard output is one and a user reads it.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub(in crate::cli) fn new(output: OutputArgs, footer: String) -> std::io::Result<Self> {
        let is_in_place = !output.is_json() && std::io::stdout().is_terminal();
        if is_in_place {
            write_while_open(ENTER)?;
        }
        Ok(Self { output, is_in_place, footer, is_first: true })
    }

    /// Whether it is drawn in place.
    pub(in crate::cli) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// Shows it instead of, or below, what was shown before; `false` once nothing can be shown any more.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(in crate::cli) fn draw<T: Serialize>(
        &mut self,
        answer: &T,
        people: impl FnOnce(&mut Screen),
    ) -> anyhow::Result<bool> {
        let text = if self.output.is_json() {
            json::text(answer)?
        } else {
            let mut screen = Screen::new();
            people(&mut screen);
            screen.text().to_owned()
        };
        let is_first = std::mem::replace(&mut self.is_first, false);
        let shown = if self.is_in_place {
            let rows = terminal_size::terminal_size_of(std::io::stdout()).map_or(ROWS, |(_, height)| height.0);
            in_place(&text, &self.footer, usize::from(rows))
        } else if is_first {
            text
        } else {
            format!("\n{text}")
        };
        Ok(write_while_open(&shown)?)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if self.is_in_place {
            // Nothing else could be done about it.
            let _ = write_while_open(LEAVE);
        }
    }
}

/// The text from the first place of a terminal on, with its last line below: as many lines as there are rows for. Each
/// line replaces what was in its place, so that nothing flickers.
fn in_place(text: &str, footer: &str, rows: usize) -> String {
    let room = rows.saturating_sub(1);
    let lines = text.lines().count();
    let mut shown = HOME.to_owned();
    for line in text.lines().take(room) {
        shown.extend([line, CLEAR_LINE, "\r\n"]);
    }
    if let Some(hidden) = lines.checked_sub(room).filter(|hidden| *hidden > 0) {
        let what = if hidden == 1 { "line does" } else { "lines do" };
        // Writing to a string does not fail.
        let _ = write!(shown, "{hidden} more {what} not fit. ");
    }
    shown.extend([footer, CLEAR_BELOW]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_drawn_over_the_one_before_and_cut_where_the_terminal_ends() {
        let shown = in_place("one\ntwo\n", "Ctrl-C ends it.", 24);
        assert_eq!(shown, "\u{1b}[Hone\u{1b}[K\r\ntwo\u{1b}[K\r\nCtrl-C ends it.\u{1b}[J");
        let shown = in_place("one\ntwo\nthree\n", "Ctrl-C ends it.", 3);
        assert_eq!(shown, "\u{1b}[Hone\u{1b}[K\r\ntwo\u{1b}[K\r\n1 more line does not fit. Ctrl-C ends it.\u{1b}[J");
        assert!(in_place("one\ntwo\nthree\n", "", 2).ends_with("2 more lines do not fit. \u{1b}[J"));
    }
}
