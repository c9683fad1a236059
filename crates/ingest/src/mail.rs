//! Mail to depositors: what it says, and whom it goes to.
//!
//! `queue` puts mails into the outbox; `report`, `table` and `listed` are what reports say.

pub(crate) mod listed;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod table;
