//! Common to all configuration files: they are read together, and errors have one line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use queuekeeper_ingest::yaml::problem;
use serde::de::DeserializeOwned;
use serde_saphyr::Spanned;

use crate::views::show::visible;
use queuekeeper_zookeeper::files;

/// The maximum size of a file, in bytes, certificate chains included.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a file is not valid: one line, without any secrets of the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", visible(&path.to_string_lossy()))]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The contents of the file are not valid.
    #[error("{path}{at}: {why}", path = visible(&path.to_string_lossy()), at = line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1, if known.
        line: Option<u64>,
        /// What is wrong.
        why: String,
    },
    /// A certificate or a key cannot be used.
    #[error("{}: {why}", visible(what))]
    Unusable {
        /// The file, or the key that contains it.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// A change that a running server cannot apply.
    #[error("{path}: {why}; that needs a restart")]
    Restart {
        /// The file.
        path: PathBuf,
        /// The change.
        why: &'static str,
    },
}

/// Reads files, and remembers their paths and contents.
#[derive(Default)]
pub(super) struct Files {
    read: Vec<PathBuf>,
    hasher: DefaultHasher,
}

/// All files of a configuration, and a hash of their contents.
#[derive(Clone)]
pub(super) struct Sources {
    paths: Vec<PathBuf>,
    fingerprint: u64,
}

impl Files {
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, FileError> {
        let refuse = |source| FileError::Read { path: conceal(path), source };
        let bytes = files::read(path, MAX_BYTES).map_err(refuse)?;
        bytes.hash(&mut self.hasher);
        self.read.push(path.to_owned());
        Ok(bytes)
    }

    /// The text of a file that the configuration names relative to itself.
    pub(super) fn text(&mut self, path: &Path, file: &Spanned<String>) -> Result<String, FileError> {
        if file.value.is_empty() {
            return Err(refuse(path, file.referenced.line(), "the name of a file is empty"));
        }
        let named = path.parent().unwrap_or(Path::new("")).join(&file.value);
        let bytes = self.read(&named)?;
        String::from_utf8(bytes).map_err(|_| refuse(&named, 0, "it is not UTF-8"))
    }

    pub(super) fn sources(self) -> Sources {
        Sources { fingerprint: self.hasher.finish(), paths: self.read }
    }
}

/// A path that may be shown. If a value is in the place of a path by mistake, it may be a secret, such as a private
/// key.
fn conceal(path: &Path) -> PathBuf {
    let is_part =
        |part: &str| part.len() >= 48 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    let text = path.to_string_lossy();
    let is_content = text.contains("-----") || text.contains(char::is_control) || text.split('/').any(is_part);
    if is_content { "a file whose name looks like what should be in one".into() } else { path.to_owned() }
}

impl Sources {
    /// Whether all files exist and are unchanged.
    pub(super) fn are_unchanged(&self) -> bool {
        let mut files = Files::default();
        self.paths.iter().all(|path| files.read(path).is_ok()) && files.hasher.finish() == self.fingerprint
    }
}

/// An error at a line; 0 if the line is unknown.
pub(super) fn refuse(path: &Path, line: u64, why: impl Into<String>) -> FileError {
    // A name in it may be any text of the YAML, so that control characters are made visible.
    let why = visible(&why.into());
    FileError::Format { path: path.to_owned(), line: Some(line).filter(|line| *line > 0), why }
}

/// Parses YAML. A file without keys is refused, since a file that is being written looks the same.
pub(super) fn yaml<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, FileError> {
    let text = std::str::from_utf8(bytes).map_err(|_| refuse(path, 0, "it is not UTF-8"))?;
    let options = serde_saphyr::options! { with_snippet: false };
    // A document without keys is null.
    let document: Option<T> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (line, why) = problem(text, &error);
        refuse(path, line, why)
    })?;
    document.ok_or_else(|| refuse(path, 0, "it is empty except for comments; if that is intended, write {}"))
}
