//! What may be asked of a store that costs: how many restores, and how many bytes that are read, within a day.
//!
//! What is allowed is counted before it is done, over all processes and restarts, in the transaction that allows it: so
//! a budget holds, and what a process that dies has not done of it counts nevertheless.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::{Item, StoreName};

use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;

/// How much was used of the budgets of a store in the last 24 hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUse {
    /// How many restores were requested.
    pub restores: u64,
    /// How many bytes were read.
    pub bytes: u64,
}

/// Whether bytes may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesAnswer {
    /// They may, and count in this minute of the database's clock.
    Allowed {
        /// The minute, since 1970.
        minute: i64,
    },
    /// The budget is used up: after what time there is enough of it again.
    UsedUp(Duration),
}

/// Whether a restore may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreAnswer {
    /// It may. Where a process died before, the store may know of it.
    Allowed,
    /// It was requested, at this instant.
    Requested {
        /// The instant, by the database's clock.
        at: Timestamp,
        /// How long ago that is.
        age: Duration,
    },
    /// The budget is used up: after what time there is some of it again.
    UsedUp(Duration),
}

/// A number that no other lock of ours begins with.
const LOCK: i64 = 0x716b_6275;

/// How many minutes of a day count: the one that was under way when it began, too, so that no 24 hours have more than
/// is allowed.
macro_rules! within_a_day {
    () => {
        "minute >= {now} / 60000 - 1440"
    };
}

const USED: &str = concat!(
    "SELECT CAST(COALESCE(SUM(restores), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), {now} / 60000
    FROM budget_uses WHERE store = $1 AND ",
    within_a_day!()
);

const BY_MINUTE: &str = concat!(
    "SELECT (minute + 1441) * 60000 - {now}, restores, bytes FROM budget_uses WHERE store = $1 AND ",
    within_a_day!(),
    " ORDER BY minute"
);

const COUNT: &str = "INSERT INTO budget_uses (store, minute, restores, bytes) VALUES ($1, {now} / 60000, $2, $3)
    ON CONFLICT (store, minute) DO UPDATE SET restores = budget_uses.restores + excluded.restores,
        bytes = budget_uses.bytes + excluded.bytes RETURNING minute";

const FORGET: &str = "DELETE FROM budget_uses WHERE store = $1 AND minute < {now} / 60000 - 1440";

const RESTORE: &str = "SELECT asked, {now} - asked FROM restores WHERE store = $1 AND space = $2 AND key = $3 {lock}";

impl Catalogue {
    /// How much was used of the budgets of a store in the last 24 hours.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn budget_use(&self, store: &StoreName) -> Result<BudgetUse, Error> {
        let used = |row: &DatabaseRow| Ok(BudgetUse { restores: row.count(0)?, bytes: row.count(1)? });
        Ok(self.list(USED, values![store], used).await?.pop().unwrap_or_default())
    }

    /// Allows so many bytes to be read from a store, and counts them, unless more than `most` would be read within a
    /// day by that.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing is allowed.
    pub async fn allow_bytes(&self, store: &StoreName, bytes: u64, most: u64) -> Result<BytesAnswer, Error> {
        let mut session = self.database.begin().await?;
        let outcome = allow_bytes(&mut session, store, bytes, most).await;
        session.end(outcome).await
    }

    /// Takes back what was allowed in a minute, of which nothing was read.
    ///
    /// # Errors
    /// When the database cannot be written: then it counts as read.
    pub async fn return_bytes(&self, store: &StoreName, minute: i64, bytes: u64) -> Result<(), Error> {
        let sql = "UPDATE budget_uses SET bytes = bytes - $3 WHERE store = $1 AND minute = $2 AND bytes >= $3";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, minute, bytes]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// Allows a restore to be requested, unless more than `most` would be by that within a day. If a restore of the
    /// item was already requested, returns that instant, until the item has been read or `forget_after` has passed. One
    /// that was allowed and not requested stays allowed, and counts once.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing is allowed.
    pub async fn allow_restore(
        &self,
        store: &StoreName,
        item: &Item,
        most: u64,
        forget_after: Duration,
    ) -> Result<RestoreAnswer, Error> {
        let mut session = self.database.begin().await?;
        let outcome = allow_restore(&mut session, store, item, most, forget_after).await;
        session.end(outcome).await
    }

    /// Writes down that a restore was requested.
    ///
    /// # Errors
    /// When the database cannot be written: then it is requested again.
    pub async fn restore_requested(&self, store: &StoreName, item: &Item) -> Result<(), Error> {
        let sql = "UPDATE restores SET asked = {now} WHERE store = $1 AND space = $2 AND key = $3 AND asked IS NULL";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, &item.space, &item.key]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// Writes down that an item can be read: where that ends, its restore is requested anew.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn restore_ended(&self, store: &StoreName, item: &Item) -> Result<(), Error> {
        let known = "SELECT 1 FROM restores WHERE store = $1 AND space = $2 AND key = $3";
        if self.list(known, values![store, &item.space, &item.key], |_| Ok(())).await?.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM restores WHERE store = $1 AND space = $2 AND key = $3";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, &item.space, &item.key]).await;
        session.end(outcome).await.map(|_rows| ())
    }
}

