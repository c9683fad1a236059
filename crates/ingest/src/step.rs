//! What one step of a job needs, and how it ends.

use std::sync::Arc;

use queuekeeper_queue::{LockedJob, Queue};

use crate::engine::fence::Fence;
use crate::fetch::Fetcher;
use crate::profile::Profile;
use crate::services::Services;
use crate::spec::JobSpec;
use crate::working::JobDirectory;

mod error;

pub use error::StepError;

/// The longest message of a failure, in bytes.
const MOST_MESSAGE_BYTES: usize = 1_024;

/// A job that a worker of ours holds, with what its configuration says.
pub struct JobAtWork<'a> {
    /// What the daemons share.
    pub services: &'a Services,
    /// The queue, by the session that holds the lock.
    pub queue: &'a Queue,
    /// Whether that session may still be relied on.
    pub fence: &'a Fence,
    /// The job.
    pub job: &'a LockedJob,
    /// What it is to do.
    pub spec: &'a JobSpec,
    /// The profile of its collection.
    pub profile: Arc<Profile>,
    /// Its directory.
    pub directory: JobDirectory,
}

impl JobAtWork<'_> {
    /// Whether the inventory has the version of this job.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn is_recorded(&self) -> Result<bool, StepError> {
        Ok(self.services.catalogue.version_of_job(self.spec.uuid).await?.is_some())
    }

    /// Fetches what the profile allows to be fetched.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn fetcher(&self) -> Result<Fetcher, StepError> {
        self.services.fetcher(&self.profile)
    }
}

/// A message as a status may have it: one line of at most 1 KiB.
#[must_use]
pub fn message(text: &str) -> String {
    let mut line =
        text.split(|char: char| char.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if line.len() > MOST_MESSAGE_BYTES {
        line.truncate(line.floor_char_boundary(MOST_MESSAGE_BYTES - 3));
        line.push_str("..");
    }
    line
}
