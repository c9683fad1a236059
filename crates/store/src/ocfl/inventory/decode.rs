//! Reading an inventory from a stream.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use super::block::{Block, BlockSeed, ObjectSeed, TakeValue, Text};
use super::relations::{Relating, algorithm_place};
use super::{Failure, Inventory, MOST_ENTRIES, MOST_FILES, MOST_TEXT_BYTES, MOST_VERSIONS, User, Version, check};
use crate::digest::{Algorithm, Digest};
use crate::ocfl::feed::Feed;
use crate::ocfl::path;

/// What `type` must be.
pub(super) const TYPE: &str = "https://ocfl.io/1.1/spec/#inventory";

/// The most algorithms that the fixity block may have.
const MOST_ALGORITHMS: u8 = 32;

/// An inventory that was read, with the SHA-512 and the size of its text.
#[derive(Debug)]
pub(in crate::ocfl) struct Loaded {
    pub(in crate::ocfl) inventory: Inventory,
    pub(in crate::ocfl) digest: Digest,
    pub(in crate::ocfl) bytes: u64,
}

/// Reads an inventory to its end, into temporary files in a directory where it is large. Blocks its thread.
pub(in crate::ocfl) fn decode(mut feed: Feed, directory: &Arc<Path>) -> Result<Loaded, Failure> {
    let mut parts = Parts::new(directory);
    let mut json = serde_json::Deserializer::from_reader(&mut feed);
    let read = top(&mut parts).deserialize(&mut json).map(drop).and_then(|()| json.end());
    if let Some(error) = parts.failed {
        return Err(Failure::Temporary(error));
    }
    match read {
        Ok(()) => {}
        Err(error) if error.is_io() => match io::Error::from(error) {
            error if error.kind() == io::ErrorKind::InvalidData => return Err(Failure::Form(error.to_string())),
            error => return Err(Failure::Read(error)),
        },
        Err(error) => return Err(Failure::Form(error.to_string())),
    }
    let inventory = parts.finish(directory)?;
    check::check(&inventory)?;
    let (digest, bytes) = feed.finish();
    Ok(Loaded { inventory, digest, bytes })
}

fn top(parts: &mut Parts) -> ObjectSeed<&mut Parts> {
    const KEYS: &[&str] =
        &["id", "type", "digestAlgorithm", "head", "manifest", "versions", "contentDirectory", "fixity"];
    ObjectSeed { what: "the inventory", keys: KEYS, required: 6, take: parts }
}

/// What was read so far.
struct Parts {
    id: String,
    head: u32,
    names_content_directory: bool,
    entries: usize,
    versions: BTreeMap<u32, Version>,
    algorithms: Vec<String>,
    relating: Relating,
    /// What failed with a temporary file, which ended the reading.
    failed: Option<io::Error>,
}

impl TakeValue for &mut Parts {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        match key {
            0 => self.id = map.next_value_seed(Text(|id: &str| Ok(id.to_owned())))?,
            1 => map.next_value_seed(Text(|text: &str| only(text, TYPE, "type")))?,
            2 => map.next_value_seed(Text(|text: &str| only(text, "sha512", "digestAlgorithm")))?,
            3 => self.head = map.next_value_seed(Text(version_number))?,
            4 => {
                let mut manifest = Manifest { parts: self, digest: None, text_bytes: 0 };
                map.next_value_seed(BlockSeed(&mut manifest))?;
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
    fn new(directory: &Arc<Path>) -> Self {
        Self {
            id: String::new(),
            head: 0,
            names_content_directory: false,
            entries: 0,
            versions: BTreeMap::new(),
            algorithms: Vec::new(),
            relating: Relating::new(directory),
            failed: None,
        }
    }

    /// Takes an entry of a block that has so many bytes of text with it.
    fn entry(&mut self, text_bytes: usize, relate: impl FnOnce(&mut Relating) -> io::Result<()>) -> Result<(), String> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(format!("more than {MOST_ENTRIES} entries"));
        }
        if text_bytes > MOST_TEXT_BYTES {
            return Err(format!("more than {MOST_TEXT_BYTES} bytes of paths or digests"));
        }
        relate(&mut self.relating).map_err(|error| {
            let text = error.to_string();
            self.failed = Some(error);
            text
        })
    }

