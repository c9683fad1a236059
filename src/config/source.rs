//! What the files of a configuration have in common: they are read together, and told about in one line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_saphyr::Error as YamlError;

use crate::views::show::visible;
use queuekeeper_zookeeper::files;

/// No such file is larger, in bytes; chains of certificates included.
const MOST_BYTES: u64 = 1024 * 1024;

/// Why a file cannot be taken; always one line, and never with anything secret from it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", visible(&path.to_string_lossy()))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file itself holds something that is not taken.
    #[error("{path}{at}: {why}", path = visible(&path.to_string_lossy()), at = line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<u64>,
        /// What is wrong there.
        why: String,
    },
    /// A certificate or a key cannot be used.
    #[error("{}: {why}", visible(what))]
    Unusable {
        /// The file, or the key that holds it.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// What a running server cannot change to.
    #[error("{path}: {why}; that needs a restart")]
    Restart {
        /// The file.
        path: PathBuf,
        /// The change.
        why: &'static str,
    },
}

/// Reads files and remembers which, and what they held.
#[derive(Default)]
pub(super) struct Files {
    read: Vec<PathBuf>,
    hasher: DefaultHasher,
}

/// Every file that a configuration was read from, and a fingerprint of what they held.
#[derive(Clone)]
pub(super) struct Sources {
    paths: Vec<PathBuf>,
    fingerprint: u64,
}

impl Files {
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, FileError> {
        let refuse = |source| FileError::Read { path: conceal(path), source };
        let bytes = files::read(path, MOST_BYTES).map_err(refuse)?;
        bytes.hash(&mut self.hasher);
        self.read.push(path.to_owned());
        Ok(bytes)
    }

    pub(super) fn sources(self) -> Sources {
        Sources { fingerprint: self.hasher.finish(), paths: self.read }
    }
}

/// A path as it may be told. Where a key in a file is missing or is another, what stands below it is taken for a name: a
/// private key, for one.
fn conceal(path: &Path) -> PathBuf {
    let is_part =
        |part: &str| part.len() >= 48 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    let text = path.to_string_lossy();
    let is_content = text.contains("-----") || text.contains(char::is_control) || text.split('/').any(is_part);
    if is_content { "a file whose name looks like what should be in one".into() } else { path.to_owned() }
}

impl Sources {
    /// Whether all files are there and hold what they held.
    pub(super) fn are_unchanged(&self) -> bool {
        let mut files = Files::default();
        self.paths.iter().all(|path| files.read(path).is_ok()) && files.hasher.finish() == self.fingerprint
    }
}

/// Refuses what stands at a line; 0 for a line that is not known.
pub(super) fn refuse(path: &Path, line: u64, why: impl Into<String>) -> FileError {
    // A name in it may be anything that YAML can write, and is told in one line that shows what it is.
    let why = visible(&why.into());
    FileError::Format { path: path.to_owned(), line: Some(line).filter(|line| *line > 0), why }
}

/// Reads YAML. A file without a key is refused: one that was emptied, or is just being written, looks like that.
pub(super) fn yaml<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, FileError> {
    let text = std::str::from_utf8(bytes).map_err(|_| refuse(path, 0, "it is not UTF-8"))?;
    let options = serde_saphyr::options! { with_snippet: false };
    // Without a key it is a document that is null.
    let document: Option<T> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| refuse(path, error.location().map_or(0, |location| location.line()), explain(&error)))?;
    document.ok_or_else(|| refuse(path, 0, "it is empty, comments aside; if that is intended, write {}"))
}

/// What is wrong, without the value: it may be a password's hash or a key.
fn explain(error: &YamlError) -> String {
    match error {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            format!("{} is not taken; taken are {}", key(field), expected.join(", "))
        }
        YamlError::SerdeInvalidType { expected, .. } | YamlError::SerdeInvalidValue { expected, .. } => {
            let expected = if expected.starts_with("struct") { "keys and values" } else { expected };
            format!("something else was expected here: {expected}")
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => format!("{} is there twice", self::key(key)),
        other => other.render().split_whitespace().map(word).collect::<Vec<_>>().join(" "),
    }
}

/// A key as it may be told: what is no word may be what belongs behind one.
fn key(key: &str) -> String {
    let is_word = key.len() <= 32 && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-.".contains(&byte));
    if is_word {
        format!("the key {key}")
    } else {
        "something that is no word, or looks like a token itself, stands where a key belongs, and".to_owned()
    }
}

/// A word of what the parser says, which may be one of what it read.
fn word(word: &str) -> &str {
    let is_long =
        word.split(|found: char| !(found.is_ascii_alphanumeric() || "+/$_".contains(found))).any(|run| run.len() >= 16);
    if is_long { "…" } else { word }
}
