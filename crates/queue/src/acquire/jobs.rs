//! The next job of a state, in order of priority.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{LockOutcome, SkipReason, SkippedItem, Window, was_quicker};
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{JobId, Priority};
use crate::job::{Job, JobChange, LockedJob};
use crate::lock::{Claim, ClaimOutcome, Lock, Pause};
use crate::path::{self, BatchNode, EntryName, JobNode, LockFolder, Path};
use crate::record::Retry;
use crate::state::{JobState, State as _};
use crate::transaction::Transaction;

/// For how long a note on a job's next attempt is taken to be as it was read.
const NOTES_FRESH: Duration = Duration::from_millis(20);

/// One poll for jobs of a state: a frozen list of its queue entries, handed out one after the other.
#[derive(Debug)]
pub struct JobPoll {
    queue: Queue,
    state: JobState,
    window: Window<EntryName>,
    /// What was read of the window last, in reverse.
    read: Vec<(EntryName, Job, Option<JobRetry>)>,
    held_collections: BTreeSet<String>,
    /// When that was.
    read_at: Instant,
    /// Set while the queue is paused; the poll is empty then.
    pub paused: Option<Pause>,
    /// The skipped items, with the reasons.
    pub skipped: Vec<SkippedItem>,
    /// Jobs that were set Held, since their collection is held.
    pub held: Vec<JobId>,
    /// Jobs that wait for another attempt, whose time has not come.
    pub delayed: BTreeMap<JobId, Retry>,
}

/// What was found of a job below `/queuekeeper/retry`.
#[derive(Debug)]
struct JobRetry {
    /// The version of that znode.
    version: i32,
    /// What it says, where that is about the job's present state.
    retry: Option<Retry>,
}

impl JobRetry {
    /// What was found of a job's note; `None` where there is none.
    fn of(job: &Job, found: Found) -> Option<Self> {
        let (data, stat) = found.data()?;
        let is_current = |retry: &Retry| job.version() == Some(retry.version);
        Some(Self { version: stat.version, retry: Retry::decode(&data).filter(is_current) })
    }

    /// What the job waits for, where its time has not come.
    fn wait(&self, now: Timestamp) -> Option<Retry> {
        self.retry.clone().filter(|retry| retry.not_before > now)
    }
}

impl Queue {
    /// Looks for the next job of a state and locks it: a poll that is used once.
    ///
    /// For one job now and then. Each call lists the state's whole folder and reads, from its head on, every job that
    /// others hold: with 17,000 locked jobs ahead it was measured to take 1.5 to 2.8 s. A daemon keeps the
    /// [`Queue::poll_jobs`] and takes one job after the other from it, which lists and reads them once, and polls again
    /// at the end of the list.
    ///
    /// # Errors
    /// As [`Queue::poll_jobs`] and [`JobPoll::next`].
    pub async fn acquire_job(&self, state: JobState, now: Timestamp) -> Result<(Option<LockedJob>, JobPoll), Error> {
        let mut poll = self.poll_jobs(state).await?;
        let job = poll.next(now).await?;
        Ok((job, poll))
    }

    /// Lists the jobs of a state in the order in which daemons take them, once for all that the poll returns. While
    /// `ingest` is paused the list is empty, unless daemons work on jobs of the state all the same
    /// ([`continues_when_paused`](crate::state::State::continues_when_paused)).
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn poll_jobs(&self, state: JobState) -> Result<JobPoll, Error> {
        let folder = Path::StateFolder(state.into());
        let [entries, pause, held] = self
            .read_each([
                Read::Children(folder.clone()),
                Read::Data(Path::QueueLock(path::QueueName::Ingest)),
                Read::Children(Path::LockFolder(LockFolder::Collections)),
            ])
            .await?;
        let pause = pause.data().filter(|_| !state.continues_when_paused());
        let paused =
            pause.map(|(data, stat)| Pause::from_found(Path::QueueLock(path::QueueName::Ingest), &data, &stat));
        let mut names = if paused.is_some() { Vec::new() } else { entries.children() };
        names.sort_unstable();
        let mut skipped = Vec::new();
        let mut readable = Vec::new();
        for name in names {
            match EntryName::from_name(&name).filter(|entry| Priority::new(entry.priority.into()).is_some()) {
                Some(entry) => readable.push(entry),
                None => {
                    skipped.push(SkippedItem { path: folder.any_child(&name), reason: SkipReason::UnreadableEntry });
                }
            }
        }
        Ok(JobPoll {
            queue: self.clone(),
            state,
            window: Window::new(readable),
            read: Vec::new(),
            held_collections: held.children().into_iter().collect(),
            read_at: Instant::now(),
            paused,
            skipped,
            held: Vec::new(),
            delayed: BTreeMap::new(),
        })
    }
}

