//! The table of faults: what each is called, what it does, and what fixes it.

use super::Misnamed;
use crate::path::Path;

macro_rules! faults {
    ($( $(#[$doc:meta])* $fault:ident $label:literal {
        title: $title:literal,
        effect: $effect:literal,
        fix: $fix:literal,
        severity: $severity:ident,
        stops_item: $stops:literal,
        repair: $repair:expr,
    } )+) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $( $(#[$doc])* $fault, )+ }

        impl Fault {
            /// Every kind, in the order in which they are listed.
            pub const ALL: [Self; [$(Self::$fault),+].len()] = [$(Self::$fault),+];

            fn row(self) -> &'static Row {
                match self {
                    $(Self::$fault => {
                        const ROW: Row = Row {
                            label: $label,
                            title: $title,
                            effect: $effect,
                            fix: $fix,
                            severity: Severity::$severity,
                            stops_item: $stops,
                            repair: $repair,
                        };
                        &ROW
                    })+
                }
            }
        }
    };
}

/// What is known of one kind.
struct Row {
    label: &'static str,
    title: &'static str,
    effect: &'static str,
    fix: &'static str,
    severity: Severity,
    stops_item: bool,
    repair: RepairKind,
}

/// How urgent a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something does not flow, or never will by itself.
    Error,
    /// Somebody should know.
    Warning,
}

/// What kind of action repairs a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairKind {
    /// Writing what follows from the rest of the tree; nothing is lost. Where nothing follows, the repair refuses.
    Writes,
    /// Breaking a lock.
    BreaksLock,
    /// Something else, which this says.
    Another(&'static str),
}
use RepairKind::{Another, BreaksLock, Writes};

