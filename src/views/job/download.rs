//! The progress of a job's download.

use queuekeeper_queue::record::JobProgress;
use serde::Serialize;
use utoipa::ToSchema;

use crate::words::{counted, size};

/// The progress of a job's download.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Download {
    /// How many files are downloaded completely, with the right digests.
    pub(crate) files: u64,
    /// The bytes of these.
    pub(crate) bytes: u64,
    /// The files that are being downloaded, at most eight of them.
    pub(crate) fetching: Vec<Fetching>,
}

/// A file that is being downloaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Fetching {
    /// Its name, at most 255 bytes of it.
    pub(crate) name: String,
    /// How many bytes of it were written.
    pub(crate) bytes: u64,
    /// How many bytes it has; null if unknown.
    pub(crate) size_bytes: Option<u64>,
}

impl Download {
    /// What is there, in words.
    pub(crate) fn whole(&self) -> String {
        match self.files {
            0 => "no file yet".to_owned(),
            files => format!("{}, {}", counted(files, "file", "files"), size(self.bytes)),
        }
    }
}

impl Fetching {
    /// How much of it was written, in words.
    pub(crate) fn words(&self) -> String {
        match self.size_bytes {
            Some(all) => format!("{} of {}", size(self.bytes), size(all)),
            None => format!("{}, of unknown size", size(self.bytes)),
        }
    }
}

impl From<JobProgress> for Download {
    fn from(progress: JobProgress) -> Self {
        let JobProgress { files, bytes, fetching } = progress;
        let fetching =
            fetching.into_iter().map(|file| Fetching { name: file.name, bytes: file.bytes, size_bytes: file.size });
        Self { files, bytes, fetching: fetching.collect() }
    }
}
