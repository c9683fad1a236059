//! The in-memory image of the queue and its read models; one writer, many readers.
//!
//! [`run`] sets one recursive watch on the tree, walks it once, and then reads just what events tell of. Readers hold a
//! [`Store`] and see the image as it is: finished, at once, and with a [`Freshness`] that does not hide how old it is.

mod bands;
mod clock;
mod drift;
mod faults;
mod follow;
mod freshness;
mod image;
mod lists;
mod metrics;
mod page;
mod read;
mod run;
mod store;
mod summary;
mod text;
mod walk;
mod watch;

pub use faults::{FaultFigures, FoundFault};
pub use freshness::Freshness;
pub use image::{Batch, Job, Lock, LockStat, Request};
pub use lists::{
    BatchDetail, BatchFilter, BatchOrder, CollectionBatches, ListedLock, LockFilter, RequestFilter, RequestOrder,
    SessionLocks,
};
pub use metrics::Metrics;
pub use page::{Cursor, InvalidCursor, ListError, PAGE_LIMIT, Page, Part};
pub use run::run;
pub use store::{Store, Writer};
pub use summary::{
    AGE_BOUNDS, AGE_LABELS, ByAge, ByState, CollectionFigures, ItemFigures, JobFigures, LockFigures, LockKind, Summary,
    state_label,
};
