//! A store that notes the changes that are made through it, to be recorded together: [`Noted`].
//!
//! For what an intent of another kind covers, such as a job that is to store a version of an object: where the process
//! dies before its notes are recorded, the process that resolves that intent compares the store with the record. A
//! single change has its own intent in [`Audited`](crate::Audited).

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::archive::RestoreRequest;
use crate::audit::Change;
use crate::digest::Algorithm;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::name::{SpaceName, StoreName};
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedChange {
    /// The space of the item, or the space itself.
    pub space: SpaceName,
    /// The key; `None` for the space itself.
    pub key: Option<Key>,
    /// What was done.
    pub change: Change,
    /// The entity tag that the item had before it; `None` where there was none.
    pub seen: Option<EntityTag>,
    /// The content after it; `None` where there is none.
    pub after: Option<Written>,
}

/// What was noted.
#[derive(Debug, Default)]
pub struct Notes {
    /// The changes that were made, in their order.
    pub made: Vec<NotedChange>,
    /// Items of which it is not known whether they were changed, or from what: to be looked at.
    pub unsure: BTreeSet<Item>,
}

impl Notes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.made.len() + self.unsure.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Notes each change of content that is made through it. Reads pass through.
pub struct Noted {
    store: Arc<dyn Store>,
    notes: Mutex<Notes>,
}

impl Noted {
    /// Notes the changes of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, notes: Mutex::default() }
    }

    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How many notes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.notes.lock().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the notes out: they are not kept.
    #[must_use]
    pub fn take(&self) -> Notes {
        std::mem::take(&mut *self.notes.lock())
    }

    /// Takes notes back that could not be recorded, before those that have come since.
    pub fn give_back(&self, mut notes: Notes) {
        let mut now = self.notes.lock();
        notes.made.append(&mut now.made);
        notes.unsure.append(&mut now.unsure);
        *now = notes;
    }

    /// Carries a change out. As long as it has no answer it is unsure, also where it is dropped.
    async fn change<T>(
        &self,
        item: &Item,
        run: impl Future<Output = Result<T, Error>> + Send,
        note: impl FnOnce(&T) -> Option<NotedChange> + Send,
    ) -> Result<T, Error> {
        let is_new = self.notes.lock().unsure.insert(item.clone());
        let answer = run.await;
        let mut notes = self.notes.lock();
        let note = match &answer {
            Ok(done) => note(done),
            // Another writer was there before, whose process may have died since.
            Err(Error { kind: ErrorKind::Unknown(_) | ErrorKind::Precondition, .. }) => return answer,
            Err(_) => {
                if is_new {
                    notes.unsure.remove(item);
                }
                return answer;
            }
        };
        if let Some(note) = note {
            if is_new {
                notes.unsure.remove(item);
            }
            notes.made.push(note);
        }
        answer
    }
}

fn of_item(item: &Item, change: Change, seen: Option<EntityTag>, after: Option<Written>) -> NotedChange {
    NotedChange { space: item.space.clone(), key: Some(item.key.clone()), change, seen, after }
}

/// What was there before, by the condition under which content was written. Without one it is unsure.
fn before(condition: &Condition) -> Option<(Change, Option<EntityTag>)> {
    match condition {
        Condition::IfAbsent => Some((Change::Add, None)),
        Condition::IfMatch(etag) => Some((Change::Update, Some(etag.clone()))),
        Condition::None => None,
    }
}

#[async_trait]
impl Store for Noted {
    fn name(&self) -> &StoreName {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.directory()
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.store.spaces().await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let is_new = self.store.create_space(space).await?;
        if is_new {
            let change = Change::CreateSpace;
            let note = NotedChange { space: space.clone(), key: None, change, seen: None, after: None };
            self.notes.lock().made.push(note);
        }
        Ok(is_new)
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let is_deleted = self.store.delete_space(space).await?;
        if is_deleted {
            let change = Change::DeleteSpace;
            let note = NotedChange { space: space.clone(), key: None, change, seen: None, after: None };
            self.notes.lock().made.push(note);
        }
        Ok(is_deleted)
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        self.store.list(space, prefix, after)
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        self.store.head(item).await
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        self.store.get(item, range, if_match).await
    }

    async fn presign(&self, item: &Item, disposition: &str, lifetime: Duration) -> Result<Option<String>, Error> {
        self.store.presign(item, disposition, lifetime).await
    }

    async fn put(&self, item: &Item, content: Chunks, mut put: Put) -> Result<Written, Error> {
        let before = before(&put.condition);
        let is_expected = put.expected.iter().any(|digest| digest.algorithm().is_strong());
        if !is_expected && !put.compute.iter().any(|algorithm| algorithm.is_strong()) {
            // By it a copy is compared.
            put.compute.push(Algorithm::Sha256);
        }
        let note = |written: &Written| {
            let (change, seen) = before?;
            Some(of_item(item, change, seen, Some(written.clone())))
        };
        self.change(item, self.store.put(item, content, put), note).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        self.change(to, self.store.copy_with(from, if_match, to, condition, control), |_written| None).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.change(item, self.store.delete(item, if_match), |_is_deleted| None).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.change(item, self.store.set_properties(item, user, if_match), |_written| None).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.store.abort_upload(item, upload).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.store.probe().await
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        self.store.remove_probe_bucket().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.store.sweep(before).await
    }
}
