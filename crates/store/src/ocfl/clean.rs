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
    /// Removes what lies in a folder of content of a version and no inventory names; returns how many items that were.
    /// The version must be decided: no inventory can come to name it then. The inventory is that of the version or of a
    /// later one.
    pub(super) async fn remove_unnamed(
        &self,
        version: u32,
        content: Uuid,
        inventory: &Inventory,
    ) -> Result<u64, OcflError> {
        self.unnamed(version, content, inventory, Unnamed::Remove).await
    }

    /// The same, or only the number.
    pub(super) async fn unnamed(
        &self,
        version: u32,
        content: Uuid,
        inventory: &Inventory,
        what: Unnamed,
    ) -> Result<u64, OcflError> {
        let mut count = 0;
        let folder = path::content_folder(version, content);
        let mut named = inventory.content_within(&folder);
        let mut there = std::pin::pin!(self.list(&folder));
        while let Some((_, listed)) = there.try_next().await? {
            if !named.has(self.path_of(&listed.key)).map_err(|error| self.temporary(error))? {
                if what == Unnamed::Remove {
                    self.store.delete(&self.item_at(listed.key), None).await?;
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// As [`Self::remove_unnamed`], for all folders but one whose content is known to be named.
    pub(super) async fn remove_all_unnamed(
        &self,
        version: u32,
        inventory: &Inventory,
        but: Option<Uuid>,
    ) -> Result<u64, OcflError> {
        let mut removed = 0;
        for content in self.content_folders(version).await? {
            if but != Some(content) {
                removed += self.remove_unnamed(version, content, inventory).await?;
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

    /// The folders of content in that of a version. Those that no writer of ours made are left out.
    pub(super) async fn content_folders(&self, version: u32) -> Result<Vec<Uuid>, OcflError> {
        let folders = self.folders(&format!("v{version}/content/")).await?;
        let names = folders.iter().filter_map(|name| Some((name, name.parse::<Uuid>().ok()?)));
        // Only the form in which they are written.
        Ok(names.filter(|(name, uuid)| **name == uuid.to_string()).map(|(_, uuid)| uuid).collect())
    }
}
