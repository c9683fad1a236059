//! What people read: lines, paragraphs and tables, as wide as their terminal.

use std::io::Write as _;

use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};

use super::table::Table;
use crate::views::show::visible;

/// Lines of text are no wider than this, however wide the terminal.
const WIDEST_TEXT: usize = 110;

/// A terminal that says that it is narrower is taken for one of so many columns: below, no id has room.
const NARROWEST: u16 = 24;

/// How wide the names of facts are.
const NAME: usize = 14;

/// What stands before what is beneath something.
const BENEATH: &str = "    ";

/// What stands before the further lines of an entry, beyond what stands before its first.
const HANGING: &str = "  ";

/// Collects what is to be shown.
#[derive(Debug)]
pub(in crate::cli) struct Screen {
    text: String,
    /// The columns of the terminal; `None` where it goes elsewhere, and is not cut.
    width: Option<u16>,
}

impl Screen {
    pub(in crate::cli) fn new() -> Self {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        Self { text: String::new(), width: size.map(|(width, _)| width.0.max(NARROWEST)) }
    }

    /// A screen for notes, on standard error.
    pub(in crate::cli) fn beside() -> Self {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        Self { text: String::new(), width: size.map(|(width, _)| width.0.max(NARROWEST)) }
    }

    /// Writes it to standard error.
    pub(in crate::cli) fn print(&self) {
        // Nothing else could be done about it.
        let _ = std::io::stderr().write_all(self.text.as_bytes());
    }

    pub(in crate::cli) fn text(&self) -> &str {
        &self.text
    }

    /// An empty line.
    pub(in crate::cli) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A sentence or two, wrapped.
    pub(in crate::cli) fn say(&mut self, text: &str) {
        self.indented("", text);
    }

    /// The same, each line of it behind so many spaces.
    pub(in crate::cli) fn beneath(&mut self, text: &str) {
        self.indented(BENEATH, text);
    }

    /// An item of a list behind its mark; further lines of it begin below its text.
    pub(in crate::cli) fn item(&mut self, mark: &str, text: &str) {
        self.wrap(mark, &" ".repeat(display_width(mark)), text);
    }

    /// An entry of a list without marks; further lines of it are indented.
    pub(in crate::cli) fn entry(&mut self, text: &str) {
        self.wrap("", HANGING, text);
    }

    /// The same beneath something.
    pub(in crate::cli) fn entry_beneath(&mut self, text: &str) {
        self.wrap(BENEATH, &[BENEATH, HANGING].concat(), text);
    }

    /// A fact and its name, on as many lines as it takes; nothing where it is empty.
    pub(in crate::cli) fn fact(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let first = format!("{name:NAME$}");
        self.wrap(&first, &" ".repeat(NAME), value);
    }

    /// The same beneath something.
    pub(in crate::cli) fn fact_beneath(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let first = format!("{BENEATH}{name:NAME$}");
        self.wrap(&first, &" ".repeat(BENEATH.len() + NAME), value);
    }

    /// A table; nothing where it has no rows.
    pub(in crate::cli) fn table(&mut self, table: &Table) {
        self.text.push_str(&table.text(self.width));
    }

    fn indented(&mut self, indent: &str, text: &str) {
        self.wrap(indent, indent, text);
    }

    fn wrap(&mut self, first: &str, others: &str, text: &str) {
        let text = visible(text);
        let Some(width) = self.width else {
            self.text.extend([first, &text, "\n"]);
            return;
        };
        let options = Options::new(usize::from(width).min(WIDEST_TEXT))
            .initial_indent(first)
            .subsequent_indent(others)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in textwrap::wrap(&text, options) {
            self.text.extend([line.trim_end(), "\n"]);
        }
    }
}
