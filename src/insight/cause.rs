//! Why something moves or does not: each kind of cause with its name, what it comes to, and its headline.

use jiff::Timestamp;

use super::Verdict;
use crate::mirror::FoundFault;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::Path;

/// How many paths a cause names at most.
pub(super) const ITEMS: usize = 5;

/// One reason why something moves or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub kind: CauseKind,
    /// What is the case, in a sentence with its figures. Znodes' texts in it are cut and escaped, but for markup.
    pub sentence: String,
    /// What shows it and what follows from it, likewise; empty where there is no more to say.
    pub evidence: String,
    /// What repairs it; `None` where nothing has to be repaired.
    pub fix: Option<&'static str>,
    /// Since when, by our own clock.
    pub since: Option<Timestamp>,
    /// Znodes to look at, at most five.
    pub items: Vec<Path>,
    /// How many more there are.
    pub more: u64,
}

impl Cause {
    pub(super) fn new(kind: CauseKind, sentence: impl Into<String>) -> Self {
        let (evidence, items) = (String::new(), Vec::new());
        Self { kind, sentence: sentence.into(), evidence, fix: None, since: None, items, more: 0 }
    }

    pub(super) fn evidence(self, evidence: impl Into<String>) -> Self {
        Self { evidence: evidence.into(), ..self }
    }

    pub(super) fn fix(self, fix: &'static str) -> Self {
        Self { fix: Some(fix), ..self }
    }

    pub(super) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// Names these of `all` items.
    pub(super) fn items(self, items: impl IntoIterator<Item = Path>, all: u64) -> Self {
        let items: Vec<_> = items.into_iter().take(ITEMS).collect();
        let more = all.saturating_sub(items.len() as u64);
        Self { items, more, ..self }
    }

    /// A fault in its own words.
    pub(super) fn of_fault(found: &FoundFault) -> Self {
        Self::new(CauseKind::Fault(found.fault), found.how)
            .evidence(found.effect)
            .fix(found.fix)
            .since(Some(found.since))
            .items(found.nodes.iter().cloned(), found.nodes.len() as u64)
    }
}

/// What is the same wherever a cause of a kind is found.
#[derive(Clone, Copy, Debug)]
struct CauseSpec {
    label: &'static str,
    /// What it alone comes to.
    verdict: Verdict,
    /// The headline of a job with this cause first.
    job: Option<&'static str>,
    /// The headline of a batch with this cause first.
    batch: Option<&'static str>,
}

const PAUSED: &str = "It is waiting for the ingest queue to be unpaused.";

macro_rules! kinds {
    ($( $(#[$doc:meta])* $kind:ident $label:literal $verdict:ident
        $(, job $job:expr)? $(, batch $batch:expr)?; )+) => {
        /// A kind of cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CauseKind {
            $( $(#[$doc])* $kind, )+
            /// A fault, by its own name.
            Fault(Fault),
        }

        impl CauseKind {
            /// The names of all kinds but the faults, whose names are their own.
            pub const LABELS: &'static [&'static str] = &[$($label),+];

            #[cfg(test)]
            const WITHOUT_FAULTS: &'static [Self] = &[$(Self::$kind),+];

            fn spec(self) -> CauseSpec {
                match self {
                    $(Self::$kind => CauseSpec {
                        label: $label,
                        verdict: Verdict::$verdict,
                        job: None$(.or(Some($job)))?,
                        batch: None$(.or(Some($batch)))?,
                    },)+
                    Self::Fault(fault) => CauseSpec {
                        label: fault.label(),
                        verdict: if fault.stops_item() { Verdict::Stopped } else { Verdict::Waiting },
                        job: None,
                        batch: None,
                    },
                }
            }
        }
    };
}

impl CauseKind {
    /// The name, which does not change.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.spec().label
    }

    /// What it alone comes to.
    pub(super) fn verdict(self) -> Verdict {
        self.spec().verdict
    }

    /// The headline of a job with this cause first, where it does not depend on the job.
    pub(super) fn headline_of_job(self) -> Option<&'static str> {
        self.spec().job
    }

    /// The headline of a batch with this cause first, where it does not depend on the batch.
    pub(super) fn headline_of_batch(self) -> Option<&'static str> {
        self.spec().batch
    }
}

