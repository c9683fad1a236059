//! What depositors sent, kept when its batch is gone.

use jiff::Timestamp;
use uuid::Uuid;

use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::{DatabaseRow, values};
use crate::error::{Error, ErrorKind};

/// How the outcome begins of a deposit that was refused: nothing was made of it.
pub const REFUSED: &str = "refused: ";

/// A deposit that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeposit {
    /// Its batch.
    pub batch: Uuid,
    /// Who sent it.
    pub depositor: String,
    /// What the depositor marks repetitions with.
    pub idempotency_key: Option<String>,
    /// The profile that it was sent for.
    pub profile: String,
    /// How many objects it has, as far as is known.
    pub objects: u64,
    /// How many bytes, as far as is known.
    pub bytes: u64,
}

/// A deposit as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// What was sent.
    pub deposit: NewDeposit,
    /// When it was accepted.
    pub received: Timestamp,
    /// How it ended, and when; none while it is at work.
    pub outcome: Option<(String, Timestamp)>,
    /// Of a further batch of a deposit that became several: the first batch, and which one it is, from 2 on.
    pub part_of: Option<(Uuid, u64)>,
}

/// What a depositor has sent in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many deposits.
    pub deposits: u64,
    /// How many objects, as far as is known.
    pub objects: u64,
    /// How many bytes, as far as is known.
    pub bytes: u64,
    /// When the first of them was accepted; `None` where there is none.
    pub first: Option<Timestamp>,
}

/// The columns that [`deposit`] reads.
macro_rules! columns {
    () => {
        "batch, depositor, idempotency_key, profile, object_count, byte_count, received, outcome, ended, part_of, part"
    };
}

/// A pair is above another as a whole, in both databases.
pub(crate) const DEPOSITS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM deposits WHERE depositor = $1 AND (received, batch) < ($2, $3) AND part_of IS NULL
      ORDER BY received DESC, batch DESC LIMIT $4"
);

macro_rules! sent {
    () => {
        "SELECT COUNT(*), CAST(COALESCE(SUM(object_count), 0) AS BIGINT),
          CAST(COALESCE(SUM(byte_count), 0) AS BIGINT), MIN(received)
          FROM deposits WHERE depositor = $1 AND received >= $2 AND part_of IS NULL"
    };
}

pub(crate) const SENT: &str = sent!();

/// The same without one deposit.
const SENT_BESIDE: &str = concat!(sent!(), " AND batch <> $3");

pub(crate) const PARTS: &str =
    concat!("SELECT ", columns!(), " FROM deposits WHERE part_of = $1 ORDER BY part LIMIT $2");

pub(crate) const PARTS_SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM deposits WHERE depositor = $1 AND received >= $2 AND part_of IS NOT NULL
      ORDER BY received DESC, batch DESC LIMIT $3"
);

/// The seed of the locks of depositors among PostgreSQL's advisory ones: any number.
const DEPOSITOR: i64 = 0x716b_6465_706f;

const ONE: &str = concat!("SELECT ", columns!(), " FROM deposits WHERE batch = $1");

impl Catalogue {
    /// Records a deposit, unless the depositor has sent one with the same key, or for the same batch, before; the
    /// answer is the batch of that, or its own. One that was refused is recorded anew.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the batch is another depositor's. Others when the database cannot be written.
    pub async fn record_deposit(&self, new: &NewDeposit) -> Result<Uuid, Error> {
        let mut session = self.database.begin().await?;
        let outcome = record(&mut session, new).await;
        session.end(outcome).await
    }

