//! What the work on an object finds, and the values that it leaves in the znodes of the job.

use queuekeeper_queue::JobValue;
use queuekeeper_queue::state::JobState;

/// The results of the work on an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Findings<'a> {
    pub(super) bytes: u64,
    pub(super) ark: &'a str,
    pub(super) local_ids: &'a [String],
    pub(super) title: &'a str,
    pub(super) creator: &'a str,
}

/// The values in a job's znodes once it has completed a state.
pub(super) fn results(state: JobState, found: &Findings<'_>) -> Vec<JobValue> {
    let Findings { bytes, ark, local_ids, title, creator } = *found;
    let manifest_url = format!("https://store.example.org/manifest/9501/{}", ark.replace(":/", "%3A%2F"));
    match state {
        JobState::Estimating => vec![JobValue::SpaceNeeded((bytes > 0).then_some(bytes))],
        JobState::Processing => vec![
            JobValue::Identifiers { ark: ark.to_owned(), local_ids: local_ids.to_vec() },
            JobValue::Metadata {
                who: creator.to_owned(),
                what: title.to_owned(),
                when: "(:unas)".to_owned(),
                location: ark.to_owned(),
            },
        ],
        JobState::Storing => vec![
            JobValue::Store { manifest_url: manifest_url.clone(), mode: format!("add/9501/{ark}"), delete: None },
            JobValue::Inventory { manifest_url, mode: format!("add/9501/{ark}") },
        ],
        JobState::Pending
        | JobState::Provisioning
        | JobState::Downloading
        | JobState::Recording
        | JobState::Notify
        | JobState::Completed
        | JobState::Failed
        | JobState::Held
        | JobState::Deleted => Vec::new(),
    }
}
