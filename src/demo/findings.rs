//! What the work on an object finds, and the values that it leaves in the znodes of the job.

use queuekeeper_queue::JobValue;

/// The results of the work on an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Findings<'a> {
    pub(super) bytes: u64,
    pub(super) ark: &'a str,
    pub(super) local_ids: &'a [String],
    pub(super) title: &'a str,
    pub(super) creator: &'a str,
}

/// No values.
pub(super) fn nothing(_: &Findings<'_>) -> Vec<JobValue> {
    Vec::new()
}

/// The working storage that the job needs.
pub(super) fn space(found: &Findings<'_>) -> Vec<JobValue> {
    vec![JobValue::SpaceNeeded((found.bytes > 0).then_some(found.bytes))]
}

/// The identifiers and the metadata of the object.
pub(super) fn identity(found: &Findings<'_>) -> Vec<JobValue> {
    let Findings { ark, local_ids, title, creator, .. } = *found;
    vec![
        JobValue::Identifiers { ark: ark.to_owned(), local_ids: local_ids.to_vec() },
        JobValue::Metadata {
            who: creator.to_owned(),
            what: title.to_owned(),
            when: "(:unas)".to_owned(),
            location: ark.to_owned(),
        },
    ]
}

/// Where the object is stored, and what the inventory records.
pub(super) fn stored(found: &Findings<'_>) -> Vec<JobValue> {
    let ark = found.ark;
    let manifest_url = format!("https://store.example.org/manifest/9501/{}", ark.replace(":/", "%3A%2F"));
    vec![
        JobValue::Store { manifest_url: manifest_url.clone(), mode: format!("add/9501/{ark}"), delete: None },
        JobValue::Inventory { manifest_url, mode: format!("add/9501/{ark}") },
    ]
}
