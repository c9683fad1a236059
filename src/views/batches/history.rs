//! What was seen of a batch and its jobs.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::find::{Direction, JobQuery, JobSort};
use crate::mirror::{Happening, Job, PastEvent, state_label};
use crate::views::{Session, Source};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::{JobState, State};

/// How many jobs are among the changes of a batch: those that changed last.
const JOBS: usize = 10;

/// A change of a batch or of one of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchChange {
    /// When, to the second.
    pub(crate) at: Timestamp,
    /// The job that changed; absent for the batch itself.
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
    /// The session of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) session: Option<Session>,
    /// From where the session is connected; absent if unknown (see `--mirror.session-addresses`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.0.5:40834")]
    pub(crate) address: Option<String>,
}

impl Source<'_> {
    /// The changes of a batch that were seen since this process started to watch, eight at most, and of those of its jobs
    /// that changed last: the last change of each, and those by which it stopped or went on again. The oldest first.
    pub(super) fn batch_history(&self, id: BatchId, now: Timestamp) -> Vec<BatchChange> {
        let of_batch = self.store.batch_past(id).into_iter().map(|event| {
            let (from, to) = (event.from.map(State::label), state_label(event.to));
            self.change(event.at, None, (from, to), event.session, event.note.as_deref())
        });
        let query = JobQuery {
            batch: Some(id),
            sort: JobSort::Entered,
            direction: Direction::Descending,
            limit: JOBS,
            ..JobQuery::default()
        };
        let found = self.store.find_jobs(&query, now).map(|page| page.items).unwrap_or_default();
        let jobs = found.into_iter().flat_map(|job| self.telling_changes(&job));
        let mut changes: Vec<_> = of_batch.chain(jobs).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// How a job came into its state, as far as that is known, and how it came into a state that needs an operator, and
    /// out of it, before.
    fn telling_changes(&self, job: &Job) -> Vec<BatchChange> {
        let id = || Some(job.id.to_string());
        let past = self.store.past(job.id);
        let is_last = |event: &PastEvent| matches!(event.what, Happening::Moved { to, .. } if to == job.state);
        let last = past.iter().rposition(is_last);
        let change = |(at, event): (usize, &PastEvent)| match event.what {
            Happening::Moved { from, to, session, .. }
                if Some(at) == last || [from, to].into_iter().flatten().any(is_at_rest) =>
            {
                let states = (from.map(State::label), state_label(to));
                Some(self.change(event.at, id(), states, session, event.note.as_deref()))
            }
            _ => None,
        };
        let mut changes: Vec<_> = past.iter().enumerate().filter_map(change).collect();
        if let (None, Some(entered)) = (last, job.entered) {
            changes.push(self.change(entered, id(), (None, state_label(job.state)), None, Some(&job.message)));
        }
        changes
    }

    fn change(
        &self,
        at: Timestamp,
        job: Option<String>,
        (from, to): (Option<&'static str>, &'static str),
        session: Option<i64>,
        note: Option<&str>,
    ) -> BatchChange {
        let note = note.and_then(OperatorNote::read);
        // An operator who acts under a daemon's lock is not that daemon.
        let session = session.filter(|_| note.is_none()).and_then(|id| Some((Session::of(id)?, self.address(id))));
        BatchChange {
            at,
            job,
            from,
            to,
            actor: note.map(|note| note.who.to_owned()),
            reason: note.map(|note| note.why.to_owned()),
            address: session.as_ref().and_then(|(_, address)| address.clone()),
            session: session.map(|(session, _)| session),
        }
    }
}

/// Whether a job in this state waits for an operator.
fn is_at_rest(state: JobState) -> bool {
    matches!(state, JobState::Failed | JobState::Held)
}
