//! What checks have found.

use queuekeeper_store::store::Item;
use queuekeeper_store::{Digests, Key, StoreName};

/// What each of the four sources said of a copy, as JSON; `None` where it said nothing, or where that is what the
/// record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The content that was read.
    pub content: Option<String>,
    /// The store.
    pub provider: Option<String>,
    /// The content index.
    pub index: Option<String>,
    /// The last settled event of the audit log.
    pub audit: Option<String>,
}

/// What is wrong with a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The names of what was found, at least one of a failure.
    pub findings: Vec<&'static str>,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// What the store has that no record explains: an event of the audit log says so, once.
    pub observed: Option<Observed>,
}

/// What a store has that no record explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// In whose name the audit log says so.
    pub user: String,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The digests of the whole content.
    pub digests: Digests,
}

/// The outcome of the check of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedItem {
    /// The item, in the space as the store names it.
    pub item: Item,
    /// Its number in the catalogue; `None` where it has none yet.
    pub id: Option<u64>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The result.
    pub result: &'static str,
    /// How the bytes were proven, where they were.
    pub proof: Option<&'static str>,
    /// The event that the proof is of: the one that the content index had while the copy was checked.
    pub seq: Option<u64>,
    /// What was seen.
    pub evidence: Evidence,
    /// What is wrong; `None` where nothing is.
    pub wrong: Option<Wrong>,
    /// Whether it is recorded, and not stored.
    pub is_missing: bool,
    /// Why its content was not read, as a sentence; `None` where it was, or was not to be.
    pub unread: Option<&'static str>,
}

/// How far a check is with the end of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedPart {
    /// Whether a part of a space was checked, and not one item.
    pub is_of_space: bool,
    /// The key up to which the space is gone through; `None` for all of it.
    pub rest: Option<Key>,
    /// The items that are checked one by one.
    pub alone: Vec<Key>,
}

/// An item of a page that is to be checked by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoneItem {
    /// Its key.
    pub key: Key,
    /// Its size in bytes: what the store listed, else what is recorded.
    pub bytes: u64,
    /// Whether the store listed it.
    pub is_listed: bool,
}

/// That a page of a run was checked, up to a key or to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// The run.
    pub run: u64,
    /// Whether that had ended: what its report says of the page stays.
    pub is_late: bool,
    /// The key behind which the page begins; `None` for the beginning of the space.
    pub behind: Option<Key>,
    /// The key behind which the rest begins that is a page of its own from now on; `None` where nothing is left.
    pub rest: Option<Key>,
    /// How many items and bytes the store listed in what was checked.
    pub listed: (u64, u64),
    /// What of it is checked one by one.
    pub alone: Vec<LoneItem>,
}

/// What a task has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPart {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The run that it belongs to; `None` for a check outside of runs.
    pub run: Option<u64>,
    /// The page, where the task was of one.
    pub page: Option<PageEnd>,
    /// How far a check is that was requested, where the task was of one.
    pub requested: Option<RequestedPart>,
    /// What was checked.
    pub items: Vec<CheckedItem>,
    /// How many items and bytes were skipped, as the policy of the store wants it.
    pub skipped: (u64, u64),
    /// Whether the item of the task is of a job that has not recorded it yet.
    pub is_being_stored: bool,
}

impl CheckedPart {
    /// Items that were checked outside of runs.
    #[must_use]
    pub fn of(account: String, store: StoreName, items: Vec<CheckedItem>) -> Self {
        Self { account, store, run: None, page: None, requested: None, items, skipped: (0, 0), is_being_stored: false }
    }

    /// Whether many items were checked, those alone with which nothing was known to be wrong.
    pub(super) fn is_of_page(&self) -> bool {
        self.page.is_some() || self.requested.as_ref().is_some_and(|requested| requested.is_of_space)
    }
}
