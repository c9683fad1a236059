//! Where the files of policies are.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_store::store::Item;
use queuekeeper_store::{ErrorKind, Key, SpaceName, Store};
use tokio::io::AsyncReadExt as _;

use super::file::MOST_BYTES;

/// Where the files of policies are.
#[derive(Clone)]
pub enum PolicySource {
    /// In a directory.
    Directory(PathBuf),
    /// In a space of a store.
    Space(Arc<dyn Store>, SpaceName),
}

impl PolicySource {
    /// The content of a file; `None` where it does not exist. Of one that is too long, the beginning, which is too long, too.
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
                    Err(error) if matches!(error.kind, ErrorKind::NotFound) => return Ok(None),
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
