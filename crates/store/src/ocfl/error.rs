//! What fails with an object, as one line.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::ocfl::path::PathError;

/// A failure of something done to a storage root or an object.
#[derive(Debug, thiserror::Error)]
pub enum OcflError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The temporary files in which large inventories are sorted.
    #[error("a temporary file in {}: {source}", directory.display())]
    Temporary {
        /// The directory that they are in.
        directory: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The space is no storage root that this program can write.
    #[error("space {space} is no OCFL storage root of ours: {why}")]
    Root {
        /// Which space.
        space: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// An identifier that no object can have.
    #[error("invalid object identifier {id:?}: {why}")]
    Id {
        /// The identifier, cut off where it is long.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A logical path that this version cannot have.
    #[error("object {id}: {source}")]
    Path {
        /// Which object.
        id: String,
        /// Which path, and why not.
        source: PathError,
    },
    /// There is no such version or file.
    #[error("object {id} has no {what}")]
    Missing {
        /// Which object.
        id: String,
        /// What it does not have.
        what: String,
    },
    /// An inventory or a file beside it is not what it must be.
    #[error("object {id}: {file}: {why}")]
    Damaged {
        /// Which object.
        id: String,
        /// Which file of it.
        file: String,
        /// What is wrong, with line and column where it is the form.
        why: String,
    },
    /// Another writer was first.
    #[error("object {id}: another writer created version {version}, so this one was not created; start again")]
    Conflict {
        /// Which object.
        id: String,
        /// The version that both wanted to make.
        version: u32,
    },
    /// More than an object may have.
    #[error("object {id}: {what}, more than the {most} that an object may have; split it into several objects")]
    TooMany {
        /// Which object.
        id: String,
        /// What there is too much of, with its number.
        what: String,
        /// How many are allowed.
        most: usize,
    },
}

impl OcflError {
    pub(super) fn temporary(directory: &Path, source: io::Error) -> Self {
        Self::Temporary { directory: directory.to_owned(), source }
    }

    /// Whether another writer was first: the version may be begun again, from what that writer made.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the same may succeed later without a change by an operator.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => error.is_temporary(),
            Self::Temporary { .. } | Self::Conflict { .. } => true,
            Self::Root { .. }
            | Self::Id { .. }
            | Self::Path { .. }
            | Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::TooMany { .. } => false,
        }
    }
}
