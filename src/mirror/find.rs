//! Which jobs: what a reader asks for, and the page that it gets.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use super::cursor::InvalidCursor;
use super::failures::FailureKey;
use super::text::Needle;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::JobState;

/// How many jobs a page has at most.
pub const PAGE_LIMIT: usize = 500;

/// How many characters a text to look for has at most.
pub const SEARCH_LIMIT: usize = 200;

/// Some of many items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage<T> {
    /// The items of this page, in order.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: usize,
    /// How many there are on the pages before this one.
    pub before: usize,
    /// What to ask with for the page before; `None` for the first.
    pub previous: Option<String>,
    /// What to ask with for the page behind; `None` for the last.
    pub next: Option<String>,
}

macro_rules! choices {
    ($(#[$doc:meta])* $type:ident $( $(#[$choice_doc:meta])* $choice:ident $label:literal $letter:literal, )+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $type { $( $(#[$choice_doc])* $choice, )+ }

        impl $type {
            /// Every one.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$choice),+];

            /// Its name in an address.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$choice => $label),+ }
            }

            /// The one of that name.
            #[must_use]
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|choice| choice.label() == label)
            }

            fn letter(self) -> char {
                match self { $(Self::$choice => $letter),+ }
            }
        }
    };
}

choices! {
    /// By what jobs are sorted; those that are alike in it by their id.
    JobOrder
    /// Unfinished jobs first in either direction, and then those that are Completed or Deleted; of both, as for
    /// [`JobOrder::Entered`].
    #[default]
    Unfinished "unfinished" 'u',
    /// The instant of entering the state: the longest in it come first. Where it is not known, last.
    Entered "entered" 'e',
    /// The id.
    Id "id" 'i',
    /// The priority, which is the order of work: 0 comes first. Where there is none, last.
    Priority "priority" 'p',
    /// The working storage that they need: the smallest come first.
    SpaceNeeded "space_needed" 's',
    /// How often they were resumed: the least often come first.
    Retries "retries" 'r',
    /// The batch: the first created comes first. Where there is none, last.
    Batch "batch" 'b',
}

choices! {
    /// In which direction jobs are sorted.
    Direction
    /// As [`JobOrder`] says.
    #[default]
    Ascending "asc" 'a',
    /// The other way round, ids too.
    Descending "desc" 'd',
}

/// A text to look for in jobs, whatever the case of its letters: what differs in nothing but letters of which each has
/// one counterpart of the same length is alike.
#[derive(Clone, Debug)]
pub struct SearchText {
    text: String,
    needle: Needle,
    /// Whether it is looked for in messages and submitters alone.
    is_shared: bool,
}

/// A text that is too long to be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a text of at most {SEARCH_LIMIT} characters to look for, found one of {0}")]
pub struct SearchTooLong(usize);

impl SearchText {
    /// What to look for, without white space around it; `None` for nothing.
    ///
    /// # Errors
    /// When it has more than [`SEARCH_LIMIT`] characters.
    pub fn new(text: &str) -> Result<Option<Self>, SearchTooLong> {
        let text = text.trim();
        let length = text.chars().count();
        if length > SEARCH_LIMIT {
            return Err(SearchTooLong(length));
        }
        Ok((length > 0).then(|| Self { text: text.to_owned(), needle: Needle::new(text), is_shared: false }))
    }

