//! Mails and callbacks that must be delivered at least once.
//!
//! A message is written before the state changes that it reports, under a name of its own: written again, it is the
//! same row with the same content.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;

/// A message to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// What the receiver recognizes repetitions by: a `Message-ID`, or an `Idempotency-Key`. Unique.
    pub name: String,
    /// How it is delivered, such as `mail` or `callback`.
    pub kind: String,
    /// The batch or the job that it is of; an id of its own for what is of none.
    pub subject: Uuid,
    /// The batch, by the id that its submission carries; empty for what is of none.
    pub batch: String,
    /// The profile by which it is delivered; empty for what is of no batch.
    pub profile: String,
    /// To whom: addresses or a URL, without secrets.
    pub recipient: String,
    /// The rendered content.
    pub content: String,
    /// What became of recipients before it was written: [`Attempt::Later`] has the form.
    pub settled: Option<String>,
}

/// A message that is due, and leased to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueMessage {
    /// Its number.
    pub id: u64,
    /// What is to be delivered.
    pub message: NewMessage,
    /// When it was written.
    pub created: Timestamp,
    /// How often delivery was begun, with this time.
    pub attempts: u32,
}

/// How an attempt to deliver a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// It was delivered, and is never due again.
    Delivered {
        /// What is to be known of it all the same, such as who refused it.
        note: Option<&'a str>,
    },
    /// It is due again after a time.
    Later {
        /// Why: one sentence.
        why: &'a str,
        /// What became of its recipients, in a form that only the sender reads; as it was before where absent.
        settled: Option<&'a str>,
        /// After how long.
        after: Duration,
    },
    /// It cannot be delivered, and is never due again.
    GivenUp {
        /// Why: one sentence.
        why: &'a str,
    },
}

/// The messages of a kind that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessages {
    /// How they are delivered.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// For how long the oldest has waited.
    pub age: Duration,
}

/// A message, by what says whether it is needed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMessage {
    /// Its number.
    pub id: u64,
    /// When it ended, or was written if it did not, in milliseconds since 1970 by the database's clock.
    pub time_ms: i64,
    /// The batch, by the id that its submission carries.
    pub batch: String,
}

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMessage {
    /// Its number.
    pub id: u64,
    /// What is delivered.
    pub message: NewMessage,
    /// Whether it was.
    pub is_delivered: bool,
    /// Whether it is never due again.
    pub has_ended: bool,
    /// What the last attempt said.
    pub error: Option<String>,
}

/// The columns that [`message`] reads.
macro_rules! columns {
    () => {
        "id, message, kind, subject, recipient, content, batch, profile, settled"
    };
}

const BY_NAME: &str = concat!("SELECT ", columns!(), ", delivered, ended, error FROM outbox WHERE message = $1");

/// What was given up has a time that never comes, and so is not passed over by each look.
pub(crate) const TAKE_DUE: &str = concat!(
    "UPDATE outbox SET due = {now} + $1, attempts = attempts + 1 WHERE id IN (
        SELECT id FROM outbox WHERE delivered IS NULL AND due <= {now} AND kind = $3
        ORDER BY due, id LIMIT $2 {lock_next})
    RETURNING ",
    columns!(),
    ", created, attempts"
);

pub(crate) const ENDED: &str = "SELECT id, ended, batch FROM outbox
    WHERE ended IS NOT NULL AND ended < {now} - $1 AND (ended, id) > ($2, $3) ORDER BY ended, id LIMIT $4";

/// How much of the reason for a failed delivery is kept.
const MOST_ERROR_CHARS: usize = 1000;

