//! The catalogue: one SQL database with all that is known of objects and of content.
//!
//! A [`Catalogue`] is a SQLite file, or a database of a PostgreSQL server, with one schema for both. From the bytes up:
//!
//! - [`error`]: one line for each failure;
//! - `database`: connections of either kind, statements, transactions; `schema`: the tables, and their versions;
//! - [`counters`]: figures that are kept, not counted;
//! - [`audit`]: changes of content, as [`AuditSink`](queuekeeper_store::audit::AuditSink) and as lists; [`index`]: what
//!   is known of each copy after them;
//! - [`inventory`]: objects, versions and files; [`identifiers`]: which job has which ARK; [`object_intents`]: which
//!   may have left something in a store;
//! - [`tasks`]: the mill's queues; [`loops`]: how far its producers are; [`policies`]: what is to be
//!   copied; [`brake`]: how much it may destroy in a day; [`budgets`]: how much it may ask of a store
//!   that costs; [`asides`]: what it kept of what it destroyed; [`pauses`]: what people paused; [`space_stats`]: what
//!   spaces have;
//! - [`bit`]: what checks of content have found; [`proofs`]: how old what they proved is; [`comparisons`]: how listings
//!   differ from the index; [`repairs`]: what was repaired of that;
//!   [`repair_stops`]: where no repair starts by itself;
//! - [`notify`]: notifications that there may be something to do;
//! - [`deposits`], [`outbox`]: what came from depositors, and what is sent to them;
//! - [`check`]: whether all that fits together; `backup`: a copy of a file that is in use; [`probe`]: what there is,
//!   with nothing changed.
//!
//! # Invariants
//! - SQL is here and nowhere else, and each function is one transaction.
//! - Times are the database's; keys are bytes, and compared as bytes.
//! - Lists go on from a key, never from an offset, and have a limit.
//! - A figure that grows with the rows is kept by deltas, and never counted over rows.
//! - No message has a password in it.

mod announce;
pub mod asides;
pub mod audit;
mod backup;
pub mod bit;
pub mod brake;
pub mod budgets;
pub mod catalogue;
pub mod check;
pub mod comparisons;
pub mod counters;
mod database;
pub mod deposits;
pub mod error;
mod fold;
pub mod identifiers;
pub mod index;
pub mod inventory;
pub mod loops;
pub mod notify;
pub mod object_intents;
pub mod outbox;
pub mod pauses;
#[cfg(test)]
mod plans;
pub mod policies;
pub mod probe;
pub mod proofs;
pub mod repair_stops;
pub mod repairs;
mod schema;
pub mod space_stats;
pub mod tasks;
#[cfg(test)]
mod test_server;

pub use catalogue::Catalogue;
pub use error::{Error, ErrorKind};
