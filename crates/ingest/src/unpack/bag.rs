//! BagIt bags (RFC 8493, and version 0.97 before it) in what was unpacked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, Read as _};

use percent_encoding::percent_decode_str;
use queuekeeper_store::{Algorithm, Digest};

use super::UnpackedFile;
use crate::file_root::{self, FileRoot};
use crate::manifest::{BoundedLine, Lines};
use crate::name::{self, shown};

/// How many problems are collected.
const MOST_PROBLEMS: usize = 100;

/// The longest line of a manifest, in bytes.
const MOST_LINE: usize = 65_536;

/// The largest file of tags, in bytes.
const MOST_TAGS: u64 = 1 << 20;

/// The declaration that makes a folder a bag.
const DECLARATION: &str = "bagit.txt";

/// A bag that is complete and valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bag {
    /// The folder of the archive that is the bag, with a slash at the end; empty where the archive is.
    pub root: String,
    /// The version of BagIt, such as `1.0`.
    pub version: String,
    /// The algorithms by which all of its payload was compared.
    pub algorithms: Vec<Algorithm>,
}

/// Why a bag is not taken.
#[derive(Debug)]
pub enum BagError {
    /// It is not complete, or not valid: what is wrong, one sentence each, the first 100.
    Invalid(Vec<String>),
    /// It cannot be read; whether it is valid is not known.
    Read(io::Error),
}

impl fmt::Display for BagError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(to, "cannot read the bag: {error}"),
            Self::Invalid(problems) => {
                write!(to, "invalid bag: {}", problems.first().map_or("", String::as_str))?;
                match problems.len() {
                    ..=1 => Ok(()),
                    2 => to.write_str(" (and 1 other problem)"),
                    count => write!(to, " (and {} other problems)", count - 1),
                }
            }
        }
    }
}

impl std::error::Error for BagError {}

impl From<io::Error> for BagError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Validates the bag that the files of an archive are, in the archive's top folder or in its only one; `None` where
/// they are none. Digests that were not computed while unpacking are computed from the disk.
///
/// # Errors
/// When it is not complete or not valid, or cannot be read.
pub fn validate(file_root: &FileRoot, files: &[UnpackedFile]) -> Result<Option<Bag>, BagError> {
    let files: BTreeMap<&str, &UnpackedFile> = files.iter().map(|file| (file.name.as_str(), file)).collect();
    let Some(root) = root(&files) else { return Ok(None) };
    let inside = files.iter().filter_map(|(name, file)| Some((name.strip_prefix(root)?, *file))).collect();
    let mut check = Check { file_root, root, files: inside, problems: Vec::new() };
    let version = check.declaration()?;
    let algorithms = check.payload(&version)?;
    check.tags(&version)?;
    check.totals()?;
    if check.problems.is_empty() {
        return Ok(Some(Bag { root: root.to_owned(), version, algorithms }));
    }
    Err(BagError::Invalid(check.problems))
}

/// The folder that is the bag.
fn root<'a>(files: &BTreeMap<&'a str, &UnpackedFile>) -> Option<&'a str> {
    if files.contains_key(DECLARATION) {
        return Some("");
    }
    let first = *files.keys().next()?;
    let folder = &first[..=first.find('/')?];
    let is_only = files.keys().all(|name| name.starts_with(folder));
    (is_only && files.contains_key(format!("{folder}{DECLARATION}").as_str())).then_some(folder)
}

struct Check<'a> {
    file_root: &'a FileRoot,
    root: &'a str,
    /// By name in the bag.
    files: BTreeMap<&'a str, &'a UnpackedFile>,
    problems: Vec<String>,
}

