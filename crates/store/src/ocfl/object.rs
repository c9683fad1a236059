//! An object: where it lies, and reading one state of it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use tokio::task;

use crate::digest::{Algorithm, Digest};
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::SpaceName;
use crate::ocfl::chunks;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::{Failure, Inventory};
use crate::store::{EntityTag, Item, Store};

pub(super) const INVENTORY: &str = "inventory.json";
pub(super) const SIDECAR: &str = "inventory.json.sha512";

/// The largest sidecar that is read, in bytes.
const MOST_SIDECAR_BYTES: u64 = 4096;

/// How often the root inventory is read again while it and its sidecars disagree, since they are being written.
const ATTEMPTS: u32 = 3;

/// An object of a storage root, by its identifier; it need not exist.
#[derive(Clone)]
pub struct Object {
    pub(super) store: Arc<dyn Store>,
    space: SpaceName,
    id: String,
    /// The key of its root, without a slash at its end.
    root: String,
    /// Where temporary files are.
    pub(super) directory: Arc<Path>,
}

impl fmt::Debug for Object {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Object({}/{}/{})", self.store.name(), self.space, self.root)
    }
}

/// One state of an object, with all its versions.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) object: Object,
    pub(super) inventory: Arc<Inventory>,
}

/// An inventory in the store.
pub(super) struct Current {
    pub(super) inventory: Inventory,
    pub(super) digest: Digest,
    pub(super) etag: EntityTag,
}

/// What the root of an object has for an inventory.
pub(super) enum RootState {
    /// None.
    Absent,
    /// One that a sidecar confirms, that of the root or that of its version.
    Sound(Box<Current>),
    /// One that cannot be read, or that no sidecar confirms.
    Damaged {
        /// Its entity tag.
        etag: EntityTag,
        /// What is wrong with it.
        why: String,
    },
}

impl Object {
    pub(super) fn new(store: Arc<dyn Store>, space: SpaceName, id: String, root: String, directory: Arc<Path>) -> Self {
        Self { store, space, id, root, directory }
    }

