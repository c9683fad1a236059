//! The loops of producers: who leads, and how far the loop is.
//!
//! A producer goes through all content, again and again. One process leads it, by a lease with an *epoch* that grows
//! with each leader; what a leader saves names its epoch, so that one who led before writes nothing. The place up to
//! which a loop has come is saved with the tasks that it put, in one transaction: any process goes on exactly there.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::{Key, SpaceName, StoreName};
use uuid::Uuid;

use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;
use crate::tasks::{NewTask, put};

/// A lead of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The producer.
    pub producer: String,
    /// Which lead it is: each leader has a higher one than the one before.
    pub epoch: u64,
    /// The number of the loop that is under way, or was last; 0 before the first one.
    pub number: u64,
    /// Whether the next loop is due.
    pub is_due: bool,
    /// When the loop began, by the database's clock.
    pub started: Option<Timestamp>,
}

/// A part of a loop that is not done: a space that is copied from one store to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Morsel {
    /// The account.
    pub account: String,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The store to copy from.
    pub source: StoreName,
    /// The store to copy to.
    pub destination: StoreName,
    /// The key up to which it is done; `None` at its beginning.
    pub marker: Option<Key>,
    /// Why it could not go on when it was tried last: one sentence.
    pub error: Option<String>,
    /// How many items the source had when the loop began, by the content index.
    pub items: u64,
    /// How many keys of either side were scanned.
    pub scanned: u64,
}

/// The loops of a producer as people see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopState {
    /// The number of the loop that is under way, or was last; 0 before the first one.
    pub number: u64,
    /// Whether a process leads it now.
    pub is_led: bool,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended; `None` while it is under way.
    pub ended: Option<Timestamp>,
    /// When the next one is due.
    pub next: Option<Timestamp>,
    /// How many morsels it began with.
    pub morsels: u64,
    /// How many items their sources had then.
    pub items: u64,
    /// How many keys were scanned.
    pub scanned: u64,
}

/// The producer whose loops find out which copies policies want.
pub const DUPLICATION: &str = "duplication";

/// How long after a change of a policy the next loop begins at the latest: by then, every process has read the policy.
/// What was stored before that is found by the loop.
const AFTER_A_POLICY: Duration = Duration::from_mins(2);

/// How far a morsel is afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    /// It is done up to this key, with so many keys that were scanned.
    To(Key, u64),
    /// It could not go on, and stays where it is: one sentence.
    Failed(String),
    /// It is done, with so many keys that were scanned.
    Done(u64),
}

const LEAD: &str =
    "UPDATE loops SET epoch = epoch + CASE WHEN holder = $2 THEN 0 ELSE 1 END, holder = $2, lease_end = {now} + $3
    WHERE producer = $1 AND (holder = $2 OR lease_end <= {now})
    RETURNING epoch, loop, started, next_start IS NULL OR next_start <= {now}";

const IS_LEADING: &str = "SELECT 1 FROM loops WHERE producer = $1 AND epoch = $2 AND lease_end > {now} {lock}";

impl Catalogue {
    /// Leads a producer for the time of a lease, or for longer where this holder leads it already; `None` while another
    /// one does.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn lead(&self, producer: &str, holder: Uuid, lease: Duration) -> Result<Option<Lead>, Error> {
        let mut session = self.database.begin().await?;
        let outcome = lead(&mut session, producer, holder, lease).await;
        session.end(outcome).await
    }

    /// Ends the lead of a holder before its lease does: another one may lead at once.
    ///
    /// # Errors
    /// When the database cannot be written; then the lease ends by itself.
    pub async fn resign(&self, producer: &str, holder: Uuid) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let sql = "UPDATE loops SET lease_end = {now} WHERE producer = $1 AND holder = $2 AND lease_end > {now}";
        let outcome = session.run(sql, values![producer, holder]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// Lets the next loop of a producer begin as soon as the last one is done.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn request_loop(&self, producer: &str) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let outcome = hasten(&mut session, producer, Duration::ZERO).await;
        session.end(outcome).await
    }

    /// Begins the next loop with these morsels, in place of what is left of the last one; the one after it is due after
    /// a time. The answer is whether this leader still leads.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn begin_loop(&self, lead: &Lead, morsels: &[Morsel], next: Duration) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = begin(&mut session, lead, morsels, next).await;
        session.end(outcome).await
    }

    /// What is left of the loop, in the order of accounts and spaces. There are as many as pairs of stores and spaces.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn morsels(&self, producer: &str) -> Result<Vec<Morsel>, Error> {
        let sql =
            "SELECT account, space, source, destination, marker, error, items, looked FROM morsels WHERE producer = $1
            ORDER BY account, space, source, destination";
        self.list(sql, values![producer], morsel).await
    }

    /// The loops of a producer; `None` before one has led it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn loop_state(&self, producer: &str) -> Result<Option<LoopState>, Error> {
        let sql = "SELECT loop, lease_end > {now}, started, ended, next_start, morsels, items, looked FROM loops
            WHERE producer = $1";
        Ok(self.list(sql, values![producer], loop_state).await?.pop())
    }

    /// Requests tasks, and saves how far a morsel is by that, in one transaction. The answer is whether this leader
    /// still leads: where it does not, nothing is written.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn advance(
        &self,
        lead: &Lead,
        morsel: &Morsel,
        to: &Advance,
        tasks: Vec<NewTask>,
    ) -> Result<bool, Error> {
        let (mut session, has_tasks) = (self.database.begin().await?, !tasks.is_empty());
        let outcome = advance(&mut session, lead, morsel, to, tasks).await;
        let is_leading = session.end(outcome).await?;
        if has_tasks {
            self.notify().await;
        }
        Ok(is_leading)
    }
}