impl Check<'_> {
    fn problem(&mut self, text: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(text);
        }
    }

    fn open(&self, name: &str) -> io::Result<std::fs::File> {
        let file = self.file_root.file(&format!("{}{name}", self.root))?;
        file.ok_or_else(|| io::Error::other(format!("file {:?} is gone", shown(name))))
    }

    /// The tags of a file, `Label: value` a line; continued lines are left out.
    fn tags_of(&self, name: &str) -> io::Result<Vec<(String, String)>> {
        let mut text = Vec::new();
        self.open(name)?.take(MOST_TAGS).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let text = text.trim_start_matches('\u{feff}');
        let tag = |line: &str| line.split_once(':').map(|(label, value)| (label.to_owned(), value.trim().to_owned()));
        Ok(text.lines().filter(|line| !line.starts_with([' ', '\t'])).filter_map(tag).collect())
    }

    fn declaration(&mut self) -> io::Result<String> {
        let tags = self.tags_of(DECLARATION)?;
        let value = |label: &str| tags.iter().find(|(name, _)| name.trim() == label).map(|(_, value)| value.clone());
        let version = value("BagIt-Version").unwrap_or_default();
        if !matches!(version.as_str(), "1.0" | "0.97" | "0.96" | "0.95" | "0.94" | "0.93") {
            self.problem(format!(
                "{DECLARATION} has the BagIt-Version {:?}; supported are 0.93 to 1.0",
                shown(&version)
            ));
        }
        let encoding = value("Tag-File-Character-Encoding").unwrap_or_default();
        if !encoding.eq_ignore_ascii_case("UTF-8") {
            self.problem(format!("{DECLARATION} has the encoding {:?}; use UTF-8", shown(&encoding)));
        }
        if let Some(fetch) = self.files.get("fetch.txt").filter(|file| file.size > 0) {
            let name = shown(&fetch.name);
            self.problem(format!("{name:?} names files that are elsewhere; put them into the bag, or use a manifest"));
        }
        Ok(version)
    }

    /// Compares the payload with each of its manifests.
    fn payload(&mut self, version: &str) -> io::Result<Vec<Algorithm>> {
        let manifests = self.manifests("manifest-");
        let payload: Vec<_> = self.files.keys().copied().filter(|name| name.starts_with("data/")).collect();
        let mut listed_anywhere = BTreeSet::new();
        for (manifest, algorithm) in &manifests {
            let listed = self.compare(manifest, *algorithm, version, true)?;
            if version == "1.0" {
                for name in payload.iter().filter(|name| !listed.contains(**name)) {
                    self.problem(format!("file {:?} is not in {manifest}", shown(name)));
                }
            }
            listed_anywhere.extend(listed);
        }
        if manifests.is_empty() {
            self.problem("there is no manifest with a supported algorithm".to_owned());
        } else if version != "1.0" {
            for name in payload.iter().filter(|name| !listed_anywhere.contains(**name)) {
                self.problem(format!("file {:?} is in no manifest", shown(name)));
            }
        }
        Ok(manifests.into_iter().map(|(_, algorithm)| algorithm).collect())
    }

    fn tags(&mut self, version: &str) -> io::Result<()> {
        for (manifest, algorithm) in self.manifests("tagmanifest-") {
            self.compare(&manifest, algorithm, version, false)?;
        }
        Ok(())
    }

    /// The manifests whose algorithm is known.
    fn manifests(&self, prefix: &str) -> Vec<(String, Algorithm)> {
        let algorithm = |name: &&str| name.strip_prefix(prefix)?.strip_suffix(".txt")?.parse().ok();
        self.files.keys().filter_map(|name| Some(((*name).to_owned(), algorithm(name)?))).collect()
    }

    /// Compares files with a manifest; the answer is the names in it.
    fn compare(
        &mut self,
        manifest: &str,
        algorithm: Algorithm,
        version: &str,
        is_payload: bool,
    ) -> io::Result<BTreeSet<String>> {
        let mut lines = Lines::new(BufReader::new(self.open(manifest)?), MOST_LINE);
        let (mut listed, mut number) = (BTreeSet::new(), 0_u64);
        while self.problems.len() < MOST_PROBLEMS {
            let line = match lines.next()? {
                None => break,
                Some(BoundedLine::Whole(line)) => std::str::from_utf8(line).ok().map(str::to_owned),
                Some(BoundedLine::TooLong) => None,
            };
            number += 1;
            if line.as_ref().is_some_and(|line| line.trim().is_empty()) {
                continue;
            }
            let at = format!("{manifest}, line {number}");
            let parsed = line.as_deref().and_then(|line| entry(line, algorithm, version));
            let Some((expected, name)) = parsed else {
                self.problem(format!("{at}: it is not a digest and a file name"));
                continue;
            };
            if let Err(error) = name::check(&name) {
                self.problem(format!("{at}: {error}"));
            } else if name.starts_with("data/") != is_payload {
                self.problem(format!("{at}: file {:?} does not belong in this manifest", shown(&name)));
            } else if listed.contains(&name) {
                self.problem(format!("{at}: file {:?} is listed twice", shown(&name)));
            } else {
                match self.digest(&name, algorithm)? {
                    None => self.problem(format!("{at}: file {:?} is not in the bag", shown(&name))),
                    Some(found) if found != expected => {
                        let name = shown(&name);
                        self.problem(format!("{at}: file {name:?} has the {algorithm} digest {found}, not {expected}"));
                    }
                    Some(_) => {}
                }
                listed.insert(name);
            }
        }
        Ok(listed)
    }

    fn digest(&self, name: &str, algorithm: Algorithm) -> io::Result<Option<Digest>> {
        let Some(file) = self.files.get(name) else { return Ok(None) };
        if let Some(digest) = file.digests.get(algorithm) {
            return Ok(Some(digest.clone()));
        }
        let (_, digests) = file_root::digests(&self.open(name)?, [algorithm])?;
        Ok(digests.get(algorithm).cloned())
    }

    /// Compares the number of files and bytes of the payload, where they are stated.
    fn totals(&mut self) -> io::Result<()> {
        const FILE: &str = "bag-info.txt";
        if !self.files.contains_key(FILE) {
            return Ok(());
        }
        let tags = self.tags_of(FILE)?;
        let payload = self.files.iter().filter(|(name, _)| name.starts_with("data/"));
        let (count, bytes) = payload.fold((0_u64, 0_u64), |(count, bytes), (_, file)| (count + 1, bytes + file.size));
        let found = format!("{bytes}.{count}");
        for (_, stated) in tags.iter().filter(|(label, _)| label == "Payload-Oxum") {
            if *stated != found {
                self.problem(format!("{FILE} has the Payload-Oxum {:?}, but the payload {found}", shown(stated)));
            }
        }
        Ok(())
    }
}

