//! The in-memory image of the queue and its read models; one writer, many readers.
//!
//! [`run`] sets one recursive watch on the tree, walks it once, and then reads only what events name. Readers hold a
//! [`MirrorStore`] and see the image as it is: finished, at once, and with a [`Freshness`] that does not hide how old
//! it is.

mod addresses;
mod bands;
#[doc(hidden)]
pub mod bench;
mod clock;
mod cursor;
mod date;
mod drift;
pub mod failures;
mod faults;
pub mod find;
mod follow;
mod freshness;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod image;
pub mod lists;
mod load;
mod measured;
mod metrics;
mod page;
mod past;
mod ranked;
mod read;
mod read_nodes;
mod run;
mod situation;
mod store;
mod summary;
mod text;
mod timekeeper;
mod walk;
mod watch;

pub use addresses::AddressBook;
pub use faults::{FaultFigures, FoundFault};
pub use freshness::{Freshness, ServerClock};
pub use history::{Flow, HISTORY, History, Pace, Point, Rates, StateFlow};
#[cfg(test)]
pub(crate) use image::EXCHANGED_TOGETHER;
pub use image::{Batch, Grant, Granted, Job, JobStanding, Lock, LockStat, Process, Request};
pub use load::{LoadError, load, load_job};
pub use measured::Measured;
pub use metrics::Metrics;
pub use past::{BatchEvent, Happening, PastEvent};
pub(crate) use read::NOT_READABLE;
pub use read::READ_BUDGET_BYTES;
pub use read_nodes::{Children, Item, Node, NodeError, NodeStat, Nodes};
pub use run::run;
pub use situation::{
    Backlog, BatchContext, BatchSituation, Holding, JobHold, JobSituation, PauseSituation, Pool, QueueHead,
    QueuePosition, StateSituation, Volume,
};
pub use store::{Addresses, MirrorStore, Writer};
pub use summary::{
    AGE_BOUNDS, AGE_LABELS, ByAge, ByState, CollectionFigures, ItemFigures, JobFigures, LargestCollections,
    LockFigures, LockKind, Summary, state_label,
};
pub use timekeeper::{NoTime, Timekeeper};
