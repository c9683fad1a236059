//! Checks on request: of an item, or of a space of a store.
//!
//! Each has a task of its own, whatever a loop has requested. That of a space checks a page, writes down how far it is
//! in the transaction that ends it, and requests itself again; items of which a page could not say at once that they
//! are right have tasks that end one by one. So a space of any size needs the transaction of a page, and one that was
//! broken off goes on where it was.

use jiff::Timestamp;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::checked::{CheckedItem, RequestedPart};
use super::{NOTHING, SUCCESS};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, Value, values};
use crate::error::Error;
use crate::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject, key_column, put};

/// A check to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequestedCheck<'a> {
    /// The account.
    pub account: &'a str,
    /// The store.
    pub store: &'a StoreName,
    /// The space, as the account names it.
    pub space: &'a SpaceName,
    /// The item; `None` for all of the space.
    pub key: Option<&'a Key>,
    /// Who requests it.
    pub user: &'a str,
    /// Why.
    pub reason: &'a str,
    /// How many items there are by the content index.
    pub items: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// How far a check is that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedCheckState {
    /// It waits for a worker, or one has it.
    UnderWay,
    /// All of it was checked.
    Ended,
    /// A part of it failed in every attempt, and is in the dead letters.
    Stopped,
}

impl RequestedCheckState {
    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnderWay => "under_way",
            Self::Ended => "ended",
            Self::Stopped => "stopped",
        }
    }
}

/// The newest check of an item or a space that was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedCheck {
    /// Its number.
    pub id: u64,
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The item; `None` for all of the space.
    pub key: Option<Key>,
    /// Who requested it.
    pub user: String,
    /// Why.
    pub reason: String,
    /// When, by the database's clock.
    pub requested: Timestamp,
    /// How many items there were by the content index.
    pub items: u64,
    /// How many bytes these had.
    pub bytes: u64,
    /// The key up to which the space is gone through.
    pub marker: Option<Key>,
    /// Whether all of the space is gone through.
    pub is_listed: bool,
    /// How many items were proven by reading.
    pub proven: u64,
    /// How many bytes these have.
    pub proven_bytes: u64,
    /// With how many something is wrong.
    pub wrong: u64,
    /// How many could not be proven, with nothing wrong: a job writes them, or they cannot be read now.
    pub unproven: u64,
    /// Of how many there is neither content nor a record.
    pub gone: u64,
    /// How many are being checked one by one.
    pub pending: u64,
    /// When something of it was checked last.
    pub changed: Timestamp,
    /// How far it is.
    pub state: RequestedCheckState,
}

/// Checks that were requested, read by [`read`].
macro_rules! requested {
    ($condition:literal) => {
        concat!(
            "SELECT id, account, store, space, key, user_name, reason, asked, items, bytes, marker, is_listed, proven,
                proven_bytes, wrong, unproven, gone, changed,
                (SELECT COUNT(*) FROM asked_items WHERE asked_items.asked = asked_checks.id),
                EXISTS (SELECT 1 FROM tasks WHERE tasks.account = asked_checks.account
                    AND tasks.space = asked_checks.space AND tasks.key = asked_checks.key AND tasks.kind = 'CHECK'
                    AND tasks.destination = asked_checks.store AND tasks.state <> 'dead')
                OR EXISTS (SELECT 1 FROM asked_items JOIN tasks ON tasks.account = asked_checks.account
                    AND tasks.space = asked_checks.space AND tasks.key = asked_items.key AND tasks.kind = 'CHECK'
                    AND tasks.destination = asked_checks.store AND tasks.state <> 'dead'
                    WHERE asked_items.asked = asked_checks.id)
            FROM asked_checks WHERE ",
            $condition
        )
    };
}

/// The one of an item or a space.
pub(crate) const REQUESTED_OF: &str = requested!("account = $1 AND store = $2 AND space = $3 AND key = $4");

/// Those of an account, the newest first.
pub(crate) const REQUESTED: &str = requested!("account = $1 AND id < $2 ORDER BY id DESC LIMIT $3");

/// Of one that has not ended, nothing is changed.
const ASK: &str =
    "INSERT INTO asked_checks (account, store, space, key, user_name, reason, items, bytes, asked, is_listed, proven,
        proven_bytes, wrong, unproven, gone, changed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, FALSE, 0, 0, 0, 0, 0, {now})
    ON CONFLICT (account, store, space, key) DO NOTHING RETURNING id";

