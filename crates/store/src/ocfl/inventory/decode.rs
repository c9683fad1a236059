//! Reading an inventory from a stream.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use super::block::{Block, BlockSeed, ObjectSeed, TakeValue, Text};
use super::{
    DigestId, DigestTable, Entry, FixityEntry, Inventory, MOST_ENTRIES, MOST_FILES, MOST_TEXT_BYTES, MOST_VERSIONS,
    User, Version, check,
};
use crate::digest::{Algorithm, Digest};
use crate::ocfl::feed::Feed;
use crate::ocfl::path;
use crate::ocfl::strings::{StringId, Strings};

/// What `type` must be.
pub(super) const TYPE: &str = "https://ocfl.io/1.1/spec/#inventory";

/// An inventory that was read, with the SHA-512 and the size of its text.
#[derive(Debug)]
pub(in crate::ocfl) struct Loaded {
    pub(in crate::ocfl) inventory: Inventory,
    pub(in crate::ocfl) digest: Digest,
    pub(in crate::ocfl) bytes: u64,
}

/// Why an inventory could not be read.
#[derive(Debug)]
pub(in crate::ocfl) enum Failure {
    /// The stream failed.
    Read(io::Error),
    /// It is no inventory that can be used; says why.
    Form(String),
}

/// Reads an inventory to its end. Blocks its thread.
pub(in crate::ocfl) fn decode(mut feed: Feed) -> Result<Loaded, Failure> {
    let mut json = serde_json::Deserializer::from_reader(&mut feed);
    let read = top().deserialize(&mut json).and_then(|parts| json.end().map(|()| parts));
    let parts = match read {
        Ok(parts) => parts,
        Err(error) if error.is_io() => match io::Error::from(error) {
            error if error.kind() == io::ErrorKind::InvalidData => return Err(Failure::Form(error.to_string())),
            error => return Err(Failure::Read(error)),
        },
        Err(error) => return Err(Failure::Form(error.to_string())),
    };
    let inventory = parts.finish().and_then(check::check).map_err(Failure::Form)?;
    let (digest, bytes) = feed.finish();
    Ok(Loaded { inventory, digest, bytes })
}

fn top() -> ObjectSeed<Parts> {
    const KEYS: &[&str] =
        &["id", "type", "digestAlgorithm", "head", "manifest", "versions", "contentDirectory", "fixity"];
    ObjectSeed { what: "the inventory", keys: KEYS, required: 6, take: Parts::default() }
}

/// What was read so far.
#[derive(Default)]
struct Parts {
    id: String,
    head: u32,
    names_content_directory: bool,
    entries: usize,
    digests: DigestTable,
    paths: Strings,
    manifest: Vec<Entry>,
    fixity: Vec<FixityEntry>,
    fixity_algorithms: Strings,
    fixity_digests: Strings,
    versions: BTreeMap<u32, Version>,
}

impl TakeValue for Parts {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        match key {
            0 => self.id = map.next_value_seed(Text(|id: &str| Ok(id.to_owned())))?,
            1 => map.next_value_seed(Text(|text: &str| only(text, TYPE, "type")))?,
            2 => map.next_value_seed(Text(|text: &str| only(text, "sha512", "digestAlgorithm")))?,
            3 => self.head = map.next_value_seed(Text(version_number))?,
            4 => {
                map.next_value_seed(BlockSeed(&mut Manifest { parts: self, digest: 0 }))?;
                self.manifest.sort_unstable();
            }
            5 => map.next_value_seed(Versions(self))?,
            6 => {
                map.next_value_seed(Text(|text: &str| only(text, "content", "contentDirectory")))?;
                self.names_content_directory = true;
            }
            _ => map.next_value_seed(Fixity(self))?,
        }
        Ok(())
    }
}

fn only(text: &str, value: &str, what: &str) -> Result<(), String> {
    if text == value {
        return Ok(());
    }
    Err(format!("{what} is {:?}; this program reads {value:?} only", path::shown(text)))
}

/// `v12` as 12.
fn version_number(name: &str) -> Result<u32, String> {
    let number = name.strip_prefix('v').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.filter(|digits| !digits.starts_with('0')).and_then(|digits| digits.parse().ok());
    let is_allowed = |number: &u32| (1..=MOST_VERSIONS).contains(&(*number as usize));
    let wrong =
        || format!("{:?} is no version name that this program reads (v1 to v{MOST_VERSIONS})", path::shown(name));
    number.filter(is_allowed).ok_or_else(wrong)
}

