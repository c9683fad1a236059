//! Messages of stores about their changes: each marks items, which the mill looks at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::store_events::{StoreEvent, StoreEventError, read};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

/// Of what a token may send messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// The store.
    pub store: StoreName,
    /// The space, as the store names it.
    pub space: SpaceName,
    /// The bucket that the space lies in.
    pub bucket: String,
    /// What the keys of its items begin with there.
    pub prefix: String,
    /// How many messages it may send in a minute.
    pub per_minute: u32,
}

/// What became of the changes that a message names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// So many items are looked at.
    pub marked: usize,
    /// So many were known already: changes that queuekeeper made itself.
    pub known: usize,
    /// So many are not of the token's space.
    pub other: usize,
}

/// Why a message marks nothing.
#[derive(Debug, thiserror::Error)]
pub enum NotMarked {
    /// It cannot be read.
    #[error(transparent)]
    Invalid(#[from] StoreEventError),
    /// The token has sent too many.
    #[error("too many messages; try again in {0} s")]
    TooMany(u64),
    /// The mill has no account that has the space.
    #[error("the space {1} in the store {0} belongs to no account of the mill")]
    NoAccount(StoreName, SpaceName),
    /// The catalogue cannot be written.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// What takes messages. Clones share it.
#[derive(Clone, Debug)]
pub struct StoreEvents {
    catalogue: Catalogue,
    accounts: BTreeMap<String, Account>,
    /// How many messages each token has sent in its minute, and when that began.
    sent: Arc<Mutex<BTreeMap<String, (Instant, u32)>>>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl StoreEvents {
    /// What marks items in a catalogue.
    #[must_use]
    pub fn new(catalogue: Catalogue, accounts: BTreeMap<String, Account>) -> Self {
        Self { catalogue, accounts, sent: Arc::default() }
    }

    /// Takes a message that was sent by a token. Items are marked before this returns.
    ///
    /// # Errors
    /// When it marks nothing.
    pub async fn receive(&self, token: &str, source: &EventSource, body: &[u8]) -> Result<Marked, NotMarked> {
        self.count(token, source.per_minute)?;
        let EventSource { store, space, .. } = source;
        let owner = self.accounts.values().find_map(|account| {
            let is_theirs = account.stores.values().any(|known| known == store);
            account.of_store(space).filter(|_| is_theirs).map(|space| (account, space))
        });
        let (account, of_account) = owner.ok_or_else(|| NotMarked::NoAccount(store.clone(), space.clone()))?;
        let (mut marked, mut tasks) = (Marked::default(), Vec::new());
        for event in read(body)? {
            let Some(key) = event.item(&source.bucket, &source.prefix) else {
                marked.other += 1;
                continue;
            };
            if self.is_known(source, &key, &event).await? {
                marked.known += 1;
                continue;
            }
            marked.marked += 1;
            let subject = TaskSubject {
                kind: TaskKind::Audit,
                account: account.name.clone(),
                space: of_account.clone(),
                key: Some(key),
                destination: Some(store.clone()),
            };
            tasks.push(NewTask { queue: TaskQueue::Audit, subject, source: None });
        }
        if !tasks.is_empty() {
            self.catalogue.put_tasks(&tasks).await?;
        }
        Ok(marked)
    }

    /// Whether the index has the state of the item that the message is of: it was made through queuekeeper.
    async fn is_known(&self, source: &EventSource, key: &Key, event: &StoreEvent) -> Result<bool, NotMarked> {
        let item = Item::new(source.space.clone(), key.clone());
        let copy = self.catalogue.copy(&source.store, &item).await?;
        Ok(match copy {
            Some(copy) if event.is_removed => copy.is_deleted,
            Some(copy) => {
                let known = copy.etag.as_ref().map(|etag| etag.0.trim_matches('"'));
                !copy.is_deleted && known.is_some() && known == event.etag.as_deref()
            }
            None => false,
        })
    }

    fn count(&self, token: &str, per_minute: u32) -> Result<(), NotMarked> {
        let (now, mut sent) = (Instant::now(), self.sent.lock());
        let (began, number) = sent.entry(token.to_owned()).or_insert((now, 0));
        if began.elapsed() >= MINUTE {
            (*began, *number) = (now, 0);
        }
        if *number >= per_minute {
            return Err(NotMarked::TooMany(MINUTE.saturating_sub(began.elapsed()).as_secs() + 1));
        }
        *number += 1;
        Ok(())
    }
}
