//! Tables: one line for each row, whatever it holds. On a terminal what is too long is cut; elsewhere nothing is. Where
//! a terminal has no room for the columns beside each other, each row is a block of lines.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, TableStyle, Width};
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};

use crate::views::show::visible;

/// From this width on there is room for columns that are nice to have.
const WIDE: u16 = 120;

/// What stands between two columns.
const GAP: u16 = 2;

/// With less room than this, a column that may be cut shows nothing of use.
const LEAST: usize = 12;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Column {
    name: &'static str,
    is_number: bool,
    /// Whether it may be cut.
    is_elastic: bool,
    /// Whether it is for wide screens and for pipes only, or where one of these is left out only; `None` for all.
    is_for_wide: Option<bool>,
    /// Whether it is left out where no row has anything in it.
    is_for_filled: bool,
}

impl Column {
    /// One that is never cut.
    pub(in crate::cli) const fn new(name: &'static str) -> Self {
        Self { name, is_number: false, is_elastic: false, is_for_wide: None, is_for_filled: false }
    }

    /// One of numbers, which stand at its right edge.
    pub(in crate::cli) const fn number(name: &'static str) -> Self {
        Self { is_number: true, ..Self::new(name) }
    }

    /// One that takes the room that is left.
    pub(in crate::cli) const fn rest(name: &'static str) -> Self {
        Self { is_elastic: true, ..Self::new(name) }
    }

    /// The same where there is much room.
    pub(in crate::cli) const fn if_wide(self) -> Self {
        Self { is_for_wide: Some(true), ..self }
    }

    /// The same where some row has something in it.
    pub(in crate::cli) const fn if_filled(self) -> Self {
        Self { is_for_filled: true, ..self }
    }

    /// The same where not all of those are shown.
    pub(in crate::cli) const fn if_narrow(self) -> Self {
        Self { is_for_wide: Some(false), ..self }
    }
}