impl Parts {
    fn count(&mut self) -> Result<(), String> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(format!("more than {MOST_ENTRIES} entries"));
        }
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<StringId, String> {
        self.count()?;
        let id = self.paths.intern(text);
        if self.paths.bytes() > MOST_TEXT_BYTES || self.fixity_digests.bytes() > MOST_TEXT_BYTES {
            return Err(format!("more than {MOST_TEXT_BYTES} bytes of paths or digests"));
        }
        Ok(id)
    }

    fn digest(&mut self, text: &str) -> Result<DigestId, String> {
        let digest = Digest::from_hex(Algorithm::Sha512, text).map_err(|error| error.to_string())?;
        Ok(self.digests.intern(&digest))
    }

    fn finish(self) -> Result<Inventory, String> {
        let (head, count) = (self.head, self.versions.len());
        if !self.versions.keys().copied().eq(1..=head) {
            return Err(format!("head is v{head}, and its {count} versions are not v1 to v{head}"));
        }
        Ok(Inventory {
            id: self.id,
            names_content_directory: self.names_content_directory,
            digests: self.digests,
            paths: self.paths,
            manifest: self.manifest,
            fixity: self.fixity,
            fixity_algorithms: self.fixity_algorithms,
            fixity_digests: self.fixity_digests,
            versions: self.versions.into_values().collect(),
        })
    }
}

struct Manifest<'a> {
    parts: &'a mut Parts,
    digest: DigestId,
}

impl Block for Manifest<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        self.digest = self.parts.digest(digest)?;
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        path::check(text).map_err(|error| error.to_string())?;
        let path = self.parts.path(text)?;
        self.parts.manifest.push(Entry { digest: self.digest, path });
        Ok(())
    }
}

struct State<'a> {
    parts: &'a mut Parts,
    digest: DigestId,
    entries: Vec<Entry>,
}

impl Block for State<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        self.digest = self.parts.digest(digest)?;
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        path::check(text).map_err(|error| error.to_string())?;
        if self.entries.len() == MOST_FILES {
            return Err(format!("more than {MOST_FILES} files in a version"));
        }
        let path = self.parts.path(text)?;
        self.entries.push(Entry { digest: self.digest, path });
        Ok(())
    }
}

/// The fixity block: a block for each algorithm.
struct Fixity<'a>(&'a mut Parts);

struct FixityBlock<'a> {
    parts: &'a mut Parts,
    algorithm: StringId,
    digest: StringId,
}

impl Block for FixityBlock<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        self.digest = self.parts.fixity_digests.intern(digest);
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        let path = self.parts.path(text)?;
        self.parts.fixity.push(FixityEntry { algorithm: self.algorithm, digest: self.digest, path });
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Fixity<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fixity<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object of algorithms")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let parts = self.0;
        while let Some(algorithm) = map.next_key_seed(Text(|name: &str| Ok(parts.fixity_algorithms.intern(name))))? {
            if parts.fixity_algorithms.len() > 32 {
                return Err(A::Error::custom("more than 32 algorithms in the fixity block"));
            }
            map.next_value_seed(BlockSeed(&mut FixityBlock { parts, algorithm, digest: 0 }))?;
        }
        Ok(())
    }
}

struct Versions<'a>(&'a mut Parts);

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object of versions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        const KEYS: &[&str] = &["created", "state", "message", "user"];
        let parts = self.0;
        while let Some(number) = map.next_key_seed(Text(version_number))? {
            let take = VersionParts { parts, version: Version::default() };
            let read = map.next_value_seed(ObjectSeed { what: "a version", keys: KEYS, required: 2, take })?;
            let version = read.version;
            if parts.versions.insert(number, version).is_some() {
                return Err(A::Error::custom(format!("version {number} comes twice")));
            }
        }
        Ok(())
    }
}

struct VersionParts<'a> {
    parts: &'a mut Parts,
    version: Version,
}

impl TakeValue for VersionParts<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        let owned = Text(|text: &str| Ok(text.to_owned()));
        let version = &mut self.version;
        match key {
            0 => version.created = map.next_value_seed(owned)?,
            1 => {
                let mut state = State { parts: self.parts, digest: 0, entries: Vec::new() };
                map.next_value_seed(BlockSeed(&mut state))?;
                version.state = state.entries;
                version.state.sort_unstable_by_key(|entry| entry.path);
                version.state.shrink_to_fit();
            }
            2 => version.message = Some(map.next_value_seed(owned)?),
            _ => {
                let take = UserParts(User { name: String::new(), address: None });
                let user = ObjectSeed { what: "a user", keys: &["name", "address"], required: 1, take };
                version.user = Some(map.next_value_seed(user)?.0);
            }
        }
        Ok(())
    }
}

struct UserParts(User);

impl TakeValue for UserParts {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        let text = map.next_value_seed(Text(|text: &str| Ok(text.to_owned())))?;
        if key == 0 {
            self.0.name = text;
        } else {
            self.0.address = Some(text);
        }
        Ok(())
    }
}
