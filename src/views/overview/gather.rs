//! Taking what the overview is made of from the mirror.

use std::time::Duration;

use jiff::Timestamp;

use super::{OpenBitErrors, Overview, Recent, Stopped};
use crate::insight;
use crate::insight::{CauseKind, Verdict};
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::lists::{FailureOrder, LockQuery, PageRequest};
use crate::mirror::{Flow, LockKind, PauseSituation, Summary};
use crate::views::ViewSource;
use crate::views::status::Status;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::{LockFolder, Path, QueueName};
use queuekeeper_queue::state::{JobState, State as _};

/// The maximum number of batches in progress that the overview shows.
const SHOWN_BATCHES: usize = 10;

/// How many held collections are read, to tell those of rules from those of operators.
const READ_HELD: usize = 500;

/// How many groups of failures it shows one by one.
const SHOWN_FAILURES: usize = 3;

/// Of how many points its curves are drawn: one each two minutes of six hours.
const CURVE_POINTS: usize = 180;

impl ViewSource<'_> {
    /// What the overview shows beside the figures.
    pub(crate) fn recent(&self, now: Timestamp) -> Recent {
        let store = self.store;
        // What comes after may have changed it.
        let seen = store.horizon(now);
        let (batches, batches_in_progress) = store.batches_in_progress(SHOWN_BATCHES).unwrap_or_default();
        let ids: Vec<_> = batches.iter().map(|batch| batch.id).collect();
        let batches = insight::forecasts(store, &ids, self.volume(), seen).into_iter();
        let batches = batches.filter_map(|(id, forecast)| Some((store.batch(id)?, store.batch_rates(id), forecast)));
        let flow = store.flow();
        let failures = store.failures(FailureOrder::Largest, &PageRequest { after: None, size: SHOWN_FAILURES }).ok();
        let failure_groups = failures.as_ref().map_or(0, |failures| failures.total);
        let automation = self.alerts.map(|alerts| alerts.overview(now));
        let foreign = automation.as_ref().map(|overview| (overview.foreign.clone(), overview.more_foreign));
        Recent {
            history: store.history(now, self.curve_window(now), CURVE_POINTS),
            batches: batches.collect(),
            batches_in_progress,
            stopped: self.stopped(&flow, seen),
            failed_without_jobs: store.failed_without_jobs(),
            failure_groups,
            failures: failures.map(|failures| failures.items).unwrap_or_default(),
            pauses: QueueName::ALL.iter().filter_map(|queue| Some((*queue, store.pause(*queue)?))).collect(),
            held: self.held(now),
            held_stores: store.held_stores(),
            waiting_mail: store.waiting_mail(),
            automation: automation.map(Into::into),
            foreign: foreign.unwrap_or_default(),
            storage: self.measured(),
            storage_problem: self.storage.and_then(MeasuredStorage::problem),
            bit_errors: OpenBitErrors::NotRead,
            fixes: self.fixes(now),
            flow,
        }
    }

    /// The fix of each fault that one item shows alone: it may say more than that of all of its kind.
    fn fixes(&self, now: Timestamp) -> Vec<(Fault, &'static str)> {
        let found = |fault| self.store.faults(fault, 2, now, self.space_left()).unwrap_or_default();
        let alone = |fault| match found(fault).as_slice() {
            [one] => Some((fault, one.fix)),
            _ => None,
        };
        Fault::ALL.into_iter().filter_map(alone).collect()
    }

    /// The collections that are held, those held longest first.
    fn held(&self, now: Timestamp) -> Vec<(String, PauseSituation)> {
        let filter = LockQuery { kind: Some(LockKind::Collection), ..LockQuery::default() };
        // It fails before the first walk alone: no cursor is sent.
        let locks = self.store.lock_list(filter, &PageRequest { after: None, size: READ_HELD }, now);
        let locks = locks.map(|page| page.items).unwrap_or_default();
        let held = locks.into_iter().filter_map(|lock| match lock.path {
            Path::NamedLock(LockFolder::Collections, name) => Some((name.to_string(), lock.pause?)),
            _ => None,
        });
        held.collect()
    }

    /// How far back the curves reach: no farther than there is something to see, in steps that do not change too often.
    fn curve_window(&self, now: Timestamp) -> Duration {
        let since = self.store.history(now, Duration::from_hours(6), 1).since;
        let watched = since.map_or(0, |since| now.duration_since(since).as_mins());
        match watched {
            ..10 => Duration::from_mins(10),
            10..60 => Duration::from_hours(1),
            60.. => Duration::from_hours(6),
        }
    }

    /// The states that have not moved for a minute for a reason that does not pass by itself.
    fn stopped(&self, flow: &Flow, now: Timestamp) -> Vec<Stopped> {
        let store = self.store;
        let states = JobState::ALL.iter().copied().filter(|state| state.success().is_some());
        let stopped = states.filter_map(|state| {
            let diagnosis = insight::why_state(store, state, self.volume(), now)?;
            let is_stopped = diagnosis.verdict == Verdict::Stopped;
            let stuck = store.faults_of(&Path::StateFolder(state.into()), now, self.space_left()).unwrap_or_default();
            let since = stuck.iter().find(|found| found.fault == Fault::StuckState).map(|found| found.since);
            let left = flow.states.get(Some(state));
            // One look sees no job leave. Since when a full pool keeps its first job is known all the same.
            let kept = diagnosis.causes.iter().find(|cause| cause.kind == CauseKind::PoolFull);
            let kept = kept.and_then(|cause| cause.since).filter(|_| left.seen_left.is_none());
            // That there are no workers has been so for some time when it is said.
            let unserved = diagnosis.causes.iter().find(|cause| cause.kind == CauseKind::NoWorkers);
            let is_unserved = unserved.is_some();
            let since = unserved.and_then(|cause| cause.since).or(since).or(kept).or(left.last_left);
            let is_long = is_unserved
                || since.is_none_or(|since| {
                    Duration::try_from(now.duration_since(since)).is_ok_and(|time| time >= self.stalled_after)
                });
            (is_stopped && is_long).then_some(Stopped { state, since, diagnosis })
        });
        stopped.collect()
    }

    /// The overview of these figures.
    pub(crate) fn overview(&self, summary: &Summary, recent: &Recent, now: Timestamp) -> Overview {
        Overview::new(self.status(now), summary, recent, now)
    }

    /// How far the mirror can be trusted.
    pub(crate) fn status(&self, now: Timestamp) -> Status {
        Status::new(&self.store.freshness(), self.servers.to_string(), now)
    }
}
