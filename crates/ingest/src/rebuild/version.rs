//! The rows that a version of an object should have.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::inventory::{File, NewVersion};
use queuekeeper_store::ocfl::{FileEntry, Snapshot};

use super::described::Described;
use super::{Stop, skip};
use crate::steps::media_type_of_system_file;
use crate::steps::processing::SYSTEM;

/// The largest file of ingest that is read, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// The versions of an object, in the order of their numbers.
pub(super) struct Versions<'a> {
    snapshot: &'a Snapshot,
    /// The sizes of the version before, by content path.
    sizes: HashMap<String, u64>,
}

impl<'a> Versions<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, sizes: HashMap::new() }
    }

    /// What is recorded of the next version: of itself, when it was stored, and its files, sorted by path.
    pub(super) async fn read(&mut self, number: u32) -> Result<(NewVersion, Timestamp, Vec<File>), Stop> {
        let inventory = self.snapshot.inventory();
        let in_version = |why: String| skip(format!("version {number}: {why}"));
        let info = inventory.version(number).ok_or_else(|| in_version("it is missing".to_owned()))?;
        let job =
            info.job().ok_or_else(|| in_version("its message names no job, so another program made it".to_owned()))?;
        let stored = info.created.parse().map_err(|error| in_version(format!("its time: {error}")))?;
        let ark = inventory.id();
        let [ingest, owner, erc] = [
            self.text(number, "mrt-ingest.txt").await?,
            self.text(number, "mrt-owner.txt").await?,
            self.text(number, "mrt-erc.txt").await?,
        ];
        let described = Described::read(ark, &ingest, &owner, &erc).map_err(in_version)?;
        let new = NewVersion {
            ark: ark.to_owned(),
            owner: described.owner,
            collection: described.collection,
            title: described.title,
            creator: described.creator,
            date: described.date,
            number,
            job,
            batch: described.batch,
            submitter: info.user.map(|user| user.name.clone()).unwrap_or_default(),
            message: info.message.unwrap_or_default().to_owned(),
            local_ids: described.local_ids,
        };
        let mut files = Vec::with_capacity(info.files);
        for entry in inventory.files(number) {
            files.push(self.file(number, entry?).await?);
        }
        files.sort_by(|one: &File, other| one.path.cmp(&other.path));
        self.sizes = files.iter().map(|file| (file.content_path.clone(), file.size)).collect();
        Ok((new, stored, files))
    }

    async fn file(&self, number: u32, entry: FileEntry) -> Result<File, Stop> {
        let size = if let Some(size) = self.sizes.get(&entry.content_path) {
            *size
        } else {
            let missing = || skip(format!("version {number}: the content of {:?} is missing", entry.path));
            self.snapshot.head(&entry).await?.ok_or_else(missing)?.size
        };
        let before = self.snapshot.inventory().file(number - 1, &entry.path)?;
        let name = entry.path.strip_prefix(SYSTEM).and_then(|name| name.strip_prefix('/'));
        Ok(File {
            media_type: name.map(media_type_of_system_file).map(ToOwned::to_owned),
            is_billable: before.is_none_or(|before| before.digest != entry.digest),
            path: entry.path,
            content_path: entry.content_path,
            size,
            digests: std::iter::once(entry.digest).collect(),
        })
    }

    /// A file of ingest, which is small.
    async fn text(&self, number: u32, name: &str) -> Result<String, Stop> {
        let path = format!("{SYSTEM}/{name}");
        let wrong = |why: String| skip(format!("version {number}: {path}: {why}"));
        let mut content = self.snapshot.open(number, &path).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = content.chunks.try_next().await.map_err(|error| wrong(error.to_string()))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST_BYTES {
                return Err(wrong(format!("it has more than {MOST_BYTES} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))
    }
}
