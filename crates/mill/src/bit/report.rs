//! The report on a space as files: a table of its items and one of its coverage (TSV), and both as one document (JSON).
//!
//! A TSV has one line for each row, its fields separated by tabs, and a first line with the names of the columns. In a
//! field a backslash, a tab, a line feed and a carriage return are written `\\`, `\t`, `\n` and `\r`. Keys are
//! percent-encoded (RFC 3986), so that any bytes are text. Both files are made row by row: a space of any size needs
//! the memory of one row.

use jiff::Timestamp;
use queuekeeper_store::{Digests, Key, SpaceName, StoreName};
use serde::Deserialize;
use serde_json::{Value, json};

use super::coverage::{Coverage, Lack};
use super::verdict::{Fixity, Proof};

/// What one source said of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Statement {
    /// Nothing: it was not asked, or has no record.
    #[default]
    None,
    /// That there is no such item.
    Missing,
    /// The same as the content, or as the checksum of the store where the content was not read.
    Same,
    /// A size, and digests where it has some.
    Fixity(Fixity),
}

impl Statement {
    /// What was kept of a statement as JSON: `{"missing": true}`, or `{"size": 4, "digests": {"sha256": ".."}}`.
    ///
    /// # Errors
    /// With the reason, where it is neither.
    pub fn read(kept: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Kept {
            Fixity { size: u64, digests: Digests },
            Missing { missing: bool },
        }
        Ok(match serde_json::from_str(kept)? {
            Kept::Fixity { size, digests } => Self::Fixity(Fixity { size, digests }),
            Kept::Missing { missing: true } => Self::Missing,
            Kept::Missing { missing: false } => Self::None,
        })
    }

    /// The strongest digest with its algorithm, or a word: `missing`, `same`, `none` where it has a size alone.
    fn checksum(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Missing => "missing".to_owned(),
            Self::Same => "same".to_owned(),
            Self::Fixity(Fixity { digests, .. }) => {
                digests.strongest().map_or("none".to_owned(), |digest| format!("{}:{digest}", digest.algorithm()))
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Missing => json!("missing"),
            Self::Same => json!("same"),
            Self::Fixity(Fixity { size, digests }) => json!({"size": size, "digests": digests}),
        }
    }
}

/// One item of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRow {
    /// When its check ended.
    pub date: Timestamp,
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The key.
    pub key: Key,
    /// The name of the result.
    pub result: String,
    /// The names of what was found.
    pub findings: Vec<String>,
    /// The name of the proof; `None` where the bytes were not proven.
    pub proof: Option<String>,
    /// What was read.
    pub content: Statement,
    /// What the store says.
    pub provider: Statement,
    /// What the content index says.
    pub index: Statement,
    /// What the last event of the audit log says.
    pub audit: Statement,
    /// What is wrong, as a sentence; empty where nothing is.
    pub detail: String,
}

/// The columns of the table of items.
const COLUMNS: [&str; 12] = [
    "date",
    "account",
    "store",
    "space",
    "key",
    "result",
    "proof",
    "content_checksum",
    "provider_checksum",
    "index_checksum",
    "audit_checksum",
    "detail",
];

/// The first line of the table of items.
#[must_use]
pub fn tsv_header() -> String {
    line(COLUMNS)
}

impl ReportRow {
    /// Its line in the table.
    #[must_use]
    pub fn tsv(&self) -> String {
        let Self { date, account, store, space, key, result, proof, content, provider, index, audit, detail, .. } =
            self;
        let [content, provider, index, audit] = [content, provider, index, audit].map(Statement::checksum);
        line([
            date.to_string().as_str(),
            account,
            store.as_str(),
            space.as_str(),
            &key.encoded(),
            result,
            proof.as_deref().unwrap_or_default(),
            &content,
            &provider,
            &index,
            &audit,
            detail,
        ])
    }