kinds! {
    /// It is done with.
    Done "done" Done, job "It is done.", batch "It is done, and its report has been made.";
    /// A daemon works on it.
    InProgress "in_progress" Moving, job "It is moving: a daemon is working on it.";
    /// Jobs leave the state.
    Flowing "flowing" Moving;
    /// No job is in the state.
    Empty "empty" Moving;
    /// Its status names no state that the daemons know, or cannot be read.
    StatusUnknown "status_unknown" Stopped, job "The daemons do not know its status.";
    /// It failed.
    Failed "failed" Stopped, batch "It failed and needs an operator.";
    /// It is held.
    Held "held" Stopped, job "It is held and needs an operator.";
    /// Jobs of the state wait for an operator.
    WaitsForOperator "waits_for_operator" Stopped;
    /// The queue is paused.
    QueuePaused "queue_paused" Stopped, job PAUSED, batch PAUSED;
    /// Its collection is held, and so will it be.
    CollectionHeld "collection_held" Stopped, job "It will be held: its collection is held.";
    /// An operator holds a store, and the jobs whose objects are kept in it wait.
    StoreHeld "store_held" Waiting, job "It may be waiting for a held store.";
    /// Jobs of a held collection delay all behind them.
    HeldBacklog "held_backlog" Waiting, job "It is waiting for its turn.";
    /// With it, working storage would be fuller than it may be.
    WaitingForSpace "waiting_for_space" Stopped, job "It is waiting for working storage.";
    /// It waits until working storage is granted to it.
    WaitingForGrant "waiting_for_grant" Waiting, job "It is waiting until working storage is granted to it.";
    /// Its files are on a volume that no running process sees.
    VolumeUnseen "volume_unseen" Stopped, job "No running daemon has access to the volume of its files.";
    /// An attempt has failed, and another one is made later.
    WaitingForRetry "waiting_for_retry" Waiting, job "It is waiting for another attempt.",
        batch "It is waiting for another attempt to create its jobs.";
    /// A folder has no room for the jobs of the batch.
    WaitingForRoom "waiting_for_room" Waiting, batch "It is waiting for room for its jobs.";
    /// No process has workers for the state, though others work on the queue.
    NoWorkers "no_workers" Stopped;
    /// The jobs of its batch are being created.
    BeingCreated "being_created" Waiting, job "It is waiting for the other jobs of its batch to be created.",
        batch "Its jobs are being created.";
    /// It is being withdrawn with its deposit.
    BeingWithdrawn "being_withdrawn" Waiting, job "It is being withdrawn with its deposit.";
    /// Jobs that wait for space fill their daemon, which looks at no other.
    PoolFull "pool_full" Stopped, job "It is waiting for a daemon, and the daemons are waiting for working storage.";
    /// A daemon has locked it, and from here it cannot be seen whether it waits for space.
    Locked "locked" Waiting, job "It is locked by a daemon.";
    /// An entry at the head ends every poll of the state.
    HeadBlocked "head_blocked" Stopped;
    /// Others are ahead of it.
    Behind "behind_others" Waiting, job "It is waiting for its turn.";
    /// It is the next that a daemon takes.
    Next "next_in_line" Waiting, job "It is waiting for a daemon to take it.";
    /// Its batch does not exist.
    BatchGone "batch_gone" Stopped, job "Its batch does not exist.";
    /// No daemon has acquired the batch.
    BatchNotAcquired "batch_not_acquired" Stopped, job "Its batch has not been acquired.";
    /// Its batch has failed, is held, or is done with.
    BatchAtRest "batch_at_rest" Waiting;
    /// Jobs of the batch are not done.
    JobsToDo "jobs_to_do" Waiting, batch "It is waiting for its jobs.";
    /// Jobs of the batch are Held.
    JobsHeld "jobs_held" Stopped, batch "It is waiting for jobs that are Held.";
    /// Jobs of the batch wait in a state that nothing leaves.
    JobsStopped "jobs_stopped" Stopped, batch "It is waiting for jobs in a state that is stuck.";
    /// All jobs of the batch are done, and its report is due.
    ReportDue "report_due" Waiting, batch "It is waiting for its report.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_headline_for_each_cause_that_it_can_have() {
        let of_no_job = [
            // Their headlines have the name of the state.
            CauseKind::Failed,
            CauseKind::HeadBlocked,
            CauseKind::NoWorkers,
            // Causes of states and batches.
            CauseKind::Flowing,
            CauseKind::Empty,
            CauseKind::WaitsForOperator,
            CauseKind::WaitingForRoom,
            CauseKind::BatchAtRest,
            CauseKind::JobsToDo,
            CauseKind::JobsHeld,
            CauseKind::JobsStopped,
            CauseKind::ReportDue,
        ];
        for kind in CauseKind::WITHOUT_FAULTS {
            assert_eq!(kind.headline_of_job().is_none(), of_no_job.contains(kind), "{kind:?}");
        }
    }
}
