//! What is wrong with a configuration, found without a server.

use std::path::PathBuf;
use std::time::Duration;

/// A setting that cannot work with any server.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file of credentials or certificates cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of the auth file is not of its form.
    #[error("{} line {line}: {why}; expected scheme:credentials, such as digest:user:password", path.display())]
    AuthLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it, without its content.
        why: &'static str,
    },
    /// The auth file has no line with credentials.
    #[error("{} contains no credentials; expected lines scheme:credentials, such as digest:user:password", path.display())]
    NoCredentials {
        /// The file.
        path: PathBuf,
    },
    /// A certificate or key file does not hold what it should.
    #[error("{} cannot be used for TLS: {why}", path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A client certificate without its key, or the reverse.
    #[error("a client certificate needs both its certificate file and its key file")]
    HalfAnIdentity,
    /// No authority was named and the system has no list of them.
    #[error("no CA certificates were found on this system; set a CA file, or install ca-certificates")]
    NoSystemRoots,
    /// The session timeout is out of range.
    #[error("a session timeout of {} ms is out of range; it may be 100 ms to one hour", found.as_millis())]
    SessionTimeout {
        /// What was requested.
        found: Duration,
    },
    /// The connection timeout is out of range.
    #[error(
        "a connection timeout of {} ms is out of range; with this session timeout it may be 10 ms to {} ms",
        found.as_millis(),
        most.as_millis()
    )]
    ConnectionTimeout {
        /// What was requested.
        found: Duration,
        /// The longest allowed: three fifths of the session timeout.
        most: Duration,
    },
}
