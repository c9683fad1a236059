//! The inventory of a new version, from that of the version before.

use std::collections::HashSet;

use super::{DigestId, DigestTable, Entry, FixityEntry, Inventory, User, Version};
use crate::digest::{Algorithm, Digest};
use crate::ocfl::strings::{StringId, Strings};

/// What a new version says of itself.
#[derive(Clone, Debug)]
pub(in crate::ocfl) struct VersionText {
    pub(in crate::ocfl) created: String,
    pub(in crate::ocfl) message: String,
    pub(in crate::ocfl) user: User,
}

/// Content that was stored for a version, by the numbers of the inventory that it is for.
#[derive(Clone, Debug)]
pub(in crate::ocfl) struct Stored {
    digest: DigestId,
    path: StringId,
    sha256: Option<StringId>,
    size: u64,
}

impl Stored {
    /// Its SHA-512.
    pub(in crate::ocfl) fn digest(&self) -> DigestId {
        self.digest
    }

    /// The number of its content path.
    pub(in crate::ocfl) fn path(&self) -> StringId {
        self.path
    }

    /// Its size in bytes.
    pub(in crate::ocfl) fn size(&self) -> u64 {
        self.size
    }
}

impl Inventory {
    /// An object without versions: no inventory yet, but what the first one is made from.
    pub(in crate::ocfl) fn empty(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            names_content_directory: false,
            digests: DigestTable::default(),
            paths: Strings::default(),
            manifest: Vec::new(),
            fixity: Vec::new(),
            fixity_algorithms: Strings::default(),
            fixity_digests: Strings::default(),
            versions: Vec::new(),
        }
    }

    /// The number of a digest, a new one where it is new.
    pub(in crate::ocfl) fn intern_digest(&mut self, digest: &Digest) -> DigestId {
        self.digests.intern(digest)
    }

    /// The number of a digest, where it is there.
    pub(in crate::ocfl) fn digest_id(&self, digest: &Digest) -> Option<DigestId> {
        self.digests.find(digest)
    }

    /// The digest of a file of a version, by its logical path.
    pub(in crate::ocfl) fn file_digest(&self, version: u32, path: &str) -> Option<DigestId> {
        let id = self.paths.find(path)?;
        let state = &self.at(version)?.state;
        state.binary_search_by_key(&id, |entry| entry.path).ok().map(|at| state[at].digest)
    }

    /// The files of a version with the numbers of their digests.
    pub(in crate::ocfl) fn state_of(&self, version: u32) -> impl Iterator<Item = (&str, DigestId)> {
        let entries = self.at(version).into_iter().flat_map(|version| &version.state);
        entries.map(|entry| (self.paths.get(entry.path), entry.digest))
    }

    /// Content that was stored under a content path, to be named by the next version.
    pub(in crate::ocfl) fn stored(
        &mut self,
        content_path: &str,
        digest: &Digest,
        size: u64,
        sha256: Option<&Digest>,
    ) -> Stored {
        let sha256 = sha256.map(|sha256| self.fixity_digests.intern(&sha256.hex()));
        Stored { digest: self.digests.intern(digest), path: self.paths.intern(content_path), sha256, size }
    }

    /// The content path of what was stored.
    pub(in crate::ocfl) fn stored_path(&self, stored: &Stored) -> &str {
        self.paths.get(stored.path)
    }

    /// Adds a version with these files. Of what was stored, that is taken into the manifest which the version has; the
    /// rest is named by no inventory.
    pub(in crate::ocfl) fn add_version<'a>(
        &mut self,
        text: VersionText,
        files: impl Iterator<Item = (&'a str, DigestId)>,
        stored: impl Iterator<Item = &'a Stored>,
    ) {
        let mut state: Vec<_> = files.map(|(path, digest)| Entry { digest, path: self.paths.intern(path) }).collect();
        state.sort_unstable_by_key(|entry| entry.path);
        let used: HashSet<_> = state.iter().map(|entry| entry.digest).collect();
        for Stored { digest, path, sha256, .. } in stored.filter(|stored| used.contains(&stored.digest)) {
            let (digest, path) = (*digest, *path);
            self.manifest.push(Entry { digest, path });
            if let Some(sha256) = *sha256 {
                let algorithm = self.fixity_algorithms.intern(Algorithm::Sha256.as_str());
                self.fixity.push(FixityEntry { algorithm, digest: sha256, path });
            }
        }
        self.manifest.sort_unstable();
        let VersionText { created, message, user } = text;
        self.versions.push(Version { created, message: Some(message), user: Some(user), state });
    }
}
