//! Settling an intent: the event, the content index and the counters, in one transaction.

use jiff::Timestamp;
use queuekeeper_store::Digests;
use queuekeeper_store::audit::{Change, Intent, Settlement};
use queuekeeper_store::store::EntityTag;
use uuid::Uuid;

use super::event::{Event, EventKind, event_columns, hash};
use super::intents::{close, subject_key};
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::database::value::{Value, values};
use crate::error::{Error, ErrorKind};
use crate::index::{self, Entry, NewEntry};

/// What an item is after a change.
struct After<'a> {
    etag: &'a Option<EntityTag>,
    size: Option<u64>,
    digests: &'a Digests,
}

/// Whether it is settled in this way now; it is not where another process has taken the intent over.
pub(super) async fn settle(session: &mut Session, intent: &Intent, settlement: &Settlement) -> Result<bool, Error> {
    let Some(open) = close(session, intent.id, intent.holder).await? else {
        return was_settled(session, intent, settlement).await;
    };
    match settlement {
        Settlement::NotDone => drop_intent(session, open.id).await?,
        Settlement::Done { change, etag, .. } if is_recorded(session, &open, *change, etag.as_ref()).await? => {
            drop_intent(session, open.id).await?;
        }
        Settlement::Done { change, etag, size, digests } => {
            made(session, &open, *change, &After { etag, size: *size, digests }).await?;
        }
        Settlement::Observed { etag, size, digests, why } => {
            let after = After { etag, size: *size, digests };
            counters::add(session, open.subject.store.as_str(), &[(Counter::AuditEvents, 1)]).await?;
            append(session, &open, EventKind::Observed, &after, Some(why)).await?;
        }
    }
    Ok(true)
}

async fn drop_intent(session: &mut Session, id: Uuid) -> Result<(), Error> {
    let sql = "INSERT INTO dropped_intents (id, dropped) VALUES ($1, {now})";
    session.run(sql, values![id]).await.map(|_rows| ())
}

/// Whether the record has what a deletion or new properties came to: another process began the same and recorded it
/// after this one had looked at the item, and before it wrote its intent. What is written has conditions that exclude
/// that.
async fn is_recorded(
    session: &mut Session,
    open: &Intent,
    change: Change,
    etag: Option<&EntityTag>,
) -> Result<bool, Error> {
    let (Some(key), Change::Delete | Change::Properties) = (&open.subject.key, change) else { return Ok(false) };
    let store = open.subject.store.as_str();
    let item = index::item(session, &open.subject.space, key).await?;
    let Some(entry) = index::entry(session, item, store).await? else { return Ok(false) };
    if change == Change::Properties {
        let is_same_content = etag.is_none() || entry.etag.as_ref() == etag;
        let is_same = open.properties.is_some() && entry.properties == open.properties;
        return Ok(!entry.is_deleted && is_same_content && is_same);
    }
    if !entry.is_deleted || open.seen.is_none() {
        return Ok(false);
    }
    // It is the content that was deleted, and not what another program has put there since.
    let sql = "SELECT etag FROM audit_log
        WHERE store = $1 AND space = $2 AND key = $3 AND etag IS NOT NULL ORDER BY seq DESC LIMIT 1";
    let row = session.row(sql, values![store, &open.subject.space, key]).await?;
    let last = row.map(|row| session.decode(row.etag(0))).transpose()?.flatten();
    Ok(last == open.seen)
}

/// Appends the event, and brings the content index to it.
async fn made(session: &mut Session, open: &Intent, change: Change, after: &After<'_>) -> Result<(), Error> {
    let store = open.subject.store.as_str();
    let mut deltas = vec![(Counter::AuditEvents, 1)];
    let mut entry = None;
    if let Some(key) = &open.subject.key {
        let item = index::item(session, &open.subject.space, key).await?;
        let before = index::entry(session, item, store).await?;
        let now = entry_after(session, open, change, after, before.as_ref())?;
        if let Some(now) = &now {
            let [items, bytes] = index::difference(before.as_ref(), now);
            deltas.extend([items, bytes]);
            let of_space = format!("{store}/{}", open.subject.space);
            counters::add(session, &of_space, &[(Counter::SpaceItems, items.1), (Counter::SpaceBytes, bytes.1)])
                .await?;
        }
        entry = now.map(|entry| (item, entry));
    }
    counters::add(session, store, &deltas).await?;
    // From here to the commit, others that append wait.
    let (seq, time) = append(session, open, EventKind::Made(change), after, None).await?;
    if let Some((item, entry)) = entry {
        let keeps_proof = change == Change::Properties;
        let new = NewEntry { item, space: &open.subject.space, seq, entry };
        index::put(session, store, time, &new, keeps_proof).await?;
    }
    Ok(())
}

