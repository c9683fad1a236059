//! The headings of the help under which flags stand that more than one place names.

/// The parameters of an action.
pub(super) const ACTING: &str = "Acting";

/// By whom an action is requested, and where it is recorded.
pub(super) const AUDIT: &str = "Audit";

/// What only the demo has.
pub(super) const DEMO: &str = "Demo";

/// What is dumped.
pub(super) const DUMP: &str = "Dump";

/// What is loaded.
pub(super) const LOAD: &str = "Load";

/// Where a process without pages answers.
pub(super) const PROBES: &str = "Probes";
