//! The catalogue: one SQL database with all that is known of objects and of content.
//!
//! A [`Catalogue`] is a SQLite file, or a database of a PostgreSQL server, with one schema for both. From the bytes up:
//!
//! - [`error`]: one line for each failure;
//! - `database`: connections of either kind, statements, transactions; `schema`: the tables, and their versions;
//! - [`audit`]: changes of content, as [`AuditSink`](queuekeeper_store::audit::AuditSink) and as lists.
//!
//! # Invariants
//! - SQL is here and nowhere else, and each function is one transaction.
//! - Times are the database's; keys are bytes, and compared as bytes.
//! - Lists go on from a key, never from an offset, and have a limit.
//! - A figure that grows with the rows is kept by deltas, and never counted over rows.
//! - No message has a password in it.

pub mod audit;
pub mod catalogue;
pub mod counters;
mod database;
pub mod error;
mod index;
mod schema;

pub use catalogue::Catalogue;
pub use error::{Error, ErrorKind};
