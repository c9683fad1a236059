//! What an operator may order, and everything that stands between his order and the queue.
//!
//! An order names its [`Actor`] and a reason, or it does not exist. Built only from the transactions of
//! [`queue`](crate::queue), it happens whole or says why not.

mod actor;

pub use actor::{Actor, Role, Source, UnknownRole};
