//! Changes that are under way.

use std::time::Duration;

use queuekeeper_store::audit::{Begun, Change, Intent, Rival, Subject};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};
use uuid::Uuid;

use crate::database::value::{DatabaseRow, Value, millis, values};
use crate::database::{Database, Session};
use crate::error::{Error, ErrorKind};

/// The columns that [`intent`] reads.
macro_rules! columns {
    () => {
        "id, holder, user_name, change, store, space, key, etag, size, digests, source_space, source_key, upload, \
         properties"
    };
}

/// How often an item whose intent ends between two statements is tried again.
const ATTEMPTS: u32 = 8;

/// A name in the audit log that this program does not know.
#[derive(Debug, thiserror::Error)]
#[error("unknown change {0:?}")]
pub(crate) struct UnknownChange(String);

pub(crate) fn change(name: String) -> Result<Change, UnknownChange> {
    let found = Change::ALL.into_iter().find(|change| change.as_str() == name);
    found.ok_or(UnknownChange(name))
}

/// An item's key; none where the space itself is meant.
pub(super) fn subject_key(key: Option<&Key>) -> Value {
    Value::Bytes(Some(key.map(|key| key.as_bytes().to_vec()).unwrap_or_default()))
}

pub(super) fn read_subject_key(row: &DatabaseRow, column: usize) -> Result<Option<Key>, sqlx::Error> {
    let bytes: Vec<u8> = row.get(column)?;
    if bytes.is_empty() { Ok(None) } else { row.key(column) }
}

pub(super) fn read_source(row: &DatabaseRow, column: usize) -> Result<Option<(SpaceName, Key)>, sqlx::Error> {
    let space = row.parse(column, |space: String| space.parse::<SpaceName>())?;
    Ok(space.zip(row.key(column + 1)?))
}

/// Reads the columns of [`columns`].
pub(super) fn intent(row: &DatabaseRow) -> Result<Intent, sqlx::Error> {
    Ok(Intent {
        id: row.get(0)?,
        holder: row.get(1)?,
        user: row.get(2)?,
        change: row.need(3, change)?,
        subject: Subject {
            store: row.need(4, |name: String| name.parse::<StoreName>())?,
            space: row.need(5, |name: String| name.parse::<SpaceName>())?,
            key: read_subject_key(row, 6)?,
        },
        seen: row.etag(7)?,
        size: row.parse(8, |size: i64| u64::try_from(size))?,
        digests: row.digests(9)?,
        source: read_source(row, 10)?,
        upload: row.get(12)?,
        properties: row.get(13)?,
    })
}

pub(super) async fn begin(session: &mut Session, new: &Intent, lease: Duration) -> Result<Begun, Error> {
    for _attempt in 0..ATTEMPTS {
        if insert(session, new, lease).await? {
            return Ok(Begun::Ours);
        }
        // A call whose answer was lost is made again: then the row is our own.
        let own = "UPDATE intents SET lease_end = {now} + $3 WHERE id = $1 AND holder = $2";
        if session.run(own, values![new.id, new.holder, millis(lease)]).await? > 0 {
            return Ok(Begun::Ours);
        }
        if let Some(left) = take_over(session, new, lease).await? {
            return Ok(Begun::Left(Box::new(left)));
        }
        let sql = "SELECT lease_end - {now}, id, user_name, change FROM intents
            WHERE store = $1 AND space = $2 AND key = $3";
        let Subject { store, space, key } = &new.subject;
        let row = session.row(sql, vec![store.into(), space.into(), subject_key(key.as_ref())]).await?;
        if let Some(row) = row {
            return session.decode(rival(&row)).map(Begun::Busy);
        }
    }
    Err(session.error(ErrorKind::Conflict("the item keeps changing".to_owned())))
}

fn rival(row: &DatabaseRow) -> Result<Rival, sqlx::Error> {
    let left: i64 = row.get(0)?;
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    Ok(Rival::new(row.get(1)?, row.get(2)?, row.need(3, change)?, left))
}

async fn insert(session: &mut Session, new: &Intent, lease: Duration) -> Result<bool, Error> {
    let sql = concat!(
        "INSERT INTO intents (",
        columns!(),
        ", lease_end) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, {now} + $15) \
         ON CONFLICT DO NOTHING"
    );
    let Subject { store, space, key } = &new.subject;
    let mut values = values![new.id, new.holder, &new.user, new.change.as_str(), store, space];
    values.push(subject_key(key.as_ref()));
    values.extend(values![&new.seen, new.size, &new.digests]);
    values.extend(values![new.source.as_ref().map(|source| &source.0), new.source.as_ref().map(|source| &source.1)]);
    values.extend(values![&new.upload, &new.properties, millis(lease)]);
    Ok(session.run(sql, values).await? > 0)
}

async fn take_over(session: &mut Session, new: &Intent, lease: Duration) -> Result<Option<Intent>, Error> {
    let sql = concat!(
        "UPDATE intents SET holder = $4, lease_end = {now} + $5 \
         WHERE store = $1 AND space = $2 AND key = $3 AND lease_end <= {now} RETURNING ",
        columns!()
    );
    let Subject { store, space, key } = &new.subject;
    let mut values = vec![store.into(), space.into(), subject_key(key.as_ref())];
    values.extend(values![Uuid::now_v7(), millis(lease)]);
    let row = session.row(sql, values).await?;
    row.map(|row| session.decode(intent(&row))).transpose()
}

/// Whether the intent was still open and ours. A lease that has ended is extended, too, while no other process has
/// taken it over.
pub(super) async fn extend(session: &mut Session, intent: &Intent, lease: Duration) -> Result<bool, Error> {
    let sql = "UPDATE intents SET lease_end = {now} + $3, upload = $4, size = $5, digests = $6
        WHERE id = $1 AND holder = $2";
    let Intent { id, holder, upload, size, digests, .. } = intent;
    Ok(session.run(sql, values![*id, *holder, millis(lease), upload, *size, digests]).await? > 0)
}

pub(super) async fn is_open(database: &Database, store: &StoreName, item: &Item) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM intents WHERE store = $1 AND space = $2 AND key = $3";
    let mut session = database.read().await?;
    let values = vec![store.into(), (&item.space).into(), subject_key(Some(&item.key))];
    Ok(session.row(sql, values).await?.is_some())
}

/// The one whose lease ended first.
pub(crate) const TAKE_LEFT: &str = concat!(
    "UPDATE intents SET holder = $2, lease_end = {now} + $3 WHERE id = (
        SELECT id FROM intents WHERE store = $1 AND lease_end <= {now} ORDER BY lease_end LIMIT 1 {lock_next})
     RETURNING ",
    columns!()
);

pub(super) async fn take_left(
    database: &Database,
    store: &StoreName,
    lease: Duration,
) -> Result<Option<Intent>, Error> {
    let mut session = database.begin().await?;
    let row = session.row(TAKE_LEFT, values![store, Uuid::now_v7(), millis(lease)]).await;
    let outcome = row.and_then(|row| row.map(|row| session.decode(intent(&row))).transpose());
    session.end(outcome).await
}

/// Deletes an open intent, and returns it as it was written.
pub(super) async fn close(session: &mut Session, id: Uuid, holder: Uuid) -> Result<Option<Intent>, Error> {
    let sql = concat!("DELETE FROM intents WHERE id = $1 AND holder = $2 RETURNING ", columns!());
    let row = session.row(sql, values![id, holder]).await?;
    row.map(|row| session.decode(intent(&row))).transpose()
}
