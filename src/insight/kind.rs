//! The kinds of causes.

use queuekeeper_queue::fault::Fault;

macro_rules! kinds {
    ($( $(#[$doc:meta])* $kind:ident $label:literal, )+) => {
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

            /// The name, which does not change.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$kind => $label,)+
                    Self::Fault(fault) => fault.label(),
                }
            }
        }
    };
}

kinds! {
    /// It is done with.
    Done "done",
    /// A daemon works on it.
    InWork "in_work",
    /// Jobs leave the state.
    Flowing "flowing",
    /// No job is in the state.
    Empty "empty",
    /// Its status names no state that the daemons know, or cannot be read.
    StatusUnknown "status_unknown",
    /// It failed.
    Failed "failed",
    /// It is held.
    Held "held",
    /// Jobs of the state wait for an operator.
    WaitsForOperator "waits_for_operator",
    /// The queue is paused.
    QueuePaused "queue_paused",
    /// Its collection is held, and so will it be.
    CollectionHeld "collection_held",
    /// An operator holds a store, and the jobs whose objects are kept in it wait.
    StoreHeld "store_held",
    /// Jobs of a held collection delay all behind them.
    HeldBacklog "held_backlog",
    /// With it, working storage would be fuller than it may be.
    WaitingForSpace "waiting_for_space",
    /// It waits until working storage is granted to it.
    WaitingForGrant "waiting_for_grant",
    /// Its files are on a volume that no running process sees.
    VolumeUnseen "volume_unseen",
    /// An attempt has failed, and another one is made later.
    WaitingForRetry "waiting_for_retry",
    /// A folder has no room for the jobs of the batch.
    WaitingForRoom "waiting_for_room",
    /// No process has workers for the state, though others work on the queue.
    NoWorkers "no_workers",
    /// The jobs of its batch are being created.
    BeingCreated "being_created",
    /// It is being withdrawn with its deposit.
    BeingWithdrawn "being_withdrawn",
    /// Jobs that wait for space fill their daemon, which looks at no other.
    PoolFull "pool_full",
    /// A daemon holds it, and from here it cannot be seen whether it waits for space.
    Locked "locked",
    /// An entry at the head ends every poll of the state.
    HeadBlocked "head_blocked",
    /// Others are ahead of it.
    Behind "behind_others",
    /// It is the next that a daemon takes.
    Next "next_in_line",
    /// Its batch does not exist.
    BatchGone "batch_gone",
    /// No daemon has acquired the batch.
    BatchNotAcquired "batch_not_acquired",
    /// Its batch has failed, is held, or is done with.
    BatchAtRest "batch_at_rest",
    /// Jobs of the batch are not done.
    JobsToDo "jobs_to_do",
    /// Jobs of the batch are Held.
    JobsHeld "jobs_held",
    /// Jobs of the batch wait in a state that nothing leaves.
    JobsStopped "jobs_stopped",
    /// All jobs of the batch are done, and its report is due.
    ReportDue "report_due",
}
