//! Reading an inventory from a stream.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use super::block::{Block, BlockSeed, Keys, TakeValue, Text};
use super::{
    Entry, FixityEntry, Inventory, MOST_ENTRIES, MOST_FILES, MOST_TEXT_BYTES, MOST_VERSIONS, User, Version, check,
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

fn top() -> Keys<Parts> {
    const KEYS: &[&str] =
        &["id", "type", "digestAlgorithm", "head", "contentDirectory", "manifest", "fixity", "versions"];
    Keys { what: "an inventory", keys: KEYS, take: Parts::default() }
}

/// What was read so far.
#[derive(Default)]
struct Parts {
    id: Option<String>,
    has_type: bool,
    has_algorithm: bool,
    head: Option<u32>,
    names_content_directory: bool,
    has_manifest: bool,
    entries: usize,
    digests: super::DigestTable,
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
            0 => self.id = Some(map.next_value_seed(Text(|id: &str| Ok(id.to_owned())))?),
            1 => self.has_type = map.next_value_seed(Text(|text: &str| only(text, TYPE, "type")))?,
            2 => {
                self.has_algorithm = map.next_value_seed(Text(|text: &str| only(text, "sha512", "digestAlgorithm")))?
            }
            3 => self.head = Some(map.next_value_seed(Text(version_number))?),
            4 => {
                let name = Text(|text: &str| only(text, "content", "contentDirectory"));
                self.names_content_directory = map.next_value_seed(name)?;
            }
            5 => {
                self.has_manifest = true;
                map.next_value_seed(BlockSeed(&mut Manifest { parts: self, digest: 0 }))?;
                self.manifest.sort_unstable();
            }
            6 => map.next_value_seed(Fixity(self))?,
            _ => map.next_value_seed(Versions(self))?,
        }
        Ok(())
    }
}

fn only(text: &str, value: &str, what: &str) -> Result<bool, String> {
    if text == value {
        return Ok(true);
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

    fn digest(&mut self, text: &str) -> Result<super::DigestId, String> {
        let digest = Digest::from_hex(Algorithm::Sha512, text).map_err(|error| error.to_string())?;
        Ok(self.digests.intern(&digest))
    }

    fn finish(self) -> Result<Inventory, String> {
        let missing = |what: &str| format!("it has no {what:?}");
        for (is_there, what) in [
            (self.has_type, "type"),
            (self.has_algorithm, "digestAlgorithm"),
            (self.has_manifest, "manifest"),
            (!self.versions.is_empty(), "versions"),
        ] {
            if !is_there {
                return Err(missing(what));
            }
        }
        let head = self.head.ok_or_else(|| missing("head"))?;
        let count = self.versions.len();
        if !self.versions.keys().copied().eq(1..=head) {
            return Err(format!("head is v{head}, and there are {count} versions: they are not v1 to v{head}"));
        }
        Ok(Inventory {
            id: self.id.ok_or_else(|| missing("id"))?,
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
    digest: super::DigestId,
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
    digest: super::DigestId,
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
            let version = VersionParts { parts, created: None, state: None, message: None, user: None };
            let version = map.next_value_seed(Keys { what: "a version", keys: KEYS, take: version })?.finish();
            let version = version.map_err(|why| A::Error::custom(format!("version {number} has no {why:?}")))?;
            if parts.versions.insert(number, version).is_some() {
                return Err(A::Error::custom(format!("version {number} comes twice")));
            }
        }
        Ok(())
    }
}

struct VersionParts<'a> {
    parts: &'a mut Parts,
    created: Option<String>,
    state: Option<Vec<Entry>>,
    message: Option<String>,
    user: Option<UserParts>,
}

impl TakeValue for VersionParts<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        let owned = Text(|text: &str| Ok(text.to_owned()));
        match key {
            0 => self.created = Some(map.next_value_seed(owned)?),
            1 => {
                let mut state = State { parts: self.parts, digest: 0, entries: Vec::new() };
                map.next_value_seed(BlockSeed(&mut state))?;
                let mut entries = state.entries;
                entries.sort_unstable_by_key(|entry| entry.path);
                entries.shrink_to_fit();
                self.state = Some(entries);
            }
            2 => self.message = Some(map.next_value_seed(owned)?),
            _ => {
                let user = Keys { what: "a user", keys: &["name", "address"], take: UserParts::default() };
                self.user = Some(map.next_value_seed(user)?);
            }
        }
        Ok(())
    }
}

impl VersionParts<'_> {
    fn finish(self) -> Result<Version, &'static str> {
        let user = match self.user {
            None => None,
            Some(UserParts { name, address }) => Some(User { name: name.ok_or("name of its user")?, address }),
        };
        Ok(Version {
            created: self.created.ok_or("created")?,
            state: self.state.ok_or("state")?,
            message: self.message,
            user,
        })
    }
}

#[derive(Default)]
struct UserParts {
    name: Option<String>,
    address: Option<String>,
}

impl TakeValue for UserParts {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        let text = map.next_value_seed(Text(|text: &str| Ok(text.to_owned())))?;
        if key == 0 {
            self.name = Some(text);
        } else {
            self.address = Some(text);
        }
        Ok(())
    }
}
