//! Lists: one page of them, or all.

use clap::Args;

use super::exit::CommandError;
use super::output::note;
use crate::views::access::AccessList;
use crate::views::batches::BatchList;
use crate::views::failures::FailureList;
use crate::views::faults::FaultList;
use crate::views::jobs::JobList;
use crate::views::locks::LockList;
use crate::views::page::Limit;
use crate::views::{PageQuery, ViewError};

/// How much of a list to show.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How much")]
pub(super) struct Paging {
    #[command(flatten)]
    page: PageQuery,

    /// Show all that match
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
}

/// A page of a list.
pub(super) trait Pages: Sized {
    /// Appends the next page.
    fn add(&mut self, behind: Self);
    /// The cursor of the next page.
    fn next(&self) -> Option<&str>;
    /// How many are shown, and how many there are.
    fn counts(&self) -> (u64, u64);
}

macro_rules! pages {
    ($($list:ty),+) => { $(
        impl Pages for $list {
            fn add(&mut self, behind: Self) {
                self.items.extend(behind.items);
                self.next = behind.next;
            }

            fn next(&self) -> Option<&str> {
                self.next.as_deref()
            }

            fn counts(&self) -> (u64, u64) {
                (self.items.len() as u64, self.total as u64)
            }
        }
    )+ };
}

pages!(JobList, BatchList, AccessList, LockList, FaultList, FailureList);

impl Paging {
    /// Reads the requested pages.
    pub(super) fn take<L: Pages>(&self, ask: impl Fn(&PageQuery) -> Result<L, ViewError>) -> Result<L, CommandError> {
        if !self.all {
            return Ok(ask(&self.page)?);
        }
        let page = |cursor: Option<&str>| PageQuery { limit: Limit::most(), cursor: cursor.map(str::to_owned) };
        let mut list = ask(&page(None))?;
        while let Some(next) = list.next() {
            let behind = ask(&page(Some(next)))?;
            list.add(behind);
        }
        Ok(list)
    }

    /// Whether all items are requested.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// Adds a note if there are more items than shown.
    pub(super) fn report(list: &impl Pages, one: &str, many: &str) {
        let (shown, total) = list.counts();
        if total == 0 {
            note(&format!("no {one} matches"));
        } else if shown < total {
            note(&format!("{shown} of {total} {many}; --all shows all of them"));
        }
    }
}
