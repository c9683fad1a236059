//! The manifest in a container, compared with what is there.

use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

use queuekeeper_store::{Algorithm, Digest, Digests};

use super::problem::ManifestError;
use super::profile::ManifestProfile;
use super::read::{Limits, Reader, Summary};
use crate::name::shown;

/// What a manifest in a container says of its files.
pub struct ListedFiles {
    files: HashMap<String, Listed>,
}

struct Listed {
    line: u64,
    size: Option<u64>,
    digest: Option<Digest>,
    is_found: bool,
}

/// A file that is there.
#[derive(Clone, Copy, Debug)]
pub struct FoundFile<'a> {
    /// Its name, relative to the object.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// Its digests, that of [`ListedFiles::algorithm`] among them.
    pub digests: &'a Digests,
}

/// A file that is not what the manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the file's and the manifest's")]
pub enum Difference {
    /// The manifest names a file that is not there.
    Missing { name: String, line: u64 },
    /// A file is there that the manifest does not name.
    Unlisted { name: String },
    /// The size is another one.
    Size { name: String, expected: u64, found: u64 },
    /// The digest is another one, or was not computed.
    Digest { name: String, expected: Digest, found: Option<Digest> },
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, line } => {
                write!(to, "file {:?} of line {line} of the manifest is not in the container", shown(name))
            }
            Self::Unlisted { name } => write!(to, "file {:?} of the container is not in its manifest", shown(name)),
            Self::Size { name, expected, found } => {
                write!(to, "file {:?} has {found} bytes, but {expected} in the manifest", shown(name))
            }
            Self::Digest { name, expected, found } => {
                let algorithm = expected.algorithm();
                write!(to, "file {:?} does not have the {algorithm} digest {expected} of the manifest", shown(name))?;
                found.as_ref().map_or(Ok(()), |found| write!(to, ", but {found}"))
            }
        }
    }
}

impl ListedFiles {
    /// The name of the manifest in a container.
    pub const FILE_NAME: &str = "mrt-manifest.txt";

    /// Reads the manifest of a container.
    ///
    /// # Errors
    /// When it cannot be read, or is invalid.
    pub fn read(source: impl BufRead, limits: Limits) -> Result<(Self, Summary), ManifestError> {
        let mut reader = Reader::new(source, limits, Some(ManifestProfile::Object));
        let mut files = HashMap::new();
        for (line, row) in &mut reader {
            files.insert(row.name, Listed { line, size: row.size, digest: row.digest, is_found: false });
        }
        Ok((Self { files }, reader.finish()?))
    }

    /// The algorithm of the digest that a file is compared by.
    #[must_use]
    pub fn algorithm(&self, name: &str) -> Option<Algorithm> {
        self.files.get(name)?.digest.as_ref().map(Digest::algorithm)
    }

    /// Compares a file that is there with what the manifest says of it.
    pub fn compare(&mut self, file: FoundFile<'_>) -> Option<Difference> {
        let name = || file.name.to_owned();
        let Some(listed) = self.files.get_mut(file.name) else {
            return (file.name != Self::FILE_NAME).then(|| Difference::Unlisted { name: name() });
        };
        listed.is_found = true;
        if let Some(expected) = listed.size.filter(|size| *size != file.size) {
            return Some(Difference::Size { name: name(), expected, found: file.size });
        }
        let expected = listed.digest.as_ref()?;
        let found = file.digests.get(expected.algorithm());
        (found != Some(expected)).then(|| Difference::Digest {
            name: name(),
            expected: expected.clone(),
            found: found.cloned(),
        })
    }

    /// The files that were not there, in the order of their lines.
    #[must_use]
    pub fn missing(self) -> Vec<Difference> {
        let left = self.files.into_iter().filter(|(_, listed)| !listed.is_found);
        let mut missing: Vec<_> = left.map(|(name, listed)| (listed.line, name)).collect();
        missing.sort_unstable();
        missing.into_iter().map(|(line, name)| Difference::Missing { name, line }).collect()
    }
}