impl JobPoll {
    /// The jobs of the list that were not looked at yet, in their order.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.window.waiting.iter().map(|entry| entry.job)
    }

    /// Whether no job of the list is left that may be worked on.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.read.is_empty() && self.window.waiting.is_empty()
    }

    /// Leaves jobs out of the list that were not looked at yet.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(JobId) -> bool) {
        self.window.waiting.retain(|entry| is_wanted(entry.job));
    }

    /// The next job of the list that can be worked on, locked; `None` at its end.
    ///
    /// A Pending job of a held collection is set Held, and the next one is tried. A job that an earlier call locked, by
    /// this poll or another of the same state, comes first where that call ended in [`Error::Unknown`], or its future
    /// was dropped.
    ///
    /// # Errors
    /// When the queue cannot be read or written. The poll may be continued.
    pub async fn next(&mut self, now: Timestamp) -> Result<Option<LockedJob>, Error> {
        self.next_if(now, |_| true).await
    }

    /// The same of the jobs for which `is_wanted` holds; the others are left as they are, and not looked at again by
    /// this poll. A job that an earlier call locked comes in any case.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn next_if(
        &mut self,
        now: Timestamp,
        is_wanted: impl Fn(&Job) -> bool,
    ) -> Result<Option<LockedJob>, Error> {
        let state = self.state;
        while let Some(outcome) = self.queue.recover_claim(|claim: &JobClaim| claim.state == state).await? {
            match outcome {
                ClaimOutcome::Ours(claim, lock) => return Ok(Some(claim.locked(lock))),
                ClaimOutcome::Lost(claim) => self.skip(claim.entry, SkipReason::LockBroken),
            }
        }
        loop {
            while let Some((entry, job, mut retry)) = self.read.pop() {
                if self.read_at.elapsed() > NOTES_FRESH {
                    // Another worker may have had the job since, and given it back.
                    match self.queue.read_each([Read::Data(Path::retry(job.id))]).await {
                        Ok([found]) => retry = JobRetry::of(&job, found),
                        Err(error) => {
                            self.read.push((entry, job, retry));
                            return Err(error);
                        }
                    }
                }
                if self.state == JobState::Pending && self.is_held(&job) {
                    match self.queue.change_job(&job, &JobChange::to(JobState::Held), now).await {
                        Ok(_) => self.held.push(job.id),
                        Err(error) if was_quicker(&error) => {}
                        Err(error) => return Err(error),
                    }
                } else if let Some(wait) = retry.as_ref().and_then(|found| found.wait(now)) {
                    self.delayed.insert(job.id, wait);
                } else if !is_wanted(&job) {
                    // It is locked by none and written by none.
                } else if let Some(locked) = self.lock(entry, job, retry).await? {
                    return Ok(Some(locked));
                }
            }
            let entries = self.window.next();
            if entries.is_empty() {
                return Ok(None);
            }
            self.look_at(entries).await?;
        }
    }

    fn is_held(&self, job: &Job) -> bool {
        self.held_collections.contains(job.configuration().value.collection.as_ref())
    }

    /// Reads jobs, and keeps those that can be worked on.
    async fn look_at(&mut self, entries: Vec<EntryName>) -> Result<(), Error> {
        self.read_at = Instant::now();
        // The entry is read after its job: one that is still there although the status has moved on is an orphan, and
        // not the trace of a change made between two reads.
        let place = |entry: &EntryName| Read::Existence(Path::Entry(self.state.into(), *entry));
        // What was given back while this poll runs was not when the folder was listed.
        let retry = |entry: &EntryName| Read::Data(Path::retry(entry.job));
        let reads =
            entries.iter().flat_map(|entry| Job::reads(entry.job).into_iter().chain([place(entry), retry(entry)]));
        let mut found = self.queue.read(&reads.collect::<Vec<_>>()).await?.into_iter();
        for entry in entries {
            let job = Job::from_found(entry.job, found.by_ref().take(Job::READS).collect::<Vec<_>>());
            let is_queued = found.next().is_some_and(|found| found.exists());
            let retry = found.next().zip(job.as_ref()).and_then(|(found, job)| JobRetry::of(job, found));
            match job {
                // The list is from a while ago: the job went its way since.
                _ if !is_queued => {}
                None => self.skip(entry, SkipReason::StrayEntry),
                // Another client works on it: that is not a fault, and its znodes are not reported, since they may be
                // about to change.
                Some(job) if job.lock().is_some() => {}
                Some(job) => match job.check_loadable() {
                    // A status that names another state, in whatever spelling, makes the entry an orphan.
                    _ if job.state().is_some_and(|state| state != self.state) => {
                        let state = job.status().value.status.text.into_owned();
                        self.skip(entry, SkipReason::OrphanEntry(state));
                    }
                    Ok(_) => self.read.push((entry, job, retry)),
                    Err(_) if is_bare(&job) => self.skip(entry, SkipReason::Unfinished),
                    Err(error) => self.skip(entry, SkipReason::Unloadable(error)),
                },
            }
        }
        self.read.reverse();
        Ok(())
    }

    fn skip(&mut self, entry: EntryName, reason: SkipReason) {
        self.skipped.push(SkippedItem { path: Path::Entry(self.state.into(), entry), reason });
    }

    /// Locks a job as it was read; `None` where another was quicker, or its batch is gone.
    async fn lock(&mut self, entry: EntryName, job: Job, retry: Option<JobRetry>) -> Result<Option<LockedJob>, Error> {
        let states = Path::BatchNode(job.batch()?, BatchNode::States);
        let mut transaction = Transaction::new();
        transaction
            .check_exists(states.clone())
            .check(Path::JobNode(job.id, JobNode::Status), job.version().unwrap_or_default());
        if let Some(found) = &retry {
            transaction.delete(Path::retry(job.id), Some(found.version));
        }
        let retry = retry.and_then(|found| found.retry);
        let outcome = self.queue.claim(transaction, JobClaim { state: self.state, entry, job, retry }).await;
        let attempt = match outcome {
            Err(Error::Missing(path)) if path == states => {
                LockOutcome::Skipped(SkipReason::Unloadable(Error::Missing(path)))
            }
            outcome => LockOutcome::from_claim(outcome)?,
        };
        Ok(match attempt {
            LockOutcome::Locked(claim, lock) => Some(claim.locked(lock)),
            LockOutcome::Skipped(reason) => {
                self.skip(entry, reason);
                None
            }
            LockOutcome::Missed => None,
        })
    }
}

