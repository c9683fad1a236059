//! What a deposit is: its type, and the forms of containers.

use std::fmt;
use std::str::FromStr;

use crate::manifest::ManifestProfile;
use crate::name;

/// The type of a deposit, as clients give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DepositType {
    /// One file, which is the object.
    File,
    /// An archive, whose files are the object.
    Container,
    /// A manifest of one object's files.
    ObjectManifest,
    /// A manifest of files, each an object.
    SingleFileBatchManifest,
    /// A manifest of containers, each an object.
    ContainerBatchManifest,
    /// A manifest of manifests, each an object.
    BatchManifest,
}

/// A type that no deposit has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a type of deposits; expected one of {known}", known = DepositType::names())]
pub struct UnknownType(String);

impl DepositType {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::File,
        Self::Container,
        Self::ObjectManifest,
        Self::SingleFileBatchManifest,
        Self::ContainerBatchManifest,
        Self::BatchManifest,
    ];

    /// The name in requests and in `submission`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Container => "container",
            Self::ObjectManifest => "object-manifest",
            Self::SingleFileBatchManifest => "single-file-batch-manifest",
            Self::ContainerBatchManifest => "container-batch-manifest",
            Self::BatchManifest => "batch-manifest",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// The profile that the manifest of such a deposit has; `None` where it is no manifest.
    #[must_use]
    pub fn manifest(self) -> Option<ManifestProfile> {
        match self {
            Self::File | Self::Container => None,
            Self::ObjectManifest => Some(ManifestProfile::Ingest),
            Self::SingleFileBatchManifest => Some(ManifestProfile::SingleFileBatch),
            Self::ContainerBatchManifest => Some(ManifestProfile::ContainerBatch),
            Self::BatchManifest => Some(ManifestProfile::Batch),
        }
    }

    /// Whether it may become several jobs.
    #[must_use]
    pub fn is_batch(self) -> bool {
        self.manifest().is_some_and(ManifestProfile::is_batch)
    }

    /// The type of a deposit's jobs, `type` of their configuration: `file`, `container` or `manifest`.
    #[must_use]
    pub fn of_jobs(self) -> &'static str {
        match self {
            Self::File | Self::SingleFileBatchManifest => "file",
            Self::Container | Self::ContainerBatchManifest => "container",
            Self::ObjectManifest | Self::BatchManifest => "manifest",
        }
    }

    /// The type of a deposit that states none: by the profile line of a manifest, else by its name. `start` is the
    /// first bytes of the content, some kilobytes where there are that many.
    #[must_use]
    pub fn guess(file_name: &str, start: &[u8]) -> Self {
        let of_profile = |profile| Self::ALL.into_iter().find(|one| one.manifest() == Some(profile));
        ManifestProfile::of_start(start)
            .and_then(of_profile)
            .or_else(|| ContainerFormat::of_name(file_name).map(|_| Self::Container))
            .unwrap_or(Self::File)
    }
}

impl fmt::Display for DepositType {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

impl FromStr for DepositType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<Self, UnknownType> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| UnknownType(name::shown(text)))
    }
}

/// The form of a container, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContainerFormat {
    /// An archive of files.
    Archive(ArchiveFormat),
    /// One compressed file.
    Single(Compression),
}

/// The form of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArchiveFormat {
    /// ZIP, with ZIP64.
    Zip,
    /// Tar, compressed or not.
    Tar(Option<Compression>),
}

/// How a stream of bytes is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is its own name")]
pub enum Compression {
    Gzip,
    Bzip2,
    Zstd,
}

/// The ends of names. The longer ones come first: `.tar.gz` is no single file.
const SUFFIXES: &[(&str, ContainerFormat)] = &[
    (".tar.gz", ContainerFormat::Archive(ArchiveFormat::Tar(Some(Compression::Gzip)))),
    (".tgz", ContainerFormat::Archive(ArchiveFormat::Tar(Some(Compression::Gzip)))),
    (".tarz", ContainerFormat::Archive(ArchiveFormat::Tar(Some(Compression::Gzip)))),
    (".tar.bz2", ContainerFormat::Archive(ArchiveFormat::Tar(Some(Compression::Bzip2)))),
    (".tar.zst", ContainerFormat::Archive(ArchiveFormat::Tar(Some(Compression::Zstd)))),
    (".tar", ContainerFormat::Archive(ArchiveFormat::Tar(None))),
    (".zip", ContainerFormat::Archive(ArchiveFormat::Zip)),
    (".gz", ContainerFormat::Single(Compression::Gzip)),
    (".bz2", ContainerFormat::Single(Compression::Bzip2)),
];

impl ContainerFormat {
    /// The form of the container with this file name, in any case; `None` where no container has such a name.
    #[must_use]
    pub fn of_name(file_name: &str) -> Option<Self> {
        Self::split_name(file_name).map(|(_, format)| format)
    }

    /// The same with the name of what is in it, as `a.txt` for `a.txt.gz`.
    #[must_use]
    pub fn split_name(file_name: &str) -> Option<(&str, Self)> {
        SUFFIXES.iter().find_map(|(suffix, format)| {
            let at = file_name.len().checked_sub(suffix.len()).filter(|at| *at > 0)?;
            let (stem, end) = file_name.split_at_checked(at)?;
            end.eq_ignore_ascii_case(suffix).then_some((stem, *format))
        })
    }

    /// The ends of names that containers have, for messages.
    #[must_use]
    pub fn suffixes() -> String {
        SUFFIXES.iter().map(|(suffix, _)| *suffix).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deposit_without_type_is_what_its_first_lines_or_its_name_tell() {
        use DepositType::{BatchManifest, Container, ContainerBatchManifest, File, ObjectManifest};
        let manifest = |profile: &str| {
            format!("\u{feff}#%checkm_0.7\r\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/{profile}\r\n")
        };
        for (name, start, kind) in [
            ("a.txt", "", File),
            ("a.zip", "PK", Container),
            ("A.TAR.GZ", "", Container),
            ("a.tar.zst", "", Container),
            ("a.csv.gz", "", Container),
            ("a.rar", "", File),
            (".zip", "", File),
            ("é.zip", "", Container),
            ("any.zip", &manifest("mrt-ingest-manifest"), ObjectManifest),
            ("any", &manifest("mrt-batch-manifest"), BatchManifest),
            ("any", &manifest("mrt-container-batch-manifest"), ContainerBatchManifest),
            ("any", &manifest("mrt-object-manifest"), File),
            ("any", "#%profile | elsewhere", File),
        ] {
            assert_eq!(DepositType::guess(name, start.as_bytes()), kind, "{name} {start}");
        }
        assert_eq!(ContainerFormat::split_name("a.csv.bz2").map(|(stem, _)| stem), Some("a.csv"));
        for one in DepositType::ALL {
            assert_eq!(one.as_str().parse(), Ok(one));
        }
        assert!("manifest".parse::<DepositType>().unwrap_err().to_string().contains("batch-manifest"));
    }
}
