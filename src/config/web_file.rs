//! The file of `--web.config.file`: TLS and passwords, in the format of Prometheus' exporter-toolkit.
//!
//! Settings of that format that are not supported are refused with name and line: ignoring one would leave the server
//! less protected than its operator believes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;
use rustls::ServerConfig;

use super::source::{FileError, Files, Sources};

mod format;
mod tls;
mod users;

pub use tls::Validity;
pub use users::Users;

/// The contents of the file and of those that it refers to, checked.
#[derive(Clone)]
pub struct WebFile {
    path: PathBuf,
    sources: Sources,
    tls: Option<Arc<ServerConfig>>,
    validity: Option<Validity>,
    users: Arc<Users>,
    strict_transport_security: Option<HeaderValue>,
}

impl WebFile {
    /// Reads the file and those that it refers to by relative paths.
    ///
    /// # Errors
    /// When one of them cannot be read or is not valid.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut files = Files::default();
        let bytes = files.read(path)?;
        let document = format::Document::read(path, &bytes)?;
        let tls = document.tls.map(|section| section.load(path, &mut files)).transpose()?;
        let (tls, validity) = tls.map(|(config, validity)| (Arc::new(config), validity)).unzip();
        Ok(Self {
            path: path.to_owned(),
            tls,
            validity,
            users: Arc::new(document.users),
            strict_transport_security: document.strict_transport_security,
            sources: files.sources(),
        })
    }

    /// Reads everything again; `None` if nothing has changed.
    ///
    /// # Errors
    /// As [`Self::read`], and if the change would switch TLS on or off or remove all users, as a file does that is
    /// being written.
    pub fn read_again(&self) -> Result<Option<Self>, FileError> {
        if self.sources.are_unchanged() {
            return Ok(None);
        }
        let new = Self::read(&self.path)?;
        let refuse = |why| Err(FileError::Restart { path: self.path.clone(), why });
        match (self.tls.is_some(), new.tls.is_some()) {
            (true, false) => return refuse("it switches TLS off"),
            (false, true) => return refuse("it switches TLS on"),
            (true, true) | (false, false) => {}
        }
        if !self.users.is_empty() && new.users.is_empty() {
            return refuse("it no longer has users");
        }
        Ok(Some(new))
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The TLS configuration; `None` for plain HTTP.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref()
    }

    /// The validity of the server's certificate, until [`jiff::Timestamp::MAX`] if it does not expire; `None` for plain
    /// HTTP.
    #[must_use]
    pub fn certificate_validity(&self) -> Option<Validity> {
        self.validity
    }

    /// The users; empty if no password is required.
    #[must_use]
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The value of the header `Strict-Transport-Security`, if configured.
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
