//! Figures that grow with the rows, kept without counting them.
//!
//! A transaction appends what it adds; one process at a time folds these deltas into the counters. The figure is the sum
//! of both, and exact at every instant. (Counters that each transaction updates are locked by it until its commit: all
//! others wait.)

use crate::database::Session;
use crate::database::value::values;
use crate::error::Error;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Items that a store has, by the content index; by store.
    ContentItems,
    /// Their bytes; by store.
    ContentBytes,
    /// Events in the audit log; by store.
    AuditEvents,
    /// Objects; by collection.
    Objects,
    /// Versions of objects; by collection.
    Versions,
    /// Files in all versions; by collection.
    Files,
    /// Their bytes; by collection.
    FileBytes,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ContentItems,
        Self::ContentBytes,
        Self::AuditEvents,
        Self::Objects,
        Self::Versions,
        Self::Files,
        Self::FileBytes,
    ];

    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContentItems => "content_items",
            Self::ContentBytes => "content_bytes",
            Self::AuditEvents => "audit_events",
            Self::Objects => "objects",
            Self::Versions => "versions",
            Self::Files => "files",
            Self::FileBytes => "file_bytes",
        }
    }
}

/// Appends what a transaction adds to counters of one scope; what adds nothing is left out.
pub(crate) async fn add(session: &mut Session, scope: &str, deltas: &[(Counter, i64)]) -> Result<(), Error> {
    for (counter, delta) in deltas.iter().filter(|(_, delta)| *delta != 0) {
        let sql = "INSERT INTO counter_deltas (name, scope, delta) VALUES ($1, $2, $3)";
        session.run(sql, values![counter.as_str(), scope, *delta]).await?;
    }
    Ok(())
}
