//! The table of faults: what each is called, what it does and stops, and how it is fixed.

use super::kind::RepairKind::{self, BreaksLock, Fix, Writes};
use super::kind::{Blocks, Severity};

macro_rules! faults {
    ($( $(#[$doc:meta])* $fault:ident $label:literal {
        title: $title:literal,
        effect: $effect:literal,
        fix: $fix:literal,
        severity: $severity:ident,
        blocks: [$($blocks:ident),*],
        has_own_alert: $has_own_alert:literal,
        repair: $repair:expr,
        is_unattended: $is_unattended:literal,
    } )+) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $( $(#[$doc])* $fault, )+ }

        impl Fault {
            /// Every kind, in the order in which they are listed.
            pub const ALL: [Self; [$(Self::$fault),+].len()] = [$(Self::$fault),+];

            pub(super) fn spec(self) -> &'static FaultSpec {
                match self {
                    $(Self::$fault => {
                        const SPEC: FaultSpec = FaultSpec {
                            label: $label,
                            title: $title,
                            effect: $effect,
                            fix: $fix,
                            severity: Severity::$severity,
                            blocks: &[$(Blocks::$blocks),*],
                            has_own_alert: $has_own_alert,
                            repair: $repair,
                            is_unattended: $is_unattended,
                        };
                        &SPEC
                    })+
                }
            }
        }
    };
}

/// One row of the table.
pub(super) struct FaultSpec {
    label: &'static str,
    title: &'static str,
    effect: &'static str,
    fix: &'static str,
    severity: Severity,
    blocks: &'static [Blocks],
    has_own_alert: bool,
    pub(super) repair: RepairKind,
    pub(super) is_unattended: bool,
}

