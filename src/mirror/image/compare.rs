//! Two images of the same tree: what happened between them, and where they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::change::{Change, Observation};
use super::jobs::Jobs;
use super::row::{JobRow, text};
use super::{Image, batches};
use crate::mirror::text::TextColumn;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use queuekeeper_queue::state::JobOutcome;

impl Image {
    /// The changes of state that lead from an older image to this one, as far as two observations show them: items that
    /// moved, came and went meanwhile. A job of the same id that was created at another time is another job.
    pub(in crate::mirror) fn changes_since(&self, old: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let gone = |row: JobRow<'_>| Change::of_job(row.observation(), Observation::NOWHERE, |_, _| None);
        for row in self.jobs.slice(0..self.jobs.slots()) {
            let before = old.jobs.get(row.id());
            match before {
                Some(before) if before.created_ms == row.created_ms => {
                    changes.push(self.jobs.change(before.observation(), row));
                }
                Some(before) => {
                    changes.push(gone(before));
                    changes.push(self.jobs.change(Observation::NOWHERE, row));
                }
                None => changes.push(self.jobs.change(Observation::NOWHERE, row)),
            }
        }
        let missing = old.jobs.slice(0..old.jobs.slots()).filter(|row| self.jobs.get(row.id()).is_none());
        changes.extend(missing.map(gone));
        let batches: BTreeSet<_> = self.batches.iter().chain(old.batches.iter()).map(|(batch, _)| batch).collect();
        for batch in batches {
            let (before, after) = (old.batches.get(batch), self.batches.get(batch));
            let sight =
                |entry: Option<&batches::Entry>| entry.map_or(Observation::NOWHERE, |entry| entry.item.observation());
            changes.push(Change::of_batch(sight(before), sight(after)));
        }
        changes.retain(|change| *change != Change::Nothing);
        changes
    }

    /// The znodes of jobs in a piece of this image's table for which the other image has something else.
    pub(in crate::mirror) fn differing_jobs(&self, range: Range<usize>, other: &Self) -> Vec<Path> {
        let differing = self.jobs.slice(range).filter(|row| !same_job(&self.jobs, *row, &other.jobs));
        differing.flat_map(|row| self.paths_of_job(row.id(), other)).collect()
    }

    /// The znodes of jobs in a piece of this image's table that the other image does not have.
    pub(in crate::mirror) fn missing_jobs(&self, range: Range<usize>, other: &Self) -> Vec<Path> {
        let missing = self.jobs.slice(range).filter(|row| other.jobs.get(row.id()).is_none());
        missing.flat_map(|row| self.paths_of_job(row.id(), other)).collect()
    }

