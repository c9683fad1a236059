//! Our own znodes below `/queuekeeper`, by which several queuekeeper processes coordinate.
//!
//! | znode | what it is |
//! |---|---|
//! | `/queuekeeper/pending/ID` | a decision that was accepted and has not been executed yet |
//! | `/queuekeeper/rules/NAME` | what a rule remembers; `/queuekeeper/rules` itself: what all of them do together |
//! | `/queuekeeper/election/..` | the candidates for acting; the first is the leader |
//! | `/queuekeeper/paused` | while it exists, no process acts automatically |
//! | `/queuekeeper/clock` | empty; any process writes to it now and then, to learn the servers' time from its date |
//! | `/queuekeeper/held/..` | ephemeral; written by the queue core with the lock of an item. Only read here |
//!
//! Any process may accept a decision, one acts. What it does to the queue and what it writes here go into one
//! transaction, which is refused when it is no longer the leader or when automatic actions are paused
//! ([`Leadership::writes`]). So a crash at any point neither loses nor repeats anything.
//!
//! This module does not interpret decisions; the data of the znodes belongs to its caller.

mod connection;
mod election;
mod nodes;
mod pause;
mod snapshot;
mod time;

pub use connection::{Coordination, CoordinationError, CoordinationMode, CoordinationTask};
pub use election::Leadership;
pub use nodes::{CLOCK, MOST_BELOW, PAUSED, is_child, is_name, pending, rule, rules};
pub use snapshot::{ForeignNode, ForeignReason, Node, Snapshot};

pub use crate::Write;
