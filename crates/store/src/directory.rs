//! A directory as a store: each space a directory below it, each item a file.
//!
//! `TOP/SPACE/a/b` has the key `a/b`; `directory/names.rs` says what becomes of keys that are no paths.
//! `TOP/.queuekeeper` has what is no content: `temporary` files on their way, `records` of digests and user properties,
//! and `locks`. Content is written to a temporary file, synced, and renamed, so a file is there whole or not at all;
//! conditions are checked under an advisory lock that all processes of this program keep to. The entity tag is the time
//! of modification, to the nanosecond, and the size.
//!
//! Symbolic links below a space are not followed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use crate::digest::Algorithm;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::{SpaceName, StoreName};
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

mod core;
mod errors;
mod folder;
mod list;
mod locks;
mod names;
mod probe;
mod read;
mod record;
mod sweep;
mod syncs;
mod temporary;
mod tree;
mod write;

use self::core::Core;

/// How much users may say of an item, in bytes of names and values.
const MOST_METADATA_BYTES: usize = 8 << 10;

/// A store in a directory.
#[derive(Clone)]
pub struct DirectoryStore {
    core: Arc<Core>,
}

impl DirectoryStore {
    /// The store in a directory, which must exist: one that is missing may be a volume that is not mounted.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn open(name: StoreName, top: PathBuf) -> Result<Self, Error> {
        let subject = top.display().to_string();
        let store = name.clone();
        let opened = spawn_blocking(move || {
            let facts = std::fs::metadata(&top)?;
            if facts.is_dir() { Core::open(name, top) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        let opened = opened.await.map_err(write::panicked).and_then(|opened| match opened {
            Ok(core) => Ok(core),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(ErrorKind::Refused("there is no such directory; create it, or mount its volume".to_owned()))
            }
            Err(error) => Err(error.into()),
        });
        match opened {
            Ok(core) => Ok(Self { core: Arc::new(core) }),
            Err(kind) => Err(Error { store, operation: Operation::Probe, subject, kind }),
        }
    }

    /// Does something that waits for the file system.
    async fn block<T: Send + 'static>(
        &self,
        operation: Operation,
        subject: impl ToString + Send,
        run: impl FnOnce(&Core) -> Result<T, ErrorKind> + Send + 'static,
    ) -> Result<T, Error> {
        let core = Arc::clone(&self.core);
        let done = spawn_blocking(move || run(&core)).await.map_err(write::panicked).and_then(|done| done);
        done.map_err(|kind| self.core.failed(operation, &subject, kind))
    }
}

#[async_trait]
impl Store for DirectoryStore {
    fn name(&self) -> &StoreName {
        &self.core.name
    }

    fn directory(&self) -> Option<&Path> {
        Some(self.core.top())
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.block(Operation::Spaces, "", Core::spaces).await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let name = space.clone();
        self.block(Operation::CreateSpace, space, move |core| core.create_space(&name)).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let name = space.clone();
        self.block(Operation::DeleteSpace, space, move |core| core.delete_space(&name)).await
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        list::list(Arc::clone(&self.core), space, prefix, after)
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        let wanted = item.clone();
        let found = self.block(Operation::Head, item, move |core| core.find(&wanted)).await?;
        Ok(found.map(|opened| opened.properties))
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        let (wanted, if_match) = (item.clone(), if_match.cloned());
        let open =
            move |core: &Core| read::content(core.find(&wanted)?.ok_or(ErrorKind::NotFound)?, range, if_match.as_ref());
        self.block(Operation::Get, item, open).await
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        let failed = |kind| self.core.failed(Operation::Put, item, kind);
        check_user(&put.user).map_err(failed)?;
        // Who waits no longer gives it up.
        let abort = put.abort.child_token();
        let given_up = abort.clone().drop_guard();
        let pending = write::receive(&self.core, item, content, &put).await.map_err(failed)?;
        let written = Written { size: pending.size, etag: pending.etag.clone(), digests: pending.digests.clone() };
        let (wanted, condition) = (item.clone(), put.condition);
        let place = move |core: &Core| core.place(&wanted, &pending, &condition, &abort);
        self.block(Operation::Put, item, place).await?;
        given_up.disarm();
        Ok(written)
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let Content { properties, chunks } = self.get(from, None, if_match).await?;
        // What the copy is made of is read, so what it is compared with is worth something.
        let put = Put {
            size: Some(properties.size),
            compute: if properties.checksums.is_empty() { vec![Algorithm::Sha256] } else { Vec::new() },
            expected: properties.checksums,
            condition: condition.clone(),
            user: properties.user,
            abort: control.abort.clone(),
            ..Put::default()
        };
        let written = self.put(to, chunks, put).await;
        written.map_err(|error| Error { operation: Operation::Copy, ..error })
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        let (wanted, if_match) = (item.clone(), if_match.cloned());
        self.block(Operation::Delete, item, move |core| core.delete(&wanted, if_match.as_ref())).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        check_user(user).map_err(|kind| self.core.failed(Operation::SetProperties, item, kind))?;
        let (wanted, user, if_match) = (item.clone(), user.clone(), if_match.cloned());
        let set = move |core: &Core| core.set_properties(&wanted, &user, if_match.as_ref());
        let Properties { size, etag, checksums, .. } = self.block(Operation::SetProperties, item, set).await?;
        Ok(Written { size, etag, digests: checksums })
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        probe::probe(self).await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.block(Operation::Sweep, "", move |core| core.sweep(before)).await
    }
}

/// Checks that what a user says of an item has a size that is kept.
fn check_user(user: &UserProperties) -> Result<(), ErrorKind> {
    let texts = user.metadata.iter().flat_map(|(name, value)| [name, value]);
    let bytes: usize = texts.chain(&user.content_type).chain(&user.content_encoding).map(String::len).sum();
    if bytes <= MOST_METADATA_BYTES {
        return Ok(());
    }
    Err(ErrorKind::Unsupported(format!("properties of {bytes} bytes; {MOST_METADATA_BYTES} are kept")))
}