/// A job that is to be locked.
#[derive(Debug)]
pub(crate) struct JobClaim {
    state: JobState,
    entry: EntryName,
    job: Job,
    retry: Option<Retry>,
}

impl JobClaim {
    fn locked(self, lock: Lock) -> LockedJob {
        let Self { state, entry, job, retry } = self;
        LockedJob::new(job, state, entry, lock, retry)
    }
}

impl Claim for JobClaim {
    fn lock(&self) -> Path {
        Path::JobNode(self.job.id, JobNode::Lock)
    }
}

/// Whether a job has none of its required znodes.
fn is_bare(job: &Job) -> bool {
    JobNode::ALL.iter().all(|node| job.data(*node).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, job};

    #[test]
    fn a_job_waits_for_its_time_while_its_status_is_that_of_the_attempt() {
        let job = job(&[(JobNode::Status, "{}")]);
        let second = |second| Timestamp::from_second(second).unwrap();
        let note = |version| Retry {
            version,
            since: second(1),
            attempts: 1,
            not_before: second(5),
            waits_since: None,
            why: "disk full".to_owned(),
        };
        for (version, now, waits) in [(3, 4, true), (3, 5, false), (3, 6, false), (2, 4, false), (4, 4, false)] {
            let of_job = JobRetry::of(&job, found(note(version).encode())).unwrap();
            assert_eq!(of_job.version, 3, "that of the note");
            assert_eq!(of_job.wait(second(now)), waits.then(|| note(version)), "version {version} at {now} s");
        }
        assert!(JobRetry::of(&job, Found::Nothing).is_none());
        let odd = JobRetry::of(&job, found("odd")).unwrap();
        assert_eq!((odd.version, odd.wait(second(4))), (3, None));
    }

    #[test]
    fn a_job_is_bare_without_any_of_its_znodes() {
        assert!(is_bare(&job::<&str>(&[])));
        for node in JobNode::ALL {
            assert!(!is_bare(&job(&[(*node, "")])), "{}", node.name());
        }
    }
}