faults! {
    /// A queue entry in a state that is not its job's.
    OrphanEntry "orphan_entry" {
        title: "Queue entry in a state other than its job's",
        effect: "A daemon that takes it is refused and ends its poll. At the head of that state it starves the jobs behind \
                 it, unless the daemons skip it.",
        fix: "Delete the entry, and create the entry for the job's own state if it is missing.",
        severity: Error,
        blocks: [Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// A queue entry whose job is gone.
    StrayEntry "stray_entry" {
        title: "Queue entry without its job",
        effect: "The daemons skip it. A tool that counts the entries of a state counts one too many.",
        fix: "Delete the entry.",
        severity: Warning,
        blocks: [],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// More than one queue entry of a job.
    DuplicateEntry "duplicate_entry" {
        title: "Job queued more than once",
        effect: "The job is processed twice, or one of the two states starves.",
        fix: "Delete every entry except the one for the job's state and priority.",
        severity: Error,
        blocks: [],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// A job that is not final, without the queue entry for its state and priority.
    MissingEntry "missing_entry" {
        title: "Job without its queue entry",
        effect: "No daemon sees the job. It waits forever.",
        fix: "Create the entry for the job's state and priority.",
        severity: Error,
        blocks: [Job],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// More than one reference to a job.
    DuplicateReference "duplicate_reference" {
        title: "Job referenced more than once",
        effect: "The batch's report is wrong, and the daemons' cleanup stops at it.",
        fix: "Delete every reference except the one below its batch that matches its status.",
        severity: Error,
        blocks: [],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// A job without its reference, a reference that its status contradicts, or one whose job is gone.
    MissingReference "missing_reference" {
        title: "Job and batch reference contradict each other",
        effect: "The batch's report is wrong, and the daemons' cleanup stops at it.",
        fix: "Create the reference that matches the job's status and delete any other; if the job is gone, delete the \
              reference.",
        severity: Error,
        blocks: [],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// A job that the Java daemons cannot load.
    UnloadableJob "unloadable_job" {
        title: "Job that the daemons cannot load",
        effect: "A daemon that acquires it throws an exception and may leak its lock. At the head of its state it starves \
                 the jobs behind it, unless the daemons skip it.",
        fix: "Write the values that follow from the rest of the tree: the canonical status, 0 for retry_count and \
              space_needed, the priority of the queue entry, the batch that references the job, an empty object for an \
              optional znode. If that is not enough, write the named znodes by hand, as another job of the batch has \
              them, or purge the job by name and have it submitted again.",
        severity: Error,
        blocks: [Job, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A batch that the Java daemons cannot load.
    UnloadableBatch "unloadable_batch" {
        title: "Batch that the daemons cannot load",
        effect: "At the head of the batches it ends the daemons' poll: no batch is reported.",
        fix: "Write the values that follow from the rest of the tree: the canonical status, the states of a held batch. \
              If that is not enough, write the named znodes by hand, or purge the batch by name and have it submitted \
              again.",
        severity: Error,
        blocks: [Batch, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// An access request that the Java daemons cannot load.
    UnloadableRequest "unloadable_request" {
        title: "Access request that the daemons cannot load",
        effect: "At the head of its access queue it ends the daemons' poll.",
        fix: "Write its status as the daemons spell it. If that is not enough, write the named znodes by hand, or purge \
              the request by name; its user can submit it again.",
        severity: Error,
        blocks: [Request, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A job, batch or request without any of its children.
    UnfinishedCreation "unfinished_creation" {
        title: "Unfinished creation",
        effect: "A daemon that acquires it throws an exception and leaks its lock; everything behind it starves.",
        fix: "Purge it by name, once it is clear that no client is still creating it; the client retries. A batch that \
              was acquired and has no jobs yet has its empty states removed, so that it is acquired again.",
        severity: Error,
        blocks: [Job, Batch, Request, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A znode whose name the daemons cannot parse: no queue entry in a state's folder, or an id without ten digits.
    MalformedName "malformed_name" {
        title: "Name that the daemons cannot parse",
        effect: "In a state's folder, a daemon that takes jobs of that state throws an exception, or takes a job other \
                 than the one named. Below /jobs, the daemons cannot list the jobs. A batch with such a name is processed, \
                 but not shown here.",
        fix: "Remove it from the state's folder. For a job or batch with such a name, check what it holds, then create it \
              again with a valid id, or delete it by hand.",
        severity: Error,
        blocks: [Job, Batch],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A batch whose state and references contradict each other, or that no daemon takes.
    ContradictingBatch "contradicting_batch" {
        title: "Batch that contradicts itself",
        effect: "The daemons' cleanup refuses it, or its depositor waits forever.",
        fix: "Check whether the batch daemon is running and whether its log shows why it does not reach the batch. \
              Finish or delete the unfinished jobs of a Completed batch.",
        severity: Error,
        blocks: [Batch],
        has_own_alert: false,
        repair: Fix,
        is_unattended: false,
    }
    /// A priority that does not have two digits.
    PriorityOutOfRange "priority_out_of_range" {
        title: "Priority outside 0 to 99",
        effect: "The daemons cut the entry's name at its third character: the job never moves, and its entry sorts before \
                 those of priority 11.",
        fix: "Set the priority to a value from 0 to 99 and replace the entry to match.",
        severity: Error,
        blocks: [Job, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: true,
    }
    /// A lock that will not be released by itself.
    LeakedLock "leaked_lock" {
        title: "Leaked lock",
        effect: "The item is not acquired while the lock exists. A daemon may still be working on it.",
        fix: "Make sure that no daemon is working on the item: look for the session that holds the lock. Then delete the \
              lock.",
        severity: Error,
        blocks: [Job, Batch, Request],
        has_own_alert: true,
        repair: BreaksLock,
        is_unattended: false,
    }
    /// The lock of an object that no job is storing.
    LeakedStorageLock "leaked_storage_lock" {
        title: "Storage lock without a job",
        effect: "Every later version of that object waits forever.",
        fix: "Make sure that no storage service is writing the object. Then delete the lock.",
        severity: Error,
        blocks: [],
        has_own_alert: true,
        repair: BreaksLock,
        is_unattended: false,
    }
    /// A deleted batch that looks as if its report were due.
    DeletedBatchBlocksReporting "deleted_batch_blocks_reporting" {
        title: "Deleted batch that blocks reporting",
        effect: "The report daemon locks it, throws an exception, leaks the lock and ends its poll: no batch is reported.",
        fix: "Break the lock if one was leaked, then delete the empty batch-processing: reporting resumes. The batch \
              remains, and the daemons' cleanup skips it: purge it.",
        severity: Error,
        blocks: [Batch, Head],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A batch whose report, cleanup or creation of jobs is overdue.
    OverdueBatch "overdue_batch" {
        title: "Overdue batch",
        effect: "Its jobs are not created, its depositor gets no report, or it is never cleaned up.",
        fix: "Check whether the batch daemon is running and whether its log shows why it does not reach the batch. Repair \
              a batch that has no znode batch-processing: the repair creates it.",
        severity: Error,
        blocks: [Batch],
        has_own_alert: true,
        repair: Writes,
        is_unattended: false,
    }
    /// Jobs wait and no daemon takes any.
    NoDaemon "no_daemon" {
        title: "State without a daemon",
        effect: "Its jobs do not move, regardless of any other reason that is shown.",
        fix: "Start the daemons, or check their logs for the reason why they take no jobs.",
        severity: Error,
        blocks: [State],
        has_own_alert: false,
        repair: Fix,
        is_unattended: false,
    }
    /// A state that no job leaves.
    StuckState "stuck_state" {
        title: "Stuck state",
        effect: "No job leaves the state: jobs in every earlier state wait too.",
        fix: "Check whether a daemon for that state is running, what its log says, and what is at the head of the state.",
        severity: Error,
        blocks: [State],
        has_own_alert: true,
        repair: Fix,
        is_unattended: false,
    }
    /// Pending jobs of a held collection, or held jobs of one that is not held.
    HeldCollectionBacklog "held_collection_backlog" {
        title: "Jobs kept waiting by a hold",
        effect: "Depositors wait. Pending jobs of a held collection are moved to Held, one per poll, and delay all jobs \
                 behind them; Held jobs of a collection that is not held stay Held.",
        fix: "If the collection is held, release it, or wait until its jobs are Held. If it is not, release its Held jobs.",
        severity: Warning,
        blocks: [],
        has_own_alert: true,
        repair: Fix,
        is_unattended: false,
    }
    /// A pause or hold of more than a day.
    ForgottenPause "forgotten_pause" {
        title: "Forgotten pause",
        effect: "Depositors, or users who requested objects, wait until it is unpaused or released.",
        fix: "Ask the user who set it, or see the rule that did, then unpause or release it.",
        severity: Warning,
        blocks: [],
        has_own_alert: true,
        repair: Fix,
        is_unattended: false,
    }
    /// A batch UUID that leads to no batch, or a batch that its UUID does not lead to.
    DanglingUuid "dangling_uuid" {
        title: "Dangling batch UUID",
        effect: "Looking up the batch by its UUID fails, and so does polling for its report.",
        fix: "Delete the dangling entry, or create the missing one with the batch's id as its content.",
        severity: Warning,
        blocks: [],
        has_own_alert: false,
        repair: Writes,
        is_unattended: false,
    }
    /// A folder of nearly as many children as a Java client can list.
    FolderNearLimit "folder_near_limit" {
        title: "Folder near its limit",
        effect: "Above about 52,000 children the Java daemons can no longer list the folder, and stop working with it.",
        fix: "Purge finished items, or stop taking submissions until the folder is smaller.",
        severity: Warning,
        blocks: [],
        has_own_alert: false,
        repair: Fix,
        is_unattended: false,
    }
    /// A failed job that was resumed as often as makes sense.
    RetriesExhausted "retries_exhausted" {
        title: "Job resumed too often",
        effect: "It fails each time it is resumed, and needs an operator. Resuming does not help until the cause is fixed.",
        fix: "Read its message and fix the cause, then resume it once more, or delete it.",
        severity: Error,
        blocks: [Job],
        has_own_alert: true,
        repair: Fix,
        is_unattended: false,
    }
}

impl Fault {
    /// The name, which is also the label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.spec().label
    }

    /// Its title on a page.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// What it does to the queue.
    #[must_use]
    pub fn effect(self) -> &'static str {
        self.spec().effect
    }

    /// How it is fixed.
    #[must_use]
    pub fn fix(self) -> &'static str {
        self.spec().fix
    }

    /// How urgent it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        self.spec().severity
    }

    /// Whether it keeps that from moving.
    #[must_use]
    pub fn blocks(self, what: Blocks) -> bool {
        self.spec().blocks.contains(&what)
    }

    /// Whether an alert beside those on all faults is about it. Without one, it fires the alert on blocked heads or the
    /// one on other faults, by what it blocks.
    #[must_use]
    pub fn has_own_alert(self) -> bool {
        self.spec().has_own_alert
    }

    /// Whether it keeps the job, batch, request or state that shows it from moving.
    #[must_use]
    pub fn stops_item(self) -> bool {
        self.spec().blocks.iter().any(|what| *what != Blocks::Head)
    }
}
