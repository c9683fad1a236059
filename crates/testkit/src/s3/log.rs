//! The requests that the server answered.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

/// How many requests are kept; counts go on.
const KEPT_REQUESTS: usize = 10_000;

/// The name under which requests are counted that were refused before it was clear what they ask for: a wrong
/// signature, an unknown operation.
pub const REJECTED: &str = "Rejected";

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The name of the operation, such as `ListObjectsV2` or `UploadPart`, or [`REJECTED`].
    pub operation: String,
    /// The bucket, where there is one.
    pub bucket: Option<String>,
    /// The key, where there is one.
    pub key: Option<String>,
    /// The status of the answer; `None` where the connection ended without one.
    pub status: Option<u16>,
}

#[derive(Debug, Default)]
struct Records {
    counts: BTreeMap<String, u64>,
    last: VecDeque<Logged>,
}

/// All requests by operation, and the last of them.
#[derive(Debug, Default)]
pub(super) struct Log {
    records: Mutex<Records>,
}

impl Log {
    /// Counts a request when it comes.
    pub(super) fn count(&self, operation: &str) {
        let mut records = self.records.lock();
        match records.counts.get_mut(operation) {
            Some(count) => *count += 1,
            None => drop(records.counts.insert(operation.to_owned(), 1)),
        }
    }

    /// Keeps a request when it was answered.
    pub(super) fn keep(&self, logged: Logged) {
        let mut records = self.records.lock();
        if records.last.len() == KEPT_REQUESTS {
            records.last.pop_front();
        }
        records.last.push_back(logged);
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.records.lock().counts.clone()
    }

    pub(super) fn last(&self) -> Vec<Logged> {
        self.records.lock().last.iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        *self.records.lock() = Records::default();
    }
}
