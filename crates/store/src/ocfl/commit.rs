//! The moment at which a new version is decided, and what comes before and after it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;
use tokio::task;
use uuid::Uuid;

use crate::digest::Digests;
use crate::ocfl::error::OcflError;
use crate::ocfl::feed;
use crate::ocfl::finish::is_race;
use crate::ocfl::inventory::measure;
use crate::ocfl::object::{Current, INVENTORY, Object};
use crate::ocfl::path;
use crate::ocfl::writer::Writer;
use crate::store::{Condition, EntityTag, Put};

impl Writer {
    /// Makes the version, and returns its number. Once this has returned, every reader sees it.
    ///
    /// # Errors
    /// [`OcflError::Conflict`] when another job made this version; what this one stored is removed then.
    /// [`OcflError::Damaged`] when content that was stored is gone: another process took this writer for dead. After any other
    /// error the version may have been made: begin it again with the same job, to finish it or to learn that it was.
    pub async fn commit(mut self) -> Result<u32, OcflError> {
        let has_more = match self.check_content().await {
            Ok(has_more) => has_more,
            // The writer that made the version removed what it does not name.
            Err(error) => match self.object.decided(self.version).await? {
                Some(decided) => return self.object.lost(self.version, self.job, decided, self.before).await,
                None => return Err(error),
            },
        };
        let state = std::mem::take(&mut self.state);
        let files = state.iter().map(|(path, digest)| (path.as_ref(), *digest));
        self.base.add_version(self.text.clone(), files, self.stored.values());
        drop(state);

        let Self { object, job, version, base, before, .. } = self;
        let inventory = Arc::new(base);
        let measured = Arc::clone(&inventory);
        let measured = task::spawn_blocking(move || measure(&measured)).await;
        let (digest, size) = measured.map_err(|error| object.damaged(INVENTORY, error.to_string()))?;
        let put = Put {
            size: Some(size),
            expected: Digests::from_iter([digest.clone()]),
            condition: Condition::IfAbsent,
            ..Put::default()
        };
        let item = object.item(&format!("v{version}/{INVENTORY}"));
        if let Err(error) = object.store.put(&item, feed::inventory_chunks(Arc::clone(&inventory)), put).await {
            if !is_race(&error) {
                return Err(error.into());
            }
            let Some(decided) = object.decided(version).await? else { return Err(error.into()) };
            if decided.digest != digest {
                return object.lost(version, job, decided, before).await;
            }
        }
        object.finish(version, &digest, before).await?;
        object.remove_all_unnamed(version, &inventory, (!has_more).then_some(job)).await?;
        Ok(version)
    }

    /// Gives the version up, and removes what was stored for it.
    ///
    /// # Errors
    /// Those of the store; what is left then is removed by the writer that makes this version.
    pub async fn abandon(self) -> Result<(), OcflError> {
        match self.object.decided(self.version).await? {
            Some(decided) => self.object.remove_unnamed(self.version, self.job, &decided.inventory).await?,
            None => self.object.remove_folder(&path::content_folder(self.version, self.job)).await?,
        };
        Ok(())
    }

    /// Sees that all content that was stored is still there, and whether there is more in its folder than the version
    /// has: left by an earlier attempt, or replaced.
    async fn check_content(&self) -> Result<bool, OcflError> {
        if self.names.is_empty() {
            return Ok(false);
        }
        let used: HashSet<_> = self.state.values().copied().collect();
        let stored = self.stored.values().filter(|stored| used.contains(&stored.digest()));
        let mut missing: HashMap<&str, u64> =
            stored.map(|stored| (self.base.stored_path(stored), stored.size())).collect();
        let mut has_more = false;
        let mut there = std::pin::pin!(self.object.list(&path::content_folder(self.version, self.job)));
        while let Some((file, listed)) = there.try_next().await? {
            match missing.remove(file.as_str()) {
                Some(size) if size == listed.size => {}
                Some(size) => {
                    let why = format!("it has {} bytes, and {size} were written", listed.size);
                    return Err(self.object.damaged(&file, why));
                }
                None => has_more = true,
            }
        }
        match missing.keys().min() {
            None => Ok(has_more),
            Some(file) => Err(self.object.damaged(file, "it was written, and is gone; begin the version again")),
        }
    }
}

impl Object {
    /// What becomes of a writer whose version was decided by another one: where that was the same job, it is made.
    async fn lost(
        &self,
        version: u32,
        job: Uuid,
        decided: Current,
        before: Option<EntityTag>,
    ) -> Result<u32, OcflError> {
        self.remove_unnamed(version, job, &decided.inventory).await?;
        if decided.inventory.version_of(job) != Some(version) {
            return Err(OcflError::Conflict { id: self.id().to_owned(), version });
        }
        self.finish(version, &decided.digest, before).await?;
        Ok(version)
    }
}
