//! Search for a text that may be an id, an ARK, a UUID, a session, a mnemonic, or part of a name or message.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::access::{AccessFilter, AccessItem, AccessList};
use super::batches::{BatchFilter, BatchItem, BatchList};
use super::error::ViewError;
use super::jobs::{JobFilter, JobItem, JobList};
use super::page::PageQuery;
use super::parameter::{Holder, SearchFor};
use super::{NONE, Source};
use queuekeeper_queue::id::JobId;

/// How many items of each kind are listed.
const SHOWN: usize = 10;

/// What is searched for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct SearchQuery {
    /// The text, case-insensitive.
    pub(crate) text: Option<SearchFor>,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A job: the only one that matches.
    Job(String),
    /// A batch: the only one that matches.
    Batch(String),
    /// The locks of a session.
    Session(String),
    /// An access request, of this queue and id: the only one that matches.
    Request(&'static str, String),
    /// The jobs of a collection, of which this is the mnemonic.
    Collection(String),
    /// Nothing, or several things.
    Several(Box<Matches>),
}

/// The items that match: the first of each kind, and how many there are.
#[derive(Clone, Debug)]
pub(crate) struct Matches {
    /// Jobs, unfinished ones first, those longest in their state first.
    pub(crate) jobs: JobList,
    /// Batches, last created first.
    pub(crate) batches: BatchList,
    /// Access requests, those longest in their state first.
    pub(crate) requests: AccessList,
    /// Whether the text is the mnemonic of a collection that has jobs.
    pub(crate) is_collection: bool,
}

impl Source<'_> {
    /// Finds what matches a text. An id or a UUID names one thing, whatever else contains it.
    ///
    /// # Errors
    /// Before the first walk.
    pub(crate) fn search(&self, text: &SearchFor, now: Timestamp) -> Result<Found, ViewError> {
        let asked = text.to_string();
        if let Some(job) = asked.parse::<JobId>().ok().filter(|id| self.store.job(*id).is_some()) {
            return Ok(Found::Job(job.to_string()));
        }
        match self.batch_id(&asked) {
            Ok(batch) => return Ok(Found::Batch(batch.to_string())),
            Err(ViewError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        if asked != Holder::PERSISTENT && asked.parse::<Holder>().is_ok() {
            return Ok(Found::Session(asked));
        }
        let page = PageQuery::first(SHOWN);
        let some = || Some(text.clone());
        let jobs = self.jobs(&JobFilter { text: some(), ..JobFilter::default() }, &page, now)?;
        let batches = self.batches(&BatchFilter { text: some(), ..BatchFilter::default() }, &page)?;
        let requests = self.access(&AccessFilter { text: some(), ..AccessFilter::default() }, &page, now)?;
        let collections = self.store.collections().ok_or(ViewError::NoMirror)?;
        let is_collection = asked != NONE && collections.iter().any(|figures| *figures.collection == *asked);
        let matches = Matches { jobs, batches, requests, is_collection };
        Ok(matches.only(asked).unwrap_or_else(|| Found::Several(Box::new(matches))))
    }
}

impl Matches {
    /// The only thing that matches.
    fn only(&self, asked: String) -> Option<Found> {
        match (&*self.jobs.items, &*self.batches.items, &*self.requests.items, self.is_collection) {
            ([JobItem { id, .. }], [], [], false) => Some(Found::Job(id.clone())),
            ([], [BatchItem { id, .. }], [], false) => Some(Found::Batch(id.clone())),
            ([], [], [AccessItem { queue, id, .. }], false) => Some(Found::Request(queue, id.clone())),
            ([], [], [], true) => Some(Found::Collection(asked)),
            (_, _, _, _) => None,
        }
    }
}
