//! Which jobs may have left something of a version in a store: those that reserved its object and have not recorded it.
//!
//! An intent is written with the job's reservation ([`Catalogue::reserve`]), and deleted with the record of its version
//! ([`Catalogue::record_version`]), in their transactions.

use std::time::Duration;

use uuid::Uuid;

use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{Row, millis, values};
use crate::error::Error;
use crate::identifiers::Request;

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
    /// When the job reserved the object last, in milliseconds since 1970.
    pub begun_ms: i64,
}

/// Those that begun long enough ago, in their order.
pub(crate) const OBJECT_INTENTS: &str = "SELECT job, ark, store, space, begun FROM object_intents
    WHERE begun <= {now} - $1 AND (begun, job) > ($2, $3) ORDER BY begun, job LIMIT $4";

impl Catalogue {
    /// The intents that are older than some time, the oldest first, of those after one that was listed (all, without it);
    /// at most `limit`, and at most 1,000.
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

    /// Deletes an intent, unless the job has reserved its object again since it was listed.
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

fn intent(row: &Row) -> Result<ObjectIntent, sqlx::Error> {
    Ok(ObjectIntent {
        job: row.get(0)?,
        ark: row.get(1)?,
        store: row.get(2)?,
        space: row.get(3)?,
        begun_ms: row.get(4)?,
    })
}

/// Writes that a job may write a version of an object from now on.
pub(crate) async fn begin(session: &mut Session, request: &Request, ark: &str) -> Result<(), Error> {
    let sql = "INSERT INTO object_intents (job, ark, store, space, begun) VALUES ($1, $2, $3, $4, {now})
        ON CONFLICT (job) DO UPDATE SET ark = excluded.ark, store = excluded.store, space = excluded.space,
            begun = excluded.begun";
    let (store, space) = &request.place;
    session.run(sql, values![request.job, ark, store, space]).await.map(|_rows| ())
}

/// Deletes what a job intended: its version is recorded.
pub(crate) async fn end(session: &mut Session, job: Uuid) -> Result<(), Error> {
    session.run("DELETE FROM object_intents WHERE job = $1", values![job]).await.map(|_rows| ())
}
