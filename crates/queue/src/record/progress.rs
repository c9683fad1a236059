//! How far the downloads of a process are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::id::JobId;

/// How many jobs of a process are named.
const MOST_JOBS: usize = 100;

/// How many files of a job are named.
const MOST_FILES: usize = 8;

/// How much of a file's name is kept, in bytes: all of it together stays far below what a znode takes.
const MOST_NAME_BYTES: usize = 255;

/// `/queuekeeper/progress/SESSION`: what a process is downloading. It is written each second while that changes, and
/// ends with the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgressNote {
    /// The jobs that are in Downloading there, some of them.
    pub jobs: BTreeMap<JobId, JobProgress>,
}

/// How far the download of a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// How many files are there, whole and with the right digests.
    pub files: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// The files that are on their way, some of them.
    pub fetching: Vec<FileProgress>,
}

/// How far a file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProgress {
    /// Its name.
    pub name: String,
    /// How many bytes of it were written.
    pub bytes: u64,
    /// How many it has, where that is known.
    pub size: Option<u64>,
}

impl ProgressNote {
    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let form: BTreeMap<String, JobProgress> = serde_json::from_slice(data).ok()?;
        let jobs = form.into_iter().filter_map(|(id, job)| Some((id.parse().ok()?, job.bounded())));
        Some(Self { jobs: jobs.take(MOST_JOBS).collect() })
    }

    /// The znode's data, of bounded length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let jobs = self.jobs.iter().take(MOST_JOBS);
        let form: Map<String, Value> = jobs.map(|(id, job)| (id.to_string(), json!(job.clone().bounded()))).collect();
        Value::Object(form).to_string().into_bytes()
    }
}

impl JobProgress {
    fn bounded(mut self) -> Self {
        self.fetching.truncate(MOST_FILES);
        for file in &mut self.fetching {
            file.name.truncate(file.name.floor_char_boundary(MOST_NAME_BYTES));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_within_its_bounds_and_nothing_else() {
        let file = FileProgress { name: "ä".repeat(300), bytes: 3, size: Some(7) };
        let job = JobProgress { files: 2, bytes: 40, fetching: vec![file; 9] };
        let note = ProgressNote { jobs: (0..300).map(|number| (JobId::new(number), job.clone())).collect() };
        let read = ProgressNote::decode(&note.encode()).unwrap();
        let one = &read.jobs[&JobId::new(0)];
        assert_eq!((read.jobs.len(), one.files, one.bytes, one.fetching.len()), (100, 2, 40, 8));
        assert_eq!(one.fetching[0], FileProgress { name: "ä".repeat(127), bytes: 3, size: Some(7) });
        assert!(note.encode().len() < 512 << 10);
        // Of a client that keeps to no bounds, nor to names of jobs.
        let raw = serde_json::to_vec(&serde_json::json!({"jid0000000001": job, "job": job})).unwrap();
        let read = ProgressNote::decode(&raw).unwrap();
        assert_eq!(read.jobs.keys().copied().collect::<Vec<_>>(), [JobId::new(1)]);
        assert_eq!(read.jobs[&JobId::new(1)].fetching.len(), 8);
        for other in ["", "{", "[]", r#"{"jid0000000001": {}}"#, r#"{"jid0000000001": {"files": -1}}"#] {
            assert_eq!(ProgressNote::decode(other.as_bytes()), None, "{other}");
        }
    }
}
