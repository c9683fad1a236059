//! The moment at which a new version is decided, and what comes before and after it.

use std::sync::Arc;

use futures::TryStreamExt;
use uuid::Uuid;

use crate::digest::Digests;
use crate::ocfl::chunks;
use crate::ocfl::error::OcflError;
use crate::ocfl::finish::is_race;
use crate::ocfl::inventory::Inventory;
use crate::ocfl::object::{Current, INVENTORY, Object};
use crate::ocfl::path;
use crate::ocfl::writer::Writer;
use crate::sorted::{Merged, Record, Table, changed};
use crate::store::{Condition, EntityTag, Put};

impl Writer {
    /// Makes the version, and returns its number. Once this has returned, every reader sees it.
    ///
    /// # Errors
    /// [`OcflError::Conflict`] when another job made this version; what this one stored is removed then.
    /// [`OcflError::Damaged`] when content that was stored is gone: another process took this writer for dead. After
    /// any other error the version may have been made: begin it again with the same job, to finish it or to learn that
    /// it was.
    pub async fn commit(self) -> Result<u32, OcflError> {
        let Self { object, job, content, text, version, base, before, state, names, .. } = self;
        let folder = path::content_folder(version, content);
        let has_stored = names.len() > 0;
        let build = {
            let folder = folder.clone();
            move || base.with_version(text, &state, &folder, &names)
        };
        let (inventory, sizes) = object.blocking(build).await?;
        let checked = if has_stored { object.check_content(&folder, &sizes).await } else { Ok(false) };
        let has_more = match checked {
            Ok(has_more) => has_more,
            // The writer that made the version removed what it does not name.
            Err(error) => match object.decided(version).await? {
                Some(decided) => return object.lost(version, (job, content), decided, before).await,
                None => return Err(error),
            },
        };

        let inventory = Arc::new(inventory);
        let of = Arc::clone(&inventory);
        let (digest, size, chunks) = object.blocking(move || chunks::written(of)).await?;
        let put = Put {
            size: Some(size),
            expected: Digests::from_iter([digest.clone()]),
            condition: Condition::IfAbsent,
            ..Put::default()
        };
        let item = object.item(&format!("v{version}/{INVENTORY}"));
        if let Err(error) = object.store.put(&item, chunks, put).await {
            if !is_race(&error) {
                return Err(error.into());
            }
            let Some(decided) = object.decided(version).await? else { return Err(error.into()) };
            if decided.digest != digest {
                return object.lost(version, (job, content), decided, before).await;
            }
        }
        object.finish(version, &digest, before).await?;
        object.remove_all_unnamed(version, &inventory, (!has_more).then_some(content)).await?;
        Ok(version)
    }
}

impl Object {
    /// Sees that all content that a version names is still in the folder of its job, and whether there is more in it:
    /// left by an earlier attempt, or replaced. The sizes are by name.
    async fn check_content(&self, folder: &str, sizes: &Table) -> Result<bool, OcflError> {
        let mut named = Merged::new([sizes], b"");
        let gone = |record: &Record| {
            let file = format!("{folder}{}", String::from_utf8_lossy(record.key()));
            self.damaged(&file, "it was written, and is gone; begin the version again")
        };
        let failed = |error| self.temporary(error);
        let mut has_more = false;
        let mut there = std::pin::pin!(self.list(folder));
        while let Some((file, listed)) = there.try_next().await? {
            let name = &self.path_of(&listed.key)[folder.len()..];
            if let Some(record) = named.next_if(|record| record.key() < name).map_err(failed)? {
                return Err(gone(&record));
            }
            match named.next_if(|record| record.key() == name).map_err(failed)? {
                Some(record) if record.value() == listed.size.to_le_bytes() => {}
                Some(record) => {
                    let size = record.value().try_into().map(u64::from_le_bytes).map_err(|_| failed(changed()))?;
                    let why = format!("it has {} bytes, and {size} were written", listed.size);
                    return Err(self.damaged(&file, why));
                }
                None => has_more = true,
            }
        }
        match named.next().transpose().map_err(failed)? {
            None => Ok(has_more),
            Some(record) => Err(gone(&record)),
        }
    }

    /// Sees that all content is there that an inventory names in the folder of a version: its writer may have been
    /// taken for dead, and have made the version all the same.
    pub(super) async fn check_named(&self, version: u32, inventory: &Inventory) -> Result<(), OcflError> {
        let folder = format!("v{version}/content/");
        let mut named = inventory.content_within(&folder);
        let failed = |error| self.temporary(error);
        let gone = |record: &Record| {
            let file = String::from_utf8_lossy(record.key()).into_owned();
            self.damaged(&file, "its version is made, and it is gone")
        };
        let mut there = std::pin::pin!(self.list(&folder));
        while let Some((_, listed)) = there.try_next().await? {
            let path = self.path_of(&listed.key);
            if let Some(record) = named.next_if(|record| record.key() < path).map_err(failed)? {
                return Err(gone(&record));
            }
            named.next_if(|record| record.key() == path).map_err(failed)?;
        }
        named.next().transpose().map_err(failed)?.map_or(Ok(()), |record| Err(gone(&record)))
    }

    /// What becomes of a writer whose version was decided by another one: where that was the same job, it is made.
    async fn lost(
        &self,
        version: u32,
        (job, content): (Uuid, Uuid),
        decided: Current,
        before: Option<EntityTag>,
    ) -> Result<u32, OcflError> {
        self.remove_unnamed(version, content, &decided.inventory).await?;
        if decided.inventory.version_of(job) != Some(version) {
            return Err(OcflError::Conflict { id: self.id().to_owned(), version });
        }
        self.finish(version, &decided.digest, before).await?;
        Ok(version)
    }
}
