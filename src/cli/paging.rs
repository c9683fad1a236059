//! Lists: one page of them, or all.

use clap::Args;

use super::exit::CommandError;
use super::output::note;
use super::words::count;
use crate::views::page::Limit;
use crate::views::{List, PageQuery, ViewError};
use crate::words::counted;

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

impl Paging {
    /// Reads the requested pages.
    pub(super) fn take<L: List>(&self, ask: impl Fn(&PageQuery) -> Result<L, ViewError>) -> Result<L, CommandError> {
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
    pub(super) fn report(list: &impl List, one: &str, many: &str) {
        let (shown, total) = (list.items().len() as u64, list.total());
        if total == 0 {
            note(&format!("no {one} matches"));
        } else if shown < total {
            note(&format!("{} of {}; --all shows all of them", count(shown), counted(total, one, many)));
        }
    }
}
