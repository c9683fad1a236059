//! What the daemons do with a job in each state.
//!
//! Each step may be repeated: stopped at any instruction and done again, on any host, it ends as if it had been done
//! once. What was done already is found by the job's UUID.

pub mod downloading;
pub mod estimating;
pub mod notify;
pub mod pending;
mod priority;
pub mod processing;
pub mod provisioning;
pub mod recording;
pub mod storing;
mod system;

pub(crate) use system::{Description, cut, media_type_of_system_file};
