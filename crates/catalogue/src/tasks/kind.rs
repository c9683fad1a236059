//! The queues, and the kinds of tasks in them: a row for each.

/// Makes an enum of names from a row for each: what it is, its name, and one more fact about it.
macro_rules! table {
    ($(#[$of_all:meta])* $all:ident, $(#[$of_fact:meta])* $fact:ident: $type:ty;
     $($(#[$of_one:meta])* $one:ident $name:literal $value:expr;)+) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $all { $($(#[$of_one])* $one,)+ }

        impl $all {
            /// All of them.
            pub const ALL: [Self; [$(Self::$one),+].len()] = [$(Self::$one),+];

            /// The name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$one => $name,)+ }
            }

            /// The one with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }

            $(#[$of_fact])*
            #[must_use]
            pub fn $fact(self) -> $type {
                match self { $(Self::$one => $value,)+ }
            }
        }
    };
}

table! {
    /// A queue of tasks. As text, its name in the catalogue, in metrics and on pages.
    TaskQueue,
    /// Of two queues that a task is requested in, it is in the one with the higher rank.
    rank: u8;

    /// Copies that a change asked for.
    DuplicationHigh "duplication-high" 2;
    /// Copies that the duplication producer asked for, and what is done now and then.
    DuplicationLow "duplication-low" 1;
    /// Checks of content.
    BitIntegrity "bit-integrity" 1;
    /// Findings that need a decision, repairs that were decided, and checks on request.
    BitError "bit-error" 1;
    /// Reports on spaces whose checks have ended.
    BitReport "bit-report" 1;
    /// Items whose content was changed.
    Audit "audit" 1;
    /// Tasks that failed in every attempt, and wait for an operator.
    DeadLetter "dead-letter" 0;
}

table! {
    /// What a task does. As text, its name in the catalogue, in metrics and on pages.
    TaskKind,
    /// Whether it uses stores, whose pauses stop it.
    uses_stores: bool;

    /// Looks at an item that was changed, and asks for copies of it.
    Audit "AUDIT" false;
    /// Makes a copy be what its source is.
    Duplicate "DUP" true;
    /// Checks the content of an item.
    Bit "BIT" true;
    /// Checks the content of a page of items: of those behind its key, up to one that its run has.
    BitPage "BIT_PAGE" true;
    /// Checks content on request: an item, or a space, page by page.
    Check "CHECK" true;
    /// Writes the report on a space.
    BitReport "BIT_REPORT" true;
    /// Waits for a decision on a finding.
    BitError "BIT_ERROR" true;
    /// Repairs a copy from another one.
    Repair "REPAIR" true;
    /// Counts what a space has.
    StorageStats "STORAGE_STATS" true;
    /// Does nothing.
    Noop "NOOP" false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one() {
        for queue in TaskQueue::ALL {
            assert_eq!(TaskQueue::named(queue.as_str()), Some(queue));
        }
        for kind in TaskKind::ALL {
            assert_eq!(TaskKind::named(kind.as_str()), Some(kind));
        }
    }
}
