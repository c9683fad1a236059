//! How far the creation of a batch's jobs is.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::id::{InvalidName, JobId};

/// `/queuekeeper/expansions/BID`: a batch whose jobs are being created, many in each transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ExpansionForm", try_from = "ExpansionForm")]
pub struct ExpansionNote {
    /// How many of the manifest's rows have their jobs.
    pub next: u64,
    /// How many rows there are, once that is known; absent in notes of earlier versions.
    pub rows: Option<u64>,
    /// The digest of the manifest, once it is known; the rows are those of this content.
    pub digest: String,
    /// The job of the last row, which is created with those of the first ones and gets its queue entry at the end.
    pub last: Option<JobId>,
}

#[derive(Serialize, Deserialize)]
struct ExpansionForm {
    next: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    digest: String,
    last: Option<String>,
}

impl From<ExpansionNote> for ExpansionForm {
    fn from(note: ExpansionNote) -> Self {
        let ExpansionNote { next, rows, digest, last } = note;
        Self { next, rows, digest, last: last.map(|last| last.to_string()) }
    }
}

impl TryFrom<ExpansionForm> for ExpansionNote {
    type Error = InvalidName;

    fn try_from(form: ExpansionForm) -> Result<Self, InvalidName> {
        let ExpansionForm { next, rows, digest, last } = form;
        Ok(Self { next, rows, digest, last: last.map(|last| last.parse()).transpose()? })
    }
}

impl ExpansionNote {
    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }

    /// The znode's data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let begun = ExpansionNote { next: 900, rows: Some(1_000), digest: "ab".to_owned(), last: Some(JobId::new(7)) };
        for note in [ExpansionNote::default(), begun] {
            assert_eq!(ExpansionNote::decode(&note.encode()), Some(note));
        }
        for wrong in
            [&b""[..], b"{}", br#"{"next":-1,"digest":"","last":null}"#, br#"{"next":1,"digest":"","last":"x"}"#]
        {
            assert_eq!(ExpansionNote::decode(wrong), None);
        }
    }
}
