//! Search for a text that may be an id, an ARK, a UUID, a session, a mnemonic, a group of failures, or part of a name
//! or message.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::access::{AccessFilter, AccessItem, AccessList};
use super::batches::{BatchFilter, BatchItem, BatchList};
use super::error::ViewError;
use super::jobs::{JobFilter, JobItem, JobList};
use super::page::PageQuery;
use super::parameter::{Holder, SearchFor};
use super::{NONE, ViewSource};
use crate::mirror::failures::FailureKey;
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
    /// The jobs of a group of failures.
    Group(FailureKey),
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

impl ViewSource<'_> {
    /// Finds what matches a text. An id or a UUID names one thing, whatever else contains it.
    ///
    /// # Errors
    /// Before the first walk.
    pub(crate) fn search(&self, text: &SearchFor, now: Timestamp) -> Result<Found, ViewError> {
        let searched = text.to_string();
        let text = &ark_in(&searched).and_then(|ark| ark.parse().ok()).unwrap_or_else(|| text.clone());
        let searched = text.to_string();
        if let Some(job) = searched.parse::<JobId>().ok().filter(|id| self.store.job(*id).is_some()) {
            return Ok(Found::Job(job.to_string()));
        }
        match self.batch_id(&searched) {
            Ok(batch) => return Ok(Found::Batch(batch.to_string())),
            Err(ViewError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        if searched != Holder::PERSISTENT && searched.parse::<Holder>().is_ok() {
            return Ok(Found::Session(searched));
        }
        if let Some(group) = searched.parse().ok().filter(|group| self.store.failure(*group).is_some()) {
            return Ok(Found::Group(group));
        }
        let page = PageQuery::first(SHOWN);
        let some = || Some(text.clone());
        let jobs = self.jobs(&JobFilter { text: some(), ..JobFilter::default() }, &page, now)?;
        let batches = self.batches(&BatchFilter { text: some(), ..BatchFilter::default() }, &page)?;
        let requests = self.access(&AccessFilter { text: some(), ..AccessFilter::default() }, &page, now)?;
        let collections = self.store.collections().ok_or(ViewError::NoMirror)?;
        let is_collection = searched != NONE && collections.iter().any(|figures| *figures.collection == *searched);
        let matches = Matches { jobs, batches, requests, is_collection };
        Ok(matches.only(searched).unwrap_or_else(|| Found::Several(Box::new(matches))))
    }
}

/// The ARK of an address in which a resolver or a repository has it, of a text copied from a mail, or of one without
/// the slash that older ARKs have behind their label: as the queue has it.
fn ark_in(text: &str) -> Option<String> {
    const LABEL: &str = "ark:";
    const AROUND: &[char] = &['<', '>', '"', '\'', '(', ')', '.', ',', ';', '/'];
    let decoded = text.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/").replace("%2f", "/");
    // Letters that are folded take as many bytes as before.
    let at = decoded.to_ascii_lowercase().find(LABEL)?;
    let (before, name) = (&decoded[..at], &decoded[at + LABEL.len()..]);
    if before.contains(char::is_whitespace) || !before.is_empty() && !before.ends_with(AROUND) {
        return None;
    }
    let end = if before.is_empty() { name.len() } else { name.find(['?', '#']).unwrap_or(name.len()) };
    Some(format!("{LABEL}/{}", name[..end].trim_matches(AROUND)))
}

impl Matches {
    /// The only thing that matches.
    fn only(&self, searched: String) -> Option<Found> {
        match (&*self.jobs.items, &*self.batches.items, &*self.requests.items, self.is_collection) {
            ([JobItem { id, .. }], [], [], false) => Some(Found::Job(id.clone())),
            ([], [BatchItem { id, .. }], [], false) => Some(Found::Batch(id.clone())),
            ([], [], [AccessItem { queue, id, .. }], false) => Some(Found::Request(queue, id.clone())),
            ([], [], [], true) => Some(Found::Collection(searched)),
            (_, _, _, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ark_is_found_in_the_forms_that_people_have_it_in() {
        for (text, ark) in [
            ("ark:/99999/fk4x", Some("ark:/99999/fk4x")),
            ("ark:99999/fk4x", Some("ark:/99999/fk4x")),
            ("https://n2t.net/ark:/99999/fk4x", Some("ark:/99999/fk4x")),
            ("http://localhost:8080/ark:99999/fk4x?info#top", Some("ark:/99999/fk4x")),
            ("HTTPS://N2T.NET/ARK:/99999/fk4x", Some("ark:/99999/fk4x")),
            ("n2t.net/ark:/99999/fk4x/", Some("ark:/99999/fk4x")),
            ("<https://n2t.net/ark:/99999/fk4x>.", Some("ark:/99999/fk4x")),
            ("\"ark:/99999/fk4x\"", Some("ark:/99999/fk4x")),
            ("https://merritt.example.org/m/ark%3A%2F99999%2Ffk4x", Some("ark:/99999/fk4x")),
            ("failed: ark:/99999/fk4x", None),
            ("dark:/99999/fk4x", None),
            ("https://n2t.net/", None),
        ] {
            assert_eq!(ark_in(text).as_deref(), ark, "{text}");
        }
    }
}
