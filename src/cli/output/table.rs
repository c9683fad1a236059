//! Tables: one line for each row, whatever it holds. On a terminal what is too long is cut; elsewhere nothing is.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, TableStyle};

use crate::web::show::visible;

/// From this width on there is room for columns that are nice to have.
const WIDE: u16 = 120;

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
        let mut table = comfy_table::Table::new();
        // No text has one, so a cell is cut where its room ends and not where a word does.
        table.load_style(TableStyle::new()).set_delimiter('\0');
        match width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        let shown: Vec<_> = self.columns.iter().enumerate().filter(|(_, column)| is_shown(column)).collect();
        table.set_header(shown.iter().map(|(_, column)| column.name).collect::<Vec<_>>());
        for cells in &self.rows {
            let mut row = Row::from(shown.iter().filter_map(|(at, _)| cells.get(*at)).collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        for ((_, column), drawn) in shown.iter().zip(table.column_iter_mut()) {
            drawn.set_padding((0, 2));
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
    fn in_a_pipe_nothing_is_cut() {
        let text = table().text(None);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("a.zip") && text.contains("the manifest and more\n"), "{text}");
        assert_eq!(Table::new([Column::new("JOB")]).text(None), "");
    }
}