impl Catalogue {
    /// Asks for a check. Where the same is under way already, that goes on as it is, and is done once more where a
    /// worker has it; what was requested before and has ended is replaced. The answer is whether it is new.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn request_check(&self, new: &NewRequestedCheck<'_>) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = request(&mut session, new).await;
        let is_new = session.end(outcome).await?;
        self.notify().await;
        Ok(is_new)
    }

    /// The check of an item, or of a space, that was requested last; `None` where none was.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn requested_check(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
        key: Option<&Key>,
    ) -> Result<Option<RequestedCheck>, Error> {
        Ok(self.list(REQUESTED_OF, values![account, store, space, key_column(key)], read).await?.pop())
    }

    /// The checks that were requested of an account, with numbers below `before`, the newest first; at most `limit`,
    /// and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn requested_checks(
        &self,
        account: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<RequestedCheck>, Error> {
        self.list(REQUESTED, values![account, before.unwrap_or(u64::MAX), page(limit)], read).await
    }
}

async fn request(session: &mut Session, new: &NewRequestedCheck<'_>) -> Result<bool, Error> {
    let NewRequestedCheck { account, store, space, key, user, reason, items, bytes } = *new;
    let of = || values![account, store, space, key_column(key)];
    // The task first and then its check, as a worker locks them that ends it.
    let task_of = "SELECT 1 FROM tasks WHERE account = $1 AND destination = $2 AND space = $3 AND key = $4 AND kind = 'CHECK' {lock}";
    session.row(task_of, of()).await?;
    let check_of = "SELECT 1 FROM asked_checks WHERE account = $1 AND store = $2 AND space = $3 AND key = $4 {lock}";
    session.row(check_of, of()).await?;
    let known = session.row(REQUESTED_OF, of()).await?;
    let known = known.map(|row| session.decode(read(&row))).transpose()?;
    let is_new = known.as_ref().is_none_or(|known| known.state != RequestedCheckState::UnderWay);
    if let Some(ended) = known.filter(|_| is_new) {
        session.run("DELETE FROM asked_items WHERE asked = $1", values![ended.id]).await?;
        session.run("DELETE FROM asked_checks WHERE id = $1", values![ended.id]).await?;
    }
    if is_new {
        let mut values = of();
        values.extend(values![user, reason, items, bytes]);
        // It is not there where another one requested the same a moment ago.
        if let (Some(row), Some(key)) = (session.row(ASK, values).await?, key) {
            let id: u64 = session.decode(row.count(0))?;
            session.run("INSERT INTO asked_items (asked, key) VALUES ($1, $2)", values![id, key]).await?;
        }
    }
    put(session, vec![task(account, store, space, key.cloned())]).await?;
    Ok(is_new)
}

fn task(account: &str, store: &StoreName, space: &SpaceName, key: Option<Key>) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Check,
        account: account.to_owned(),
        space: space.clone(),
        key,
        destination: Some(store.clone()),
    };
    NewTask { queue: TaskQueue::BitError, subject, source: None }
}

/// Writes down how far a check is by the end of a task, and what that found. The answer is what is to be done next.
pub(crate) async fn end(
    session: &mut Session,
    subject: &TaskSubject,
    part: &RequestedPart,
    items: &[CheckedItem],
) -> Result<Vec<NewTask>, Error> {
    let TaskSubject { account, space, key, destination, .. } = subject;
    let Some(store) = destination else { return Ok(Vec::new()) };
    let found = Found::of(part, items);
    if !part.is_of_space {
        let sql = "DELETE FROM asked_items WHERE key = $4 AND asked IN (SELECT id FROM asked_checks
            WHERE account = $1 AND store = $2 AND space = $3 AND key IN ($4, $5)) RETURNING asked";
        let values = values![account, store, space, key_column(key.as_ref()), key_column(None)];
        for row in session.rows(sql, values).await? {
            let id: u64 = session.decode(row.count(0))?;
            found.write(session, id, part).await?;
        }
        return Ok(Vec::new());
    }
    let sql = "SELECT id FROM asked_checks WHERE account = $1 AND store = $2 AND space = $3 AND key = $4";
    let Some(row) = session.row(sql, values![account, store, space, key_column(None)]).await? else {
        return Ok(Vec::new());
    };
    let id: u64 = session.decode(row.count(0))?;
    let values = part.alone.iter().flat_map(|key| values![id, key]).collect();
    let then = " ON CONFLICT DO NOTHING RETURNING asked";
    session.insert_returning("INSERT INTO asked_items (asked, key)", "?, ?", then, values).await?;
    found.write(session, id, part).await?;
    let alone = part.alone.iter().map(|key| task(account, store, space, Some(key.clone())));
    let rest = part.rest.as_ref().map(|_marker| task(account, store, space, None));
    Ok(alone.chain(rest).collect())
}

