//! Repairs of copies and of what is recorded of them: from the decision to the end.
//!
//! There is one open repair of a copy. It is recorded in the transaction that requests its task; what it is about to
//! write, and what it has put aside, is recorded before it writes.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use crate::bit::{BitError, end_error};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;
use crate::repair_stops::{self, RepairStarted};
use crate::tasks::{NewTask, TaskKind, TaskState, TaskSubject, key_column, put, store_column};

/// Within what time automatic repairs are counted.
const DAY: Duration = Duration::from_hours(24);

/// A number that no other lock of ours begins with.
const LOCK: i64 = 0x716b_7270;

/// A repair that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRepair<'a> {
    /// The account.
    pub account: &'a str,
    /// The store whose copy is repaired.
    pub store: &'a StoreName,
    /// The item, in the space as the store names it.
    pub item: &'a Item,
    /// Who starts it.
    pub user: &'a str,
    /// Why: one sentence.
    pub reason: &'a str,
    /// The name of what is to be done.
    pub remedy: &'a str,
    /// The content that was seen when that was decided, as [`crate::bit::Evidence`] has it; `None` where it was not
    /// looked at.
    pub content: Option<&'a str>,
    /// How many may be started automatically in that store within 24 hours; `None` where an operator starts it.
    pub most_a_day: Option<u64>,
}

/// How a repair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairEnd {
    /// The copy was written, and read back as what is recorded.
    Repaired,
    /// The copy was as recorded when it was looked at, without being written.
    Healthy,
    /// The content index and the audit log have what was read.
    Recorded,
    /// The copy has something else that a repair does not concern.
    Refused,
    /// It did not come to an end, and its bit error was dropped, or something else was requested in its place.
    Dropped,
}

impl RepairEnd {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Repaired, Self::Healthy, Self::Recorded, Self::Refused, Self::Dropped];

    /// The name in the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Healthy => "healthy",
            Self::Recorded => "recorded",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
        }
    }
}

/// A repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Its number.
    pub id: u64,
    /// The account.
    pub account: String,
    /// The store whose copy is repaired.
    pub store: StoreName,
    /// The item, in the space as the store names it.
    pub item: Item,
    /// Who started it.
    pub user: String,
    /// Whether the mill did.
    pub is_automatic: bool,
    /// Why: one sentence.
    pub reason: String,
    /// When.
    pub started: Timestamp,
    /// The name of what is to be done.
    pub remedy: String,
    /// The content that was seen when that was decided; `None` where it was not looked at.
    pub content: Option<String>,
    /// The store whose copy is written; `None` until it is.
    pub source: Option<StoreName>,
    /// The key of the damaged content in the space for what is kept; `None` where there was no content, or nothing was
    /// written yet.
    pub kept_as: Option<String>,
    /// When and how it ended, with a sentence; `None` while it is open.
    pub ended: Option<(Timestamp, RepairEnd, String)>,
}

macro_rules! repairs {
    ($condition:literal) => {
        concat!(
            "SELECT id, account, store, space, key, user_name, is_automatic, reason, started, source, kept_as, ended, outcome,
                detail, remedy, content
            FROM repairs WHERE ",
            $condition
        )
    };
}

const OPEN: &str = repairs!("store = $1 AND space = $2 AND key = $3 AND ended IS NULL");

/// Those of an account, the newest first.
pub(crate) const OF_ACCOUNT: &str = repairs!("account = $1 AND id < $2 ORDER BY id DESC LIMIT $3");

pub(crate) const TODAY: &str =
    "SELECT COUNT(*) FROM repairs WHERE store = $1 AND is_automatic AND started > {now} - $2";

impl Catalogue {
    /// Starts a repair and requests its task, both or nothing, unless one is open or too many were started.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was started.
    pub async fn start_repair(&self, new: &NewRepair<'_>, task: NewTask) -> Result<RepairStarted, Error> {
        let mut session = self.database.begin().await?;
        let outcome = start(&mut session, new, task).await;
        let started = session.end(outcome).await?;
        if started == RepairStarted::Started {
            self.notify().await;
        }
        Ok(started)
    }

    /// How many repairs were started automatically in a store in the last 24 hours.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn automatic_repairs_today(&self, store: &StoreName) -> Result<u64, Error> {
        let number = self.list(TODAY, values![store, millis(DAY)], |row| row.count(0)).await?;
        Ok(number.into_iter().sum())
    }

    /// The open repair of a copy; `None` where there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_repair(&self, store: &StoreName, item: &Item) -> Result<Option<Repair>, Error> {
        Ok(self.list(OPEN, values![store, &item.space, &item.key], read).await?.pop())
    }

    /// The repairs of an account with numbers below `before`, the newest first; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn repairs(&self, account: &str, before: Option<u64>, limit: u32) -> Result<Vec<Repair>, Error> {
        self.list(OF_ACCOUNT, values![account, before.unwrap_or(u64::MAX), page(limit)], read).await
    }

    /// Ends a bit error without anything being done about it, and the repair of its copy that no worker will end: the
    /// next check that finds the same opens another one. The answer is whether it was open and no worker has a repair
    /// of its copy.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was ended.
    pub async fn drop_bit_error(&self, error: &BitError, task: &TaskSubject, reason: &str) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = drop_error(&mut session, error, task, reason).await;
        session.end(outcome).await
    }

    /// Records that the open repair of a copy is about to write the content of another one, and under which key the
    /// damaged content is kept. The answer is whether there is an open one.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing may be repaired.
    pub async fn begin_repair(
        &self,
        store: &StoreName,
        item: &Item,
        source: &StoreName,
        kept_as: Option<&str>,
    ) -> Result<bool, Error> {
        let sql = "UPDATE repairs SET source = $4, kept_as = COALESCE($5, kept_as)
            WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, &item.space, &item.key, source, kept_as]).await;
        Ok(session.end(outcome).await? > 0)
    }

    /// Ends the open repair of a copy, if there is one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end_repair(&self, store: &StoreName, item: &Item, end: RepairEnd, detail: &str) -> Result<(), Error> {
        let sql = "UPDATE repairs SET ended = {now}, outcome = $4, detail = $5
            WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL";
        let detail = crate::error::one_line(detail);
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, &item.space, &item.key, end.as_str(), &*detail]).await;
        session.end(outcome).await.map(|_rows| ())
    }
}

