//! A job as a daemon reads it from its znodes.

use std::borrow::Cow;

use serde_json::Value;

use super::catalogue::{COLLECTIONS, Collection, FILMS};
use super::dice::Dice;
use super::fate::Subject;
use super::findings::Findings;
use queuekeeper_queue::Job;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::JobNode;

/// What a daemon needs of the job that it works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) job: JobId,
    pub(super) batch: BatchId,
    pub(super) retries: u32,
    /// The size of its object.
    pub(super) bytes: u64,
    pub(super) file: String,
    pub(super) title: String,
    pub(super) creator: String,
    /// Its ARK: an existing one to be updated, or the one that will be minted.
    pub(super) ark: String,
    pub(super) local_ids: Vec<String>,
    /// The owner of its local ids.
    pub(super) owner: &'static str,
}

impl Details {
    /// Reads a locked job, which is therefore loadable.
    pub(super) fn of(seed: u64, job: &Job) -> Self {
        let configuration = job.configuration().value;
        let identifiers = job.identifiers().value;
        let shoulder = shoulder(&configuration.collection);
        let ark = [&identifiers.ark, &configuration.object_id]
            .into_iter()
            .find(|ark| !ark.is_empty())
            .map_or_else(|| minted(seed, &configuration.filename, shoulder), ToString::to_string);
        Self {
            job: job.id,
            batch: job.batch().expect("an acquired job is loadable, and so has a batch"),
            retries: job.status().value.retry_count.unwrap_or(0),
            bytes: job.space_needed().ok().flatten().unwrap_or_else(|| size(job.data(JobNode::Configuration))),
            file: configuration.filename.to_string(),
            title: configuration.title.to_string(),
            creator: configuration.creator.to_string(),
            ark,
            local_ids: configuration.local_ids.into_iter().map(Cow::into_owned).collect(),
            owner: collection(&configuration.collection).map_or("unknown", |found| found.owner),
        }
    }

    /// The results of the work on it.
    pub(super) fn found(&self) -> Findings<'_> {
        let Self { ark, local_ids, title, creator, .. } = self;
        Findings { bytes: self.bytes, ark, local_ids, title, creator }
    }

    /// The input to its failure.
    pub(super) fn subject(&self) -> Subject<'_> {
        let Self { batch, job, retries, bytes, .. } = *self;
        Subject { batch, job, retries, bytes, file: &self.file, ark: &self.ark }
    }
}

fn collection(mnemonic: &str) -> Option<&'static Collection> {
    COLLECTIONS.iter().chain([&FILMS]).find(|each| each.mnemonic == mnemonic)
}

/// The shoulder of a collection's ARKs.
pub(super) fn shoulder(mnemonic: &str) -> &'static str {
    collection(mnemonic).map_or("fk4", |found| found.shoulder)
}

/// The ARK that is minted for an object; always the same.
pub(super) fn minted(seed: u64, file: &str, shoulder: &str) -> String {
    format!("ark:/99999/{shoulder}{}", Dice::new(seed, ("ark", file)).ark_blade())
}

/// The size from the manifest, which estimating returns; 0 if it has none.
fn size(configuration: Option<&[u8]>) -> u64 {
    let value: Option<Value> = configuration.and_then(|data| serde_json::from_slice(data).ok());
    value.and_then(|value| value.get("size")?.as_str()?.parse().ok()).unwrap_or(0)
}
