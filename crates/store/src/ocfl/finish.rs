//! What follows once a version is decided, that is, once its inventory lies in its folder. Each step may be made by
//! several processes at once and repeated by any; the conditions see to it that none goes back behind another.

use bytes::Bytes;
use futures::StreamExt;

use crate::digest::{Digest, Digests};
use crate::error::{Error, ErrorKind};
use crate::ocfl::error::OcflError;
use crate::ocfl::object::{Current, INVENTORY, Object, RootState, SIDECAR, is_absent, sidecar_text};
use crate::store::{Condition, EntityTag, Put};

const DECLARATION_KEY: &str = "0=ocfl_object_1.1";
pub(super) const DECLARATION: &str = "ocfl_object_1.1\n";

/// How often a step is tried against others who make the same.
const ATTEMPTS: u32 = 16;

impl Object {
    /// Finishes what was decided and not finished, and returns the newest version; `None` where the object does not
    /// exist. The second value is whether something was left to do.
    ///
    /// # Errors
    /// [`OcflError::Damaged`] when the root inventory, or that of a decided version, cannot be used.
    pub(super) async fn settle(&self) -> Result<(Option<Current>, bool), OcflError> {
        let mut was_left = false;
        loop {
            let current = match self.root_state().await? {
                RootState::Sound(current) => Some(*current),
                RootState::Absent => None,
                RootState::Damaged { why, .. } => {
                    return Err(self.damaged(INVENTORY, format!("{why}; repair the object")));
                }
            };
            let next = current.as_ref().map_or(1, |current| current.inventory.head() + 1);
            let Some(decided) = self.decided(next).await? else {
                if let Some(current) = &current {
                    was_left |= self.align_sidecar(&current.digest, &current.etag, false).await?;
                    was_left |= self.declare(false).await?;
                }
                return Ok((current, was_left));
            };
            was_left = true;
            self.finish(next, &decided.digest, current.map(|current| current.etag)).await?;
        }
    }

    /// The inventory in the folder of a version, where it is there.
    pub(super) async fn decided(&self, version: u32) -> Result<Option<Current>, OcflError> {
        let file = format!("v{version}/{INVENTORY}");
        match self.load(&file).await? {
            None => Ok(None),
            Some((_, Err(why))) => Err(self.damaged(&file, why)),
            Some((_, Ok((inventory, _)))) if inventory.head() != version => {
                Err(self.damaged(&file, format!("its head is v{}", inventory.head())))
            }
            Some((etag, Ok((inventory, digest)))) => Ok(Some(Current { inventory, digest, etag })),
        }
    }

    /// Makes a decided version the newest for readers. `before` is the entity tag of the root inventory so far.
    pub(super) async fn finish(
        &self,
        version: u32,
        digest: &Digest,
        before: Option<EntityTag>,
    ) -> Result<(), OcflError> {
        let sidecar = format!("v{version}/{SIDECAR}");
        if !self.put_text(&sidecar, sidecar_text(digest), Condition::IfAbsent).await? {
            let named = self.sidecar(&sidecar).await?.map(|(named, _)| named);
            if named != Some(Ok(digest.clone())) {
                return Err(
                    self.damaged(&sidecar, format!("it does not name {digest}, which v{version}/{INVENTORY} has"))
                );
            }
        }
        let is_new = before.is_none();
        let etag = self.advance(version, digest, before).await?;
        if let Some(etag) = etag {
            self.align_sidecar(digest, &etag, is_new).await?;
        }
        self.declare(is_new).await?;
        Ok(())
    }