/// Lets no other process use the budgets of a store before this transaction ends, so that two do not both take what is
/// left. `SQLite`'s transaction is the lock.
async fn lock(session: &mut Session, store: &StoreName) -> Result<(), Error> {
    if session.dialect() == Dialect::Postgres {
        let sql = "SELECT pg_advisory_xact_lock(HASHTEXTEXTENDED($1, $2))";
        session.rows(sql, values![store, LOCK]).await?;
    }
    Ok(())
}

async fn used(session: &mut Session, store: &StoreName) -> Result<BudgetUse, Error> {
    let row = session.row(USED, values![store]).await?;
    let read = |row: DatabaseRow| session.decode(row.count(0).and_then(|restores| Ok((restores, row.count(1)?))));
    let (restores, bytes) = row.map(read).transpose()?.unwrap_or_default();
    Ok(BudgetUse { restores, bytes })
}

async fn count(session: &mut Session, store: &StoreName, new: BudgetUse) -> Result<i64, Error> {
    session.run(FORGET, values![store]).await?;
    let row = session.row(COUNT, values![store, new.restores, new.bytes]).await?;
    Ok(row.map(|row| session.decode(row.get(0))).transpose()?.unwrap_or_default())
}

/// After what time no more than `most` is left of what was used, by which of both that is.
async fn wait(
    session: &mut Session,
    store: &StoreName,
    used: u64,
    most: u64,
    of: impl Fn(&BudgetUse) -> u64,
) -> Result<Duration, Error> {
    let (mut left, mut after) = (used, Duration::ZERO);
    for row in session.rows(BY_MINUTE, values![store]).await? {
        if left <= most {
            break;
        }
        let read = || Ok((row.get::<i64>(0)?, BudgetUse { restores: row.count(1)?, bytes: row.count(2)? }));
        let (ends, minute) = session.decode(read())?;
        left = left.saturating_sub(of(&minute));
        after = Duration::from_millis(u64::try_from(ends).unwrap_or(0));
    }
    Ok(after)
}

async fn allow_bytes(session: &mut Session, store: &StoreName, bytes: u64, most: u64) -> Result<BytesAnswer, Error> {
    lock(session, store).await?;
    let used = used(session, store).await?.bytes;
    if used.saturating_add(bytes) > most {
        let after = wait(session, store, used, most.saturating_sub(bytes), |minute| minute.bytes).await?;
        return Ok(BytesAnswer::UsedUp(after));
    }
    let minute = count(session, store, BudgetUse { restores: 0, bytes }).await?;
    Ok(BytesAnswer::Allowed { minute })
}

async fn allow_restore(
    session: &mut Session,
    store: &StoreName,
    item: &Item,
    most: u64,
    forget_after: Duration,
) -> Result<RestoreAnswer, Error> {
    lock(session, store).await?;
    let forget = "DELETE FROM restores WHERE store = $1 AND space = $2 AND key = $3 AND asked < {now} - $4";
    session.run(forget, values![store, &item.space, &item.key, millis(forget_after)]).await?;
    if let Some(row) = session.row(RESTORE, values![store, &item.space, &item.key]).await? {
        let read = || Ok((row.parse(0, Timestamp::from_millisecond)?, row.get::<Option<i64>>(1)?));
        return Ok(match session.decode(read())? {
            (Some(at), age) => {
                let age = age.and_then(|age| u64::try_from(age).ok()).unwrap_or(0);
                RestoreAnswer::Requested { at, age: Duration::from_millis(age) }
            }
            (None, _) => RestoreAnswer::Allowed,
        });
    }
    let used = used(session, store).await?.restores;
    if used >= most {
        let after = wait(session, store, used, most.saturating_sub(1), |minute| minute.restores).await?;
        return Ok(RestoreAnswer::UsedUp(after));
    }
    count(session, store, BudgetUse { restores: 1, bytes: 0 }).await?;
    let new = "INSERT INTO restores (store, space, key, allowed) VALUES ($1, $2, $3, {now})";
    session.run(new, values![store, &item.space, &item.key]).await?;
    Ok(RestoreAnswer::Allowed)
}
