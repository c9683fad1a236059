//! The manifest that a container has of its own files, `mrt-manifest.txt`: each file is in it, and it has no other.

use std::fmt;
use std::io::{self, BufReader};

use super::UnpackedFile;
use crate::file_root::{self, FileRoot};
use crate::manifest::{Difference, FoundFile, Limits, ListedFiles, MOST_PROBLEMS, ManifestError, Summary, in_one_line};

/// How many bytes of differences or problems one sentence holds.
const PROBLEMS_BYTES: usize = 900;

/// Why a container with a manifest is not taken: one sentence.
#[derive(Debug)]
pub enum ContentsError {
    /// The manifest is invalid, or cannot be read.
    Manifest(ManifestError),
    /// The files are not those of the manifest.
    Different {
        /// The first differences, one at least.
        differences: Vec<Difference>,
        /// Whether files were left that were not compared.
        has_more: bool,
    },
    /// A file cannot be read; whether it is the one of the manifest is not known.
    Read(io::Error),
}

impl ContentsError {
    /// Whether the container itself is at fault, so that another attempt is of no use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Manifest(ManifestError::Invalid { .. }) | Self::Different { .. } => true,
            Self::Manifest(ManifestError::Read(_)) | Self::Read(_) => false,
        }
    }
}

impl fmt::Display for ContentsError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ListedFiles::FILE_NAME;
        match self {
            Self::Manifest(error) => write!(to, "{name} of the container: {}", error.in_full(PROBLEMS_BYTES)),
            Self::Different { differences, has_more } => {
                let beginning = format!("the container differs from its {name}");
                to.write_str(&in_one_line(&beginning, differences, *has_more, PROBLEMS_BYTES))
            }
            Self::Read(error) => write!(to, "cannot compare the container with its {name}: {error}"),
        }
    }
}

impl std::error::Error for ContentsError {}

impl From<io::Error> for ContentsError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Compares the files of a container with the manifest among them, both ways; `None` where there is none. Only the
/// manifest itself need not be in it. Digests that were not computed while unpacking are computed from the disk.
///
/// # Errors
/// When the manifest is invalid, the files are not those of it, or one cannot be read.
pub fn validate(file_root: &FileRoot, files: &[UnpackedFile]) -> Result<Option<Summary>, ContentsError> {
    if !files.iter().any(|file| file.name == ListedFiles::FILE_NAME) {
        return Ok(None);
    }
    let manifest = BufReader::new(open(file_root, ListedFiles::FILE_NAME)?);
    let (mut contents, summary) = ListedFiles::read(manifest, Limits::default()).map_err(ContentsError::Manifest)?;
    let (mut differences, mut left) = (Vec::new(), files.iter());
    for UnpackedFile { name, size, digests } in left.by_ref() {
        let missing = contents.algorithm(name).filter(|algorithm| digests.get(*algorithm).is_none());
        let computed = missing.map(|algorithm| file_root::digests(&open(file_root, name)?, [algorithm])).transpose()?;
        let digests = computed.as_ref().map_or(digests, |(_, computed)| computed);
        differences.extend(contents.compare(FoundFile { name, size: *size, digests }));
        if differences.len() >= MOST_PROBLEMS {
            break;
        }
    }
    let has_more = left.len() > 0;
    if !has_more {
        differences.extend(contents.missing());
    }
    if differences.is_empty() { Ok(Some(summary)) } else { Err(ContentsError::Different { differences, has_more }) }
}

fn open(file_root: &FileRoot, name: &str) -> io::Result<std::fs::File> {
    file_root.file(name)?.ok_or_else(|| io::Error::other(format!("file {:?} is gone", crate::name::shown(name))))
}
