//! What each fault does, and what mends it, in words for an operator.

use super::Fault;

impl Fault {
    /// What it is called on a page.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::OrphanEntry => "Queue entry in another state than its job",
            Self::StrayEntry => "Queue entry without its job",
            Self::DuplicateEntry => "Job queued more than once",
            Self::MissingEntry => "Job without its queue entry",
            Self::DuplicateReference => "Job referred to more than once",
            Self::MissingReference => "Job and batch reference contradict each other",
            Self::UnloadableJob => "Job that the daemons cannot load",
            Self::UnloadableBatch => "Batch that the daemons cannot load",
            Self::UnloadableRequest => "Access request that the daemons cannot load",
            Self::UnfinishedCreation => "Creation that was not finished",
            Self::PriorityOutOfRange => "Priority outside 0 to 99",
            Self::LeakedLock => "Lock that nobody will release",
            Self::LeakedStorageLock => "Storage lock without a job",
            Self::DeletedBatchBlocksReporting => "Deleted batch that blocks reporting",
            Self::BatchWithoutEnd => "Batch without end",
            Self::StuckState => "State that nothing leaves",
            Self::HeldCollectionBacklog => "Backlog of a held collection",
            Self::ForgottenPause => "Forgotten pause",
            Self::DanglingUuid => "Batch UUID that leads nowhere",
            Self::FolderNearLimit => "Folder near its limit",
            Self::RetriesExhausted => "Job resumed too often",
        }
    }

    /// What it does to the queue.
    #[must_use]
    pub fn effect(self) -> &'static str {
        match self {
            Self::OrphanEntry => {
                "A daemon takes it, is refused and ends its poll, every time: no job of that state is looked at."
            }
            Self::StrayEntry => "The daemons pass it over. It is clutter, and hides what is really queued.",
            Self::DuplicateEntry => "The job is worked on twice, or one of the two states starves.",
            Self::MissingEntry => "No daemon sees the job. It waits for ever.",
            Self::DuplicateReference | Self::MissingReference => {
                "The batch's report is wrong, and the daemons' clean-up stops at it."
            }
            Self::UnloadableJob => {
                "A daemon that acquires it throws and may leak its lock. No job of that state is looked at."
            }
            Self::UnloadableBatch => "At the head it ends the daemons' look at batches: none is reported.",
            Self::UnloadableRequest => "At the head it ends the daemons' look at that access queue.",
            Self::UnfinishedCreation => "A daemon that acquires it throws and leaks its lock; all behind it starve.",
            Self::PriorityOutOfRange => {
                "The daemons cut the entry's name at its third character: the job is stuck for ever, and it sorts \
                 before 11."
            }
            Self::LeakedLock => "What it locks is never acquired again.",
            Self::LeakedStorageLock => "Every later version of that object waits for ever.",
            Self::DeletedBatchBlocksReporting => {
                "The report daemon locks it, throws, leaks the lock and ends its poll: no batch is reported."
            }
            Self::BatchWithoutEnd => "Its depositor gets no report, or it is never cleaned up.",
            Self::StuckState => "Nothing flows: every job before that state waits, too.",
            Self::HeldCollectionBacklog => {
                "Depositors wait. Pending jobs of a held collection become Held one a poll, and delay all behind them."
            }
            Self::ForgottenPause => "Depositors wait until somebody remembers it.",
            Self::DanglingUuid => "Looking the batch up by its UUID and polling for its report fail.",
            Self::FolderNearLimit => {
                "Above some 52,000 children the Java daemons cannot list the folder, and stop working with it."
            }
            Self::RetriesExhausted => "It fails whenever it is resumed. Only a person can help.",
        }
    }

    /// What mends it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::OrphanEntry => "Delete the entry, and make the one of the job's own state where that is missing.",
            Self::StrayEntry => "Delete the entry.",
            Self::DuplicateEntry => "Delete every entry but the one of the job's state and priority.",
            Self::MissingEntry => "Make the entry of the job's state and priority.",
            Self::DuplicateReference => "Delete every reference but the one below its batch that its status asks for.",
            Self::MissingReference => {
                "Make the reference that the job's status asks for and delete any other; where the job is gone, delete \
                 the reference."
            }
            Self::UnloadableJob => {
                "Write what follows from the rest of the tree: the canonical status, 0 for retry_count and \
                 space_needed, the priority of the queue entry, the batch that refers to the job, an empty object for \
                 an optional znode. Where that does not suffice, write the named znodes by hand as another job of the \
                 batch has them, or purge the job by its name and have it submitted again."
            }
            Self::UnloadableBatch => {
                "Write what follows from the rest of the tree: the canonical status, the states of a held batch. Where \
                 that does not suffice, write the named znodes by hand, or purge the batch by its name and have it \
                 submitted again."
            }
            Self::UnloadableRequest => {
                "Write its status as the daemons spell it. Where that does not suffice, write the named znodes by hand, \
                 or purge the request by its name: its user asks again."
            }
            Self::UnfinishedCreation => {
                "Purge it by its name, once it is clear that no client is still creating it; the client tries again."
            }
            Self::PriorityOutOfRange => "Set the priority within 0 to 99 and replace the entry by the one of that.",
            Self::LeakedLock => {
                "Make sure that no daemon works on it: look for the session that holds the lock. Then delete the lock."
            }
            Self::LeakedStorageLock => "Make sure that no storage service writes the object. Then delete the lock.",
            Self::DeletedBatchBlocksReporting => {
                "Break the lock where one was leaked, then delete the empty batch-processing: reporting goes on. The \
                 batch remains, and the daemons' clean-up passes it over: purge it."
            }
            Self::BatchWithoutEnd => {
                "Look whether the batch daemon runs and what ends its poll. A batch that was given up is purged by hand."
            }
            Self::StuckState => {
                "Look whether a daemon of that state runs, what its log says, and what stands at the head."
            }
            Self::HeldCollectionBacklog => {
                "Release the collection, or wait until its jobs are Held; release the held jobs of a free collection."
            }
            Self::ForgottenPause => "Ask who ordered it, and release it.",
            Self::DanglingUuid => {
                "Delete the entry that leads nowhere, or make the one that is missing with the batch's id as its text."
            }
            Self::FolderNearLimit => "Purge what is done with, or stop taking submissions until the folder is smaller.",
            Self::RetriesExhausted => "Read its message and mend the cause, then resume it once more; or delete it.",
        }
    }
}

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
