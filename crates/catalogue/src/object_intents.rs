//! Which jobs may have left something of a version in a store: those that reserved its object and have not recorded it.
//!
//! An intent is written with the job's reservation ([`Catalogue::reserve`]), again when the job stores content
//! ([`Catalogue::store_content`]), and deleted with the record of its version ([`Catalogue::record_version`]), in their
//! transactions.
//!
//! What a job left is removed from the store only after its folder was given up ([`Catalogue::give_up_content`]). The
//! job stores under another name from then on, so that a removal that is still on its way, of a process that was
//! stopped however long, meets nothing that is in use.

use std::time::Duration;

use queuekeeper_store::{SpaceName, StoreName};
use uuid::Uuid;

use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;

/// A job that has stored nothing for so long is not about to record its version.
const STORING: Duration = Duration::from_hours(24);

/// A job that may have begun to write a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectIntent {
    /// The job.
    pub job: Uuid,
    /// The object.
    pub ark: String,
    /// The store that the object lies in.
    pub store: String,
    /// The space of the store.
    pub space: String,
    /// When the job reserved the object or stored content of it last, in milliseconds since 1970.
    pub begun_ms: i64,
}

/// Those that begun long enough ago, in their order.
pub(crate) const OBJECT_INTENTS: &str = "SELECT job, ark, store, space, begun FROM object_intents
    WHERE begun <= {now} - $1 AND (begun, job) > ($2, $3) ORDER BY begun, job LIMIT $4";

impl Catalogue {
    /// The intents that are older than some time, the oldest first, of those after one that was listed (all, without
    /// it); at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn object_intents(
        &self,
        longer_than: Duration,
        after: Option<&ObjectIntent>,
        limit: u32,
    ) -> Result<Vec<ObjectIntent>, Error> {
        let (begun, job) = after.map_or((i64::MIN, Uuid::nil()), |after| (after.begun_ms, after.job));
        self.list(OBJECT_INTENTS, values![millis(longer_than), begun, job, page(limit)], intent).await
    }

    /// Whether another job than this one intends a version of an object.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn is_intended_by_another(&self, job: Uuid, ark: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM object_intents WHERE ark = $1 AND job <> $2 LIMIT 1";
        Ok(!self.list(sql, values![ark, job], |_found: &DatabaseRow| Ok(())).await?.is_empty())
    }

    /// Whether a job intends a version of an object in a space of a store, and has stored content of it within a day.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn is_being_stored(&self, ark: &str, store: &StoreName, space: &SpaceName) -> Result<bool, Error> {
        let sql =
            "SELECT 1 FROM object_intents WHERE ark = $1 AND store = $2 AND space = $3 AND begun > {now} - $4 LIMIT 1";
        let values = values![ark, store, space, millis(STORING)];
        Ok(!self.list(sql, values, |_found: &DatabaseRow| Ok(())).await?.is_empty())
    }

    /// Writes that a job stores content of a version from now on, unless that was written within some time. The answer
    /// is the name of the folder of its content: its own UUID until that was given up, then another one. To be called
    /// under the lock of the object.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn store_content(
        &self,
        job: Uuid,
        ark: &str,
        place: &(String, String),
        within: Duration,
    ) -> Result<Uuid, Error> {
        let mut session = self.database.begin().await?;
        let outcome = async {
            let known = "SELECT 1 FROM object_intents
                WHERE job = $1 AND ark = $2 AND store = $3 AND space = $4 AND begun > {now} - $5";
            let values = values![job, ark, &place.0, &place.1, millis(within)];
            if session.row(known, values).await?.is_none() {
                begin(&mut session, job, ark, place).await?;
            }
            folders(&mut session, job).await.map(|(_given_up, in_use)| in_use)
        };
        let outcome = outcome.await;
        session.end(outcome).await
    }

    /// The folders of a job's content that were given up, and the one that it stores under now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn content_folders(&self, job: Uuid) -> Result<(Vec<Uuid>, Uuid), Error> {
        let mut session = self.database.read().await?;
        folders(&mut session, job).await
    }

    /// Gives a folder of content up, for good, unless its job has stored content since its intent was listed; the
    /// answer is whether it is given up. Without an intent, no job may be storing the object. To be called under the
    /// lock of the object.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn give_up_content(&self, content: Uuid, intent: Option<&ObjectIntent>) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = async {
            if let Some(intent) = intent {
                // The row is locked: a job that stores content again waits, and reads then what was given up.
                let same = "UPDATE object_intents SET begun = begun WHERE job = $1 AND begun = $2";
                if session.run(same, values![intent.job, intent.begun_ms]).await? == 0 {
                    return Ok(false);
                }
            }
            let sql = "INSERT INTO given_up_content (content, given_up) VALUES ($1, {now}) ON CONFLICT DO NOTHING";
            session.run(sql, values![content]).await.map(|_rows| true)
        };
        let outcome = outcome.await;
        session.end(outcome).await
    }

    /// Deletes an intent, unless the job has reserved or stored its object again since it was listed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end_object_intent(&self, intent: &ObjectIntent) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let sql = "DELETE FROM object_intents WHERE job = $1 AND begun = $2";
        let outcome = session.run(sql, values![intent.job, intent.begun_ms]).await;
        session.end(outcome).await.map(|_rows| ())
    }
}

fn intent(row: &DatabaseRow) -> Result<ObjectIntent, sqlx::Error> {
    Ok(ObjectIntent {
        job: row.get(0)?,
        ark: row.get(1)?,
        store: row.get(2)?,
        space: row.get(3)?,
        begun_ms: row.get(4)?,
    })
}

/// Writes that a job may write a version of an object from now on.
pub(crate) async fn begin(
    session: &mut Session,
    job: Uuid,
    ark: &str,
    (store, space): &(String, String),
) -> Result<(), Error> {
    let sql = "INSERT INTO object_intents (job, ark, store, space, begun) VALUES ($1, $2, $3, $4, {now})
        ON CONFLICT (job) DO UPDATE SET ark = excluded.ark, store = excluded.store, space = excluded.space,
            begun = excluded.begun";
    session.run(sql, values![job, ark, store, space]).await.map(|_rows| ())
}

/// Deletes what a job intended: its version is recorded.
pub(crate) async fn end(session: &mut Session, job: Uuid) -> Result<(), Error> {
    session.run("DELETE FROM object_intents WHERE job = $1", values![job]).await.map(|_rows| ())
}

/// The name of a folder of a job's content, by how many were given up before: the job's UUID, counted up in its random
/// end.
fn folder(job: Uuid, before: usize) -> Uuid {
    Uuid::from_u128(job.as_u128().wrapping_add(before as u128))
}

async fn folders(session: &mut Session, job: Uuid) -> Result<(Vec<Uuid>, Uuid), Error> {
    let mut given_up = Vec::new();
    let mut content = folder(job, 0);
    while session.row("SELECT 1 FROM given_up_content WHERE content = $1", values![content]).await?.is_some() {
        given_up.push(content);
        content = folder(job, given_up.len());
    }
    Ok((given_up, content))
}
