//! What goes wrong, and how often.

use queuekeeper_store::error::Operation;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails before anything is done, and may succeed later.
    Temporary,
    /// It fails before anything is done, until something is changed.
    Permanent,
    /// It is done, and its answer is lost: `Unknown`.
    LostAnswer,
    /// It waits before anything is done, until it is released.
    Stall,
    /// A stream waits behind so many bytes of content, or items of a listing, until it is released.
    StallAt(u64),
    /// A stream fails behind so many bytes of content, or items of a listing. A shorter one does not.
    BreakAt(u64),
    /// Content that is read ends behind so many bytes, as if that were all; a listing behind so many items.
    EndAt(u64),
    /// The size of what is read or written is wrong by so many bytes; never below 0.
    WrongSize(i64),
    /// A listing has a wrong page.
    Page(WrongPage),
    /// A change is answered with `Unknown` once all of it was sent, and is made when it is landed.
    Late,
    /// A put waits, once all of it was sent, until the caller aborts it; it is made when it is landed, all the same. No
    /// store may do so.
    LateAfterAbort,
}

/// A page of a listing that should be another one, of so many items, behind the first so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongPage {
    /// Which.
    pub kind: PageKind,
    /// The number of items before it.
    pub at: usize,
    /// Its number of items.
    pub items: usize,
}

/// How a page is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// The page before it comes once more.
    Repeated,
    /// It is left out.
    Skipped,
    /// The page behind it comes first.
    Swapped,
}

/// Which calls have a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    fault: Fault,
    /// None for all.
    operations: Vec<Operation>,
    every: u64,
    times: u64,
    seen: u64,
}

impl Rule {
    /// A fault of every call.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        Self { fault, operations: Vec::new(), every: 1, times: u64::MAX, seen: 0 }
    }

    /// Of calls of this operation alone; may be said of several.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Of one call in so many: the last of them.
    ///
    /// # Panics
    /// When that is none.
    #[must_use]
    pub fn one_in(mut self, calls: u64) -> Self {
        assert!(calls > 0, "one call in none");
        self.every = calls;
        self
    }

    /// Of so many calls, then of no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Counts a call; returns the fault that it has.
    pub(super) fn of_call(&mut self, operation: Operation) -> Option<Fault> {
        if !self.operations.is_empty() && !self.operations.contains(&operation) {
            return None;
        }
        self.seen += 1;
        if self.times == 0 || !self.seen.is_multiple_of(self.every) {
            return None;
        }
        self.times -= 1;
        Some(self.fault)
    }
}
