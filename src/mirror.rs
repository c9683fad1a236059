//! The in-memory image of the queue and its read models; one writer, many readers.

mod freshness;
mod store;
mod summary;

pub use freshness::Freshness;
pub use store::Store;
pub use summary::{
    AGE_BOUNDS, AGE_LABELS, ByAge, ByState, CollectionFigures, ItemFigures, JobFigures, LockFigures, LockKind, Summary,
    state_label,
};
