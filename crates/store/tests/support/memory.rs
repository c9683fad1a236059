//! A store in memory, which stops at any step, and keeps the promises of the trait.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{Bound, Range};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listed, Listing, Properties, Put,
    UserProperties, Written,
};
use queuekeeper_store::{Algorithm, Digests, Error, ErrorKind, Hashers, Key, SpaceName, Store, StoreName};
use queuekeeper_testkit::faulty::or_unknown;

use super::steps::Steps;

/// What kind of store it is.
#[derive(Clone, Debug)]
pub(crate) struct StoreKind {
    /// The checksums that it keeps.
    pub(crate) checksums: Vec<Algorithm>,
    /// Whether conditions hold.
    pub(crate) conditions: bool,
    /// Whether the entity tag is a function of the content, as an MD5 is; else each write has another one.
    pub(crate) tags_by_content: bool,
    /// Whether content is written by uploads in parts, which outlive the writer.
    pub(crate) uploads: bool,
}

impl Default for StoreKind {
    fn default() -> Self {
        Self { checksums: vec![Algorithm::Sha256], conditions: true, tags_by_content: false, uploads: false }
    }
}

/// An answer that gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// On the way back: it was done.
    Answer,
    /// On the way there: it was not.
    Request,
}

/// A store in memory.
pub(crate) struct MemoryStore {
    name: StoreName,
    kind: StoreKind,
    steps: Steps,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spaces: BTreeMap<SpaceName, BTreeMap<Key, (Bytes, Properties)>>,
    uploads: BTreeSet<String>,
    writes: u64,
    lost: Option<Lost>,
}

fn digests_of(bytes: &[u8], algorithms: impl IntoIterator<Item = Algorithm>) -> Digests {
    let mut hashers = Hashers::new(algorithms);
    hashers.update(bytes);
    hashers.finish()
}

fn check(condition: &Condition, found: Option<&EntityTag>) -> Result<(), ErrorKind> {
    let holds = match condition {
        Condition::None => true,
        Condition::IfAbsent => found.is_none(),
        Condition::IfMatch(tag) => found == Some(tag),
    };
    if holds { Ok(()) } else { Err(ErrorKind::Precondition) }
}

fn if_match(tag: Option<&EntityTag>) -> Condition {
    tag.map_or(Condition::None, |tag| Condition::IfMatch(tag.clone()))
}

impl State {
    fn space(&mut self, space: &SpaceName) -> Result<&mut BTreeMap<Key, (Bytes, Properties)>, ErrorKind> {
        self.spaces.get_mut(space).ok_or(ErrorKind::NoSpace)
    }

    fn write(
        &mut self,
        kind: &StoreKind,
        item: &Item,
        bytes: Bytes,
        user: UserProperties,
        condition: &Condition,
    ) -> Result<Properties, ErrorKind> {
        self.writes += 1;
        let md5 = digests_of(&bytes, [Algorithm::Md5]).iter().map(ToString::to_string).collect();
        let etag = EntityTag(if kind.tags_by_content { md5 } else { format!("tag-{}", self.writes) });
        let items = self.space(&item.space)?;
        check(condition, items.get(&item.key).map(|(_, properties)| &properties.etag))?;
        let checksums = digests_of(&bytes, kind.checksums.iter().copied());
        let properties = Properties { size: bytes.len() as u64, modified: Timestamp::now(), etag, checksums, user };
        items.insert(item.key.clone(), (bytes, properties.clone()));
        Ok(properties)
    }

    fn read(&mut self, item: &Item, condition: &Condition) -> Result<(Bytes, Properties), ErrorKind> {
        let found = self.space(&item.space)?.get(&item.key).cloned().ok_or(ErrorKind::NotFound)?;
        check(condition, Some(&found.1.etag))?;
        Ok(found)
    }
}

impl MemoryStore {
    /// An empty store that stops with these steps: each write has one before it changes anything, and one behind.
    pub(crate) fn new(name: &str, kind: StoreKind, steps: Steps) -> Self {
        Self { name: name.parse().expect("a valid name"), kind, steps, state: Mutex::default() }
    }