/// Forgets checks that ended longer ago than a time, in milliseconds; how many.
pub(super) async fn forget(session: &mut Session, kept: i64, most: u32) -> Result<u64, Error> {
    let sql = "DELETE FROM asked_checks WHERE id IN (
        SELECT id FROM asked_checks WHERE changed < {now} - $1 AND (is_listed OR key <> $2)
            AND NOT EXISTS (SELECT 1 FROM asked_items WHERE asked_items.asked = asked_checks.id)
            AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.account = asked_checks.account
                AND tasks.space = asked_checks.space AND tasks.key = asked_checks.key AND tasks.kind = 'CHECK'
                AND tasks.destination = asked_checks.store AND tasks.state <> 'dead')
        ORDER BY changed LIMIT $3 {lock_next})";
    session.run(sql, values![kept, key_column(None), most]).await
}

/// What the end of a task adds to a check.
#[derive(Default)]
struct Found {
    proven: u64,
    bytes: u64,
    wrong: u64,
    unproven: u64,
    gone: u64,
}

impl Found {
    fn of(part: &RequestedPart, items: &[CheckedItem]) -> Self {
        let mut found = Self::default();
        for item in items {
            if item.wrong.is_some() {
                found.wrong += 1;
            } else if item.result == SUCCESS {
                (found.proven, found.bytes) = (found.proven + 1, found.bytes + item.bytes);
            } else if item.result == NOTHING {
                found.gone += 1;
            } else {
                found.unproven += 1;
            }
        }
        // An item that is not decided by its check: a job writes it.
        found.unproven += u64::from(!part.is_of_space && items.is_empty());
        found
    }

    async fn write(&self, session: &mut Session, id: u64, part: &RequestedPart) -> Result<(), Error> {
        let Self { proven, bytes, wrong, unproven, gone } = self;
        let mut values: Vec<Value> = values![id, *proven, *bytes, *wrong, *unproven, *gone];
        values.extend(values![part.is_of_space, part.rest.as_ref(), part.is_of_space && part.rest.is_none()]);
        let sql = "UPDATE asked_checks SET proven = proven + $2, proven_bytes = proven_bytes + $3, wrong = wrong + $4,
                unproven = unproven + $5, gone = gone + $6, marker = CASE WHEN $7 THEN $8 ELSE marker END,
                is_listed = (is_listed OR $9), changed = {now}
            WHERE id = $1";
        session.run(sql, values).await.map(|_rows| ())
    }
}

fn read(row: &DatabaseRow) -> Result<RequestedCheck, sqlx::Error> {
    let key: Vec<u8> = row.get(4)?;
    let (is_open, pending, mut is_listed) = (row.get(19)?, row.count(18)?, row.get(11)?);
    let key = if key.is_empty() { None } else { row.key(4)? };
    is_listed |= key.is_some();
    Ok(RequestedCheck {
        id: row.count(0)?,
        account: row.get(1)?,
        store: row.need(2, |name: String| name.parse::<StoreName>())?,
        space: row.need(3, |name: String| name.parse::<SpaceName>())?,
        key,
        user: row.get(5)?,
        reason: row.get(6)?,
        requested: row.time(7)?,
        items: row.count(8)?,
        bytes: row.count(9)?,
        marker: row.key(10)?,
        is_listed,
        proven: row.count(12)?,
        proven_bytes: row.count(13)?,
        wrong: row.count(14)?,
        unproven: row.count(15)?,
        gone: row.count(16)?,
        changed: row.time(17)?,
        pending,
        state: match (is_open, is_listed && pending == 0) {
            (true, _) => RequestedCheckState::UnderWay,
            (false, true) => RequestedCheckState::Ended,
            (false, false) => RequestedCheckState::Stopped,
        },
    })
}
