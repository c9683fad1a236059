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
use crate::web::{Pairs, Problem};

/// The most that one page of the API has: what is asked for all is asked for in pages of so many.
const LARGEST: u16 = 500;

/// How much of a list to show.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How much")]
pub(super) struct Paging {
    /// How many to show at most, 1 to 500 [default: 50]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=i64::from(LARGEST)))]
    limit: Option<u16>,

    /// Show all that match
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,

    /// Go on where an earlier page of the same list ended: what it calls `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A page of a list.
pub(super) trait Pages: Sized {
    /// Adds the page behind to this one.
    fn add(&mut self, behind: Self);
    /// What to ask with for the page behind.
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
    /// Asks for what is to be shown.
    pub(super) fn take<L: Pages>(
        &self,
        mut asked: Pairs,
        ask: impl Fn(&Pairs) -> Result<L, Problem>,
    ) -> Result<L, CommandError> {
        let limit = if self.all { Some(LARGEST) } else { self.limit };
        asked.extend(limit.map(|limit| ("limit".to_owned(), limit.to_string())));
        let filters = asked.clone();
        asked.extend(self.cursor.iter().map(|cursor| ("cursor".to_owned(), cursor.clone())));
        let mut list = ask(&asked)?;
        while let Some(next) = list.next().filter(|_| self.all) {
            let mut asked = filters.clone();
            asked.push(("cursor".to_owned(), next.to_owned()));
            let behind = ask(&asked)?;
            list.add(behind);
        }
        Ok(list)
    }

    /// Whether all are asked for.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// Whether some of them are asked for.
    pub(super) fn is_some(&self) -> bool {
        self.limit.is_some() || self.cursor.is_some()
    }

    /// Says that there are more than are shown.
    pub(super) fn report(list: &impl Pages, one: &str, many: &str) {
        let (shown, total) = list.counts();
        if total == 0 {
            note(&format!("no {one} matches"));
        } else if shown < total {
            note(&format!("{shown} of {total} {many}; --all shows all of them"));
        }
    }
}

/// Collects parameters, by the names that the API has for them.
#[derive(Debug, Default)]
pub(super) struct Parameters(Pairs);

impl Parameters {
    /// Adds one, if it is given.
    pub(super) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value.to_string())));
        self
    }

    /// Adds one for each value.
    pub(super) fn with_each(mut self, name: &str, values: &[String]) -> Self {
        self.0.extend(values.iter().map(|value| (name.to_owned(), value.clone())));
        self
    }

    pub(super) fn pairs(self) -> Pairs {
        self.0
    }
}