    /// The znodes of everything but jobs for which the other image has something else. Both ways at once.
    pub(in crate::mirror) fn differing_rest(&self, other: &Self) -> Vec<Path> {
        let mut paths = Vec::new();
        let all: BTreeSet<_> = self.batches.iter().chain(other.batches.iter()).map(|(batch, _)| batch).collect();
        for batch in all.into_iter().filter(|batch| self.batches.get(*batch) != other.batches.get(*batch)) {
            paths.push(Path::Batch(batch));
            paths.extend(BatchNode::ALL.iter().map(|node| Path::BatchNode(batch, *node)));
            paths.extend(JobOutcome::ALL.map(|outcome| Path::BatchOutcome(batch, outcome)));
        }
        for queue in AccessQueue::ALL.iter().copied() {
            let (own, others) = (self.access.queue(queue), other.access.queue(queue));
            let all: BTreeSet<_> = own.iter().chain(others.iter()).map(|(request, _)| request).collect();
            for request in all.into_iter().filter(|request| own.get(*request) != others.get(*request)) {
                paths.push(Path::Request(queue, request));
                paths.extend(RequestNode::ALL.iter().map(|node| Path::RequestNode(queue, request, *node)));
            }
        }
        let locks =
            |image: &Self| image.locks.iter().map(|(_, path, stat)| (path.clone(), stat)).collect::<BTreeSet<_>>();
        paths.extend(locks(self).symmetric_difference(&locks(other)).map(|(path, _)| path.clone()));
        paths.extend(self.folders.symmetric_difference(&other.folders).cloned());
        paths.extend(self.denied.symmetric_difference(&other.denied).cloned());
        let uuids = |image: &Self| {
            image
                .uuids
                .iter()
                .map(|uuid| (Box::from(uuid), image.uuids.get(uuid).map(|(leads, at)| (leads.clone(), at))))
                .collect::<BTreeMap<_, _>>()
        };
        let (own, others) = (uuids(self), uuids(other));
        let all: BTreeSet<_> = own.keys().chain(others.keys()).collect();
        let differing = all.into_iter().filter(|uuid| own.get(*uuid) != others.get(*uuid));
        paths.extend(differing.cloned().map(Path::BatchUuid));
        paths
            .extend(self.unexpected.symmetric_difference(&other.unexpected).map(|path| Path::Unexpected(path.clone())));
        let below = self.below_references.symmetric_difference(&other.below_references);
        let is_looked_at = |batch: BatchId| self.is_ended(batch) && other.is_ended(batch);
        paths.extend(below.filter(|(batch, _)| is_looked_at(*batch)).map(|(_, path)| Path::Unexpected(path.clone())));
        paths.extend(self.differing_own(other));
        let odd: BTreeSet<_> = self.jobs.odd().chain(other.jobs.odd()).collect();
        paths.extend(odd.into_iter().flat_map(|job| self.paths_of_places(job, other)));
        paths
    }

    fn paths_of_job(&self, job: JobId, other: &Self) -> Vec<Path> {
        let own = JobNode::ALL.iter().map(|node| Path::JobNode(job, *node));
        std::iter::once(Path::Job(job)).chain(own).chain(self.paths_of_places(job, other)).collect()
    }

    /// Where either image has a job's entries and references.
    fn paths_of_places(&self, job: JobId, other: &Self) -> Vec<Path> {
        let images = [self, other];
        let entries = images.iter().flat_map(|image| image.jobs.entries(job));
        let entries = entries.map(|(folder, name)| Path::Entry(folder, name));
        let references = images.iter().flat_map(|image| image.jobs.references(job));
        let references = references.map(|(batch, outcome)| Path::Reference(batch, outcome, job));
        let paths: BTreeSet<_> = entries.chain(references).collect();
        paths.into_iter().collect()
    }
}

fn same_job(own: &Jobs, row: JobRow<'_>, others: &Jobs) -> bool {
    let Some(other) = others.get(row.id()) else { return false };
    let standing = |row: JobRow<'_>| {
        let standing = row.standing;
        (standing.state, standing.entered_ms, standing.locked_ms, standing.retries, standing.space_needed_bytes)
    };
    let plain = |row: JobRow<'_>| {
        (row.nodes, row.unreadable, row.last_successful, row.priority, row.batch, row.created_ms, row.submitted_ms)
    };
    let shared = |jobs: &Jobs, row: JobRow<'_>| {
        [row.standing.collection, row.submitter, row.message, row.status_text].map(|text| jobs.texts.get(text))
    };
    let places = |jobs: &Jobs| {
        let entries: BTreeSet<_> = jobs.entries(row.id()).collect();
        let references: BTreeSet<(BatchId, JobOutcome)> = jobs.references(row.id()).collect();
        (entries, references)
    };
    // `text` names the fields; all of them are compared.
    let texts_alike = (text::ID..TextColumn::FIELDS).all(|field| row.text.field(field) == other.text.field(field));
    standing(row) == standing(other)
        && plain(row) == plain(other)
        && row.status_version() == other.status_version()
        && row.lock == other.lock
        && texts_alike
        && shared(own, row) == shared(others, other)
        && places(own) == places(others)
}
