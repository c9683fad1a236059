//! Actions without an outcome: the process ended while they were executing.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::record::{ActionId, Record};
use crate::actions::outcome::UNKNOWN;

/// After how many bytes a record says that all earlier actions have an outcome, so that the next start need not read
/// them again.
const SETTLED_AFTER_BYTES: u64 = 8 << 20;

/// The actions without an outcome, searched file by file, the newest first.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Those of files that were read completely.
    newer: Vec<ActionId>,
    /// Those of the file that is being read, in order.
    found: Vec<ActionId>,
    ended: HashSet<ActionId>,
    is_settled: bool,
    read_bytes: u64,
}

/// The fields of a record that are needed here.
#[derive(Deserialize)]
struct Header {
    record: String,
    id: ActionId,
    #[serde(default)]
    target: Option<IgnoredAny>,
}

impl Unfinished {
    /// The following lines are older than all before.
    pub(super) fn begin_older(&mut self) {
        let newer = std::mem::take(&mut self.newer);
        self.newer = std::mem::take(&mut self.found);
        self.newer.extend(newer);
    }

    pub(super) fn add(&mut self, line: &[u8]) {
        self.read_bytes += line.len() as u64;
        // Most records of a bulk action are about its items; they are not parsed.
        let is_item = line.starts_with(br#"{"record":"started""#)
            || line.starts_with(br#"{"record":"outcome""#) && memchr::memmem::find(line, br#","target":""#).is_some();
        if is_item {
            return;
        }
        let Ok(Header { record, id, target }) = serde_json::from_slice(line) else { return };
        match (&*record, target) {
            ("requested", _) if self.found.last() != Some(&id) => self.found.push(id),
            ("outcome", None) => {
                self.ended.insert(id);
            }
            ("settled", _) => {
                self.found.clear();
                self.is_settled = true;
            }
            _ => {}
        }
    }

    /// Whether a record says that all older actions have an outcome.
    pub(super) fn is_settled_before(&self) -> bool {
        self.is_settled
    }

    /// The records that give each of them an outcome. `by_alert` selects the file.
    pub(super) fn end(mut self, now: Timestamp, by_alert: bool) -> Vec<Record> {
        self.begin_older();
        let mut named = HashSet::new();
        let without = self.newer.into_iter().filter(|id| !self.ended.contains(id) && named.insert(*id));
        let mut records: Vec<_> = without
            .map(|id| Record::Outcome {
                id,
                at: now,
                target: None,
                outcome: UNKNOWN.to_owned(),
                detail: Some("the process ended before the outcome was recorded; compare with the queue".to_owned()),
                before: None,
                after: None,
                cancelled_by: None,
                duration_seconds: 0.0,
                by_alert,
            })
            .collect();
        if !records.is_empty() || self.read_bytes > SETTLED_AFTER_BYTES {
            records.push(Record::Settled { id: ActionId::new(now), at: now });
        }
        records
    }
}