faults! {
    /// A queue entry in a state that is not its job's.
    OrphanEntry "orphan_entry" {
        title: "Queue entry in another state than its job",
        effect: "A daemon that takes it is refused and ends its poll. First in that state, it starves the jobs behind it, but where daemons pass it over.",
        fix: "Delete the entry, and make the one of the job's own state where that is missing.",
        severity: Error,
        stops_item: false,
        repair: Writes,
    }
    /// A queue entry whose job is gone.
    StrayEntry "stray_entry" {
        title: "Queue entry without its job",
        effect: "The daemons pass it over. It is clutter, and hides what is really queued.",
        fix: "Delete the entry.",
        severity: Warning,
        stops_item: false,
        repair: Writes,
    }
    /// More than one queue entry of a job.
    DuplicateEntry "duplicate_entry" {
        title: "Job queued more than once",
        effect: "The job is worked on twice, or one of the two states starves.",
        fix: "Delete every entry but the one of the job's state and priority.",
        severity: Error,
        stops_item: false,
        repair: Writes,
    }
    /// A job that is not final, without the queue entry of its state and priority.
    MissingEntry "missing_entry" {
        title: "Job without its queue entry",
        effect: "No daemon sees the job. It waits for ever.",
        fix: "Make the entry of the job's state and priority.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// More than one reference to a job.
    DuplicateReference "duplicate_reference" {
        title: "Job referred to more than once",
        effect: "The batch's report is wrong, and the daemons' clean-up stops at it.",
        fix: "Delete every reference but the one below its batch that its status asks for.",
        severity: Error,
        stops_item: false,
        repair: Writes,
    }
    /// A job without its reference, a reference that its status contradicts, or one whose job is gone.
    MissingReference "missing_reference" {
        title: "Job and batch reference contradict each other",
        effect: "The batch's report is wrong, and the daemons' clean-up stops at it.",
        fix: "Make the reference that the job's status asks for and delete any other; where the job is gone, delete the reference.",
        severity: Error,
        stops_item: false,
        repair: Writes,
    }
    /// A job that the Java daemons cannot load.
    UnloadableJob "unloadable_job" {
        title: "Job that the daemons cannot load",
        effect: "A daemon that acquires it throws and may leak its lock. First in its state, it starves the jobs behind it, but where daemons pass it over.",
        fix: "Write what follows from the rest of the tree: the canonical status, 0 for retry_count and space_needed, the priority of the queue entry, the batch that refers to the job, an empty object for an optional znode. Where that does not suffice, write the named znodes by hand as another job of the batch has them, or purge the job by its name and have it submitted again.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A batch that the Java daemons cannot load.
    UnloadableBatch "unloadable_batch" {
        title: "Batch that the daemons cannot load",
        effect: "At the head it ends the daemons' look at batches: none is reported.",
        fix: "Write what follows from the rest of the tree: the canonical status, the states of a held batch. Where that does not suffice, write the named znodes by hand, or purge the batch by its name and have it submitted again.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// An access request that the Java daemons cannot load.
    UnloadableRequest "unloadable_request" {
        title: "Access request that the daemons cannot load",
        effect: "At the head it ends the daemons' look at that access queue.",
        fix: "Write its status as the daemons spell it. Where that does not suffice, write the named znodes by hand, or purge the request by its name: its user asks again.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A job, batch or request without any of its children.
    UnfinishedCreation "unfinished_creation" {
        title: "Creation that was not finished",
        effect: "A daemon that acquires it throws and leaks its lock; all behind it starve.",
        fix: "Purge it by its name, once it is clear that no client is still creating it; the client tries again. A batch \
             that was acquired and has no jobs yet loses its empty states, so that it is acquired again.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A znode whose name the daemons cannot read: no queue entry in a state's folder, or an id without ten digits.
    MalformedName "malformed_name" {
        title: "Name that the daemons cannot read",
        effect: "In a state's folder, a daemon that takes jobs of that state throws, or takes another job than is named. \
                 Below /jobs, the daemons cannot list the jobs. A batch of such a name is worked on, and not shown here.",
        fix: "Remove it from the state's folder. A job or batch of such a name: look what it holds, then create it anew \
              with a right id, or delete it by hand.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A batch whose state and references contradict each other, or that nobody takes.
    ContradictingBatch "contradicting_batch" {
        title: "Batch that contradicts itself",
        effect: "The daemons' clean-up refuses it, or its depositor waits for ever.",
        fix: "Completed with jobs that are not: finish or delete these jobs. A reference with children: delete the \
              children by hand. Pending and not taken: look whether the batch daemon runs and what ends its poll.",
        severity: Error,
        stops_item: true,
        repair: Another("look at its jobs, its references, and the daemon that takes batches"),
    }
    /// A priority that has no two digits.
    PriorityOutOfRange "priority_out_of_range" {
        title: "Priority outside 0 to 99",
        effect: "The daemons cut the entry's name at its third character: the job is stuck for ever, and it sorts before 11.",
        fix: "Set the priority within 0 to 99 and replace the entry by the one of that.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A lock that nobody will release.
    LeakedLock "leaked_lock" {
        title: "Lock that nobody will release",
        effect: "What it locks is never acquired again.",
        fix: "Make sure that no daemon works on it: look for the session that holds the lock. Then delete the lock.",
        severity: Error,
        stops_item: true,
        repair: BreaksLock,
    }
    /// The lock of an object that nobody stores.
    LeakedStorageLock "leaked_storage_lock" {
        title: "Storage lock without a job",
        effect: "Every later version of that object waits for ever.",
        fix: "Make sure that no storage service writes the object. Then delete the lock.",
        severity: Error,
        stops_item: false,
        repair: BreaksLock,
    }
    /// A deleted batch that looks as if its report were due.
    DeletedBatchBlocksReporting "deleted_batch_blocks_reporting" {
        title: "Deleted batch that blocks reporting",
        effect: "The report daemon locks it, throws, leaks the lock and ends its poll: no batch is reported.",
        fix: "Break the lock where one was leaked, then delete the empty batch-processing: reporting goes on. The batch remains, and the daemons' clean-up passes it over: purge it.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// A batch that will not come to its report or its clean-up.
    BatchWithoutEnd "batch_without_end" {
        title: "Batch without end",
        effect: "Its depositor gets no report, or it is never cleaned up.",
        fix: "Report overdue: look whether the batch daemon runs and what ends its poll. Without batch-processing: have it made, so that the batch is reported again or cleaned up; a Deleted batch is purged by its name.",
        severity: Error,
        stops_item: true,
        repair: Writes,
    }
    /// Jobs wait and no daemon takes any.
    NoDaemon "no_daemon" {
        title: "State of which no daemon takes jobs",
        effect: "Its jobs do not move, whatever else seems to be the reason.",
        fix: "Start the daemons, or look in their logs why they take no jobs.",
        severity: Error,
        stops_item: true,
        repair: Another("start the daemons, or look in their logs why they take no jobs"),
    }
    /// A state that nothing leaves.
    StuckState "stuck_state" {
        title: "State that nothing leaves",
        effect: "Nothing flows: every job before that state waits, too.",
        fix: "Look whether a daemon of that state runs, what its log says, and what stands at the head.",
        severity: Error,
        stops_item: true,
        repair: Another("look at the daemons of that state and at what stands at its head"),
    }
    /// Pending jobs of a held collection, or held jobs of one that is free.
    HeldCollectionBacklog "held_collection_backlog" {
        title: "Jobs that a hold keeps waiting",
        effect: "Depositors wait. Pending jobs of a held collection become Held one a poll and delay all behind them; Held jobs of a free collection stay Held.",
        fix: "Where the collection is held, release it, or wait until its jobs are Held. Where it is free, release its Held jobs.",
        severity: Warning,
        stops_item: false,
        repair: Another("release the collection, or the held jobs of one that is free"),
    }
    /// A pause or hold of more than a day.
    ForgottenPause "forgotten_pause" {
        title: "Forgotten pause",
        effect: "Depositors wait until somebody remembers it.",
        fix: "Ask who requested it, and release it.",
        severity: Warning,
        stops_item: false,
        repair: Another("let the queue go on, or release the collection"),
    }
    /// A batch UUID that leads to no batch, or a batch that its UUID does not lead to.
    DanglingUuid "dangling_uuid" {
        title: "Batch UUID that leads nowhere",
        effect: "Looking the batch up by its UUID and polling for its report fail.",
        fix: "Delete the entry that leads nowhere, or make the one that is missing with the batch's id as its text.",
        severity: Warning,
        stops_item: false,
        repair: Writes,
    }
    /// A folder of nearly as many children as a Java client can list.
    FolderNearLimit "folder_near_limit" {
        title: "Folder near its limit",
        effect: "Above some 52,000 children the Java daemons cannot list the folder, and stop working with it.",
        fix: "Purge what is done with, or stop taking submissions until the folder is smaller.",
        severity: Warning,
        stops_item: false,
        repair: Another("purge what is done with"),
    }
    /// A failed job that was resumed as often as makes sense.
    RetriesExhausted "retries_exhausted" {
        title: "Job resumed too often",
        effect: "It fails whenever it is resumed. Only a person can help.",
        fix: "Read its message and repair the cause, then resume it once more; or delete it.",
        severity: Error,
        stops_item: true,
        repair: Another("resume the job once its cause is repaired, or delete it"),
    }
}

impl Fault {
    /// The name, which is also the label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// What it is called on a page.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What it does to the queue.
    #[must_use]
    pub fn effect(self) -> &'static str {
        self.row().effect
    }

    /// What fixes it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        self.row().fix
    }

    /// How urgent it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        self.row().severity
    }

    /// Whether it keeps the job, batch, request or state that shows it from moving.
    #[must_use]
    pub fn stops_item(self) -> bool {
        self.row().stops_item
    }

    /// What kind of action repairs it. Of what cannot be loaded a repair writes what follows from the rest of the tree, and
    /// refuses the rest; of batches without end, writing helps those that are Failed without `states/batch-processing`.
    #[must_use]
    pub fn repair_kind(self) -> RepairKind {
        self.row().repair
    }

    /// The same for an item that shows it: what is right follows for some items of a kind, and for others never.
    #[must_use]
    pub fn repair_kind_of(self, item: &Path) -> RepairKind {
        match (self, item) {
            (Self::UnfinishedCreation, Path::Job(_) | Path::Request(..)) => Another(PURGE_UNFINISHED),
            (Self::MalformedName, _) if Misnamed::of(item) != Some(Misnamed::Entry) => {
                Another("look what it holds, and delete it by hand, or create it anew with a right id")
            }
            _ => self.repair_kind(),
        }
    }
}

/// What is done about an item of which no more is there than a purge could take away.
pub(crate) const PURGE_UNFINISHED: &str = "purge it by its name, once it is clear that no client is still creating it";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_and_sentences_that_end() {
        let labels: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.label()).collect();
        assert_eq!(labels.len(), Fault::ALL.len());
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, index);
            assert_eq!(Fault::from_label(fault.label()), Some(fault));
            for words in [fault.effect(), fault.remedy()] {
                assert!(words.ends_with('.') && !words.contains("  "), "{fault}: {words}");
            }
        }
        assert_eq!(Fault::from_label("no_such_fault"), None);
    }
}