    /// What it can do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksums: self.kind.checksums.clone(),
            if_absent: self.kind.conditions,
            if_match: self.kind.conditions,
            versions: false,
            object_lock: false,
            minimum_days: 0,
            cold_reads: false,
            refused_keys: Vec::new(),
        }
    }

    /// Loses the answer to the next change, or the request.
    pub(crate) fn lose(&self, lost: Lost) {
        self.state.lock().lost = Some(lost);
    }

    /// Writes an item at once, without a step: as another program does.
    pub(crate) fn plant(&self, item: &Item, bytes: &'static [u8]) -> EntityTag {
        let mut state = self.state.lock();
        state.spaces.entry(item.space.clone()).or_default();
        let user = UserProperties::default();
        state.write(&self.kind, item, Bytes::from_static(bytes), user, &Condition::None).expect("no condition").etag
    }

    /// Everything in it.
    pub(crate) fn contents(&self) -> BTreeMap<Item, Bytes> {
        let state = self.state.lock();
        let items = state.spaces.iter().flat_map(|(space, items)| items.iter().map(move |(key, it)| (space, key, it)));
        items.map(|(space, key, (bytes, _))| (Item::new(space.clone(), key.clone()), bytes.clone())).collect()
    }

    /// The uploads in parts that are neither complete nor aborted.
    pub(crate) fn uploads(&self) -> Vec<String> {
        self.state.lock().uploads.iter().cloned().collect()
    }

    fn error(&self, operation: Operation, subject: &impl ToString, kind: ErrorKind) -> Error {
        Error { store: self.name.clone(), operation, subject: subject.to_string(), kind }
    }

    /// Changes something, between two steps.
    async fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, ErrorKind>) -> Result<T, ErrorKind> {
        self.steps.step().await;
        let result = {
            let mut state = self.state.lock();
            match state.lost.take() {
                Some(Lost::Request) => Err(ErrorKind::Unknown("the request was lost".to_owned())),
                Some(Lost::Answer) => {
                    change(&mut state).and(Err(ErrorKind::Unknown("the connection was cut".to_owned())))
                }
                None => change(&mut state),
            }
        };
        self.steps.step().await;
        result
    }

    async fn put_whole(&self, item: &Item, mut content: Chunks, put: Put) -> Result<Written, ErrorKind> {
        let upload = self.kind.uploads.then(|| {
            let mut state = self.state.lock();
            state.writes += 1;
            let upload = format!("upload-{}", state.writes);
            state.uploads.insert(upload.clone());
            upload
        });
        if let (Some(upload), Some(guard)) = (&upload, &put.guard) {
            guard.begun(upload).await.map_err(ErrorKind::Stopped)?;
            self.steps.step().await;
        }
        let expected = put.expected.iter().map(queuekeeper_store::Digest::algorithm);
        let mut hashers = Hashers::new(expected.chain(put.compute.iter().copied()));
        let mut bytes = BytesMut::new();
        loop {
            let next = tokio::select! {
                biased;
                () = put.abort.cancelled() => return Err(ErrorKind::Stopped("it was aborted".to_owned())),
                next = content.next() => next,
            };
            let Some(chunk) = next else { break };
            let chunk = chunk.map_err(ErrorKind::Source)?;
            hashers.update(&chunk);
            bytes.extend_from_slice(&chunk);
        }
        let found = hashers.bytes();
        if let Some(expected) = put.size.filter(|size| *size != found) {
            return Err(ErrorKind::Size { expected, found });
        }
        let digests = hashers.finish();
        if let Some((expected, found)) = put.expected.difference(&digests) {
            return Err(ErrorKind::Digest { expected: expected.clone(), found: found.clone() });
        }
        if let Some(guard) = &put.guard {
            guard.pass(found, &digests).await.map_err(ErrorKind::Stopped)?;
        }
        if put.abort.is_cancelled() {
            return Err(ErrorKind::Stopped("it was aborted".to_owned()));
        }
        let properties = self
            .change(|state| {
                if let Some(upload) = &upload
                    && !state.uploads.remove(upload)
                {
                    return Err(ErrorKind::Stopped("the upload was aborted".to_owned()));
                }
                state.write(&self.kind, item, bytes.freeze(), put.user, &put.condition)
            })
            .await?;
        Ok(Written { size: properties.size, etag: properties.etag, digests })
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn name(&self) -> &StoreName {
        &self.name
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        Ok(self.state.lock().spaces.keys().cloned().collect())
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let create = |state: &mut State| {
            let is_new = !state.spaces.contains_key(space);
            state.spaces.entry(space.clone()).or_default();
            Ok(is_new)
        };
        self.change(create).await.map_err(|kind| self.error(Operation::CreateSpace, space, kind))
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let delete = |state: &mut State| match state.spaces.get(space) {
            Some(items) if !items.is_empty() => Err(ErrorKind::NotEmpty),
            _ => Ok(state.spaces.remove(space).is_some()),
        };
        self.change(delete).await.map_err(|kind| self.error(Operation::DeleteSpace, space, kind))
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        let mut state = self.state.lock();
        let items = match state.space(space) {
            Ok(items) => items,
            Err(kind) => {
                let error = self.error(Operation::List, space, kind);
                return stream::iter([Err(error)]).boxed();
            }
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let items = items.range::<Key, _>((from, Bound::Unbounded));
        let listed = items.filter(|(key, _)| key.as_bytes().starts_with(prefix)).map(|(key, (_, properties))| {
            let etag = Some(properties.etag.clone());
            Ok(Listed { key: key.clone(), size: properties.size, modified: properties.modified, etag })
        });
        stream::iter(listed.collect::<Vec<_>>()).boxed()
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        match self.state.lock().read(item, &Condition::None) {
            Ok((_, properties)) => Ok(Some(properties)),
            Err(ErrorKind::NotFound) => Ok(None),
            Err(kind) => Err(self.error(Operation::Head, item, kind)),
        }
    }

    async fn get(&self, item: &Item, range: Option<Range<u64>>, tag: Option<&EntityTag>) -> Result<Content, Error> {
        let found = self.state.lock().read(item, &if_match(tag));
        let (bytes, properties) = found.map_err(|kind| self.error(Operation::Get, item, kind))?;
        let bytes = match range {
            None => bytes,
            Some(range) if range.start > properties.size => {
                return Err(self.error(Operation::Get, item, ErrorKind::Range { size: properties.size }));
            }
            Some(range) => {
                let end = range.end.clamp(range.start, properties.size);
                let at = |at: u64| usize::try_from(at).expect("at most its length");
                bytes.slice(at(range.start)..at(end))
            }
        };
        Ok(Content { properties, chunks: stream::iter([io::Result::Ok(bytes)]).boxed() })
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        self.put_whole(item, content, put).await.map_err(|kind| self.error(Operation::Put, item, kind))
    }

    async fn copy_with(
        &self,
        from: &Item,
        tag: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let copy = |state: &mut State| {
            let (bytes, properties) = state.read(from, &if_match(tag))?;
            state.write(&self.kind, to, bytes, properties.user, condition)
        };
        let copied = async {
            let Properties { size, etag, checksums: digests, .. } =
                self.change(copy).await.map_err(|kind| self.error(Operation::Copy, to, kind))?;
            Ok(Written { size, etag, digests })
        };
        or_unknown(control, &self.name, to, copied).await
    }

    async fn delete(&self, item: &Item, tag: Option<&EntityTag>) -> Result<bool, Error> {
        let delete = |state: &mut State| {
            let items = state.space(&item.space)?;
            if let Some((_, properties)) = items.get(&item.key) {
                check(&if_match(tag), Some(&properties.etag))?;
            }
            Ok(items.remove(&item.key).is_some())
        };
        self.change(delete).await.map_err(|kind| self.error(Operation::Delete, item, kind))
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        tag: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        let set = |state: &mut State| {
            let condition = if_match(tag);
            let (bytes, _) = state.read(item, &condition)?;
            state.write(&self.kind, item, bytes, user.clone(), &condition)
        };
        let Properties { size, etag, checksums: digests, .. } =
            self.change(set).await.map_err(|kind| self.error(Operation::SetProperties, item, kind))?;
        Ok(Written { size, etag, digests })
    }

    async fn abort_upload(&self, _item: &Item, upload: &str) -> Result<(), Error> {
        self.state.lock().uploads.remove(upload);
        Ok(())
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        Ok(self.capabilities())
    }

    async fn sweep(&self, _before: Timestamp) -> Result<u64, Error> {
        let mut state = self.state.lock();
        let swept = state.uploads.len() as u64;
        state.uploads.clear();
        Ok(swept)
    }
}