    /// What to look for in messages and submitters alone, which is found sooner: many jobs share these.
    #[must_use]
    pub fn in_messages(text: &str) -> Self {
        Self { text: text.to_owned(), needle: Needle::new(text), is_shared: true }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is looked for in messages and submitters alone.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(super) fn needle(&self) -> &Needle {
        &self.needle
    }
}

/// Which jobs, in which order, and how many at once. The default is all of them, unfinished ones first, and
/// of these the longest in their state.
#[derive(Clone, Debug)]
pub struct JobQuery {
    /// In one of these states; `None` stands for a status that we do not know or cannot read. Empty for any state.
    pub states: Vec<Option<JobState>>,
    /// Of the collection of this mnemonic; of none, if it is empty.
    pub collection: Option<String>,
    /// Of this batch.
    pub batch: Option<BatchId>,
    /// For so long in their state. Jobs of which that is not known are left out.
    pub min_age: Option<Duration>,
    /// Resumed so often.
    pub min_retries: Option<u32>,
    /// Locked, or not.
    pub locked: Option<bool>,
    /// With this fault.
    pub fault: Option<Fault>,
    /// Of this group of failures.
    pub group: Option<FailureKey>,
    /// With this text in id, file name, title, ARK, local ids, submitter or message. Identifiers are looked at as the
    /// depositor named them and as the queue knows them.
    pub text: Option<SearchText>,
    /// The order.
    pub sort: JobOrder,
    /// Its direction.
    pub direction: Direction,
    /// How many jobs the page has at most, 1 to [`PAGE_LIMIT`].
    pub limit: usize,
    /// Where the page begins; the first one for `None`, and for a cursor of another order.
    pub cursor: Option<JobCursor>,
}

impl Default for JobQuery {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            collection: None,
            batch: None,
            min_age: None,
            min_retries: None,
            locked: None,
            fault: None,
            group: None,
            text: None,
            sort: JobOrder::default(),
            direction: Direction::default(),
            limit: 100,
            cursor: None,
        }
    }
}

/// Where a page of jobs begins: behind a job, or before it.
///
/// It says where that job stood in the order. So it stays good while jobs come, go and move: what was behind it is
/// still behind it, unless it moved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCursor {
    pub(super) sort: JobOrder,
    pub(super) direction: Direction,
    pub(super) is_back: bool,
    /// The value that was sorted by, and the job's number below it. Of unfinished jobs first, a bit above both says
    /// that the job is finished.
    pub(super) at: u128,
}

impl JobCursor {
    /// Whether it is of a list in that order.
    #[must_use]
    pub fn is_of(self, sort: JobOrder, direction: Direction) -> bool {
        (self.sort, self.direction) == (sort, direction)
    }
}

impl fmt::Display for JobCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.is_back { 'b' } else { 'f' };
        write!(f, "{}{}{way}{:x}", self.sort.letter(), self.direction.letter(), self.at)
    }
}

impl FromStr for JobCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let read = || {
            let mut letters = text.chars();
            let (sort, direction, way) = (letters.next()?, letters.next()?, letters.next()?);
            Some(Self {
                sort: JobOrder::ALL.into_iter().find(|choice| choice.letter() == sort)?,
                direction: Direction::ALL.into_iter().find(|choice| choice.letter() == direction)?,
                is_back: way == 'b',
                at: u128::from_str_radix(letters.as_str(), 16).ok()?,
            })
        };
        read().filter(|cursor| cursor.to_string() == text).ok_or(InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor =
            JobCursor { sort: JobOrder::Retries, direction: Direction::Descending, is_back: true, at: 0x1_0000_0007 };
        assert_eq!(cursor.to_string(), "rdb100000007");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "rdb", "rdb0100", "xdb1", "rxb1", "rdx1", "rdb+1", "rdbA", "rdb1 ", "rd\u{e9}1", "ébb"] {
            assert_eq!(text.parse::<JobCursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn a_text_to_look_for_is_neither_empty_nor_long() {
        assert!(SearchText::new(" \n").unwrap().is_none());
        assert_eq!(SearchText::new(" a b ").unwrap().unwrap().as_str(), "a b");
        assert!(SearchText::new(&"é".repeat(SEARCH_LIMIT)).is_ok());
        assert_eq!(SearchText::new(&"é".repeat(SEARCH_LIMIT + 1)).unwrap_err(), SearchTooLong(SEARCH_LIMIT + 1));
    }
}
