//! All jobs of a batch as CSV, of a bounded size.

/// The largest table, in bytes. In base64 it still fits into the 10,240,000 bytes that a common mail server takes.
const MOST_BYTES: usize = 6 << 20;

/// How much each row is sure to have, in bytes: a batch of 40,000 jobs has a row for each.
const LEAST_ROW: usize = 140;

/// The columns.
pub(crate) const COLUMNS: [&str; 7] = ["job", "outcome", "before", "file", "local_ids", "ark", "message"];

/// A table of which the number of rows is known. Rows that come first may be long as long as each later one has its
/// part.
#[derive(Debug)]
pub(crate) struct Table {
    csv: String,
    rows_left: usize,
    left_out: usize,
}

impl Table {
    pub(crate) fn new(rows: usize) -> Self {
        Self { csv: row(&COLUMNS.map(ToOwned::to_owned)), rows_left: rows, left_out: 0 }
    }

    /// Adds a row. Where it has no room its longest fields are cut.
    pub(crate) fn push(&mut self, mut fields: [String; 7]) {
        self.rows_left = self.rows_left.saturating_sub(1);
        // The last row may have to say that others have no room.
        let left = (MOST_BYTES - LEAST_ROW).saturating_sub(self.csv.len());
        if left < LEAST_ROW {
            self.left_out += 1;
            return;
        }
        let room = left.saturating_sub(self.rows_left.saturating_mul(LEAST_ROW)).max(LEAST_ROW);
        for field in &mut fields {
            // A spreadsheet takes these for formulas.
            if field.starts_with(['=', '+', '-', '@']) {
                field.insert(0, '\'');
            }
            cut(field, room / 2);
        }
        let mut line = row(&fields);
        while line.len() > room {
            let Some(longest) = fields.iter_mut().max_by_key(|field| field.len()) else { break };
            let half = longest.len() / 2;
            cut(longest, half);
            line = row(&fields);
        }
        self.csv.push_str(&line);
    }

    pub(crate) fn finish(mut self) -> String {
        if self.left_out > 0 {
            let mut fields = COLUMNS.map(|_| String::new());
            fields[6] = format!("{} more jobs are not listed here; the batch's page lists them", self.left_out);
            self.csv.push_str(&row(&fields));
        }
        self.csv
    }
}

/// Cuts a field to so many bytes and two points, if it is longer.
fn cut(field: &mut String, most: usize) {
    if field.len() > most {
        field.truncate(field.floor_char_boundary(most));
        field.push_str("..");
    }
}

/// A row with its end (RFC 4180).
fn row(fields: &[String; 7]) -> String {
    let quoted = fields.each_ref().map(|field| {
        if field.contains(['"', ',', '\r', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    });
    quoted.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(job: &str, file: &str, message: &str) -> [String; 7] {
        [job, "Failed", "", file, "", "ark:/99999/fk4abcdefgh", message].map(ToOwned::to_owned)
    }

    #[test]
    fn a_field_stays_in_its_cell_and_is_no_formula() {
        let mut table = Table::new(2);
        table.push(fields("jid0000000001", "a,\"b\".txt", "=HYPERLINK(\"x\")"));
        table.push(fields("jid0000000002", "plain", ""));
        let expected = "job,outcome,before,file,local_ids,ark,message\r\n\
             jid0000000001,Failed,,\"a,\"\"b\"\".txt\",,ark:/99999/fk4abcdefgh,\"'=HYPERLINK(\"\"x\"\")\"\r\n\
             jid0000000002,Failed,,plain,,ark:/99999/fk4abcdefgh,\r\n";
        assert_eq!(table.finish(), expected);
    }

    #[test]
    fn a_table_is_bounded_and_has_a_row_for_each_of_40_000_jobs() {
        let (mut table, long) = (Table::new(40_000), "\"x".repeat(512));
        for job in 0..40_000 {
            table.push(fields(&format!("jid{job:010}"), &"f".repeat(255), &long));
        }
        let csv = table.finish();
        assert!(csv.len() <= MOST_BYTES, "{}", csv.len());
        let mut rows = csv.lines();
        assert_eq!(csv.lines().count(), 40_001);
        assert!(rows.nth(1).unwrap().len() > 1_500, "the first has all of it");
        for (job, row) in rows.enumerate() {
            assert!(row.starts_with(&format!("jid{:010},Failed,", job + 1)), "{row}");
        }

        let mut table = Table::new(80_000);
        for _ in 0..80_000 {
            table.push(fields("jid0000000001", "f", &long));
        }
        let csv = table.finish();
        assert!(
            csv.len() <= MOST_BYTES && csv.ends_with("more jobs are not listed here; the batch's page lists them\r\n")
        );
    }
}
