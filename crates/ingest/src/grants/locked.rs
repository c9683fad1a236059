//! Changes of the grants: what each round decides, and what is written.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Transaction;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::{GrantNote, GrantsNote};

use super::{Extension, GrantRequest, LockedGrants, Reservation};
use crate::space::{self, Grant, Round, Volume, Waiting};
use crate::step::StepError;
use crate::working::WorkingStorage;

/// How many failed jobs keep a grant of no bytes: all grants together are one znode, of less than 1 MiB.
pub(super) const MOST_FAILED: usize = 1_000;

impl LockedGrants<'_> {
    /// Which jobs have a grant.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.known.granted.grants.keys().filter_map(|job| job.parse().ok())
    }

    /// How many bytes a job was granted.
    #[must_use]
    pub fn of(&self, job: JobId) -> Option<u64> {
        self.known.granted.grants.get(&job.to_string()).map(|grant| grant.bytes)
    }

    /// How many bytes a job was granted, with those that it waits for.
    #[must_use]
    pub fn wanted(&self, job: JobId) -> Option<u64> {
        let grant = self.known.granted.grants.get(&job.to_string())?;
        Some(grant.bytes.saturating_add(grant.extension.unwrap_or(0)))
    }

    /// How many bytes are granted together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.known.granted.total()
    }

    /// Decides for all jobs that wait; nothing is written. What was reserved is kept in mind for [`Self::grant`].
    ///
    /// # Errors
    /// When the volume cannot be looked at.
    pub fn decide(
        &self,
        storage: &WorkingStorage,
        waiting: &[GrantRequest],
        now: Timestamp,
    ) -> Result<Round<JobId>, StepError> {
        let round = self.round(&self.known.granted, storage, waiting, now)?;
        *self.of.reserved.lock() = Reservation::of(&round);
        Ok(round)
    }

    fn round(
        &self,
        granted: &GrantsNote,
        storage: &WorkingStorage,
        waiting: &[GrantRequest],
        now: Timestamp,
    ) -> Result<Round<JobId>, StepError> {
        let (total, free) = storage.space().map_err(|error| StepError::working("look at it", &error))?;
        let (ended, written, downloaded) =
            (self.of.ended.lock().clone(), self.of.written.lock(), self.of.downloaded.lock());
        let grants = granted.grants.iter().filter(|(_, grant)| !is_of_failed(grant)).filter_map(|(job, grant)| {
            let job: JobId = job.parse().ok().filter(|job| !ended.contains(job))?;
            // What this process knows is the newest, but it may have taken up the job where another left it.
            let ours = written.get(&job).map(|bytes| bytes.load(Ordering::Relaxed));
            let others = [self.known.downloads.get(&job), downloaded.get(&job)].map(Option::<&u64>::copied);
            let written = others.into_iter().chain([ours]).flatten().max().unwrap_or(0);
            let age = Duration::from_millis(u64::try_from(now.as_millisecond() - grant.since).unwrap_or(0));
            Some(Grant { job, bytes: grant.bytes, written, age, extension: grant.extension })
        });
        let volume = Volume { total, free, grants: grants.collect() };
        let waiting: Vec<_> = waiting
            .iter()
            .map(|one| Waiting { job: one.job, bytes: one.bytes, priority: one.priority, age: one.age })
            .collect();
        Ok(space::decide(&self.of.rules, &volume, &waiting))
    }

    /// What is to be written with the change that lets a job pass; `None` where it has to wait. [`Self::committed`]
    /// follows when that is done.
    ///
    /// # Errors
    /// When it can never pass, or the volume cannot be looked at.
    pub fn grant(
        &mut self,
        storage: &WorkingStorage,
        wanted: &GrantRequest,
        now: Timestamp,
    ) -> Result<Option<Transaction>, StepError> {
        self.of.goes_on(wanted.job);
        if self.of(wanted.job).is_some_and(|bytes| bytes > 0) {
            return Ok(Some(Transaction::new()));
        }
        if self.of.reserved.lock().as_ref().is_some_and(|reserved| reserved.keeps_back(wanted.job)) {
            return Ok(None);
        }
        let round = self.round(&self.known.granted, storage, std::slice::from_ref(wanted), now)?;
        if let Some((_, why)) = round.failed.iter().find(|(job, _)| *job == wanted.job) {
            return Err(StepError::permanent(why));
        }
        let Some((_, bytes)) = round.passed.first().copied() else { return Ok(None) };
        let mut next = self.known.granted.clone();
        let form = GrantNote { bytes, since: now.as_millisecond(), extension: None };
        next.grants.insert(wanted.job.to_string(), form);
        self.of.reserved.lock().take_if(|reserved| reserved.job == wanted.job);
        let (next, ended) = self.without_ended(next);
        Ok(Some(self.write(next, ended)))
    }

    /// Sees to it that a job may write so many bytes in all, what it has written included. The answer is what has to be
    /// committed, and what becomes of the job then.
    ///
    /// # Errors
    /// When it can never have them, or the volume cannot be looked at.
    pub fn extend(
        &mut self,
        storage: &WorkingStorage,
        job: JobId,
        bytes: u64,
        now: Timestamp,
    ) -> Result<(Transaction, Extension), StepError> {
        self.of.goes_on(job);
        let (mut next, name) = (self.known.granted.clone(), job.to_string());
        let form = next.grants.entry(name.clone()).or_insert(GrantNote {
            bytes: 0,
            since: now.as_millisecond(),
            extension: None,
        });
        if form.bytes >= bytes {
            return Ok((Transaction::new(), Extension::Granted));
        }
        form.extension = Some(bytes - form.bytes);
        let round = self.round(&next, storage, &[], now)?;
        match round.failed.iter().find(|(failed, _)| *failed == job) {
            Some((_, why @ space::Failure::NeverFits { .. })) => return Err(StepError::permanent(why)),
            Some((_, why @ space::Failure::Deadlock { .. })) => {
                return Ok((Transaction::new(), Extension::GivesUp(*why)));
            }
            None => {}
        }
        let is_extended = round.extended.iter().any(|(extended, _)| *extended == job);
        if is_extended && let Some(form) = next.grants.get_mut(&name) {
            (form.bytes, form.extension) = (bytes, None);
        }
        let outcome = if is_extended { Extension::Granted } else { Extension::Waits };
        if next == self.known.granted {
            return Ok((Transaction::new(), outcome));
        }
        let (next, ended) = self.without_ended(next);
        Ok((self.write(next, ended), outcome))
    }

    /// What is to be written so that the grants of ended jobs go; `None` where there are none.
    #[must_use]
    pub fn remove_ended(&mut self) -> Option<Transaction> {
        if self.of.ended.lock().is_empty() && self.of.failed.lock().is_empty() {
            return None;
        }
        let (next, ended) = self.without_ended(self.known.granted.clone());
        if next == self.known.granted {
            // None of them had one: nothing is written, and the version stays.
            self.of.forget(&ended);
            return None;
        }
        Some(self.write(next, ended))
    }

    /// These grants without those of ended jobs, and which jobs that takes into account.
    fn without_ended(&self, mut next: GrantsNote) -> (GrantsNote, BTreeSet<JobId>) {
        let ended = self.of.ended.lock().clone();
        next.grants.retain(|job, _| job.parse().is_ok_and(|job: JobId| !ended.contains(&job)));
        let failed = self.of.failed.lock().clone();
        for job in &failed {
            if let Some(grant) = next.grants.get_mut(&job.to_string()) {
                (grant.bytes, grant.extension) = (0, None);
            }
        }
        forget_oldest(&mut next);
        (next, ended.into_iter().chain(failed).collect())
    }

    fn write(&mut self, next: GrantsNote, ended: BTreeSet<JobId>) -> Transaction {
        let data = next.encode();
        let mut transaction = Transaction::new();
        match self.known.version {
            Some(version) => transaction.set(self.of.path.clone(), data, version),
            None => transaction.create(self.of.path.clone(), data),
        };
        self.next = Some((next, ended));
        transaction
    }

    /// Whether a conflict is about the grants, which another process has changed then: read and decide again.
    #[must_use]
    pub fn is_about(&self, path: &Path) -> bool {
        *path == self.of.path
    }

    /// The last transaction was committed.
    pub fn committed(&mut self) {
        if let Some((next, ended)) = self.next.take() {
            self.known.version = Some(self.known.version.map_or(0, |version| version.wrapping_add(1)));
            self.known.granted = next;
            self.of.forget(&ended);
        }
    }

    /// The last transaction was refused, or its outcome is not known: the grants are read again before the next one.
    pub fn refused(&mut self) {
        self.next = None;
        self.known.is_read = false;
    }
}

/// Whether a grant is that of a failed job.
fn is_of_failed(grant: &GrantNote) -> bool {
    grant.bytes == 0 && grant.extension.is_none()
}

/// Leaves out the oldest grants of failed jobs where there are too many.
fn forget_oldest(note: &mut GrantsNote) {
    let failed = note.grants.iter().filter(|(_, grant)| is_of_failed(grant));
    let mut failed: Vec<_> = failed.map(|(job, grant)| (grant.since, job.clone())).collect();
    failed.sort_unstable();
    for (_, job) in failed.iter().rev().skip(MOST_FAILED) {
        note.grants.remove(job);
    }
}
