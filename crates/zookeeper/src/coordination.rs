//! Our own znodes below `/queuekeeper`, by which several processes of ours act as one.
//!
//! | znode | what it is |
//! |---|---|
//! | `/queuekeeper/pending/ID` | a decision that was accepted and is not carried out yet |
//! | `/queuekeeper/rules/NAME` | what a rule remembers; `/queuekeeper/rules` itself: what all of them do together |
//! | `/queuekeeper/election/..` | who wants to act; the first of them does |
//! | `/queuekeeper/paused` | while it is there, nothing acts by itself anywhere |
//! | `/queuekeeper/clock` | empty; any process writes to it from time to time, to learn the servers' time from its date |
//! | `/queuekeeper/held/..` | ephemeral; written by the queue core with the lock of an item. Only looked at here |
//!
//! Any process may accept a decision, one acts. What it does to the queue and what it writes here go into one
//! transaction, which is refused when it does not lead any more or when everything is paused ([`Leadership::writes`]). So a crash at any
//! point neither loses nor repeats anything.
//!
//! Nothing here knows what is decided; the data of the znodes is whoever's calls it.

mod connection;
mod election;
mod nodes;
mod pause;
mod snapshot;
mod time;

pub use connection::{Coordination, CoordinationError, CoordinationMode, CoordinationTask};
pub use election::Leadership;
pub use nodes::{CLOCK, MOST_BELOW, PAUSED, is_name, pending, rule, rules};
pub use snapshot::{ForeignNode, ForeignReason, Node, Snapshot};

pub use crate::Write;