    /// The same where `may` agrees to what the depositor has sent since each of these instants; else nothing is
    /// recorded, and the answer is its refusal. Of requests at once, each sees those that were recorded before it. One
    /// that is recorded already, and was not refused, is not looked at again.
    ///
    /// # Errors
    /// As [`Self::record_deposit`].
    pub async fn record_deposit_within<const N: usize, R>(
        &self,
        new: &NewDeposit,
        since: [Timestamp; N],
        may: impl FnOnce([Sent; N]) -> Result<(), R>,
    ) -> Result<Result<Uuid, R>, Error> {
        let mut session = self.database.begin().await?;
        let outcome = async {
            if session.dialect() == Dialect::Postgres {
                // SQLite's writers are alone.
                let alone = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
                session.rows(alone, values![&new.depositor, DEPOSITOR]).await?;
            }
            let known = known(&mut session, new).await?;
            if let Some((batch, false)) = known {
                return Ok(Ok(batch));
            }
            // What was refused is not counted beside what it becomes.
            let itself = known.map_or(new.batch, |(batch, _)| batch);
            let mut all = [Sent::default(); N];
            for (sent, since) in all.iter_mut().zip(since) {
                let row = session.row(SENT_BESIDE, values![&new.depositor, since.as_millisecond(), itself]).await?;
                *sent = session.decode(row.as_ref().map(sum).transpose())?.unwrap_or_default();
            }
            match may(all) {
                Ok(()) => record(&mut session, new).await.map(Ok),
                Err(refusal) => Ok(Err(refusal)),
            }
        };
        let outcome = outcome.await;
        session.end(outcome).await
    }

    /// Records a further batch of a deposit that is recorded, with so many objects: its depositor's, received with it,
    /// and no deposit of its own in their quota. Where the deposit is not recorded, or the batch is already, nothing is
    /// done.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn record_part(&self, of: Uuid, part: u64, batch: Uuid, objects: u64) -> Result<(), Error> {
        let sql = "INSERT INTO deposits
                (batch, depositor, profile, object_count, byte_count, received, part_of, part)
            SELECT $1, depositor, profile, $4, 0, received, batch, $3 FROM deposits WHERE batch = $2
            ON CONFLICT DO NOTHING";
        let mut session = self.database.begin().await?;
        let done = session.run(sql, values![batch, of, part, objects]).await;
        session.end(done).await.map(|_rows| ())
    }

    /// The further batches of a deposit that became several, in their order, at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn parts(&self, of: Uuid) -> Result<Vec<Deposit>, Error> {
        self.list(PARTS, values![of, page(u32::MAX)], deposit).await
    }

    /// The further batches of the deposits that a depositor has made since an instant, at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn parts_since(&self, depositor: &str, since: Timestamp) -> Result<Vec<Deposit>, Error> {
        self.list(PARTS_SINCE, values![depositor, since.as_millisecond(), page(u32::MAX)], deposit).await
    }

    /// Writes down how a deposit ended; the last word counts, since a failed batch may be repaired.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn deposit_ended(&self, batch: Uuid, outcome: &str) -> Result<(), Error> {
        let sql = "UPDATE deposits SET outcome = $2, ended = {now} WHERE batch = $1";
        let mut session = self.database.begin().await?;
        let done = session.run(sql, values![batch, outcome]).await;
        session.end(done).await.map(|_rows| ())
    }

    /// Writes down how a deposit ended for which no daemon has done so: its batch leaves the queue.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn deposit_leaves(&self, batch: Uuid, outcome: &str) -> Result<(), Error> {
        let sql = "UPDATE deposits SET outcome = $2, ended = {now} WHERE batch = $1 AND outcome IS NULL";
        let mut session = self.database.begin().await?;
        let done = session.run(sql, values![batch, outcome]).await;
        session.end(done).await.map(|_rows| ())
    }

    /// Writes down how many objects a deposit has, once that is known. There may be no such deposit.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn deposit_has(&self, batch: Uuid, objects: u64) -> Result<(), Error> {
        let sql = "UPDATE deposits SET object_count = $2 WHERE batch = $1";
        let mut session = self.database.begin().await?;
        let done = session.run(sql, values![batch, objects]).await;
        session.end(done).await.map(|_rows| ())
    }

    /// A deposit by its batch.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn deposit(&self, batch: Uuid) -> Result<Option<Deposit>, Error> {
        Ok(self.list(ONE, values![batch], deposit).await?.pop())
    }

    /// What a depositor has sent since an instant.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn deposited_since(&self, depositor: &str, since: Timestamp) -> Result<Sent, Error> {
        let found = self.list(SENT, values![depositor, since.as_millisecond()], sum).await?;
        Ok(found.first().copied().unwrap_or_default())
    }

    /// The deposits of one depositor, without further batches, the newest first, of those before one that was listed
    /// (all, without it); at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn deposits(&self, depositor: &str, before: Option<&Deposit>, limit: u32) -> Result<Vec<Deposit>, Error> {
        let received = before.map_or(i64::MAX, |before| before.received.as_millisecond());
        let batch = before.map_or(Uuid::max(), |before| before.deposit.batch);
        self.list(DEPOSITS, values![depositor, received, batch, page(limit)], deposit).await
    }
}

