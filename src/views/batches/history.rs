//! What was seen of a batch and its jobs.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use self::fold::{JobChange, fold};
use crate::mirror::find::{Direction, JobOrder, JobQuery, PAGE_LIMIT};
use crate::mirror::{Happening, Job, PastEvent, state_label};
use crate::views::held::HeldCollection;
use crate::views::{Session, ViewSource};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::{JobState, State};

mod fold;

/// How many jobs the changes of a batch are of: those that changed last.
const JOBS: usize = PAGE_LIMIT;

/// How many changes of jobs are kept after equal ones were put together: the last ones.
const CHANGES: usize = 50;

/// A clock of a second's resolution may show a job as held before the collection that it is held with.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// A change of a batch, of one of its jobs, or of several of its jobs that changed alike one soon after another.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchChange {
    /// When, to the second; of several jobs, when the last one changed.
    pub(crate) at: Timestamp,
    /// When the first of several jobs changed; absent for any other change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_at: Option<Timestamp>,
    /// How many jobs changed so; 0 for a change of the batch itself.
    pub(crate) jobs: u64,
    /// The job that changed; absent for several jobs, and for the batch itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "jid0000000042")]
    pub(crate) job: Option<String>,
    /// The state before; absent where it was not seen, and for what was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<&'static str>,
    /// The state after; `other` for an unknown one.
    pub(crate) to: &'static str,
    /// The operator who made the change, with queuekeeper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    /// The reason that they gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The collection with which a job was moved to Held, if it is still held; absent for a job held by an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<HeldCollection>,
    /// The session of the daemon; absent where several jobs were changed by several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) session: Option<Session>,
    /// From where the session is connected; absent if unknown (see `--mirror.session-addresses`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.0.5:40834")]
    pub(crate) address: Option<String>,
    /// Some of the jobs.
    #[serde(skip)]
    pub(crate) examples: Vec<String>,
}

/// The changes of a batch and its jobs, and how much is not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BatchHistory {
    /// The oldest first.
    pub(crate) changes: Vec<BatchChange>,
    /// Earlier changes of its jobs that were left out.
    pub(crate) more_changes: u64,
    /// Jobs whose changes were not looked at.
    pub(crate) more_jobs: u64,
}

impl ViewSource<'_> {
    /// The changes of a batch that were seen since this process started to watch, eight at most, and of those of its
    /// jobs that changed last: the last change of each, and those by which it stopped or went on again. Equal changes
    /// of several jobs are one.
    pub(super) fn batch_history(&self, id: BatchId, now: Timestamp) -> BatchHistory {
        let of_batch = self.store.batch_past(id).into_iter().map(|event| {
            let (from, to) = (event.from.map(State::label), state_label(event.to));
            self.change(event.at, (from, to), event.session, event.note.as_deref())
        });
        let query = JobQuery {
            batch: Some(id),
            sort: JobOrder::Entered,
            direction: Direction::Descending,
            limit: JOBS,
            ..JobQuery::default()
        };
        let page = self.store.find_jobs(&query, now);
        let (found, total) = page.map(|page| (page.items, page.total)).unwrap_or_default();
        let more_jobs = total.saturating_sub(found.len()) as u64;
        let mut jobs = fold(found.into_iter().flat_map(|job| self.telling_changes(&job)).collect());
        let more_changes = jobs.len().saturating_sub(CHANGES);
        jobs.drain(..more_changes);
        let mut changes: Vec<_> = of_batch.chain(jobs).collect();
        changes.sort_by_key(|change| change.at);
        BatchHistory { changes, more_changes: more_changes as u64, more_jobs }
    }

    /// How a job came into its state, as far as that is known, and how it came into a state that needs an operator, and
    /// out of it, before.
    fn telling_changes(&self, job: &Job) -> Vec<JobChange> {
        let past = self.store.past(job.id);
        let is_last = |event: &PastEvent| matches!(event.what, Happening::Moved { to, .. } if to == job.state);
        let last = past.iter().rposition(is_last);
        let own = |change| JobChange { job: job.id, change: self.with_hold(change, &job.collection) };
        let change = |(at, event): (usize, &PastEvent)| match event.what {
            Happening::Moved { from, to, session, .. }
                if Some(at) == last || [from, to].into_iter().flatten().any(is_at_rest) =>
            {
                let states = (from.map(State::label), state_label(to));
                Some(own(self.change(event.at, states, session, event.note.as_deref())))
            }
            _ => None,
        };
        let mut changes: Vec<_> = past.iter().enumerate().filter_map(change).collect();
        if let (None, Some(entered)) = (last, job.entered) {
            changes.push(own(self.change(entered, (None, state_label(job.state)), None, Some(&job.message))));
        }
        changes
    }

    /// The same with the hold on the job's collection, where that is why the job was moved to Held.
    fn with_hold(&self, change: BatchChange, collection: &str) -> BatchChange {
        if change.actor.is_some() || change.to != JobState::Held.label() {
            return change;
        }
        let hold = self.store.hold(collection);
        let hold = hold
            .filter(|hold| hold.since.is_some_and(|since| since <= change.at.saturating_add(SLACK).unwrap_or(since)));
        BatchChange { hold: hold.map(|hold| HeldCollection::new(collection, &hold)), ..change }
    }

    fn change(
        &self,
        at: Timestamp,
        (from, to): (Option<&'static str>, &'static str),
        session: Option<i64>,
        note: Option<&str>,
    ) -> BatchChange {
        let note = note.and_then(OperatorNote::read);
        // An operator who acts under a daemon's lock is not that daemon.
        let session = session.filter(|_| note.is_none()).and_then(|id| Some((Session::of(id)?, self.address(id))));
        BatchChange {
            at,
            first_at: None,
            jobs: 0,
            job: None,
            from,
            to,
            actor: note.map(|note| note.who.to_owned()),
            reason: note.map(|note| note.why.to_owned()),
            hold: None,
            address: session.as_ref().and_then(|(_, address)| address.clone()),
            session: session.map(|(session, _)| session),
            examples: Vec::new(),
        }
    }
}

/// Whether a job in this state waits for an operator.
fn is_at_rest(state: JobState) -> bool {
    matches!(state, JobState::Failed | JobState::Held)
}
