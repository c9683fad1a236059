//! What the mill keeps of content before it deletes it or writes over it, and for how long.
//!
//! A record is made before its content is copied, in the transaction in which the brake allows the effect, and stays
//! when the content is removed: as the record of that.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, StoreName};

use crate::brake::{self, BrakeAnswer, BrakeLimit, Braked};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;

/// Content that is to be put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAside<'a> {
    /// The item that is to be destroyed, in the store whose brake counts it.
    pub item: &'a Item,
    /// The key of its content in the space for what is kept: the same one whenever the same effect is tried again.
    pub kept_as: &'a str,
    /// What is to be done to the item.
    pub reason: &'a str,
    /// How long the content is kept.
    pub keep: Duration,
}

/// Content that is, or was, kept aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Its number.
    pub id: u64,
    /// The store.
    pub store: StoreName,
    /// The item that it is of, as the store names it.
    pub item: Item,
    /// Its key in the space for what is kept.
    pub kept_as: String,
    /// What was to be done to the item.
    pub reason: String,
    /// When that was begun.
    pub time: Timestamp,
    /// Until when it is kept.
    pub until: Timestamp,
    /// When and how that ended; `None` while it is kept.
    pub ended: Option<(Timestamp, AsideEnd)>,
}

/// How it ended that content was kept aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsideEnd {
    /// The content was removed.
    Removed,
    /// There was no content: its process died before it was copied, or another client removed it.
    Absent,
}

impl AsideEnd {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Removed, Self::Absent];

    /// The name in the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Absent => "absent",
        }
    }
}

/// The columns that [`aside`] reads.
macro_rules! columns {
    () => {
        "id, store, space, key, kept_as, reason, time, kept_until, ended, outcome"
    };
}

/// What is or was kept of an item, the newest first.
pub(crate) const OF_ITEM: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asides WHERE store = $1 AND space = $2 AND key = $3 AND id < $4 ORDER BY id DESC LIMIT $5"
);

/// What need not be kept any longer, behind another one.
pub(crate) const OVERDUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asides WHERE ended IS NULL AND kept_until <= {now} AND (kept_until, id) > ($1, $2)
    ORDER BY kept_until, id LIMIT $3"
);

/// The keys of what is kept, from one to another.
pub(crate) const KEYS: &str = "SELECT kept_as FROM asides WHERE kept_as >= $1 AND kept_as <= $2 AND store = $3
        AND ended IS NULL
    ORDER BY kept_as LIMIT $4";

/// Whether it is being removed, and whether the brake has counted it within its day.
const KNOWN: &str =
    "SELECT is_leaving, ended IS NULL AND time > {now} - 86400000 FROM asides WHERE kept_as = $1 {lock}";

/// One that was kept before is kept from now on.
const PUT: &str = "INSERT INTO asides (store, space, key, kept_as, reason, time, kept_until)
    VALUES ($1, $2, $3, $4, $5, {now}, {now} + $6)
    ON CONFLICT (kept_as) DO UPDATE SET reason = excluded.reason, time = excluded.time, kept_until = excluded.kept_until,
        ended = NULL, outcome = NULL";

impl Catalogue {
    /// Checks with the brake whether an item may be deleted or overwritten, counts that, and records under which key
    /// its content is about to be kept: all of it, or nothing. Repeated within a day, it is allowed and nothing
    /// changes. Without a limit it is allowed by an operator. `None` while what was kept under that key is being
    /// removed.
    ///
    /// It may turn out that no content is there, where its process died.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing may be destroyed.
    pub async fn put_aside(
        &self,
        of: &Braked<'_>,
        aside: &NewAside<'_>,
        limit: Option<BrakeLimit>,
    ) -> Result<Option<BrakeAnswer>, Error> {
        let mut session = self.database.begin().await?;
        let outcome = put(&mut session, of, aside, limit).await;
        session.end(outcome).await
    }

    /// What is or was kept of an item with numbers below `before`, the newest first; at most `limit`, and at most
    /// 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn asides(
        &self,
        store: &StoreName,
        item: &Item,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Aside>, Error> {
        let before = before.unwrap_or(u64::MAX);
        self.list(OF_ITEM, values![store, &item.space, &item.key, before, page(limit)], aside).await
    }

    /// What need not be kept any longer, behind another one, in the order in which that is so; at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn overdue_asides(&self, after: Option<&Aside>) -> Result<Vec<Aside>, Error> {
        let (until, id) = after.map_or((i64::MIN, 0), |after| (after.until.as_millisecond(), after.id));
        self.list(OVERDUE, values![until, id, page(u32::MAX)], aside).await
    }

    /// Begins to remove what need not be kept any longer: from now on nothing is kept under its key. The answer is
    /// whether that is so still; it goes on where a process that began it has died.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn leave_aside(&self, id: u64) -> Result<bool, Error> {
        let sql = "UPDATE asides SET is_leaving = TRUE WHERE id = $1 AND ended IS NULL AND kept_until <= {now}";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![id]).await;
        Ok(session.end(outcome).await? > 0)
    }

    /// Records how it ended that content was kept.
    ///
    /// # Errors
    /// When the database cannot be written; then it is found again.
    pub async fn end_aside(&self, id: u64, end: AsideEnd) -> Result<(), Error> {
        let sql = "UPDATE asides SET is_leaving = FALSE, ended = {now}, outcome = $2 WHERE id = $1 AND is_leaving";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![id, end.as_str()]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// The keys of what a store keeps aside, from one to another, in their order; at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn aside_keys(&self, store: &StoreName, from: &str, to: &str) -> Result<Vec<String>, Error> {
        self.list(KEYS, values![from, to, store, page(u32::MAX)], |row| row.get(0)).await
    }
}

async fn put(
    session: &mut Session,
    of: &Braked<'_>,
    new: &NewAside<'_>,
    limit: Option<BrakeLimit>,
) -> Result<Option<BrakeAnswer>, Error> {
    brake::lock(session, of).await?;
    let row = session.row(KNOWN, values![new.kept_as]).await?;
    let known = row.map(|row| session.decode((|| Ok((row.get(0)?, row.get(1)?)))())).transpose()?;
    let (is_leaving, is_counted) = known.unwrap_or((false, false));
    if is_leaving {
        return Ok(None);
    }
    let answer = brake::allow(session, of, limit, is_counted).await?;
    if answer.is_allowed && !is_counted {
        let NewAside { item, kept_as, reason, keep } = *new;
        let values = values![of.store, &item.space, &item.key, kept_as, reason, millis(keep)];
        session.run(PUT, values).await?;
    }
    Ok(Some(answer))
}

fn aside(row: &DatabaseRow) -> Result<Aside, sqlx::Error> {
    let ended = row.parse(8, Timestamp::from_millisecond)?;
    let outcome: Option<String> = row.get(9)?;
    let outcome = AsideEnd::ALL.into_iter().find(|end| outcome.as_deref() == Some(end.as_str()));
    Ok(Aside {
        id: row.count(0)?,
        store: row.need(1, |name: String| name.parse())?,
        item: Item::new(row.need(2, |name: String| name.parse())?, row.need(3, |key: Vec<u8>| Key::new(key))?),
        kept_as: row.get(4)?,
        reason: row.get(5)?,
        time: row.time(6)?,
        until: row.time(7)?,
        ended: ended.zip(outcome),
    })
}
