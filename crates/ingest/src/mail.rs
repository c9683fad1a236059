//! Mail to depositors: what it says, and whom it goes to.
//!
//! `compose` puts mails into the outbox; `report`, `table` and `listed` are what reports say.

pub(crate) mod compose;
pub(crate) mod listed;
pub(crate) mod report;
pub(crate) mod table;
