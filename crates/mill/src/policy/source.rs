//! Where the files of policies are.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use queuekeeper_store::store::{Condition, Item, Put, UserProperties};
use queuekeeper_store::{ErrorKind, Key, SpaceName, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::file::MOST_BYTES;

/// The file whose lock those have that change the others.
const LOCK_FILE: &str = ".queuekeeper.lock";

/// Where the files of policies are.
#[derive(Clone)]
pub enum PolicySource {
    /// In a directory.
    Directory(PathBuf),
    /// In a space of a store.
    Space(Arc<dyn Store>, SpaceName),
}

impl PolicySource {
    /// Waits until no other process of ours changes files, and keeps others waiting as long as the answer lives. In a
    /// space, the store's own conditions do that.
    ///
    /// # Errors
    /// With a sentence that names the file.
    pub(super) async fn lock(&self) -> Result<Option<std::fs::File>, String> {
        let Self::Directory(directory) = self else { return Ok(None) };
        let path = directory.join(LOCK_FILE);
        let failed = |error: &io::Error| format!("{}: {error}", path.display());
        let lock = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| failed(&error))?;
        let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let locked = locked.map_err(|error| error.to_string())?;
        locked.map(Some).map_err(|error| failed(&error))
    }

    /// Writes a file whole, where its content is still the one that is expected, or it is still missing; the answer is
    /// whether it was.
    ///
    /// # Errors
    /// With a sentence that names the file.
    pub(super) async fn write(&self, name: &str, expected: Option<&[u8]>, text: &str) -> Result<bool, String> {
        match self {
            Self::Directory(directory) => {
                if self.read(name).await?.as_deref() != expected {
                    return Ok(false);
                }
                let (path, new) = (directory.join(name), directory.join(format!("{name}.new")));
                let write = async {
                    let mut file = tokio::fs::File::create(&new).await?;
                    file.write_all(text.as_bytes()).await?;
                    file.sync_all().await?;
                    tokio::fs::rename(&new, &path).await?;
                    tokio::fs::File::open(directory).await?.sync_all().await
                };
                write.await.map_err(|error: io::Error| format!("{}: {error}", path.display()))?;
                Ok(true)
            }
            Self::Space(store, space) => {
                let key: Key = name.parse().map_err(|error| format!("{name}: {error}"))?;
                let item = Item::new(space.clone(), key);
                // The tag is read before the content is compared: a change between the two is found by the store.
                store.create_space(space).await.map_err(|error| error.to_string())?;
                let found = store.head(&item).await.map_err(|error| error.to_string())?;
                let tag = found.map(|found| found.etag);
                if self.read(name).await?.as_deref() != expected {
                    return Ok(false);
                }
                let condition = tag.map_or(Condition::IfAbsent, Condition::IfMatch);
                let user =
                    UserProperties { content_type: Some("application/json".to_owned()), ..UserProperties::default() };
                let put = Put { size: Some(text.len() as u64), condition, user, ..Put::default() };
                let chunks = futures::stream::iter([Ok(Bytes::from(text.to_owned()))]).boxed();
                match store.put(&item, chunks, put).await {
                    Ok(_) => Ok(true),
                    Err(error) if matches!(error.kind, ErrorKind::Precondition) => Ok(false),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }

    /// The content of a file; `None` where it does not exist. Of one that is too long, the beginning, which is too
    /// long, too.
    ///
    /// # Errors
    /// With a sentence that names the file.
    pub async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(name);
                let failed = |error: &io::Error| format!("{}: {error}", path.display());
                let file = match tokio::fs::File::open(&path).await {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    file => file.map_err(|error| failed(&error))?,
                };
                let mut bytes = Vec::new();
                let limit = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
                file.take(limit).read_to_end(&mut bytes).await.map_err(|error| failed(&error))?;
                Ok(Some(bytes))
            }
            Self::Space(store, space) => {
                let key: Key = name.parse().map_err(|error| format!("{name}: {error}"))?;
                let content = match store.get(&Item::new(space.clone(), key), None, None).await {
                    Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NoSpace) => return Ok(None),
                    content => content.map_err(|error| error.to_string())?,
                };
                let (mut bytes, mut chunks) = (Vec::new(), content.chunks);
                while let Some(chunk) = chunks.next().await {
                    let chunk = chunk.map_err(|error| format!("{name} in {}/{space}: {error}", store.name()))?;
                    bytes.extend_from_slice(&chunk);
                    if bytes.len() > MOST_BYTES {
                        break;
                    }
                }
                Ok(Some(bytes))
            }
        }
    }
}
