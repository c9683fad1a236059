//! Changes that an intent of another kind covers, recorded together.
//!
//! Each is recorded only where the content index has what was there before it. So of two that change an item one after
//! the other and record it the other way round, the earlier one is not recorded over the later one; and what was
//! recorded already, before an answer was lost, is not recorded again.

use std::collections::{BTreeMap, BTreeSet};

use queuekeeper_store::audit::Subject;
use queuekeeper_store::noted::NotedChange;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Digests, StoreName};
use uuid::Uuid;

use super::event::{Event, EventKind};
use super::settle::{ChainEnd, extend_chain, lock_head};
use crate::catalogue::Catalogue;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::error::Error;
use crate::index::{self, Entry, NewEntry};

impl Catalogue {
    /// Records changes of a store that were made in this order by a user, all in one transaction: events, content
    /// index, counters. The answer has the items of which the index says something else than what was there before:
    /// nothing is recorded of them, and they are to be looked at.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was recorded.
    pub async fn record_changes(
        &self,
        store: &StoreName,
        user: &str,
        changes: &[NotedChange],
    ) -> Result<BTreeSet<Item>, Error> {
        if changes.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut session = self.database.begin().await?;
        let outcome = record(&mut session, store, user, changes).await;
        let stale = session.end(outcome).await?;
        self.notify().await;
        Ok(stale)
    }
}

/// What the index says of a copy, before a change and after it.
#[derive(Default)]
struct State {
    id: i64,
    before: Option<Entry>,
    now: Option<Entry>,
    /// The number of the event that changed it.
    seq: Option<u64>,
}

/// How a change fits to what the index says.
enum Fit {
    /// It is the next one.
    Next(Option<Entry>),
    /// It is recorded already.
    Recorded,
    /// It was made to something else.
    Stale,
}

fn fit(known: Option<&Entry>, change: &NotedChange) -> Fit {
    let living = known.filter(|entry| !entry.is_deleted);
    match (&change.after, living) {
        (Some(after), Some(living)) if living.etag.as_ref() == Some(&after.etag) => Fit::Recorded,
        (_, living) if living.and_then(|living| living.etag.as_ref()) != change.seen.as_ref() => Fit::Stale,
        (Some(after), _) => Fit::Next(Some(Entry {
            size: after.size,
            digests: after.digests.clone(),
            etag: Some(after.etag.clone()),
            properties: None,
            is_deleted: false,
        })),
        (None, Some(living)) => Fit::Next(Some(Entry { etag: None, is_deleted: true, ..living.clone() })),
        (None, None) => Fit::Recorded,
    }
}

async fn record(
    session: &mut Session,
    store: &StoreName,
    user: &str,
    changes: &[NotedChange],
) -> Result<BTreeSet<Item>, Error> {
    let item = |change: &NotedChange| Some(Item::new(change.space.clone(), change.key.clone()?));
    // In one order, so that of two that record the same items one waits for the other.
    let items: Vec<Item> = changes.iter().filter_map(item).collect::<BTreeSet<_>>().into_iter().collect();
    // From here to the commit, others that append wait; what is read is what they have left.
    let mut head = lock_head(session).await?;
    let mut states = BTreeMap::new();
    for (item, (id, entry)) in items.iter().zip(index::entries(session, store.as_str(), &items).await?) {
        states.insert(item.clone(), State { id, now: entry.clone(), before: entry, seq: None });
    }
    let (mut events, mut stale) = (Vec::new(), BTreeSet::new());
    for change in changes {
        let item = item(change);
        let state = item.as_ref().and_then(|item| states.get_mut(item));
        if let Some((item, state)) = item.zip(state) {
            match fit(state.now.as_ref(), change) {
                Fit::Next(entry) => state.now = entry,
                Fit::Recorded => continue,
                Fit::Stale => {
                    stale.insert(item);
                    continue;
                }
            }
            state.seq = Some(head.seq + 1);
        }
        let event = event(&head, store, user, change);
        (head.seq, head.hash) = (event.seq, event.hash());
        events.push(event);
    }
    extend_chain(session, &events).await?;
    let mut entries = Vec::new();
    let mut gained = BTreeMap::<String, (i64, i64)>::new();
    for (Item { space, .. }, State { id, before, now, seq }) in &states {
        let Some((now, seq)) = now.clone().zip(*seq) else { continue };
        let [(_, items), (_, bytes)] = index::difference(before.as_ref(), &now);
        let of_space = gained.entry(format!("{store}/{space}")).or_default();
        (of_space.0, of_space.1) = (of_space.0 + items, of_space.1 + bytes);
        entries.push(NewEntry { item: *id, space, seq, entry: now });
    }
    index::put_all(session, store.as_str(), head.time, &entries).await?;
    let (items, bytes) = gained.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    for (of_space, (items, bytes)) in &gained {
        counters::add(session, of_space, &[(Counter::SpaceItems, *items), (Counter::SpaceBytes, *bytes)]).await?;
    }
    let of_store = [
        (Counter::AuditEvents, i64::try_from(events.len()).unwrap_or(i64::MAX)),
        (Counter::ContentItems, items),
        (Counter::ContentBytes, bytes),
    ];
    counters::add(session, store.as_str(), &of_store).await?;
    Ok(stale)
}

fn event(head: &ChainEnd, store: &StoreName, user: &str, made: &NotedChange) -> Event {
    let NotedChange { space, key, change, after, .. } = made;
    Event {
        seq: head.seq + 1,
        time: head.time,
        intent: Uuid::now_v7(),
        user: user.to_owned(),
        kind: EventKind::Made(*change),
        subject: Subject { store: store.clone(), space: space.clone(), key: key.clone() },
        size: after.as_ref().map(|after| after.size),
        digests: after.as_ref().map_or_else(Digests::default, |after| after.digests.clone()),
        etag: after.as_ref().map(|after| after.etag.clone()),
        source: None,
        properties: None,
        why: None,
        previous_hash: head.hash,
    }
}
