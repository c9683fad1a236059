//! Removing content that no inventory names.

use futures::TryStreamExt;
use uuid::Uuid;

use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::Inventory;
use crate::ocfl::object::Object;
use crate::ocfl::path;

/// What is done with content that no inventory names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unnamed {
    Count,
    Remove,
}

impl Object {
    /// Removes what a job stored for a version and no inventory names; returns how many items that were. The version must
    /// be decided: no inventory can come to name it then. The inventory is that of the version or of a later one.
    pub(super) async fn remove_unnamed(
        &self,
        version: u32,
        job: Uuid,
        inventory: &Inventory,
    ) -> Result<u64, OcflError> {
        self.unnamed(version, job, inventory, Unnamed::Remove).await
    }

    /// The same, or only the number.
    pub(super) async fn unnamed(
        &self,
        version: u32,
        job: Uuid,
        inventory: &Inventory,
        what: Unnamed,
    ) -> Result<u64, OcflError> {
        let mut count = 0;
        let folder = path::content_folder(version, job);
        let mut content = inventory.content_within(&folder);
        let mut there = std::pin::pin!(self.list(&folder));
        while let Some((_, listed)) = there.try_next().await? {
            if !content.has(self.path_of(&listed.key)).map_err(|error| self.temporary(error))? {
                if what == Unnamed::Remove {
                    self.store.delete(&self.item_at(listed.key), None).await?;
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// As [`Self::remove_unnamed`], for all jobs but one whose content is known to be named.
    pub(super) async fn remove_all_unnamed(
        &self,
        version: u32,
        inventory: &Inventory,
        but: Option<Uuid>,
    ) -> Result<u64, OcflError> {
        let mut removed = 0;
        for job in self.jobs_with_content(version).await? {
            if but != Some(job) {
                removed += self.remove_unnamed(version, job, inventory).await?;
            }
        }
        Ok(removed)
    }

    /// Removes or counts everything below a folder; returns how many items that were.
    pub(super) async fn whole_folder(&self, folder: &str, what: Unnamed) -> Result<u64, OcflError> {
        let mut count = 0;
        let mut there = std::pin::pin!(self.list(folder));
        while let Some((_, listed)) = there.try_next().await? {
            if what == Unnamed::Remove {
                self.store.delete(&self.item_at(listed.key), None).await?;
            }
            count += 1;
        }
        Ok(count)
    }

    /// The jobs that have content in the folder of a version. Folders that no writer of ours made are left out.
    pub(super) async fn jobs_with_content(&self, version: u32) -> Result<Vec<Uuid>, OcflError> {
        let folders = self.folders(&format!("v{version}/content/")).await?;
        let jobs = folders.iter().filter_map(|name| Some((name, name.parse::<Uuid>().ok()?)));
        // Only the form in which they are written.
        Ok(jobs.filter(|(name, job)| **name == job.to_string()).map(|(_, job)| job).collect())
    }
}