/// Rows of texts.
#[derive(Debug)]
pub(in crate::cli) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(in crate::cli) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row: a text for each column.
    pub(in crate::cli) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells.map(|cell| visible(&cell)).into());
    }

    /// The lines of it.
    pub(super) fn text(&self, width: Option<u16>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let wide = self.columns.iter().filter(|column| column.is_for_wide == Some(true)).count();
        let Some(width) = width else { return self.beside(&self.shown(wide), None) };
        // Where there is no room for all that is nice to have, its last columns are left out.
        let most = if width >= WIDE { wide } else { 0 };
        let fits = |shown: &Vec<_>| self.narrowest(shown) <= usize::from(width);
        match (0..=most).rev().map(|wide| self.shown(wide)).find(fits) {
            Some(shown) => self.beside(&shown, Some(width)),
            None => self.stacked(&self.shown(most), usize::from(width)),
        }
    }

    /// The columns with so many of those that are nice to have; what stands for these only where one is left out.
    fn shown(&self, wide: usize) -> Vec<(usize, &Column)> {
        let is_wide = |column: &Column| column.is_for_wide == Some(true);
        let is_whole = self.columns.iter().filter(|column| is_wide(column)).count() == wide;
        let mut left = wide;
        let is_filled = |at: usize| self.rows.iter().any(|cells| cells.get(at).is_some_and(|cell| !cell.is_empty()));
        let is_shown = |(at, column): &(usize, &Column)| match column.is_for_wide {
            None => !column.is_for_filled || is_filled(*at),
            Some(true) => {
                let is_shown = left > 0;
                left = left.saturating_sub(1);
                is_shown
            }
            Some(false) => !is_whole,
        };
        self.columns.iter().enumerate().filter(is_shown).collect()
    }

    /// The columns beside each other.
    fn beside(&self, shown: &[(usize, &Column)], width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        // No text has one, so a cell is cut where its room ends and not where a word does.
        table.load_style(TableStyle::new()).set_delimiter('\0');
        match width {
            // The gap behind the last column is not written.
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width + GAP),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.set_header(shown.iter().map(|(_, column)| column.name).collect::<Vec<_>>());
        for cells in &self.rows {
            let mut row = Row::from(shown.iter().filter_map(|(at, _)| cells.get(*at)).collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        for (column, drawn) in shown.iter().zip(table.column_iter_mut()) {
            drawn.set_padding((0, GAP));
            if column.1.is_number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            drawn.set_constraint(if column.1.is_elastic {
                let least = u16::try_from(self.least(column)).unwrap_or(u16::MAX);
                ColumnConstraint::LowerBoundary(Width::Fixed(least.saturating_add(GAP)))
            } else {
                ColumnConstraint::ContentWidth
            });
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }

    /// How much room a column needs where it shows something of use, and its name whole.
    fn least(&self, (at, column): &(usize, &Column)) -> usize {
        let cells = self.rows.iter().filter_map(|cells| cells.get(*at));
        let widest = cells.map(|cell| display_width(cell)).max().unwrap_or(0);
        if column.is_elastic { widest.min(LEAST) } else { widest }.max(display_width(column.name))
    }

    /// How much room the columns need beside each other.
    fn narrowest(&self, shown: &[(usize, &Column)]) -> usize {
        shown.iter().map(|column| self.least(column)).sum::<usize>() + usize::from(GAP) * shown.len().saturating_sub(1)
    }

    /// A line for each cell that holds something, behind the name of its column; as many as it takes for a long one.
    fn stacked(&self, shown: &[(usize, &Column)], width: usize) -> String {
        let names = shown.iter().map(|(_, column)| display_width(column.name)).max().unwrap_or(0) + usize::from(GAP);
        let block = |cells: &Vec<String>| {
            let mut block = String::new();
            for (at, column) in shown {
                let Some(cell) = cells.get(*at).filter(|cell| !cell.is_empty()) else { continue };
                let (first, others) = (format!("{:names$}", column.name), " ".repeat(names));
                let options = Options::new(width)
                    .initial_indent(&first)
                    .subsequent_indent(&others)
                    .word_splitter(WordSplitter::NoHyphenation);
                for line in textwrap::wrap(cell, options) {
                    block.extend([line.trim_end(), "\n"]);
                }
            }
            block
        };
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::new("JOB"),
            Column::number("TRY"),
            Column::new("FILE").if_wide(),
            Column::rest("ABOUT"),
        ]);
        table.row(["jid1".into(), "3".into(), "a.zip".into(), "404 for \u{1b}[31m the manifest and more".into()]);
        table.row(["jid0000000002".into(), "12".into(), String::new(), String::new()]);
        table
    }

    #[test]
    fn on_a_narrow_terminal_a_row_is_a_line_and_what_is_long_is_cut() {
        let text = table().text(Some(40));
        let lines = ["JOB            TRY  ABOUT", "jid1             3  404 for \\u{1b}[31m …", "jid0000000002   12"];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn where_columns_have_no_room_beside_each_other_each_row_is_a_block_and_no_line_is_too_long() {
        let text = table().text(Some(31));
        let lines = [
            "JOB    jid1",
            "TRY    3",
            "ABOUT  404 for \\u{1b}[31m the",
            "       manifest and more",
            "",
            "JOB    jid0000000002",
            "TRY    12",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        for width in 20..130 {
            let text = table().text(Some(width));
            assert!(text.lines().all(|line| display_width(line) <= usize::from(width)), "{width}: {text}");
        }
    }

    #[test]
    fn no_name_of_a_column_is_cut_and_what_has_no_room_is_left_out_from_the_right() {
        let mut table = Table::new([
            Column::new("BATCH"),
            Column::rest("COLLECTION"),
            Column::rest("SUBMITTER"),
            Column::new("UUID").if_wide(),
            Column::new("LONG").if_wide(),
            Column::rest("ABOUT").if_narrow(),
        ]);
        let text = |length: usize| "x".repeat(length);
        table.row(["bid0000000042".into(), text(9), text(300), text(36), text(60), text(40)]);
        for width in 20..180 {
            let text = table.text(Some(width));
            let head = text.lines().next().unwrap();
            assert!(text.lines().all(|line| display_width(line) <= usize::from(width)), "{width}: {text}");
            let names: Vec<_> = head.split_whitespace().collect();
            let expected: &[&str] = match width {
                ..53 => &["BATCH", head.split_whitespace().last().unwrap()],
                53..120 => &["BATCH", "COLLECTION", "SUBMITTER", "ABOUT"],
                120..139 => &["BATCH", "COLLECTION", "SUBMITTER", "UUID", "ABOUT"],
                139.. => &["BATCH", "COLLECTION", "SUBMITTER", "UUID", "LONG"],
            };
            assert_eq!(names, expected, "{width}: {text}");
        }
    }

    #[test]
    fn in_a_pipe_nothing_is_cut() {
        let text = table().text(None);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("a.zip") && text.contains("the manifest and more\n"), "{text}");
        assert_eq!(Table::new([Column::new("JOB")]).text(None), "");
    }
}
