//! What kind of action repairs a fault, and an item that shows it.

use super::kind::RepairKind::{self, Another, BreaksLock, Fix, Writes};
use super::{Fault, Misnamed};
use crate::path::Path;

impl Fault {
    /// What kind of action repairs it. For an item that cannot be loaded, a repair writes the values that follow from
    /// the rest of the tree and refuses the rest; for overdue batches, writing helps those that are Failed
    /// without `states/batch-processing`.
    #[must_use]
    pub fn repair_kind(self) -> RepairKind {
        self.spec().repair
    }

    /// Whether a program may repair it without an operator who looks at the item: the repair only creates or removes an
    /// entry or a reference, and all that it writes follows from the job's own znodes.
    #[must_use]
    pub fn may_be_repaired_unattended(self) -> bool {
        self.spec().is_unattended
    }

    /// The same as [`Fault::repair_kind`] for one item that shows it: the right values follow for some items, and never
    /// for others.
    #[must_use]
    pub fn repair_kind_of(self, item: &Path) -> RepairKind {
        match (self, item) {
            (Self::UnfinishedCreation, Path::Job(_) | Path::Request(..)) => Another(PURGE_UNFINISHED),
            (Self::MalformedName, _) if Misnamed::of(item) != Some(Misnamed::Entry) => {
                Another("Check what it holds, then create it again with a valid id, or delete it by hand.")
            }
            _ => self.repair_kind(),
        }
    }

    /// How it is fixed for one item that shows it: as [`Fault::fix`], where there is nothing more specific.
    #[must_use]
    pub fn fix_of(self, item: &Path) -> &'static str {
        match self.repair_kind_of(item) {
            Writes | BreaksLock | Fix => self.fix(),
            Another(fix) => fix,
        }
    }

    /// What is to be done about one item that shows it; `None` where an action repairs that.
    #[must_use]
    pub fn help(self, item: &Path) -> Option<&'static str> {
        match self.repair_kind_of(item) {
            Writes | BreaksLock => None,
            Fix | Another(_) => Some(self.fix_of(item)),
        }
    }
}

/// The fix for an item of which there is no more than a purge could take away.
pub(crate) const PURGE_UNFINISHED: &str =
    "Purge it by name, once it is clear that no client is still creating it; the client retries.";