/// A line of a manifest: digest and name.
fn entry(line: &str, algorithm: Algorithm, version: &str) -> Option<(Digest, String)> {
    let (digest, name) = line.trim_start_matches('\u{feff}').split_once([' ', '\t'])?;
    let name = name.trim_start_matches([' ', '\t']);
    let name = if version == "1.0" { name } else { name.strip_prefix('*').unwrap_or(name) };
    let name = name.strip_prefix("./").unwrap_or(name);
    Some((Digest::from_hex(algorithm, digest).ok()?, decode(name, version)?))
}

/// The escapes that a version has: line ends, and since 1.0 the percent sign.
fn decode(name: &str, version: &str) -> Option<String> {
    if version == "1.0" {
        // Other escapes are none, and stand for themselves.
        let mut kept = String::with_capacity(name.len());
        let mut rest = name;
        while let Some(at) = rest.find('%') {
            let (before, escape) = rest.split_at(at);
            kept.push_str(before);
            let length = escape.char_indices().nth(3).map_or(escape.len(), |(end, _)| end);
            let (escape, behind) = escape.split_at(length);
            if matches!(escape.to_ascii_uppercase().as_str(), "%0A" | "%0D" | "%25") {
                kept.push_str(&percent_decode_str(escape).decode_utf8().ok()?);
                rest = behind;
            } else {
                kept.push('%');
                rest = &rest[at + 1..];
            }
        }
        kept.push_str(rest);
        return Some(kept);
    }
    Some(name.replace("%0A", "\n").replace("%0a", "\n").replace("%0D", "\r").replace("%0d", "\r"))
}
