//! Bit integrity: what checks of copies have found, and how far the runs of a loop are.
//!
//! A *run* is one space of a store in one loop of the producer. Its checks are pages of keys, and items of which a page
//! could not say at once that they are right; it has ended when all of them have. What a check found is written in the
//! transaction that ends its task: the log, the proof of the copy, the figures of the run, and what is wrong as a *bit
//! error*, which stays open until it is resolved or the copy is proven again.

mod checked;
mod counts;
mod errors;
mod items;
mod log;
mod pages;
mod records;
mod reports;
mod requested;
mod runs;
mod seals;
mod write;

pub use checked::{CheckedItem, CheckedPart, Evidence, LoneItem, Observed, PageEnd, RequestedPart, Wrong};
pub(crate) use counts::fold;
pub use counts::{CheckedAmount, ResultCount};
pub use errors::BitError;
pub(crate) use errors::end as end_error;
#[cfg(test)]
pub(crate) use errors::{OF_ACCOUNT, OF_PART, OLDEST, OPEN_KEYS};
#[cfg(test)]
pub(crate) use items::LEFT_ITEMS;
pub use items::LeftItem;
pub use log::LoggedCheck;
#[cfg(test)]
pub(crate) use log::{OF_ITEM as CHECKS_OF_ITEM, OF_RUN as CHECKS_OF_RUN, OLDEST_OUTSIDE};
#[cfg(test)]
pub(crate) use pages::PAGE;
pub use pages::RunPage;
pub use records::{AuditHead, IndexEntry, ItemRecords};
#[cfg(test)]
pub(crate) use records::{RECORDS, RECORDS_OF_ITEM};
pub use reports::{NewReport, Reports, UnsuccessfulReports};
#[cfg(test)]
pub(crate) use reports::{REPORTS, REPORTS_OF_ACCOUNT, REPORTS_OF_SPACE, UNSUCCESSFUL};
pub use requested::{NewRequestedCheck, RequestedCheck, RequestedCheckState};
#[cfg(test)]
pub(crate) use requested::{REQUESTED, REQUESTED_OF};
pub use runs::{BitRun, NewPage, StoredReport};
#[cfg(test)]
pub(crate) use runs::{NEWEST_RUN, OPEN_RUN, UNREPORTED};
#[cfg(test)]
pub(crate) use seals::{SEAL, SEALS_LEFT};
pub use seals::{Seal, SealHead};

pub(crate) use items::end_item;
pub(crate) use pages::end_page;
pub(crate) use requested::end as end_requested;
pub(crate) use write::write;

/// The result of a check that proved the bytes, with nothing wrong.
pub const SUCCESS: &str = "success";

/// The result where there was neither content nor a record: it is not logged, and ends what was wrong with the copy.
pub const NOTHING: &str = "nothing";

/// What is counted of a run beside results: what the store listed in the pages that were checked, or had by the time of a
/// check of its own.
const LISTED: &str = "listed";

/// The results that are not kept for good: all but failures and errors.
pub const PASSING: [&str; 3] = [SUCCESS, "unproven", "skipped"];
