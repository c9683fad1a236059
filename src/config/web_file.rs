//! The file of `--web.config.file`: TLS and passwords, in the format of Prometheus' exporter-toolkit.
//!
//! Of that format we take what fits, and refuse the rest by name and line: a setting that is read over would leave the
//! server less protected than its operator believes.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;
use rustls::ServerConfig;

mod format;
mod tls;
mod users;

pub use users::Users;

/// No such file is larger, in bytes; chains of certificates included.
const MOST_BYTES: u64 = 1024 * 1024;

/// What the file and those that it names say, read and checked.
#[derive(Clone)]
pub struct WebFile {
    path: PathBuf,
    /// Every file that was read, and a fingerprint of all of them.
    sources: Vec<PathBuf>,
    fingerprint: u64,
    tls: Option<Arc<ServerConfig>>,
    users: Arc<Users>,
    strict_transport_security: Option<HeaderValue>,
}

/// Why a file cannot be taken; always one line, and never with anything secret from it.
#[derive(Debug, thiserror::Error)]
pub enum WebFileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file itself holds something that is not taken.
    #[error("{path}{at}: {why}", at = line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<u64>,
        /// What is wrong there.
        why: String,
    },
    /// A certificate or a key cannot be used.
    #[error("{what}: {why}")]
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

impl WebFile {
    /// Reads the file and those that it names, whose paths are relative to it.
    ///
    /// # Errors
    /// When one of them cannot be read, or holds what cannot be taken.
    pub fn read(path: &Path) -> Result<Self, WebFileError> {
        let mut files = Files::default();
        let bytes = files.read(path)?;
        let document = format::Document::read(path, &bytes)?;
        let tls = document.tls.map(|section| section.load(path, &mut files)).transpose()?;
        Ok(Self {
            path: path.to_owned(),
            tls: tls.map(Arc::new),
            users: Arc::new(document.users),
            strict_transport_security: document.strict_transport_security,
            fingerprint: files.hasher.finish(),
            sources: files.read,
        })
    }

    /// Reads everything again; `None` where nothing has changed.
    ///
    /// # Errors
    /// As [`Self::read`], and where the change would switch TLS on or off or let everyone in: a file that is only half
    /// written looks like that.
    pub fn read_again(&self) -> Result<Option<Self>, WebFileError> {
        let mut files = Files::default();
        let has_all = self.sources.iter().all(|path| files.read(path).is_ok());
        if has_all && files.hasher.finish() == self.fingerprint {
            return Ok(None);
        }
        let new = Self::read(&self.path)?;
        let refuse = |why| Err(WebFileError::Restart { path: self.path.clone(), why });
        match (self.tls.is_some(), new.tls.is_some()) {
            (true, false) => return refuse("it switches TLS off"),
            (false, true) => return refuse("it switches TLS on"),
            (true, true) | (false, false) => {}
        }
        if !self.users.is_empty() && new.users.is_empty() {
            return refuse("it has no users any more");
        }
        Ok(Some(new))
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How to speak TLS; `None` for plain HTTP.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref()
    }

    /// Who may come in; empty for everyone.
    #[must_use]
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The value of the header `Strict-Transport-Security`, where it is wanted.
    #[must_use]
    pub fn strict_transport_security(&self) -> Option<&HeaderValue> {
        self.strict_transport_security.as_ref()
    }
}

impl fmt::Debug for WebFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads files and remembers which, and what they held.
#[derive(Default)]
struct Files {
    read: Vec<PathBuf>,
    hasher: DefaultHasher,
}

impl Files {
    fn read(&mut self, path: &Path) -> Result<Vec<u8>, WebFileError> {
        let refuse = |source| WebFileError::Read { path: path.to_owned(), source };
        // Before it is opened: a pipe would be waited for.
        let facts = std::fs::metadata(path).map_err(refuse)?;
        if !facts.is_file() {
            return Err(refuse(std::io::Error::other("it is not a file")));
        }
        if facts.len() > MOST_BYTES {
            return Err(refuse(std::io::Error::other("it is larger than 1 MiB")));
        }
        let bytes = std::fs::read(path).map_err(refuse)?;
        bytes.hash(&mut self.hasher);
        self.read.push(path.to_owned());
        Ok(bytes)
    }
}
