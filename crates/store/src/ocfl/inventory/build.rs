//! The inventory of a new version, from that of the version before.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::relations::{Relating, Relations, algorithm_place, version_key};
use super::{Inventory, User, Version};
use crate::digest::{Algorithm, Digest};
use crate::ocfl::path::text;
use crate::sorted::{Map, Sorter, Table, changed};

/// What a new version says of itself.
#[derive(Clone, Debug)]
pub(in crate::ocfl) struct VersionText {
    pub(in crate::ocfl) created: String,
    pub(in crate::ocfl) message: String,
    pub(in crate::ocfl) user: User,
}

/// Content that was stored for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ocfl) struct Stored {
    pub(in crate::ocfl) sha512: [u8; 64],
    pub(in crate::ocfl) sha256: [u8; 32],
    pub(in crate::ocfl) size: u64,
}

impl Stored {
    /// As the value of a record.
    pub(in crate::ocfl) fn to_bytes(self) -> Vec<u8> {
        [&self.sha512[..], &self.sha256, &self.size.to_le_bytes()].concat()
    }

    pub(in crate::ocfl) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sha512, rest) = bytes.split_first_chunk()?;
        let (sha256, size) = rest.split_first_chunk()?;
        Some(Self { sha512: *sha512, sha256: *sha256, size: u64::from_le_bytes(size.try_into().ok()?) })
    }
}

impl Inventory {
    /// An object without versions: no inventory yet, but what the first one is made from.
    pub(in crate::ocfl) fn empty(id: &str, directory: &Arc<Path>) -> Self {
        Self {
            id: id.to_owned(),
            names_content_directory: false,
            versions: Vec::new(),
            algorithms: Vec::new(),
            relations: Relations::default(),
            directory: Arc::clone(directory),
        }
    }

    /// This inventory with one version more, which has these files, by logical path; and the names of its content with
    /// their sizes. Of what was stored, by its name in a folder, that is taken into the manifest which the version has;
    /// the rest is named by no inventory.
    pub(in crate::ocfl) fn with_version(
        &self,
        about: VersionText,
        state: &Map,
        folder: &str,
        stored: &Map,
    ) -> io::Result<(Self, Table)> {
        let number = self.head() + 1;
        let mut states = Relating::new(&self.directory);
        for file in state.iter() {
            let (path, digest) = file?;
            states.file(number, &digest, text(&path)?)?;
        }
        let states = states.finish()?;

        let mut by_digest = Sorter::new(&self.directory);
        for item in stored.iter() {
            let (name, value) = item?;
            // What has no value is left from an earlier attempt.
            if !value.is_empty() {
                by_digest.push(&[&value, name.as_slice()].concat(), &value)?;
            }
        }
        let mut inventory = self.clone();
        let sha256 = algorithm_place(&mut inventory.algorithms, Algorithm::Sha256.as_str());
        let sha256 = u8::try_from(sha256).map_err(io::Error::other)?;
        let (mut content, mut sizes) = (Relating::new(&self.directory), Sorter::new(&self.directory));
        let mut used = states.states_by_digest.all();
        for item in by_digest.merged() {
            let item = item?;
            let stored = Stored::from_bytes(item.value()).ok_or_else(changed)?;
            let name = text(item.key().get(item.value().len()..).ok_or_else(changed)?)?;
            let key = [&version_key(number)[..], &stored.sha512].concat();
            used.seek(&key)?;
            if !used.peek()?.is_some_and(|file| file.key().starts_with(&key)) {
                continue;
            }
            let path = format!("{folder}{name}");
            content.content(&stored.sha512, &path)?;
            content.fixity(sha256, &hex(&stored.sha256)?, &path)?;
            sizes.push(name.as_bytes(), &stored.size.to_le_bytes())?;
        }
        inventory.relations.extend(states);
        inventory.relations.extend(content.finish()?);
        let VersionText { created, message, user } = about;
        inventory.versions.push(Version { created, message: Some(message), user: Some(user), files: state.len() });
        Ok((inventory, sizes.finish()?))
    }
}

fn hex(sha256: &[u8]) -> io::Result<String> {
    Digest::new(Algorithm::Sha256, sha256).map(|digest| digest.hex()).map_err(|_| changed())
}
