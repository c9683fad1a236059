//! What is odd about a job's package, and no reason to refuse it: said in the job's message up to its last state, and
//! so in the report.
//!
//! The job's directory keeps it, since a failure replaces the message; the message keeps it once the directory is gone.

use std::{fs, io};

use queuekeeper_queue::state::{JobState, State as _};

use crate::working::{self, JobDirectory};

/// What a message begins with that has warnings.
pub const BEGINNING: &str = "Success, with warnings: ";

/// The states that find warnings.
const FINDING: [JobState; 2] = [JobState::Downloading, JobState::Processing];

fn name(state: JobState) -> String {
    format!("warnings-{}", state.label())
}

/// Keeps what a state has found, in the place of what it found in an attempt before.
///
/// # Errors
/// When the job's directory cannot be written.
pub(crate) fn write(directory: &JobDirectory, state: JobState, warnings: &[String]) -> io::Result<()> {
    let path = directory.helper(&name(state));
    if warnings.is_empty() {
        return working::absent_is_fine(fs::remove_file(path));
    }
    JobDirectory::write(&path, serde_json::to_string(warnings)?.as_bytes())?;
    working::sync_folder_of(&path)
}

/// What is kept in a job's directory; nothing where it cannot be read.
pub(crate) fn read(directory: &JobDirectory) -> Vec<String> {
    let kept = FINDING.into_iter().filter_map(|state| fs::read(directory.helper(&name(state))).ok());
    kept.flat_map(|data| serde_json::from_slice::<Vec<String>>(&data).unwrap_or_default()).collect()
}

/// What a job's message says of them; `None` for a message without warnings.
#[must_use]
pub fn in_message(message: &str) -> Option<&str> {
    message.strip_prefix(BEGINNING)
}

/// The same, as one of a list.
pub(crate) fn of(message: &str) -> Vec<String> {
    in_message(message).map(ToOwned::to_owned).into_iter().collect()
}

/// The message of a step that went well; `None` without warnings.
pub(crate) fn said(warnings: &[String]) -> Option<String> {
    (!warnings.is_empty()).then(|| format!("{BEGINNING}{}", warnings.join("; ")))
}