/// What the content index says after a change; `None` where it does not know the item, and this change does not tell
/// what it is.
fn entry_after(
    session: &Session,
    open: &Intent,
    change: Change,
    after: &After<'_>,
    before: Option<&Entry>,
) -> Result<Option<Entry>, Error> {
    let (etag, digests) = (after.etag.clone(), after.digests.clone());
    match change {
        Change::Add | Change::Update | Change::Copy => {
            let no_size = || session.error(ErrorKind::Refused("content that was written has no size".to_owned()));
            let size = after.size.ok_or_else(no_size)?;
            // What a user says of it was written with it, and is known only where it was set by itself.
            Ok(Some(Entry { size, digests, etag, properties: None, is_deleted: false }))
        }
        Change::Delete => Ok(before.map(|before| Entry { etag: None, is_deleted: true, ..before.clone() })),
        Change::Properties => Ok(before.map(|before| Entry {
            etag: etag.or_else(|| before.etag.clone()),
            properties: open.properties.clone(),
            ..before.clone()
        })),
        Change::CreateSpace | Change::DeleteSpace => Ok(None),
    }
}

/// The end of the chain, locked: others that append wait.
pub(super) struct ChainEnd {
    /// The number of the last event.
    pub(super) seq: u64,
    /// The time of the next one.
    pub(super) time: Timestamp,
    /// The hash of the last one.
    pub(super) hash: [u8; 32],
}

pub(super) async fn lock_head(session: &mut Session) -> Result<ChainEnd, Error> {
    // The time is read after the lock was taken.
    let sql = "WITH head AS (SELECT seq, time, hash FROM audit_chain {lock}) SELECT seq, time, hash, {now} FROM head";
    let head = session.row(sql, values![]).await?;
    let missing = || session.error(ErrorKind::Corrupt("the head of the audit log is missing".to_owned()));
    let head = head.ok_or_else(missing)?;
    let previous_time = session.decode(head.time(1))?;
    Ok(ChainEnd {
        seq: session.decode(head.count(0))?,
        time: session.decode(head.time(3))?.max(previous_time),
        hash: session.decode(head.need(2, hash))?,
    })
}

/// Writes events, and makes the last of them the end of the chain.
pub(super) async fn extend_chain(session: &mut Session, events: &[Event]) -> Result<(), Error> {
    let Some(last) = events.last() else { return Ok(()) };
    let columns = event_columns!().split(',').count();
    let into = concat!("INSERT INTO audit_log (", event_columns!(), ")");
    session.insert_many(into, columns, events.iter().flat_map(event_values).collect()).await?;
    let sql = "UPDATE audit_chain SET seq = $1, time = $2, hash = $3";
    session.run(sql, values![last.seq, last.time.as_millisecond(), &last.hash()[..]]).await.map(|_rows| ())
}

/// The answer is the number of the event, and its time.
async fn append(
    session: &mut Session,
    open: &Intent,
    kind: EventKind,
    after: &After<'_>,
    why: Option<&String>,
) -> Result<(u64, Timestamp), Error> {
    let head = lock_head(session).await?;
    let event = Event {
        seq: head.seq + 1,
        time: head.time,
        intent: open.id,
        user: open.user.clone(),
        kind,
        subject: open.subject.clone(),
        size: after.size,
        digests: after.digests.clone(),
        etag: after.etag.clone(),
        source: open.source.clone(),
        properties: open.properties.clone(),
        why: why.cloned(),
        previous_hash: head.hash,
    };
    extend_chain(session, std::slice::from_ref(&event)).await?;
    Ok((event.seq, event.time))
}

fn event_values(event: &Event) -> Vec<Value> {
    let Event { subject, source, .. } = event;
    let mut values = values![event.seq, event.time.as_millisecond(), event.intent, &event.user, event.kind.as_str()];
    values.extend(values![&subject.store, &subject.space]);
    values.push(subject_key(subject.key.as_ref()));
    values.extend(values![event.size, &event.digests, &event.etag]);
    values.extend(values![source.as_ref().map(|source| &source.0), source.as_ref().map(|source| &source.1)]);
    values.extend(values![&event.properties, &event.why, &event.previous_hash[..]]);
    values
}

/// Whether an intent that is not open was settled in the same way.
async fn was_settled(session: &mut Session, intent: &Intent, settlement: &Settlement) -> Result<bool, Error> {
    let sql = concat!("SELECT ", event_columns!(), " FROM audit_log WHERE intent = $1");
    let Some(row) = session.row(sql, values![intent.id]).await? else {
        let dropped = session.row("SELECT 1 FROM dropped_intents WHERE id = $1", values![intent.id]).await?;
        return match settlement {
            _ if dropped.is_none() => Ok(false),
            Settlement::NotDone => Ok(true),
            Settlement::Done { change, etag, .. } => is_recorded(session, intent, *change, etag.as_ref()).await,
            Settlement::Observed { .. } => Ok(false),
        };
    };
    let event = session.decode(Event::read(&row))?;
    Ok(match settlement {
        Settlement::NotDone => false,
        // Two that looked may have computed other digests of the same content.
        Settlement::Done { change, etag, size, digests } => {
            event.kind == EventKind::Made(*change)
                && (&event.etag, event.size) == (etag, *size)
                && event.digests.agree(digests) != Some(false)
        }
        Settlement::Observed { etag, size, digests, .. } => {
            event.kind == EventKind::Observed
                && (&event.etag, event.size) == (etag, *size)
                && event.digests.agree(digests) != Some(false)
        }
    })
}
