//! Bit integrity: what a check of one copy has proven, and what follows from that.
//!
//! - [`verdict`]: what a check can find; [`decide`]: what it has found, by what the store, the content index and the
//!   audit log say;
//! - [`policy`]: which proof is required; [`checker`]: what checks need; [`item`]: the check of one item; [`page`]:
//!   that of many;
//! - [`verify`]: a check at once, in the foreground; [`requested_check`]: one on request, by workers; [`adopt`]: what
//!   has no record is taken into it;
//! - [`lists`]: which spaces are checked; [`producer`]: goes through all of them, and asks for checks;
//! - [`repair`]: who may start a repair, and from which copy; [`decisions`]: what is done about a finding;
//!   [`requested`]: requests to have it resolved; [`waits`]: why that is not done; [`repairer`]: the repair;
//! - `corrections`: the record is put right; `read_copy`: a copy that was read for either;
//! - [`forecast`]: what a loop still needs, and when it ends;
//! - [`coverage`]: how much of a space is proven; [`report`]: that as files; [`reporter`]: who writes them; [`premis`]:
//!   the same as events; [`mail`]: what is written to the people of the account;
//! - [`compare`]: the listing of a store and the content index side by side; [`comparer`]: that for people, and as a
//!   stored table;
//! - [`seals`]: the seal of a report; [`chain`]: whether those of an account are whole.

pub mod adopt;
pub mod chain;
pub mod checker;
pub mod compare;
pub mod comparer;
mod corrections;
pub mod coverage;
pub mod decide;
pub mod decisions;
mod evidence;
pub mod forecast;
pub(crate) mod intended;
pub mod item;
mod kept;
pub mod lists;
mod look;
pub mod mail;
pub mod page;
pub mod policy;
pub mod premis;
pub mod producer;
mod read_copy;
pub mod repair;
pub mod repairer;
pub mod report;
pub mod reporter;
pub mod requested;
pub mod requested_check;
pub mod seals;
pub mod verdict;
pub mod verify;
pub mod waits;
