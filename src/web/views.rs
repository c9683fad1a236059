//! What pages and API show: one answer to one question, as values that are rendered or serialised, and nothing else.
//!
//! A view is worked out from the image at an instant. Its field names are those of the API, so they are the field's
//! words: instants are RFC 3339 in UTC, sizes end in `_bytes`, lengths of time in `_seconds`, states are the label
//! values of the metrics.

pub(super) mod access;
pub(super) mod batches;
pub(super) mod diagnosis;
pub(super) mod failures;
pub(super) mod faults;
pub(super) mod history;
pub(super) mod job;
pub(super) mod jobs;
pub(super) mod locks;
pub(super) mod node;
pub(super) mod overview;
mod session;
pub(super) mod status;

pub(crate) use session::Session;
