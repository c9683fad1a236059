//! Figures that grow with the rows, kept without counting them.
//!
//! A transaction appends what it adds; one process at a time folds these deltas into the counters. The figure is the
//! sum of both, and exact at every instant. (Counters that each transaction updates are locked by it until its commit:
//! all others wait.)

use std::collections::BTreeMap;

use crate::catalogue::Catalogue;
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
    /// Items that a space of a store has, by the content index; by store and space.
    SpaceItems,
    /// The bytes of these items; by store and space.
    SpaceBytes,
    /// Tasks; by queue and state.
    Tasks,
    /// Tasks that wait for a worker, or have one; by kind.
    WaitingTasks,
    /// Tasks that are held; by account and destination.
    HeldTasks,
    /// Dead letters; by account.
    DeadTasks,
    /// Tasks that a pause keeps from workers; by its number.
    PausedTasks,
    /// Checks of copies, since the catalogue counts that; by result.
    BitResults,
    /// Copies of which something is known to be wrong; by account and store.
    BitErrors,
    /// The same, by store and space.
    SpaceBitErrors,
    /// How often a worker came to an end with a task, since the catalogue counts that; by queue and outcome.
    EndedTasks,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::ContentItems,
        Self::ContentBytes,
        Self::AuditEvents,
        Self::Objects,
        Self::Versions,
        Self::Files,
        Self::FileBytes,
        Self::SpaceItems,
        Self::SpaceBytes,
        Self::Tasks,
        Self::WaitingTasks,
        Self::HeldTasks,
        Self::DeadTasks,
        Self::PausedTasks,
        Self::BitResults,
        Self::BitErrors,
        Self::SpaceBitErrors,
        Self::EndedTasks,
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
            Self::SpaceItems => "space_items",
            Self::SpaceBytes => "space_bytes",
            Self::Tasks => "tasks",
            Self::WaitingTasks => "waiting_tasks",
            Self::HeldTasks => "held_tasks",
            Self::DeadTasks => "dead_tasks",
            Self::PausedTasks => "paused_tasks",
            Self::BitResults => "bit_results",
            Self::BitErrors => "bit_errors",
            Self::SpaceBitErrors => "space_bit_errors",
            Self::EndedTasks => "ended_tasks",
        }
    }
}

/// Appends what a transaction adds to counters of one scope, by one statement; what adds nothing is left out.
pub(crate) async fn add(session: &mut Session, scope: &str, deltas: &[(Counter, i64)]) -> Result<(), Error> {
    let deltas = deltas.iter().filter(|(_, delta)| *delta != 0);
    let values = deltas.flat_map(|(counter, delta)| values![counter.as_str(), scope, *delta]).collect();
    session.insert_many("INSERT INTO counter_deltas (name, scope, delta)", 3, values).await
}

/// The same of counters of any scopes.
pub(crate) async fn add_all(session: &mut Session, deltas: &BTreeMap<(Counter, String), i64>) -> Result<(), Error> {
    let deltas = deltas.iter().filter(|(_, delta)| **delta != 0);
    let values = deltas.flat_map(|((counter, scope), delta)| values![counter.as_str(), scope, *delta]).collect();
    session.insert_many("INSERT INTO counter_deltas (name, scope, delta)", 3, values).await
}

/// The figures of counters, each by its scope: a store or a collection.
pub type Figures = BTreeMap<(Counter, String), i64>;

/// One instant: what a fold moves is in one of the two, never in both or neither.
pub(crate) const FIGURES: &str = "SELECT name, scope, CAST(SUM(value) AS BIGINT) FROM (
        SELECT name, scope, value FROM counters UNION ALL SELECT name, scope, delta FROM counter_deltas) AS parts
    GROUP BY name, scope";

/// The same of one counter.
const OF_COUNTER: &str = "SELECT scope, CAST(SUM(value) AS BIGINT) FROM (
        SELECT scope, value FROM counters WHERE name = $1 UNION ALL
        SELECT scope, delta FROM counter_deltas WHERE name = $2) AS parts
    GROUP BY scope";

impl Catalogue {
    /// All figures, exact as of now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn counters(&self) -> Result<Figures, Error> {
        let mut session = self.database.read().await?;
        read_figures(&mut session).await
    }

    /// The figures of one counter by their scopes, exact as of now: for who needs them often, as there may be many of
    /// others.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn counter(&self, counter: Counter) -> Result<BTreeMap<String, i64>, Error> {
        let name = counter.as_str();
        let figures = self.list(OF_COUNTER, values![name, name], |row| Ok((row.get(0)?, row.get(1)?))).await?;
        Ok(figures.into_iter().collect())
    }
}

pub(crate) async fn read_figures(session: &mut Session) -> Result<Figures, Error> {
    let mut figures = Figures::new();
    for row in session.rows(FIGURES, values![]).await? {
        let name: String = session.decode(row.get(0))?;
        // A newer program may count more.
        if let Some(counter) = Counter::ALL.into_iter().find(|counter| counter.as_str() == name) {
            figures.insert((counter, session.decode(row.get(1))?), session.decode(row.get(2))?);
        }
    }
    Ok(figures)
}