/// A policy was changed: what it adds is found by the next loop.
pub(crate) async fn follow_policy(session: &mut Session) -> Result<(), Error> {
    hasten(session, DUPLICATION, AFTER_A_POLICY).await
}

/// Lets the next loop of a producer be due after a time, unless it is earlier.
async fn hasten(session: &mut Session, producer: &str, after: Duration) -> Result<(), Error> {
    let sql = "UPDATE loops SET next_start = {now} + $2 WHERE producer = $1 AND next_start > {now} + $2";
    session.run(sql, values![producer, millis(after)]).await.map(|_rows| ())
}

async fn lead(session: &mut Session, producer: &str, holder: Uuid, lease: Duration) -> Result<Option<Lead>, Error> {
    let new =
        "INSERT INTO loops (producer, epoch, lease_end, loop) VALUES ($1, 0, 0, 0) ON CONFLICT (producer) DO NOTHING";
    session.run(new, values![producer]).await?;
    let Some(row) = session.row(LEAD, values![producer, holder, millis(lease)]).await? else { return Ok(None) };
    let read = || {
        Ok(Lead {
            producer: producer.to_owned(),
            epoch: row.count(0)?,
            number: row.count(1)?,
            started: row.parse(2, Timestamp::from_millisecond)?,
            is_due: row.get(3)?,
        })
    };
    session.decode(read()).map(Some)
}

pub(crate) async fn is_leading(session: &mut Session, lead: &Lead) -> Result<bool, Error> {
    Ok(session.row(IS_LEADING, values![&lead.producer, lead.epoch]).await?.is_some())
}

async fn begin(session: &mut Session, lead: &Lead, morsels: &[Morsel], next: Duration) -> Result<bool, Error> {
    if !is_leading(session, lead).await? {
        return Ok(false);
    }
    session.run("DELETE FROM morsels WHERE producer = $1", values![&lead.producer]).await?;
    let mut values = Vec::new();
    for morsel in morsels {
        let Morsel { account, space, source, destination, marker, error, items, scanned } = morsel;
        values.extend(values![&lead.producer, account, space, source, destination, marker.as_ref(), error]);
        values.extend(values![*items, *scanned]);
    }
    let into = "INSERT INTO morsels (producer, account, space, source, destination, marker, error, items, looked)";
    session.insert_many(into, 9, values).await?;
    let sql = "UPDATE loops SET loop = loop + 1, started = {now}, next_start = {now} + $2, morsels = $3, items = $4,
        looked = 0, ended = CASE WHEN $3 = 0 THEN {now} END WHERE producer = $1";
    let items = morsels.iter().fold(0u64, |sum, morsel| sum.saturating_add(morsel.items));
    session.run(sql, values![&lead.producer, millis(next), morsels.len() as u64, items]).await?;
    Ok(true)
}

pub(crate) async fn advance(
    session: &mut Session,
    lead: &Lead,
    morsel: &Morsel,
    to: &Advance,
    tasks: Vec<NewTask>,
) -> Result<bool, Error> {
    if !is_leading(session, lead).await? {
        return Ok(false);
    }
    let Morsel { account, space, source, destination, .. } = morsel;
    let mut values = values![&lead.producer, account, space, source, destination];
    let sql = match to {
        Advance::To(key, scanned) => {
            values.extend(values![key, *scanned]);
            "UPDATE morsels SET marker = $6, looked = looked + $7, error = NULL
                WHERE producer = $1 AND account = $2 AND space = $3 AND source = $4 AND destination = $5"
        }
        Advance::Failed(why) => {
            values.extend(values![&crate::error::one_line(why)]);
            "UPDATE morsels SET error = $6
                WHERE producer = $1 AND account = $2 AND space = $3 AND source = $4 AND destination = $5"
        }
        Advance::Done(_) => {
            "DELETE FROM morsels
                WHERE producer = $1 AND account = $2 AND space = $3 AND source = $4 AND destination = $5"
        }
    };
    session.run(sql, values).await?;
    if let Advance::To(_, scanned) | Advance::Done(scanned) = to {
        let sql = "UPDATE loops SET looked = looked + $2, ended = CASE
                WHEN EXISTS (SELECT 1 FROM morsels WHERE producer = $1) THEN ended ELSE {now} END
            WHERE producer = $1";
        session.run(sql, values![&lead.producer, *scanned]).await?;
    }
    put(session, tasks).await?;
    Ok(true)
}

fn morsel(row: &DatabaseRow) -> Result<Morsel, sqlx::Error> {
    Ok(Morsel {
        account: row.get(0)?,
        space: row.need(1, |name: String| name.parse::<SpaceName>())?,
        source: row.need(2, |name: String| name.parse::<StoreName>())?,
        destination: row.need(3, |name: String| name.parse::<StoreName>())?,
        marker: row.key(4)?,
        error: row.get(5)?,
        items: row.count(6)?,
        scanned: row.count(7)?,
    })
}

fn loop_state(row: &DatabaseRow) -> Result<LoopState, sqlx::Error> {
    Ok(LoopState {
        number: row.count(0)?,
        is_led: row.get(1)?,
        started: row.parse(2, Timestamp::from_millisecond)?,
        ended: row.parse(3, Timestamp::from_millisecond)?,
        next: row.parse(4, Timestamp::from_millisecond)?,
        morsels: row.count(5)?,
        items: row.count(6)?,
        scanned: row.count(7)?,
    })
}
