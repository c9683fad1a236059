//! Repairing what writers left that were stopped.

use futures::TryStreamExt;
use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Digests;
use crate::ocfl::clean::Unnamed;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::Inventory;
use crate::ocfl::object::{INVENTORY, Object, RootState};
use crate::ocfl::path;
use crate::store::{Condition, Put};

/// Whose content may be removed that was stored for a version that is not made yet. A living writer could still come to
/// name it, and the store cannot tell one from a dead one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// That of no job.
    None,
    /// That of these jobs, which are known to be over.
    Jobs(Vec<Uuid>),
    /// That of jobs that have written nothing since.
    Since(Timestamp),
    /// That of all jobs: the caller knows by its lock that no one writes to the object.
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
    /// Jobs whose content was left, since they may be alive.
    pub left: Vec<Uuid>,
}

impl Object {
    /// Finishes versions that were decided, and removes content that no inventory names: for versions that are made, all
    /// of it, since no inventory can come to name it; for the next version, that of abandoned jobs. Folders that are not named
    /// after a job are left alone. Repeating it changes nothing.
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
        if let Some(current) = &current {
            planned.finished = planned.finished || !self.is_finished(&current.digest).await?;
        }
        let inventory = current.as_ref().map(|current| &current.inventory);
        self.clean(inventory, abandoned, Unnamed::Count, &mut planned).await?;
        Ok(planned)
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
            for job in self.jobs_with_content(version).await? {
                match newest {
                    Some(newest) if version <= newest.head() => {
                        repaired.removed += self.unnamed(version, job, newest, what).await?;
                    }
                    _ if self.is_abandoned(version, job, abandoned).await? => {
                        repaired.removed += self.whole_folder(&path::content_folder(version, job), what).await?;
                    }
                    _ => repaired.left.push(job),
                }
            }
        }
        Ok(())
    }

    async fn is_abandoned(&self, version: u32, job: Uuid, abandoned: &Abandoned) -> Result<bool, OcflError> {
        match abandoned {
            Abandoned::None => Ok(false),
            Abandoned::Jobs(jobs) => Ok(jobs.contains(&job)),
            Abandoned::All => Ok(true),
            Abandoned::Since(instant) => {
                let mut there = std::pin::pin!(self.list(&path::content_folder(version, job)));
                while let Some((_, listed)) = there.try_next().await? {
                    if listed.modified >= *instant {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
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
