//! Repairing what writers left that were stopped.

use futures::TryStreamExt;
use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Digests;
use crate::ocfl::clean::Unnamed;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::Inventory;
use crate::ocfl::object::{Current, INVENTORY, Object, RootState};
use crate::ocfl::path;
use crate::store::{Condition, Put};

/// Which content may be removed that was stored for a version that is not made yet. A living writer could still come to
/// name it, and the store cannot tell one from a dead one: nor does a lock, since its holder may be stopped in the
/// middle of a removal until another one has it. So folders are given up first, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// None.
    None,
    /// That in these folders ([`NewVersion::content`](crate::ocfl::NewVersion::content)): they were given up, and no
    /// writer begins in them again.
    Folders(Vec<Uuid>),
    /// All: nothing else has the store.
    All,
}

/// What a repair did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Whether the root inventory was put back from that of its version, since no sidecar confirmed it.
    pub restored: bool,
    /// Whether a version that was decided, or its sidecars, had to be finished.
    pub finished: bool,
    /// How many items that no inventory names were removed.
    pub removed: u64,
    /// The folders of content that were left, since their writers may be alive: most often the UUIDs of jobs.
    pub left: Vec<Uuid>,
}

impl Object {
    /// Finishes versions that were decided, and removes content that no inventory names: for versions that are made,
    /// all of it, since no inventory can come to name it; for the next version, what is abandoned. Folders that are not
    /// named by a UUID are left alone. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`OcflError::Damaged`] when no inventory is sound; those of the store.
    pub async fn repair(&self, abandoned: &Abandoned) -> Result<Repaired, OcflError> {
        let mut repaired = Repaired { restored: self.restore().await?, ..Repaired::default() };
        let (current, finished) = self.settle().await?;
        repaired.finished = finished;
        let inventory = current.as_ref().map(|current| &current.inventory);
        self.clean(inventory, abandoned, Unnamed::Remove, &mut repaired).await?;
        Ok(repaired)
    }

    /// What [`Self::repair`] would do now. Nothing is changed.
    ///
    /// # Errors
    /// As [`Self::repair`].
    pub async fn plan_repair(&self, abandoned: &Abandoned) -> Result<Repaired, OcflError> {
        let mut planned = Repaired::default();
        let current = self.newest(&mut planned).await?;
        if let Some(current) = &current {
            planned.finished = planned.finished || !self.is_finished(&current.digest).await?;
        }
        let inventory = current.as_ref().map(|current| &current.inventory);
        self.clean(inventory, abandoned, Unnamed::Count, &mut planned).await?;
        Ok(planned)
    }

    /// The folders of content of versions that are not made in which nothing was written since an instant: those to be
    /// given up before they are removed as [`Abandoned::Folders`].
    ///
    /// # Errors
    /// As [`Self::repair`].
    pub async fn idle_since(&self, instant: Timestamp) -> Result<Vec<Uuid>, OcflError> {
        let newest = self.newest(&mut Repaired::default()).await?.map_or(0, |current| current.inventory.head());
        let mut idle = Vec::new();
        for version in self.version_folders().await?.into_iter().filter(|version| *version > newest) {
            for content in self.content_folders(version).await? {
                if self.is_idle(version, content, instant).await? {
                    idle.push(content);
                }
            }
        }
        Ok(idle)
    }

    /// The newest version that is decided, and what is to be done before readers see it.
    async fn newest(&self, planned: &mut Repaired) -> Result<Option<Current>, OcflError> {
        let mut current = match self.root_state().await? {
            RootState::Sound(current) => Some(*current),
            RootState::Absent => {
                // A first version is finished, and nothing put back.
                let newest = self.newest_complete().await?.filter(|newest| newest.inventory.head() > 1);
                planned.restored = newest.is_some();
                newest
            }
            RootState::Damaged { why, .. } => {
                planned.restored = true;
                Some(self.newest_complete().await?.ok_or_else(|| self.damaged(INVENTORY, why))?)
            }
        };
        while let Some(decided) =
            self.decided(current.as_ref().map_or(1, |current| current.inventory.head() + 1)).await?
        {
            planned.finished = true;
            current = Some(decided);
        }
        Ok(current)
    }

    /// Removes or counts the content that no inventory names, by the newest of them.
    async fn clean(
        &self,
        newest: Option<&Inventory>,
        abandoned: &Abandoned,
        what: Unnamed,
        repaired: &mut Repaired,
    ) -> Result<(), OcflError> {
        for version in self.version_folders().await? {
            for content in self.content_folders(version).await? {
                let is_abandoned = match abandoned {
                    Abandoned::None => false,
                    Abandoned::Folders(folders) => folders.contains(&content),
                    Abandoned::All => true,
                };
                match newest {
                    Some(newest) if version <= newest.head() => {
                        repaired.removed += self.unnamed(version, content, newest, what).await?;
                    }
                    _ if is_abandoned => {
                        repaired.removed += self.whole_folder(&path::content_folder(version, content), what).await?;
                    }
                    _ => repaired.left.push(content),
                }
            }
        }
        Ok(())
    }

    /// Whether nothing was written in a folder of content since an instant.
    async fn is_idle(&self, version: u32, content: Uuid, instant: Timestamp) -> Result<bool, OcflError> {
        let mut there = std::pin::pin!(self.list(&path::content_folder(version, content)));
        while let Some((_, listed)) = there.try_next().await? {
            if listed.modified >= instant {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts the newest complete inventory at the root, where none is there that a sidecar confirms.
    async fn restore(&self) -> Result<bool, OcflError> {
        let (condition, why) = match self.root_state().await? {
            RootState::Sound(_) => return Ok(false),
            RootState::Absent => (Condition::IfAbsent, None),
            RootState::Damaged { etag, why } => (Condition::IfMatch(etag), Some(why)),
        };
        let Some(newest) = self.newest_complete().await? else {
            return why.map_or(Ok(false), |why| Err(self.damaged(INVENTORY, why)));
        };
        let version = newest.inventory.head();
        if why.is_none() && version == 1 {
            return Ok(false);
        }
        let from = self.item(&format!("v{version}/{INVENTORY}"));
        let from = self.store.get(&from, None, Some(&newest.etag)).await?;
        let put = Put {
            size: Some(from.properties.size),
            expected: Digests::from_iter([newest.digest]),
            condition,
            ..Put::default()
        };
        self.store.put(&self.item(INVENTORY), from.chunks, put).await?;
        Ok(true)
    }
}
