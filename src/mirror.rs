//! The in-memory image of the queue and its read models; one writer, many readers.
//!
//! [`run`] sets one recursive watch on the tree, walks it once, and then reads just what events tell of. Readers hold a
//! [`Store`] and see the image as it is: finished, at once, and with a [`Freshness`] that does not hide how old it is.

mod bands;
mod clock;
mod drift;
mod failures;
mod faults;
mod find;
mod follow;
mod freshness;
mod image;
mod metrics;
mod read;
mod run;
mod searches;
mod store;
mod summary;
mod text;
mod walk;
mod watch;

pub use failures::{FailureCursor, FailureGroup, FailureKey, InvalidFailureKey};
pub use faults::{FaultFigures, FoundFault};
pub use find::{
    Direction, InvalidCursor, JobCursor, JobQuery, JobSort, PAGE_LIMIT, Page, SEARCH_LIMIT, SearchText, SearchTooLong,
};
pub use freshness::Freshness;
pub use image::{Batch, Job, Lock, LockStat, Request};
pub use metrics::Metrics;
pub use run::run;
pub use store::{Store, Writer};
pub use summary::{
    AGE_BOUNDS, AGE_LABELS, ByAge, ByState, CollectionFigures, ItemFigures, JobFigures, LockFigures, LockKind, Summary,
    state_label,
};
