//! The content of objects, as it lies in the stores of their collections.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use queuekeeper_catalogue::inventory::{File, Object};
use queuekeeper_store::ocfl::{OcflError, Root};
use queuekeeper_store::store::Content;
use queuekeeper_store::{Algorithm, Digest, SpaceName, Store, StoreName};

use crate::services::Services;

/// Opens a store of the configuration; `None` where there is none of that name.
pub type OpenStore = Arc<
    dyn Fn(StoreName) -> BoxFuture<'static, Option<Result<Arc<dyn Store>, queuekeeper_store::Error>>> + Send + Sync,
>;

/// Where the content of objects is, by the profiles of their collections.
#[derive(Clone)]
pub struct ObjectReader {
    services: Arc<Services>,
    open: OpenStore,
    roots: Arc<Mutex<BTreeMap<(StoreName, SpaceName), Root>>>,
}

/// The content of a file, while it is read.
pub struct Opened {
    /// The SHA-512 that the catalogue has of it.
    pub digest: Digest,
    /// The content, of the size that the catalogue has. Its chunks end with an error where it does not have that
    /// digest.
    pub content: Content,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("properties", &self.content.properties).finish_non_exhaustive()
    }
}

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The collection has no profile.
    #[error("the collection {0:?} has no profile")]
    NoProfile(String),
    /// The store of the profile is not in the configuration.
    #[error("there is no store {0}")]
    NoStore(StoreName),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] queuekeeper_store::Error),
    /// The space of the profile has no items.
    #[error("the space {0}/{1} is empty")]
    Empty(StoreName, SpaceName),
    /// The content cannot be read.
    #[error(transparent)]
    Read(#[from] OcflError),
    /// The catalogue lacks what the content is compared with.
    #[error("the catalogue has no SHA-512 of it")]
    NoDigest,
    /// The content is damaged.
    #[error("it has {recorded} bytes in the catalogue, but {found} in the store")]
    Size {
        /// In the catalogue.
        recorded: u64,
        /// In the store.
        found: u64,
    },
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl ObjectReader {
    /// By the profiles of these services. A store is opened by `open` when it is needed first, unless the services have
    /// it open.
    #[must_use]
    pub fn new(services: Arc<Services>, open: OpenStore) -> Self {
        Self { services, open, roots: Arc::default() }
    }

    /// Opens a file of an object, by what the catalogue has of it.
    ///
    /// # Errors
    /// When its place is unknown, it cannot be read, or its size is another one.
    pub async fn read(&self, object: &Object, file: &File) -> Result<Opened, ContentError> {
        let digest = file.digests.get(Algorithm::Sha512).ok_or(ContentError::NoDigest)?;
        let root = self.root(&object.collection).await?;
        let content = root.object(&object.ark)?.content(&file.content_path, digest).await?;
        let (recorded, found) = (file.size, content.properties.size);
        if recorded != found {
            return Err(ContentError::Size { recorded, found });
        }
        Ok(Opened { digest: digest.clone(), content })
    }

    /// Where the objects of a collection lie; `None` where it has no valid profile.
    #[must_use]
    pub fn place(&self, collection: &str) -> Option<(StoreName, SpaceName)> {
        let profiles = self.services.profiles.read();
        profiles.get(collection).map(|profile| (profile.store.clone(), profile.space.clone()))
    }

    /// The storage root of a collection.
    async fn root(&self, collection: &str) -> Result<Root, ContentError> {
        let profile = self.services.profiles.read().get(collection).cloned();
        let profile = profile.ok_or_else(|| ContentError::NoProfile(collection.to_owned()))?;
        let (store, space) = (profile.store.clone(), profile.space.clone());
        let key = (store.clone(), space.clone());
        if let Some(root) = self.roots.lock().get(&key) {
            return Ok(root.clone());
        }
        let opened = match self.services.stores.get(&store) {
            Some(opened) => Arc::clone(opened),
            None => (self.open)(store.clone()).await.ok_or_else(|| ContentError::NoStore(store.clone()))??,
        };
        let root = Root::open_existing(opened, space.clone()).await?;
        let root = root.ok_or(ContentError::Empty(store, space))?;
        self.roots.lock().insert(key, root.clone());
        Ok(root)
    }
}
