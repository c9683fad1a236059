//! What all lists have in common: their items, and the way to the next page.

use serde::Serialize;
use utoipa::ToSchema;

use super::access::{AccessItem, AccessList};
use super::audit::{AuditItem, AuditList};
use super::batches::{BatchItem, BatchList};
use super::failures::{FailureItem, FailureList};
use super::faults::{FaultItem, FaultList};
use super::jobs::{JobItem, JobList};
use super::locks::{LockItem, LockList};

/// A page of a list.
pub(crate) trait List: Sized {
    /// What it lists.
    type Item: Serialize + ToSchema;

    /// The items of this page.
    fn items(&self) -> &[Self::Item];

    /// The cursor of the next page.
    fn next(&self) -> Option<&str>;

    /// How many items there are on all pages.
    fn total(&self) -> u64;

    /// Appends the next page.
    fn add(&mut self, behind: Self);
}

macro_rules! lists {
    ($($list:ty: $item:ty),+ $(,)?) => { $(
        impl List for $list {
            type Item = $item;

            fn items(&self) -> &[$item] {
                &self.items
            }

            fn next(&self) -> Option<&str> {
                self.next.as_deref()
            }

            fn total(&self) -> u64 {
                self.total as u64
            }

            fn add(&mut self, behind: Self) {
                self.items.extend(behind.items);
                self.next = behind.next;
            }
        }
    )+ };
}

lists! {
    JobList: JobItem,
    BatchList: BatchItem,
    AccessList: AccessItem,
    LockList: LockItem,
    FaultList: FaultItem,
    FailureList: FailureItem,
    AuditList: AuditItem,
}
