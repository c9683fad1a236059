//! queuekeeper

pub mod cli;
pub mod config;
pub mod metrics;
pub mod mirror;
pub mod queue;
pub mod web;
pub mod zookeeper;
