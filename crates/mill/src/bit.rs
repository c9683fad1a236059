//! Bit integrity: what a check of one copy has proven, and what follows from that.
//!
//! - [`verdict`]: what a check can find; [`decide`]: what it has found, by what the store, the content index and the audit log say;
//! - [`repair`]: who may start a repair, and from which copy;
//! - [`coverage`]: how much of a space is proven; [`report`]: that as files.

pub mod coverage;
pub mod decide;
pub mod repair;
pub mod report;
pub mod verdict;
