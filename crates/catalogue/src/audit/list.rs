//! The audit log as lists.

use std::time::Duration;

use queuekeeper_store::audit::Change;
use queuekeeper_store::store::Item;
use queuekeeper_store::{SpaceName, StoreName};

use super::event::{Event, EventKind, event_columns};
use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, Value, values};
use crate::error::Error;

/// Which events a list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Events {
    /// Every one.
    All,
    /// Those of one store.
    Store(StoreName),
    /// Those of one space of a store, with its items.
    Space(StoreName, SpaceName),
    /// Those of one item of a store.
    Item(StoreName, Item),
    /// Those of changes that a user made.
    User(String),
    /// Those of what no change explains, for an operator to look at.
    Observed,
}

/// A list, the newest event first, of those before one.
macro_rules! newest {
    ($condition:literal, $before:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            event_columns!(),
            " FROM audit_log WHERE ",
            $condition,
            " seq < ",
            $before,
            " ORDER BY seq DESC LIMIT ",
            $limit
        )
    };
}

/// In ascending order, after one.
pub(crate) const AFTER: &str =
    concat!("SELECT ", event_columns!(), " FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2");

/// Those of a space, in ascending order, after one.
pub(crate) const OF_SPACE_AFTER: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM audit_log WHERE store = $1 AND space = $2 AND seq > $3 ORDER BY seq LIMIT $4"
);

impl Events {
    /// The statement, and its first arguments.
    pub(crate) fn statement(&self) -> (&'static str, Vec<Value>) {
        match self {
            Self::All => (newest!("", "$1", "$2"), values![]),
            Self::Store(store) => (newest!("store = $1 AND", "$2", "$3"), values![store]),
            Self::Space(store, space) => (newest!("store = $1 AND space = $2 AND", "$3", "$4"), values![store, space]),
            Self::Item(store, item) => (
                newest!("store = $1 AND space = $2 AND key = $3 AND", "$4", "$5"),
                values![store, &item.space, &item.key],
            ),
            Self::User(user) => (newest!("user_name = $1 AND", "$2", "$3"), values![user]),
            Self::Observed => (newest!("change = 'observed' AND", "$1", "$2"), values![]),
        }
    }
}

impl Catalogue {
    /// Events, the newest first, of those with a number below `before` (all, without it); at most `limit`, and at most
    /// 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn events(&self, which: &Events, before: Option<u64>, limit: u32) -> Result<Vec<Event>, Error> {
        let (sql, mut values) = which.statement();
        values.extend(values![before.unwrap_or(u64::MAX), page(limit)]);
        self.list(sql, values, Event::read).await
    }

    /// Events in the order in which they were committed, of those with a number above `after`; at most `limit`, and at
    /// most 1,000. None is ever committed below one that was seen.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn events_after(&self, after: u64, limit: u32) -> Result<Vec<Event>, Error> {
        self.list(AFTER, values![after, page(limit)], Event::read).await
    }

    /// The events of a space of a store and its items in the order in which they were committed, of those with a number
    /// above `after`; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn events_of_space(
        &self,
        store: &StoreName,
        space: &SpaceName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, Error> {
        self.list(OF_SPACE_AFTER, values![store, space, after, page(limit)], Event::read).await
    }
}

impl Catalogue {
    /// How long ago an event was recorded, by the database's clock; `None` where the log does not have it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn event_age(&self, seq: u64) -> Result<Option<Duration>, Error> {
        Ok(self.list("SELECT {now} - time FROM audit_log WHERE seq = $1", values![seq], age).await?.pop())
    }

    /// The same of a deletion; `None` where the event is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn deletion_age(&self, seq: u64) -> Result<Option<Duration>, Error> {
        let sql = "SELECT {now} - time FROM audit_log WHERE seq = $1 AND change = $2";
        Ok(self.list(sql, values![seq, EventKind::Made(Change::Delete).as_str()], age).await?.pop())
    }
}

fn age(row: &DatabaseRow) -> Result<Duration, sqlx::Error> {
    Ok(Duration::from_millis(u64::try_from(row.get::<i64>(0)?).unwrap_or(0)))
}
