//! Reading a file of a version.

use std::io;

use futures::{StreamExt, stream};

use crate::digest::{Algorithm, Digest, Hashers};
use crate::key::Key;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::FileEntry;
use crate::ocfl::object::{Object, Snapshot};
use crate::store::{Chunks, Content, Properties};

impl Object {
    /// Opens content by its path in the object, such as a catalogue has recorded it with its digest. Its chunks end
    /// with an error where the bytes do not have that digest, which is a SHA-512.
    ///
    /// # Errors
    /// [`OcflError::Missing`] for a path that no content can have; those of the store.
    pub async fn content(&self, content_path: &str, digest: &Digest) -> Result<Content, OcflError> {
        let missing = || OcflError::Missing { id: self.id().to_owned(), what: format!("content {content_path:?}") };
        let key = Key::new(format!("{}/{content_path}", self.root()).into_bytes()).map_err(|_| missing())?;
        let content = self.store.get(&self.item_at(key), None, None).await?;
        let size = content.properties.size;
        Ok(Content { properties: content.properties, chunks: verified(content.chunks, digest.clone(), size) })
    }
}

impl Snapshot {
    /// Opens a file of a version. Its chunks end with an error where the bytes do not have the digest that the
    /// inventory names: what came is the file only once they have ended without one.
    ///
    /// # Errors
    /// [`OcflError::Missing`] when the version or the file is not there; those of the store.
    pub async fn open(&self, version: u32, path: &str) -> Result<Content, OcflError> {
        let missing = |what: String| OcflError::Missing { id: self.object.id().to_owned(), what };
        if self.inventory.version(version).is_none() {
            return Err(missing(format!("version {version}")));
        }
        let file = self.inventory.file(version, path)?;
        let file = file.ok_or_else(|| missing(format!("file {path:?} in version {version}")))?;
        let content = self.object.store.get(&self.object.item(&file.content_path), None, None).await?;
        let size = content.properties.size;
        Ok(Content { properties: content.properties, chunks: verified(content.chunks, file.digest, size) })
    }

    /// What the store says of the content of a file; `None` where the content is missing.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn head(&self, file: &FileEntry) -> Result<Option<Properties>, OcflError> {
        Ok(self.object.store.head(&self.object.item(&file.content_path)).await?)
    }
}

/// The same chunks, and an error behind the last where they do not have this digest and size.
fn verified(chunks: Chunks, digest: Digest, size: u64) -> Chunks {
    let start = Some((chunks, Hashers::new([Algorithm::Sha512]), digest));
    let step = move |state: Option<(Chunks, Hashers, Digest)>| async move {
        let (mut chunks, mut hashers, digest) = state?;
        match chunks.next().await {
            Some(Ok(chunk)) => {
                hashers.update(&chunk);
                Some((Ok(chunk), Some((chunks, hashers, digest))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None => compare(hashers, &digest, size).map(|error| (Err(error), None)),
        }
    };
    stream::unfold(start, step).boxed()
}

fn compare(hashers: Hashers, digest: &Digest, size: u64) -> Option<io::Error> {
    let bytes = hashers.bytes();
    if bytes != size {
        return Some(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{bytes} of {size} bytes came")));
    }
    let found = hashers.finish();
    let found = found.strongest().expect("one algorithm was requested");
    let why = || format!("its SHA-512 is {found}, and {digest} in the inventory: the content is damaged");
    (found != digest).then(|| io::Error::new(io::ErrorKind::InvalidData, why()))
}