    /// Its checksums, each with the name of its column; empty where the source said nothing.
    pub(super) fn checksums(&self) -> [(&'static str, String); 4] {
        [
            ("content_checksum", self.content.checksum()),
            ("provider_checksum", self.provider.checksum()),
            ("index_checksum", self.index.checksum()),
            ("audit_checksum", self.audit.checksum()),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "date": self.date,
            "key": self.key.to_string(),
            "key_encoded": self.key.encoded(),
            "result": self.result,
            "findings": self.findings,
            "proof": self.proof,
            "content": self.content.json(),
            "provider": self.provider.json(),
            "index": self.index.json(),
            "audit": self.audit.json(),
            "detail": self.detail,
        })
    }
}

/// A line of fields, each of which stays on it.
pub(crate) fn line<const N: usize>(fields: [&str; N]) -> String {
    let mut line = String::new();
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            line.push('\t');
        }
        for char in field.chars() {
            match char {
                '\\' => line.push_str("\\\\"),
                '\t' => line.push_str("\\t"),
                '\n' => line.push_str("\\n"),
                '\r' => line.push_str("\\r"),
                other => line.push(other),
            }
        }
    }
    line.push('\n');
    line
}

/// The fields of a line of a table, without the line feed at its end.
#[must_use]
pub fn fields(line: &str) -> Vec<String> {
    let field = |field: &str| {
        let (mut text, mut chars) = (String::new(), field.chars());
        while let Some(char) = chars.next() {
            match (char, if char == '\\' { chars.next() } else { None }) {
                ('\\', Some('t')) => text.push('\t'),
                ('\\', Some('n')) => text.push('\n'),
                ('\\', Some('r')) => text.push('\r'),
                (_, Some(other)) => text.push(other),
                (char, None) => text.push(char),
            }
        }
        text
    };
    line.split('\t').map(field).collect()
}

/// The table of a coverage, with its first line.
#[must_use]
pub fn coverage_tsv(coverage: &Coverage) -> String {
    let lines = coverage.lines().map(|[part, why, items, bytes]| line([&part, &why, &items, &bytes]));
    [line(["part", "why", "items", "bytes"])].into_iter().chain(lines).collect()
}

/// What a report says of a space as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportHead {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The number of its loop.
    pub number: u64,
    /// The policy of the store, as it is configured.
    pub policy: String,
    /// The least proof that the policy requires.
    pub required: Proof,
    /// When the run began.
    pub started: Timestamp,
    /// When its checks had ended.
    pub ended: Timestamp,
    /// What it covers.
    pub coverage: Coverage,
}

impl ReportHead {
    /// The head as JSON, without items.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { account, store, space, number, policy, required, started, ended, coverage } = self;
        let lacks = coverage.lacks(*required).into_iter().map(|Lack { items, words, .. }| {
            let noun = if items == 1 { "item" } else { "items" };
            format!("{items} {noun} {words}")
        });
        let mut parts = json!(coverage);
        parts["unaccounted"] = json!(coverage.unaccounted());
        json!({
            "account": account,
            "store": store.as_str(),
            "space": space.as_str(),
            "loop": number,
            "policy": policy,
            "started": started,
            "ended": ended,
            "result": coverage.result(*required).as_str(),
            "lacks": lacks.collect::<Vec<_>>(),
            "coverage": parts,
        })
    }
}

/// A report as one JSON document, made piece by piece: the head, then `items` with one row a line.
#[derive(Debug, Default)]
pub struct JsonReport {
    has_row: bool,
}

impl JsonReport {
    /// The end of the document.
    pub const END: &'static str = "\n]}\n";

    /// The beginning of the document.
    #[must_use]
    pub fn begin(head: &ReportHead) -> (Self, String) {
        let mut text = head.json().to_string();
        // An object that is to have one field more.
        text.truncate(text.len() - 1);
        text.push_str(",\"items\":[");
        (Self::default(), text)
    }

    /// The next row.
    #[must_use]
    pub fn row(&mut self, row: &ReportRow) -> String {
        let comma = if std::mem::replace(&mut self.has_row, true) { "," } else { "" };
        format!("{comma}\n{}", row.json())
    }
}

#[cfg(test)]
mod tests;