    /// Puts the inventory of a version at the root. `None` where the root has a newer one by now.
    async fn advance(
        &self,
        version: u32,
        digest: &Digest,
        mut before: Option<EntityTag>,
    ) -> Result<Option<EntityTag>, OcflError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let from = self.store.get(&self.item(&format!("v{version}/{INVENTORY}")), None, None).await?;
            let put = Put {
                size: Some(from.properties.size),
                expected: Digests::from_iter([digest.clone()]),
                condition: before.map_or(Condition::IfAbsent, Condition::IfMatch),
                ..Put::default()
            };
            let failed = match self.store.put(&self.item(INVENTORY), from.chunks, put).await {
                Ok(written) => return Ok(Some(written.etag)),
                Err(error) if is_race(&error) => error,
                Err(error) => return Err(error.into()),
            };
            before = match self.root_state().await? {
                RootState::Absent => None,
                RootState::Sound(current) if current.inventory.head() > version => return Ok(None),
                RootState::Sound(current) if current.inventory.head() == version => return Ok(Some(current.etag)),
                RootState::Sound(current) => Some(current.etag),
                RootState::Damaged { why, .. } => return Err(self.damaged(INVENTORY, why)),
            };
            if attempt == ATTEMPTS {
                return Err(failed.into());
            }
        }
    }

    /// Makes the root sidecar name the digest of the root inventory, which has this entity tag; returns whether it did
    /// not. The sidecar is read before the inventory's tag is compared, and written only over what was read, so that
    /// none that is older replaces one that is newer. That of a new object is read only where the write is refused
    /// because there is one.
    pub(super) async fn align_sidecar(
        &self,
        digest: &Digest,
        etag: &EntityTag,
        is_new: bool,
    ) -> Result<bool, OcflError> {
        let (mut digest, mut etag) = (digest.clone(), etag.clone());
        let mut attempt = 0;
        loop {
            attempt += 1;
            let sidecar = if is_new && attempt == 1 { None } else { self.sidecar(SIDECAR).await? };
            if sidecar.as_ref().is_some_and(|(named, _)| named.as_ref() == Ok(&digest)) {
                return Ok(attempt > 1);
            }
            let root = self.store.head(&self.item(INVENTORY)).await?;
            let is_same = root.is_some_and(|root| root.etag == etag);
            let condition = sidecar.map_or(Condition::IfAbsent, |(_, etag)| Condition::IfMatch(etag));
            if is_same && self.put_text(SIDECAR, sidecar_text(&digest), condition).await? {
                return Ok(true);
            }
            if attempt == ATTEMPTS {
                return Err(self.damaged(SIDECAR, "other writers change it again and again; begin again later"));
            }
            match self.root_state().await? {
                RootState::Sound(current) => (digest, etag) = (current.digest, current.etag),
                RootState::Absent => return Err(self.damaged(INVENTORY, "it was removed")),
                RootState::Damaged { why, .. } => return Err(self.damaged(INVENTORY, why)),
            }
        }
    }

    /// Whether the root sidecar names this digest and the object is declared.
    pub(super) async fn is_finished(&self, digest: &Digest) -> Result<bool, OcflError> {
        Ok(self.confirms(SIDECAR, digest).await? && self.is_declared().await?)
    }

    async fn is_declared(&self) -> Result<bool, OcflError> {
        Ok(self.store.head(&self.item(DECLARATION_KEY)).await?.is_some())
    }

    /// Writes the declaration of the object where it is missing; returns whether it was. For a new object it is
    /// not looked for before.
    async fn declare(&self, is_new: bool) -> Result<bool, OcflError> {
        if !is_new && self.is_declared().await? {
            return Ok(false);
        }
        let is_written = self.put_text(DECLARATION_KEY, DECLARATION.to_owned(), Condition::IfAbsent).await?;
        Ok(is_written || !is_new)
    }

    /// Writes a small file; `false` where the condition does not hold.
    async fn put_text(&self, file: &str, text: String, condition: Condition) -> Result<bool, OcflError> {
        let put = Put { size: Some(text.len() as u64), condition, ..Put::default() };
        match self.store.put(&self.item(file), futures::stream::iter([Ok(Bytes::from(text))]).boxed(), put).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_precondition() || is_absent(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether another one may have made the same change.
pub(super) fn is_race(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Precondition | ErrorKind::NotFound | ErrorKind::Unknown(_))
}
