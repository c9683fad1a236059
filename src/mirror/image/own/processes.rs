//! What the processes with daemons of ours say of themselves, all together.

use super::Own;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::{BatchWait, MailNote};
use queuekeeper_queue::state::{JobState, State as _};

/// The states whose daemons replace those of other programs together only: where one of them is ours, all are to be.
/// (A test of the daemons compares them with their table, which this module does not know.)
pub(crate) const EXCHANGED_TOGETHER: [JobState; 5] =
    [JobState::Pending, JobState::Downloading, JobState::Processing, JobState::Storing, JobState::Recording];

impl Own {
    /// How many workers take the jobs of a state, in all processes.
    pub(in crate::mirror::image) fn workers(&self, state: JobState) -> u64 {
        self.daemons
            .values()
            .filter_map(|note| note.workers.get(state.label()))
            .map(|workers| u64::from(*workers))
            .sum()
    }

    /// Why a daemon gave a batch back whose jobs are being created; of several daemons, the one that has waited
    /// longest.
    pub(in crate::mirror::image) fn wait(&self, batch: BatchId) -> Option<&BatchWait> {
        self.expansions.get(&batch)?;
        let waits = self.daemons.values().flat_map(|note| &note.waits);
        waits.filter(|wait| wait.batch == batch).min_by_key(|wait| wait.since)
    }

    /// Whether a daemon gave a batch back whose jobs are being created, or may have: each says so of some only.
    pub(in crate::mirror::image) fn may_be_given_back(&self, batch: BatchId) -> bool {
        self.expansions.contains_key(&batch) && self.daemons.values().any(|note| note.may_have_given_back(batch))
    }

    /// Whether a process has workers for a state of those that are exchanged together.
    pub(in crate::mirror::image) fn has_daemons(&self) -> bool {
        EXCHANGED_TOGETHER.iter().any(|state| self.workers(*state) > 0)
    }

    /// The mail that no process has delivered yet: what the one says that has found the oldest of it.
    pub(in crate::mirror::image) fn waiting_mail(&self) -> Option<&MailNote> {
        let notes = self.daemons.values().filter_map(|note| note.mail.as_ref());
        // Of those that have found the same, one that has tried knows why.
        notes.min_by_key(|mail| (mail.since.as_second() / 60, mail.why.is_empty()))
    }
}