/// The answer to [`SENT`].
fn sum(row: &DatabaseRow) -> Result<Sent, sqlx::Error> {
    let first = row.parse(3, Timestamp::from_millisecond)?;
    Ok(Sent { deposits: row.count(0)?, objects: row.count(1)?, bytes: row.count(2)?, first })
}

/// The batch of a deposit that was recorded before - the same, or one with its key - and whether that was refused.
async fn known(session: &mut Session, new: &NewDeposit) -> Result<Option<(Uuid, bool)>, Error> {
    let sql = "SELECT batch, outcome FROM deposits
        WHERE depositor = $1 AND (batch = $2 OR idempotency_key = $3) ORDER BY batch LIMIT 1";
    let row = session.row(sql, values![&new.depositor, new.batch, &new.idempotency_key]).await?;
    let read = |row: DatabaseRow| {
        Ok((row.get(0)?, row.get::<Option<String>>(1)?.is_some_and(|outcome| outcome.starts_with(REFUSED))))
    };
    row.map(|row| session.decode(read(row))).transpose()
}

async fn record(session: &mut Session, new: &NewDeposit) -> Result<Uuid, Error> {
    let sql = "INSERT INTO deposits
            (batch, depositor, idempotency_key, profile, object_count, byte_count, received)
        VALUES ($1, $2, $3, $4, $5, $6, {now}) ON CONFLICT DO NOTHING";
    let NewDeposit { batch, depositor, idempotency_key, profile, objects, bytes } = new;
    let values = values![*batch, depositor, idempotency_key, profile, *objects, *bytes];
    if session.run(sql, values).await? > 0 {
        return Ok(*batch);
    }
    let Some((known, was_refused)) = known(session, new).await? else {
        let text = format!("batch {batch} belongs to another depositor; choose another UUID");
        return Err(session.error(ErrorKind::Refused(text)));
    };
    if was_refused {
        let sql = "UPDATE deposits SET profile = $2, object_count = $3, byte_count = $4, received = {now},
                outcome = NULL, ended = NULL WHERE batch = $1";
        session.run(sql, values![known, profile, *objects, *bytes]).await?;
    }
    Ok(known)
}

fn deposit(row: &DatabaseRow) -> Result<Deposit, sqlx::Error> {
    let outcome: Option<String> = row.get(7)?;
    let ended = row.parse(8, Timestamp::from_millisecond)?;
    let (part_of, part): (Option<Uuid>, _) = (row.get(9)?, row.parse(10, |part: i64| u64::try_from(part))?);
    Ok(Deposit {
        deposit: NewDeposit {
            batch: row.get(0)?,
            depositor: row.get(1)?,
            idempotency_key: row.get(2)?,
            profile: row.get(3)?,
            objects: row.count(4)?,
            bytes: row.count(5)?,
        },
        received: row.time(6)?,
        outcome: outcome.zip(ended),
        part_of: part_of.zip(part),
    })
}
