//! Mails and callbacks that must be delivered at least once.
//!
//! A message is written before the state changes that it reports, under a name of its own: written again, it is the same
//! row with the same content.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::catalogue::{Catalogue, page};
use crate::database::value::{Row, millis, values};
use crate::error::Error;

/// A message to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// What the receiver recognizes repetitions by: a `Message-ID`, or an `Idempotency-Key`. Unique.
    pub name: String,
    /// How it is delivered, such as `mail` or `callback`.
    pub kind: String,
    /// The batch or the job that it is of.
    pub subject: Uuid,
    /// To whom: addresses or a URL, without secrets.
    pub recipient: String,
    /// The rendered content.
    pub content: String,
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

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMessage {
    /// Its number.
    pub id: u64,
    /// What is delivered.
    pub message: NewMessage,
    /// Whether it was.
    pub is_delivered: bool,
}

const BY_NAME: &str = "SELECT id, message, kind, subject, recipient, content, delivered FROM outbox WHERE message = $1";

pub(crate) const TAKE_DUE: &str = "UPDATE outbox SET due = {now} + $1, attempts = attempts + 1 WHERE id IN (
        SELECT id FROM outbox WHERE delivered IS NULL AND due <= {now} ORDER BY due, id LIMIT $2 {lock_next})
    RETURNING id, message, kind, subject, recipient, content, created, attempts";

/// How much of the reason for a failed delivery is kept.
const MOST_ERROR_CHARS: usize = 1000;

impl Catalogue {
    /// Writes a message, due at once; the answer is whether it is new. One of the same name stays as it was.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn queue_message(&self, message: &NewMessage) -> Result<bool, Error> {
        let sql = "INSERT INTO outbox (message, kind, subject, recipient, content, created, due, attempts)
            VALUES ($1, $2, $3, $4, $5, {now}, {now}, 0) ON CONFLICT (message) DO NOTHING";
        let NewMessage { name, kind, subject, recipient, content } = message;
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![name, kind, *subject, recipient, content]).await;
        Ok(session.end(outcome).await? > 0)
    }

    /// A message by its name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn message(&self, name: &str) -> Result<Option<KnownMessage>, Error> {
        Ok(self.list(BY_NAME, values![name], known).await?.pop())
    }

    /// Takes messages that are due, the one that is due for longest first, at most `limit`, and at most 1,000. No other process
    /// gets them until the lease has ended; then they are due again, unless they were delivered.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn take_messages(&self, limit: u32, lease: Duration) -> Result<Vec<DueMessage>, Error> {
        let mut session = self.database.begin().await?;
        let rows = session.rows(TAKE_DUE, values![millis(lease), page(limit)]).await;
        let read = |rows: Vec<Row>| rows.iter().map(|row| session.decode(due(row))).collect::<Result<Vec<_>, _>>();
        let outcome = rows.and_then(read);
        let mut taken = session.end(outcome).await?;
        taken.sort_by_key(|message| message.id);
        Ok(taken)
    }

    /// Writes down that a message was delivered; it is never due again.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn message_delivered(&self, id: u64) -> Result<(), Error> {
        let sql = "UPDATE outbox SET delivered = COALESCE(delivered, {now}), error = NULL WHERE id = $1";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![id]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// Writes down why a message could not be delivered, and makes it due again after a time.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn message_failed(&self, id: u64, why: &str, again_after: Duration) -> Result<(), Error> {
        let why: String = why.chars().take(MOST_ERROR_CHARS).collect();
        let sql = "UPDATE outbox SET error = $2, due = {now} + $3 WHERE id = $1 AND delivered IS NULL";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![id, &why, millis(again_after)]).await;
        session.end(outcome).await.map(|_rows| ())
    }
}

fn known(row: &Row) -> Result<KnownMessage, sqlx::Error> {
    let message = message(row)?;
    Ok(KnownMessage { id: row.count(0)?, message, is_delivered: row.get::<Option<i64>>(6)?.is_some() })
}

/// The columns from the second on that both statements begin with.
fn message(row: &Row) -> Result<NewMessage, sqlx::Error> {
    Ok(NewMessage {
        name: row.get(1)?,
        kind: row.get(2)?,
        subject: row.get(3)?,
        recipient: row.get(4)?,
        content: row.get(5)?,
    })
}

fn due(row: &Row) -> Result<DueMessage, sqlx::Error> {
    Ok(DueMessage {
        id: row.count(0)?,
        message: message(row)?,
        created: row.time(6)?,
        attempts: row.need(7, |attempts: i64| u32::try_from(attempts))?,
    })
}
