//! The queues, and the kinds of tasks in them.

/// A queue of tasks. As text, its name in the catalogue, in metrics and on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Copies that a change asked for.
    DuplicationHigh,
    /// Copies that the duplication producer asked for, and what is done now and then.
    DuplicationLow,
    /// Checks of content.
    BitIntegrity,
    /// Findings that need a decision, repairs that were decided, and checks that a person asked for.
    BitError,
    /// Reports on spaces whose checks have ended.
    BitReport,
    /// Items whose content was changed.
    Audit,
    /// Tasks that failed three times, and wait for a person.
    DeadLetter,
}

/// What a table says of a queue.
struct QueueRow {
    queue: Queue,
    name: &'static str,
    rank: u8,
}

const QUEUES: [QueueRow; 7] = [
    QueueRow { queue: Queue::DuplicationHigh, name: "duplication-high", rank: 2 },
    QueueRow { queue: Queue::DuplicationLow, name: "duplication-low", rank: 1 },
    QueueRow { queue: Queue::BitIntegrity, name: "bit-integrity", rank: 1 },
    QueueRow { queue: Queue::BitError, name: "bit-error", rank: 1 },
    QueueRow { queue: Queue::BitReport, name: "bit-report", rank: 1 },
    QueueRow { queue: Queue::Audit, name: "audit", rank: 1 },
    QueueRow { queue: Queue::DeadLetter, name: "dead-letter", rank: 0 },
];

impl Queue {
    /// All of them.
    pub const ALL: [Self; 7] = {
        let mut all = [Self::DeadLetter; 7];
        let mut at = 0;
        while at < QUEUES.len() {
            all[at] = QUEUES[at].queue;
            at += 1;
        }
        all
    };

    fn row(self) -> &'static QueueRow {
        &QUEUES[self as usize]
    }

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The queue with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        QUEUES.iter().find(|row| row.name == name).map(|row| row.queue)
    }

    /// Of two queues that a task is requested in, it is in the one with the higher rank.
    pub(super) fn rank(self) -> u8 {
        self.row().rank
    }
}

/// What a task does. As text, its name in the catalogue, in metrics and on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskKind {
    /// Looks at an item that was changed, and asks for copies of it.
    Audit,
    /// Makes a copy be what its source is.
    Duplicate,
    /// Checks the content of an item.
    Bit,
    /// Checks the content of a page of items: of those behind its key, up to one that its run has.
    BitPage,
    /// Checks content that a person asked to be checked: an item, or a space, page by page.
    Check,
    /// Writes the report on a space.
    BitReport,
    /// Waits for a decision on a finding.
    BitError,
    /// Repairs a copy from another one.
    Repair,
    /// Counts what a space has.
    StorageStats,
    /// Does nothing.
    Noop,
}

const KINDS: [(TaskKind, &str); 10] = [
    (TaskKind::Audit, "AUDIT"),
    (TaskKind::Duplicate, "DUP"),
    (TaskKind::Bit, "BIT"),
    (TaskKind::BitPage, "BIT_PAGE"),
    (TaskKind::Check, "CHECK"),
    (TaskKind::BitReport, "BIT_REPORT"),
    (TaskKind::BitError, "BIT_ERROR"),
    (TaskKind::Repair, "REPAIR"),
    (TaskKind::StorageStats, "STORAGE_STATS"),
    (TaskKind::Noop, "NOOP"),
];

impl TaskKind {
    /// All of them.
    pub const ALL: [Self; 10] = {
        let mut all = [Self::Noop; 10];
        let mut at = 0;
        while at < KINDS.len() {
            all[at] = KINDS[at].0;
            at += 1;
        }
        all
    };

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_where_its_number_looks_for_it() {
        for queue in Queue::ALL {
            assert_eq!((queue.row().queue, Queue::named(queue.as_str())), (queue, Some(queue)));
        }
        for (at, kind) in TaskKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, TaskKind::named(kind.as_str())), (at, Some(kind)));
        }
    }
}
