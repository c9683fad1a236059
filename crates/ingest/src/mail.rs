//! Mail to depositors: what it says, and whom it goes to.
//!
//! `compose` puts mails into the outbox, with their subjects and first sentences; `report`, `table` and `listed` are the
//! rest of what reports say.

pub(crate) mod compose;
pub(crate) mod listed;
pub(crate) mod report;
pub(crate) mod table;
