//! Bit integrity: what a check of one copy has proven, and what follows from that.
//!
//! - [`verdict`]: what a check can find; [`decide`]: what it has found, by what the store, the content index and the audit log say.

pub mod decide;
pub mod verdict;
