//! What pages and API show: one answer to one question, as values that are rendered or serialised, and nothing else.
//!
//! A view is worked out from the image at an instant. Its field names are those of the API, so they are the field's
//! words: instants are RFC 3339 in UTC, sizes end in `_bytes`, lengths of time in `_seconds`, states are the label
//! values of the metrics.

pub(crate) mod access;
pub(crate) mod actions;
pub(crate) mod audit;
pub(crate) mod batches;
pub(crate) mod charts;
pub(crate) mod csv;
pub(crate) mod daemons;
pub(crate) mod deposits;
pub(crate) mod diagnosis;
mod duration;
pub(crate) mod error;
pub(crate) mod failures;
pub(crate) mod faults;
pub(crate) mod held;
pub(crate) mod history;
pub(crate) mod job;
pub(crate) mod jobs;
mod list;
pub(crate) mod locks;
pub(crate) mod mill;
pub(crate) mod objects;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod parameter;
pub(crate) mod query;
pub(crate) mod rules;
pub(crate) mod search;
mod session;
pub(crate) mod show;
mod source;
pub(crate) mod status;
pub(crate) mod tree;
pub(crate) mod warnings;

pub use duration::{DurationError, PrometheusDuration};
pub(crate) use error::ViewError;
pub(crate) use list::List;
pub(crate) use page::PageQuery;
pub(crate) use session::{Session, session_text};
pub(crate) use source::ViewSource;

/// What stands for items that name no collection, in filters and errors.
pub(crate) const NONE: &str = "(none)";
