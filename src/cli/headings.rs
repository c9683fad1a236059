//! The headings of the help under which flags stand that more than one place names.

/// What an action is given.
pub(super) const ACTING: &str = "Acting";

/// By whom and where to an action is recorded.
pub(super) const AUDIT: &str = "Audit";

/// What only the demo has.
pub(super) const DEMO: &str = "Demo";

/// What is dumped.
pub(super) const DUMP: &str = "Dump";

/// What is loaded.
pub(super) const LOAD: &str = "Load";

/// Where a process without pages answers.
pub(super) const PROBES: &str = "Probes";