async fn start(session: &mut Session, new: &NewRepair<'_>, task: NewTask) -> Result<RepairStarted, Error> {
    let NewRepair { account, store, item, user, reason, remedy, content, most_a_day } = *new;
    if let Some(most) = most_a_day {
        // Two that start at once do not both take what is left; SQLite's transaction is the lock.
        if session.dialect() == Dialect::Postgres {
            let lock = "SELECT pg_advisory_xact_lock(HASHTEXTEXTENDED($1, $2))";
            session.rows(lock, values![store, LOCK]).await?;
        }
        if let Some(refused) = repair_stops::refuse(session, store, item, user).await? {
            return Ok(refused);
        }
        let row = session.row(TODAY, values![store, millis(DAY)]).await?;
        let number: u64 = row.map(|row| session.decode(row.count(0))).transpose()?.unwrap_or(0);
        if number >= most {
            return Ok(RepairStarted::TooMany);
        }
    }
    if is_stuck(session, &task.subject).await? {
        let sql = "UPDATE repairs SET ended = {now}, outcome = $5, detail = 'another one was requested in its place'
            WHERE store = $1 AND space = $2 AND key = $3 AND (remedy <> $4 OR is_automatic) AND ended IS NULL";
        let values = values![store, &item.space, &item.key, remedy, RepairEnd::Dropped.as_str()];
        session.run(sql, values).await?;
    }
    let sql = "INSERT INTO repairs
            (account, store, space, key, user_name, is_automatic, reason, started, remedy, content)
        VALUES ($1, $2, $3, $4, $5, $6, $7, {now}, $8, $9)
        ON CONFLICT (store, space, key) WHERE ended IS NULL DO NOTHING";
    let reason = crate::error::one_line(reason);
    let mut values = values![account, store, &item.space, &item.key, user, most_a_day.is_some(), &*reason];
    values.extend(values![remedy, content]);
    if session.run(sql, values).await? == 0 {
        if !is_stuck(session, &task.subject).await? {
            return Ok(RepairStarted::Open);
        }
        // What is there by now is what the caller has seen.
        let sql = "UPDATE repairs SET content = $4 WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL";
        session.run(sql, values![store, &item.space, &item.key, content]).await?;
    }
    put(session, vec![task]).await?;
    Ok(RepairStarted::Started)
}

async fn drop_error(session: &mut Session, error: &BitError, task: &TaskSubject, reason: &str) -> Result<bool, Error> {
    let BitError { id, store, item, .. } = error;
    let is_open =
        session.row("SELECT 1 FROM bit_errors WHERE id = $1 AND ended IS NULL", values![*id]).await?.is_some();
    if !is_open || !is_stuck(session, task).await? {
        return Ok(false);
    }
    let sql = "UPDATE repairs SET ended = {now}, outcome = $4, detail = $5
        WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL";
    let reason = crate::error::one_line(reason);
    session.run(sql, values![store, &item.space, &item.key, RepairEnd::Dropped.as_str(), &*reason]).await?;
    end_error(session, store, item, "dropped").await?;
    Ok(true)
}

/// Whether no worker will end the repair of a copy that is open: its task is in the dead letters, or was dropped.
async fn is_stuck(session: &mut Session, task: &TaskSubject) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM tasks WHERE account = $1 AND space = $2 AND key = $3 AND kind = $4 AND destination = $5
        AND state <> $6";
    let mut values = values![&task.account, &task.space, key_column(task.key.as_ref()), TaskKind::Repair.as_str()];
    values.extend(values![store_column(task.destination.as_ref()), TaskState::Dead.as_str()]);
    Ok(session.row(sql, values).await?.is_none())
}

fn read(row: &DatabaseRow) -> Result<Repair, sqlx::Error> {
    let space = row.need(3, |name: String| name.parse::<SpaceName>())?;
    let ended = row.parse(11, Timestamp::from_millisecond)?;
    let outcome: Option<String> = row.get(12)?;
    let outcome = RepairEnd::ALL.into_iter().find(|end| outcome.as_deref() == Some(end.as_str()));
    let detail: Option<String> = row.get(13)?;
    Ok(Repair {
        id: row.count(0)?,
        account: row.get(1)?,
        store: row.need(2, |name: String| name.parse::<StoreName>())?,
        item: Item::new(space, row.need(4, |bytes: Vec<u8>| Key::new(bytes))?),
        user: row.get(5)?,
        is_automatic: row.get(6)?,
        reason: row.get(7)?,
        started: row.time(8)?,
        source: row.parse(9, |name: String| name.parse::<StoreName>())?,
        kept_as: row.get(10)?,
        remedy: row.get(14)?,
        content: row.get(15)?,
        ended: ended.zip(outcome).map(|(time, end)| (time, end, detail.unwrap_or_default())),
    })
}