    /// The same object by another face of its store, such as one that notes what is changed.
    #[must_use]
    pub fn in_store(self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self }
    }

    /// The store by which it is read and written.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key of its root in the space, without a slash at its end.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Reads its newest state; `None` where it does not exist. While a version is being written, that is the state
    /// before or after it.
    ///
    /// # Errors
    /// [`OcflError::Damaged`] when there is an inventory but none that a sidecar confirms; those of the store.
    pub async fn read(&self) -> Result<Option<Snapshot>, OcflError> {
        let found = match self.root_state().await? {
            RootState::Sound(current) => Some(*current),
            RootState::Absent => self.newest_complete().await?,
            RootState::Damaged { why, .. } => match self.newest_complete().await? {
                Some(current) => Some(current),
                None => return Err(self.damaged(INVENTORY, why)),
            },
        };
        Ok(found.map(|current| Snapshot { object: self.clone(), inventory: Arc::new(current.inventory) }))
    }

    /// The root inventory, with whether a sidecar confirms it.
    pub(super) async fn root_state(&self) -> Result<RootState, OcflError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (etag, why) = match self.load(INVENTORY).await? {
                None => return Ok(RootState::Absent),
                Some((etag, Err(why))) => (etag, why),
                Some((etag, Ok((inventory, digest)))) => {
                    let head = format!("v{}/{SIDECAR}", inventory.head());
                    if self.confirms(SIDECAR, &digest).await? || self.confirms(&head, &digest).await? {
                        return Ok(RootState::Sound(Box::new(Current { inventory, digest, etag })));
                    }
                    (etag, format!("it has the SHA-512 {digest}, which neither its sidecar nor {head} names"))
                }
            };
            if attempt == ATTEMPTS {
                return Ok(RootState::Damaged { etag, why });
            }
        }
    }

    /// The newest inventory of a version that its sidecar confirms.
    pub(super) async fn newest_complete(&self) -> Result<Option<Current>, OcflError> {
        for number in self.version_folders().await?.into_iter().rev() {
            let file = format!("v{number}/{INVENTORY}");
            if let Some((etag, Ok((inventory, digest)))) = self.load(&file).await?
                && inventory.head() == number
                && self.confirms(&format!("v{number}/{SIDECAR}"), &digest).await?
            {
                return Ok(Some(Current { inventory, digest, etag }));
            }
        }
        Ok(None)
    }

    /// Whether a sidecar names this digest.
    pub(super) async fn confirms(&self, sidecar: &str, digest: &Digest) -> Result<bool, OcflError> {
        Ok(self.sidecar(sidecar).await?.is_some_and(|(named, _)| named.is_ok_and(|named| named == *digest)))
    }

    /// What a sidecar names, or what is wrong with it.
    pub(super) async fn sidecar(&self, file: &str) -> Result<Option<(Result<Digest, String>, EntityTag)>, OcflError> {
        let found = read_small(&*self.store, &self.item(file), MOST_SIDECAR_BYTES).await?;
        Ok(found.map(|(bytes, etag)| (parse_sidecar(&bytes), etag)))
    }

    /// An inventory with its digest, or what is wrong with it; `None` where there is none.
    pub(super) async fn load(
        &self,
        file: &str,
    ) -> Result<Option<(EntityTag, Result<(Inventory, Digest), String>)>, OcflError> {
        let item = self.item(file);
        let content = match self.store.get(&item, None, None).await {
            Ok(content) => content,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let etag = content.properties.etag.clone();
        let read = match chunks::read_inventory(content.chunks, &self.directory).await {
            Ok(loaded) if loaded.bytes != content.properties.size => {
                let why = format!("{} of {} bytes came", loaded.bytes, content.properties.size);
                return Err(self.broken(&item, &why));
            }
            Ok(loaded) if loaded.inventory.id() != self.id => {
                Err(format!("it is that of object {:?}", loaded.inventory.id().chars().take(100).collect::<String>()))
            }
            Ok(loaded) => Ok((loaded.inventory, loaded.digest)),
            Err(Failure::Form(why)) => Err(why),
            Err(Failure::Temporary(error)) => return Err(self.temporary(error)),
            Err(Failure::Read(error)) => return Err(self.broken(&item, &error.to_string())),
        };
        Ok(Some((etag, read)))
    }

    /// The numbers of the folders `vN`, in ascending order. One request for each.
    pub(super) async fn version_folders(&self) -> Result<Vec<u32>, OcflError> {
        let mut numbers = Vec::new();
        let is_name = |name: &str| name.strip_prefix('v').and_then(|digits| digits.parse::<u32>().ok());
        for name in self.folders("v").await? {
            numbers.extend(is_name(&name));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The names of the folders whose path begins with a prefix, relative to the folder that the prefix is in. The
    /// items in them are skipped: one request for each folder.
    pub(super) async fn folders(&self, prefix: &str) -> Result<Vec<String>, OcflError> {
        let full = format!("{}/{prefix}", self.root);
        let parent = full.rfind('/').map_or(0, |at| at + 1);
        let (mut names, mut after) = (Vec::new(), None);
        'folders: loop {
            let mut there = self.store.list(&self.space, full.as_bytes(), after.as_ref());
            while let Some(listed) = there.next().await {
                let key = listed?.key;
                let rest = key.as_bytes().get(parent..).unwrap_or_default();
                let Some(length) = rest.iter().position(|byte| *byte == b'/') else { continue };
                names.extend(std::str::from_utf8(&rest[..length]).map(str::to_owned));
                // The byte after the slash: above everything in the folder, and not above what follows it.
                let mut next = key.as_bytes()[..parent + length].to_vec();
                next.push(b'/' + 1);
                after = Some(Key::new(next).expect("it is not longer than the key that was listed"));
                continue 'folders;
            }
            return Ok(names);
        }
    }

    /// A file of the object.
    pub(super) fn item(&self, file: &str) -> Item {
        let key = Key::new(format!("{}/{file}", self.root).into_bytes());
        Item::new(self.space.clone(), key.expect("the keys of an object are short enough"))
    }

    /// The path in the object that a key has, as bytes.
    pub(super) fn path_of<'a>(&self, key: &'a Key) -> &'a [u8] {
        key.as_bytes().get(self.root.len() + 1..).unwrap_or_default()
    }

    /// An item of the object, by its key.
    pub(super) fn item_at(&self, key: Key) -> Item {
        Item::new(self.space.clone(), key)
    }

    /// The items whose path begins with a prefix, by their path.
    pub(super) fn list(
        &self,
        prefix: &str,
    ) -> impl futures::Stream<Item = Result<(String, crate::store::Listed), OcflError>> + use<> {
        let full = format!("{}/{prefix}", self.root);
        let start = self.root.len() + 1;
        self.store.list(&self.space, full.as_bytes(), None).map(move |listed| {
            let listed = listed?;
            let path = String::from_utf8_lossy(&listed.key.as_bytes()[start..]).into_owned();
            Ok((path, listed))
        })
    }

    pub(super) fn damaged(&self, file: &str, why: impl Into<String>) -> OcflError {
        OcflError::Damaged { id: self.id.clone(), file: file.to_owned(), why: why.into() }
    }

    /// A temporary file that failed.
    pub(super) fn temporary(&self, source: io::Error) -> OcflError {
        OcflError::temporary(&self.directory, source)
    }

    /// Does what blocks its thread, on one that may be busy for long.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, OcflError> {
        let done = task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|source| self.temporary(source))
    }

    /// A stream that ended early.
    pub(super) fn broken(&self, item: &Item, why: &str) -> OcflError {
        OcflError::Store(broken(&*self.store, item, why))
    }
}

impl Snapshot {
    /// The object that it is of.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Its inventory: versions and files.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}

pub(super) fn is_absent(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::NotFound)
}

pub(super) fn broken(store: &dyn Store, item: &Item, why: &str) -> Error {
    let kind = ErrorKind::Unavailable(format!("it could not be read to its end: {why}"));
    Error { store: store.name().clone(), operation: Operation::Get, subject: item.to_string(), kind }
}

/// A small item in memory, up to a number of bytes; what is longer is cut off.
pub(super) async fn read_small(
    store: &dyn Store,
    item: &Item,
    most: u64,
) -> Result<Option<(Bytes, EntityTag)>, OcflError> {
    let mut content = match store.get(item, None, None).await {
        Ok(content) => content,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = BytesMut::new();
    let failed = |error: io::Error| broken(store, item, &error.to_string());
    while let Some(chunk) = content.chunks.try_next().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > most {
            bytes.truncate(usize::try_from(most).expect("a small number"));
            break;
        }
    }
    Ok(Some((bytes.freeze(), content.properties.etag)))
}

/// The text of a sidecar.
pub(super) fn sidecar_text(digest: &Digest) -> String {
    format!("{digest} {INVENTORY}\n")
}

fn parse_sidecar(bytes: &[u8]) -> Result<Digest, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(digest), Some(INVENTORY), None) => {
            Digest::from_hex(Algorithm::Sha512, digest).map_err(|error| error.to_string())
        }
        _ => Err(format!("it does not have the form DIGEST {INVENTORY}")),
    }
}
