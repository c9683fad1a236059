//! Tables: one line for each row, whatever it holds. On a terminal what is too long is cut; elsewhere nothing is. Where
//! a terminal has no room for the columns beside each other, each row is a block of lines.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, TableStyle};
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
    /// Whether it is for wide screens and for pipes only, or for others only; `None` for all.
    is_for_wide: Option<bool>,
}

impl Column {
    /// One that is never cut.
    pub(in crate::cli) const fn new(name: &'static str) -> Self {
        Self { name, is_number: false, is_elastic: false, is_for_wide: None }
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

    /// The same where there is little.
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
        let is_wide = width.is_none_or(|width| width >= WIDE);
        let is_shown = |column: &Column| column.is_for_wide.is_none_or(|wide| wide == is_wide);
        if self.rows.is_empty() {
            return String::new();
        }
        let shown: Vec<_> = self.columns.iter().enumerate().filter(|(_, column)| is_shown(column)).collect();
        if let Some(width) = width.map(usize::from).filter(|width| self.narrowest(&shown) > *width) {
            return self.stacked(&shown, width);
        }
        let mut table = comfy_table::Table::new();
        // No text has one, so a cell is cut where its room ends and not where a word does.
        table.load_style(TableStyle::new()).set_delimiter('\0');
        match width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.set_header(shown.iter().map(|(_, column)| column.name).collect::<Vec<_>>());
        for cells in &self.rows {
            let mut row = Row::from(shown.iter().filter_map(|(at, _)| cells.get(*at)).collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        for ((_, column), drawn) in shown.iter().zip(table.column_iter_mut()) {
            drawn.set_padding((0, GAP));
            if column.is_number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            if !column.is_elastic {
                drawn.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }

    /// How much room the columns need beside each other, where each shows something of use.
    fn narrowest(&self, shown: &[(usize, &Column)]) -> usize {
        let widest = |(at, column): &(usize, &Column)| {
            let cells = self.rows.iter().filter_map(|cells| cells.get(*at));
            let widest = cells.map(|cell| display_width(cell)).max().unwrap_or(0);
            if column.is_elastic { widest.min(LEAST) } else { widest }.max(display_width(column.name))
        };
        shown.iter().map(widest).sum::<usize>() + usize::from(GAP) * shown.len().saturating_sub(1)
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
        let lines = ["JOB            TRY  ABOUT", "jid1             3  404 for \\u{1b}[31…", "jid0000000002   12"];
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
    fn in_a_pipe_nothing_is_cut() {
        let text = table().text(None);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("a.zip") && text.contains("the manifest and more\n"), "{text}");
        assert_eq!(Table::new([Column::new("JOB")]).text(None), "");
    }
}
