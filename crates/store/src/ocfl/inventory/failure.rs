//! Why an inventory could not be read.

use std::io;

/// Why an inventory could not be read.
#[derive(Debug)]
pub(in crate::ocfl) enum Failure {
    /// The stream failed.
    Read(io::Error),
    /// A temporary file failed.
    Temporary(io::Error),
    /// It is no inventory that can be used; says why.
    Form(String),
}

/// What reads sorted records fails where their temporary files do.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Temporary(error)
    }
}
