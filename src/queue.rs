//! The queue core: what a queue in ZooKeeper is, and how to change it.

pub mod id;
pub mod path;
pub mod record;
pub mod state;
pub mod time;
