//! queuekeeper

pub mod mirror;
pub mod queue;
pub mod zookeeper;
