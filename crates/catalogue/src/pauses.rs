//! Pauses: the work of the mill for an account, a store, or an account in a store stands still because an operator
//! wants it so.
//!
//! A pause is read in the statement that takes tasks: from its commit on no worker begins what it stops, in any
//! process. What is under way ends. A task that would be taken is set aside in the state `paused`, so that the many
//! that a pause stops cost takes nothing, and waits again once the pause has ended, with its attempts and rounds as
//! they were.

use std::fmt;

use jiff::Timestamp;
use queuekeeper_store::StoreName;

use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// What is paused. As text, `account account1`, `store replica` or `account1 in replica`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseScope {
    /// An account, in all of its stores.
    Account(String),
    /// A store, for all accounts.
    Store(StoreName),
    /// An account in one of its stores.
    AccountIn(String, StoreName),
}

impl PauseScope {
    /// The scope of an account and a store, of which one may be left out; `None` where both are.
    #[must_use]
    pub fn new(account: Option<String>, store: Option<StoreName>) -> Option<Self> {
        match (account, store) {
            (Some(account), Some(store)) => Some(Self::AccountIn(account, store)),
            (Some(account), None) => Some(Self::Account(account)),
            (None, Some(store)) => Some(Self::Store(store)),
            (None, None) => None,
        }
    }

    /// The account; `None` where it is all of them.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        match self {
            Self::Account(account) | Self::AccountIn(account, _) => Some(account),
            Self::Store(_) => None,
        }
    }

    /// The store; `None` where it is all of them.
    #[must_use]
    pub fn store(&self) -> Option<&StoreName> {
        match self {
            Self::Store(store) | Self::AccountIn(_, store) => Some(store),
            Self::Account(_) => None,
        }
    }

    /// Whether a pause of this stops what uses these stores for an account.
    #[must_use]
    pub fn stops<'a>(&self, account: &str, stores: impl IntoIterator<Item = &'a StoreName>) -> bool {
        self.account().is_none_or(|paused| paused == account)
            && self.store().is_none_or(|paused| stores.into_iter().any(|store| store == paused))
    }

    /// The columns: an empty name stands for all.
    fn columns(&self) -> (&str, &str) {
        (self.account().unwrap_or_default(), self.store().map_or("", StoreName::as_str))
    }
}

impl fmt::Display for PauseScope {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(account) => write!(to, "account {account}"),
            Self::Store(store) => write!(to, "store {store}"),
            Self::AccountIn(account, store) => write!(to, "{account} in {store}"),
        }
    }
}

/// A pause that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MillPause {
    /// Its number.
    pub id: u64,
    /// What is paused.
    pub scope: PauseScope,
    /// Who paused it.
    pub user: String,
    /// Why.
    pub reason: String,
    /// Since when, by the database's clock.
    pub since: Timestamp,
}

/// The columns that [`pause`] reads.
macro_rules! columns {
    () => {
        "id, account, store, user_name, reason, time"
    };
}

const IN_FORCE: &str =
    concat!("SELECT ", columns!(), " FROM mill_pauses WHERE NOT is_ended ORDER BY account, store LIMIT $1");

const END: &str = concat!(
    "UPDATE mill_pauses SET is_ended = TRUE WHERE account = $1 AND store = $2 AND NOT is_ended RETURNING ",
    columns!()
);

impl Catalogue {
    /// The pauses in force, by account and store; at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn pauses(&self) -> Result<Vec<MillPause>, Error> {
        self.list(IN_FORCE, values![page(u32::MAX)], pause).await
    }

    /// Pauses the work of the mill; the answer is whether it was not paused already.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn pause(&self, scope: &PauseScope, user: &str, reason: &str) -> Result<bool, Error> {
        let sql = "INSERT INTO mill_pauses (account, store, user_name, reason, time, is_ended)
            VALUES ($1, $2, $3, $4, {now}, FALSE) ON CONFLICT DO NOTHING";
        let (account, store) = scope.columns();
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![account, store, user, reason]).await;
        Ok(session.end(outcome).await? > 0)
    }

    /// Ends the pause of exactly this; the answer is that pause, `None` where there was none. The tasks that it stopped
    /// wait for workers again: those that are left by an error here, by [`Self::release_paused`] later.
    ///
    /// # Errors
    /// When the database cannot be written; then the pause is in force.
    pub async fn resume(&self, scope: &PauseScope) -> Result<Option<MillPause>, Error> {
        let (account, store) = scope.columns();
        let mut session = self.database.begin().await?;
        let outcome = async {
            let row = session.row(END, values![account, store]).await?;
            row.map(|row| session.decode(pause(&row))).transpose()
        };
        let outcome = outcome.await;
        let ended = session.end(outcome).await?;
        if ended.is_some() {
            while self.release_paused().await.is_ok_and(|released| released > 0) {}
        }
        Ok(ended)
    }
}

fn pause(row: &DatabaseRow) -> Result<MillPause, sqlx::Error> {
    let account: String = row.get(1)?;
    let store = crate::tasks::store(row, 2)?;
    let scope = PauseScope::new(Some(account).filter(|account| !account.is_empty()), store);
    Ok(MillPause {
        id: row.count(0)?,
        scope: scope.ok_or_else(|| sqlx::Error::Decode("a pause of neither an account nor a store".into()))?,
        user: row.get(3)?,
        reason: row.get(4)?,
        since: row.time(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_stops_what_uses_its_store_for_its_account_and_nothing_else() {
        let store = |name: &str| name.parse::<StoreName>().unwrap();
        let scopes =
            |account: Option<&str>, name: Option<&str>| PauseScope::new(account.map(str::to_owned), name.map(store));
        let [main, replica] = ["main", "replica"].map(store);
        for (account, name, stops) in [
            (Some("one"), None, [true, true, false]),
            (None, Some("replica"), [true, false, true]),
            (Some("one"), Some("replica"), [true, false, false]),
            (Some("two"), Some("main"), [false, false, true]),
        ] {
            let scope = scopes(account, name).unwrap();
            let found = [
                scope.stops("one", [&main, &replica]),
                scope.stops("one", [&main]),
                scope.stops("two", [&replica, &main]),
            ];
            assert_eq!(found, stops, "{scope}");
        }
        assert_eq!(scopes(None, None), None);
    }
}
