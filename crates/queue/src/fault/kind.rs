//! How urgent a fault is, what it stops, and what repairs it.

/// How urgent a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something does not move, or will not without an operator.
    Error,
    /// An operator should know.
    Warning,
}

impl Severity {
    /// The label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// What a fault blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// The job that shows it.
    Job,
    /// The batch that shows it.
    Batch,
    /// The access request that shows it.
    Request,
    /// The state that shows it, with all its jobs.
    State,
    /// Everything behind the item that shows it: each poll of a daemon ends at this item.
    Head,
}

/// What kind of action repairs a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairKind {
    /// Writing the values that follow from the rest of the tree; nothing is lost. Where none follow, the repair
    /// refuses.
    Writes,
    /// Breaking a lock.
    BreaksLock,
    /// Something else: the fault's own fix.
    Fix,
    /// Something else, which this sentence describes.
    Another(&'static str),
}