    /// The place of an algorithm's name.
    fn algorithm(&mut self, name: &str) -> Result<u8, String> {
        let place = u8::try_from(algorithm_place(&mut self.algorithms, name)).ok();
        let refused = || format!("more than {MOST_ALGORITHMS} algorithms in the fixity block");
        place.filter(|place| *place < MOST_ALGORITHMS).ok_or_else(refused)
    }

    fn finish(self, directory: &Arc<Path>) -> Result<Inventory, Failure> {
        let (head, count) = (self.head, self.versions.len());
        if !self.versions.keys().copied().eq(1..=head) {
            return Err(Failure::Form(format!("head is v{head}, and its {count} versions are not v1 to v{head}")));
        }
        Ok(Inventory {
            id: self.id,
            names_content_directory: self.names_content_directory,
            versions: self.versions.into_values().collect(),
            algorithms: self.algorithms,
            relations: self.relating.finish()?,
            directory: Arc::clone(directory),
        })
    }
}

fn sha512(text: &str) -> Result<Option<Digest>, String> {
    Digest::from_hex(Algorithm::Sha512, text).map(Some).map_err(|error| error.to_string())
}

/// The bytes of the digest that a block has before its paths.
fn bytes(digest: Option<&Digest>) -> &[u8] {
    digest.map_or(&[], Digest::as_bytes)
}

struct Manifest<'a> {
    parts: &'a mut Parts,
    digest: Option<Digest>,
    text_bytes: usize,
}

impl Block for Manifest<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        self.digest = sha512(digest)?;
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        path::check(text).map_err(|error| error.to_string())?;
        self.text_bytes += text.len();
        let digest = bytes(self.digest.as_ref());
        self.parts.entry(self.text_bytes, |relating| relating.content(digest, text))
    }
}

struct State<'a> {
    parts: &'a mut Parts,
    version: u32,
    digest: Option<Digest>,
    files: usize,
    text_bytes: usize,
}

impl Block for State<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        self.digest = sha512(digest)?;
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        path::check(text).map_err(|error| error.to_string())?;
        if self.files == MOST_FILES {
            return Err(format!("more than {MOST_FILES} files in a version"));
        }
        self.files += 1;
        self.text_bytes += text.len();
        let digest = bytes(self.digest.as_ref());
        self.parts.entry(self.text_bytes, |relating| relating.file(self.version, digest, text))
    }
}

/// The fixity block: a block for each algorithm.
struct Fixity<'a>(&'a mut Parts);

struct FixityBlock<'a> {
    parts: &'a mut Parts,
    algorithm: u8,
    digest: String,
    /// The bytes of digests and of paths. A digest counts for each path, since it is kept with each.
    text_bytes: &'a mut [usize; 2],
}

impl Block for FixityBlock<'_> {
    fn digest(&mut self, digest: &str) -> Result<(), String> {
        digest.clone_into(&mut self.digest);
        Ok(())
    }

    fn path(&mut self, text: &str) -> Result<(), String> {
        let (digest, [digests, paths]) = (&self.digest, &mut *self.text_bytes);
        *digests += digest.len();
        *paths += text.len();
        self.parts.entry((*digests).max(*paths), |relating| relating.fixity(self.algorithm, digest, text))
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
        let mut text_bytes = [0; 2];
        while let Some(algorithm) = map.next_key_seed(Text(|name: &str| parts.algorithm(name)))? {
            let text_bytes = &mut text_bytes;
            let mut block = FixityBlock { parts, algorithm, digest: String::new(), text_bytes };
            map.next_value_seed(BlockSeed(&mut block))?;
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
            let take = VersionParts { parts, number, version: Version::default() };
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
    number: u32,
    version: Version,
}

impl TakeValue for VersionParts<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error> {
        let owned = Text(|text: &str| Ok(text.to_owned()));
        let version = &mut self.version;
        match key {
            0 => version.created = map.next_value_seed(owned)?,
            1 => {
                let mut state =
                    State { parts: self.parts, version: self.number, digest: None, files: 0, text_bytes: 0 };
                map.next_value_seed(BlockSeed(&mut state))?;
                version.files = state.files;
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