impl Catalogue {
    /// Writes a message, due at once; the answer is whether it is new. One of the same name stays as it was.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn queue_message(&self, message: &NewMessage) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = write(&mut session, message).await;
        session.end(outcome).await
    }

    /// A message by its name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn message(&self, name: &str) -> Result<Option<KnownMessage>, Error> {
        Ok(self.list(BY_NAME, values![name], known).await?.pop())
    }

    /// Takes messages of a kind that are due, the one that is due for longest first, at most `limit`, and at most
    /// 1,000. No other process gets them until the lease has ended; then they are due again, unless they ended.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn take_messages(&self, kind: &str, limit: u32, lease: Duration) -> Result<Vec<DueMessage>, Error> {
        let mut session = self.database.begin().await?;
        let rows = session.rows(TAKE_DUE, values![millis(lease), page(limit), kind]).await;
        let read =
            |rows: Vec<DatabaseRow>| rows.iter().map(|row| session.decode(due(row))).collect::<Result<Vec<_>, _>>();
        let outcome = rows.and_then(read);
        let mut taken = session.end(outcome).await?;
        taken.sort_by_key(|message| message.id);
        Ok(taken)
    }

    /// Writes down how an attempt to deliver a message ended. What has ended stays as it is.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn message_tried(&self, id: u64, attempt: Attempt<'_>) -> Result<(), Error> {
        let cut = |why: &str| why.chars().take(MOST_ERROR_CHARS).collect::<String>();
        let (sql, values) = match attempt {
            Attempt::Delivered { note } => (
                "UPDATE outbox SET delivered = {now}, ended = {now}, error = $2 WHERE id = $1 AND delivered IS NULL",
                values![id, &note.map(cut)],
            ),
            Attempt::Later { why, settled, after } => (
                "UPDATE outbox SET error = $2, settled = COALESCE($3, settled), due = {now} + $4
                    WHERE id = $1 AND ended IS NULL",
                values![id, &cut(why), settled, millis(after)],
            ),
            Attempt::GivenUp { why } => (
                "UPDATE outbox SET error = $2, ended = {now}, due = $3 WHERE id = $1 AND ended IS NULL",
                values![id, &cut(why), i64::MAX],
            ),
        };
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// How many messages of each kind wait. Kinds of which none does are left out.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn waiting_messages(&self) -> Result<Vec<WaitingMessages>, Error> {
        let sql = "SELECT kind, COUNT(*), {now} - MIN(created) FROM outbox
            WHERE delivered IS NULL AND ended IS NULL GROUP BY kind ORDER BY kind";
        let waiting = |row: &DatabaseRow| {
            let age = row.get::<i64>(2)?;
            let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
            Ok(WaitingMessages { kind: row.get(0)?, count: row.count(1)?, age })
        };
        self.list(sql, values![], waiting).await
    }

    /// The messages that ended longer ago than a time, the oldest first, after one that was listed (from the first on,
    /// without it); at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn ended_messages(
        &self,
        longer_than: Duration,
        after: Option<&ListedMessage>,
        limit: u32,
    ) -> Result<Vec<ListedMessage>, Error> {
        let (time, id) = after.map_or((i64::MIN, 0), |after| (after.time_ms, after.id));
        self.list(ENDED, values![millis(longer_than), time, id, page(limit)], listed).await
    }

    /// The same of the messages of a kind that wait, by when they were written.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn unended_messages(
        &self,
        kind: &str,
        longer_than: Duration,
        after: Option<&ListedMessage>,
        limit: u32,
    ) -> Result<Vec<ListedMessage>, Error> {
        let sql = "SELECT id, created, batch FROM outbox
            WHERE delivered IS NULL AND ended IS NULL AND kind = $1 AND created < {now} - $2
            AND (created, id) > ($3, $4) ORDER BY created, id LIMIT $5";
        let (time, id) = after.map_or((i64::MIN, 0), |after| (after.time_ms, after.id));
        self.list(sql, values![kind, millis(longer_than), time, id, page(limit)], listed).await
    }

    /// Removes a message that has ended; another one of its name is new then.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn remove_message(&self, id: u64) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let outcome = session.run("DELETE FROM outbox WHERE id = $1 AND ended IS NOT NULL", values![id]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// Removes the messages that are of no batch and ended longer ago than a time; the answer is how many.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn remove_messages_of_no_batch(&self, longer_than: Duration) -> Result<u64, Error> {
        let sql = "DELETE FROM outbox WHERE batch = '' AND ended IS NOT NULL AND ended < {now} - $1";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![millis(longer_than)]).await;
        session.end(outcome).await
    }
}

/// Writes a message in a transaction; the answer is whether it is new.
pub(crate) async fn write(session: &mut Session, message: &NewMessage) -> Result<bool, Error> {
    let sql = "INSERT INTO outbox
            (message, kind, subject, recipient, content, batch, profile, settled, created, due, attempts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, {now}, 0) ON CONFLICT (message) DO NOTHING";
    let NewMessage { name, kind, subject, batch, profile, recipient, content, settled } = message;
    let values = values![name, kind, *subject, recipient, content, batch, profile, settled];
    Ok(session.run(sql, values).await? > 0)
}

fn listed(row: &DatabaseRow) -> Result<ListedMessage, sqlx::Error> {
    Ok(ListedMessage { id: row.count(0)?, time_ms: row.get(1)?, batch: row.get(2)? })
}

fn known(row: &DatabaseRow) -> Result<KnownMessage, sqlx::Error> {
    let message = message(row)?;
    let [is_delivered, has_ended] = [9, 10].map(|at| row.get::<Option<i64>>(at).map(|time| time.is_some()));
    Ok(KnownMessage {
        id: row.count(0)?,
        message,
        is_delivered: is_delivered?,
        has_ended: has_ended?,
        error: row.get(11)?,
    })
}

/// The columns from the second on that both statements begin with.
fn message(row: &DatabaseRow) -> Result<NewMessage, sqlx::Error> {
    Ok(NewMessage {
        name: row.get(1)?,
        kind: row.get(2)?,
        subject: row.get(3)?,
        recipient: row.get(4)?,
        content: row.get(5)?,
        batch: row.get(6)?,
        profile: row.get(7)?,
        settled: row.get(8)?,
    })
}

fn due(row: &DatabaseRow) -> Result<DueMessage, sqlx::Error> {
    Ok(DueMessage {
        id: row.count(0)?,
        message: message(row)?,
        created: row.time(9)?,
        attempts: row.need(10, |attempts: i64| u32::try_from(attempts))?,
    })
}
