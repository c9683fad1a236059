//! The queue core.
