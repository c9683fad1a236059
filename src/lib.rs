//! queuekeeper

pub mod queue;
pub mod zookeeper;
