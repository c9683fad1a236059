//! The delivery store: archives under names of their own, which are removed after a time.

use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use queuekeeper_store::store::{Chunks, CommitGuard, Condition, EntityTag, Properties, Put, UserProperties};
use queuekeeper_store::{Digests, Error, ErrorKind, Item, Key, Store};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::settings::AccessSettings;
use super::token::Format;
use crate::engine::fence::Fence;

/// The property of an archive with its name for people.
pub(super) const NAME: &str = "name";

/// The item with the key of the signatures.
pub(super) const SIGNING_KEY: &str = "signing-key";

/// The archives that were delivered.
pub struct Deliveries {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: AccessSettings,
    pub(super) key: OnceCell<hmac::Key>,
}

impl std::fmt::Debug for Deliveries {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Deliveries({}/{})", self.settings.store, self.settings.space)
    }
}

/// Has content appear only while the session that writes it may be relied on.
struct Fenced(Fence);

#[async_trait]
impl CommitGuard for Fenced {
    async fn pass(&self, _size: u64, _digests: &Digests) -> Result<(), String> {
        self.0.pass().await;
        Ok(())
    }
}

impl Deliveries {
    /// Those of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, settings: AccessSettings) -> Self {
        Self { store, settings, key: OnceCell::new() }
    }

    /// What an operator has set.
    #[must_use]
    pub fn settings(&self) -> &AccessSettings {
        &self.settings
    }

    /// The properties of an archive that was delivered before; `None` where there is none, or less than half of its
    /// time is left: it is to be made again.
    pub(super) async fn find(&self, name: &str, now: Timestamp) -> Result<Option<Properties>, Error> {
        self.store.create_space(&self.settings.space).await?;
        let item = self.item(name);
        let Some(found) = self.store.head(&item).await? else { return Ok(None) };
        let half = SignedDuration::try_from(self.settings.lifetime / 2).unwrap_or(SignedDuration::MAX);
        if now.duration_since(found.modified) < half {
            return Ok(Some(found));
        }
        match self.store.delete(&item, Some(&found.etag)).await {
            Ok(_) => Ok(None),
            Err(error) if error.is_precondition() => self.store.head(&item).await,
            Err(error) => Err(error),
        }
    }

    /// Writes an archive, which appears whole or not at all; one that another attempt has written stays.
    pub(super) async fn put(&self, name: &str, shown: &str, chunks: Chunks, fence: &Fence) -> Result<(), Error> {
        let user =
            UserProperties { metadata: [(NAME.to_owned(), shown.to_owned())].into(), ..UserProperties::default() };
        let guard = Some(Arc::new(Fenced(fence.clone())) as Arc<dyn CommitGuard>);
        let put = Put { condition: Condition::IfAbsent, user, guard, ..Put::default() };
        match self.store.put(&self.item(name), chunks, put).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_precondition() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Until when an archive is kept that was written at this time.
    #[must_use]
    pub fn expires(&self, modified: Timestamp) -> Timestamp {
        let lifetime = SignedDuration::try_from(self.settings.lifetime).unwrap_or(SignedDuration::MAX);
        modified.checked_add(lifetime).unwrap_or(Timestamp::MAX)
    }

    /// Removes the archives whose time is over, and returns how many those were.
    ///
    /// # Errors
    /// When the store refuses.
    pub(crate) async fn remove_expired(&self, now: Timestamp) -> Result<usize, Error> {
        let mut removed = 0;
        let mut items = self.store.list(&self.settings.space, b"", None);
        loop {
            let listed = match items.try_next().await {
                Ok(Some(listed)) => listed,
                Ok(None) | Err(Error { kind: ErrorKind::NoSpace, .. }) => return Ok(removed),
                Err(error) => return Err(error),
            };
            if is_delivery(&listed.key) && self.expires(listed.modified) <= now {
                let (item, etag): (_, Option<EntityTag>) =
                    (Item::new(self.settings.space.clone(), listed.key), listed.etag);
                match self.store.delete(&item, etag.as_ref()).await {
                    Ok(_) => removed += 1,
                    // It was made again meanwhile.
                    Err(error) if error.is_precondition() => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    pub(super) fn item(&self, name: &str) -> Item {
        // A name that no item can have is no archive's, nor is that of the key.
        let key = Key::new(name.as_bytes()).unwrap_or_else(|_| signing_key());
        Item::new(self.settings.space.clone(), key)
    }
}

/// Whether a key is that of an archive: nothing else in the space is removed.
fn is_delivery(key: &Key) -> bool {
    let name = key.as_str().and_then(|name| name.rsplit_once('.'));
    name.is_some_and(|(uuid, format)| uuid.parse::<Uuid>().is_ok() && format.parse::<Format>().is_ok())
}

/// The key of that item.
pub(super) fn signing_key() -> Key {
    Key::new(SIGNING_KEY.as_bytes()).expect("the name is short")
}
