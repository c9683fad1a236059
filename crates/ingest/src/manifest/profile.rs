//! The profiles of manifests, and which columns each has.

use queuekeeper_store::Algorithm;

use super::column::Column;

/// The algorithms that manifests may use.
pub(super) const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::Adler32,
    Algorithm::Crc32,
    Algorithm::Md5,
    Algorithm::Sha1,
    Algorithm::Sha256,
    Algorithm::Sha384,
    Algorithm::Sha512,
];

/// The header that names the profile.
pub(super) const HEADER: &str = "#%profile";

/// What the first line of a manifest begins with, in whatever version.
const MANIFEST: &[u8] = b"#%checkm";

const REGISTRY: &str = "http://uc3.cdlib.org/registry/";

/// The folders of the registry that have profiles of manifests: those of deposits, and those of objects.
const FOLDERS: [&str; 2] = ["ingest", "store"];

/// The place of all profiles once, still found in manifests.
const OLD_REGISTRY: &str = "http://uc3.cdlib.org/registry/mrt/";

/// What the rows of a manifest are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ManifestProfile {
    /// The files of one object, to be fetched.
    Ingest,
    /// Manifests, each of an object.
    Batch,
    /// Containers, each of an object.
    ContainerBatch,
    /// Files, each an object.
    SingleFileBatch,
    /// The files beside which the manifest lies in a container.
    Object,
    /// The files of a version, for storing.
    Add,
}

const FILES: [Column; 7] = [
    Column::Url,
    Column::HashAlgorithm,
    Column::HashValue,
    Column::Size,
    Column::Modified,
    Column::Name,
    Column::MimeType,
];

const OBJECTS: [Column; 11] = [
    Column::Url,
    Column::HashAlgorithm,
    Column::HashValue,
    Column::Size,
    Column::Modified,
    Column::Name,
    Column::PrimaryId,
    Column::LocalId,
    Column::Creator,
    Column::Title,
    Column::Date,
];

const CONTENTS: [Column; 6] =
    [Column::Name, Column::HashAlgorithm, Column::HashValue, Column::Size, Column::Modified, Column::MimeType];

impl ManifestProfile {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ingest, Self::Batch, Self::ContainerBatch, Self::SingleFileBatch, Self::Object, Self::Add];

    /// The name, the last part of the profile's URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "mrt-ingest-manifest",
            Self::Batch => "mrt-batch-manifest",
            Self::ContainerBatch => "mrt-container-batch-manifest",
            Self::SingleFileBatch => "mrt-single-file-batch-manifest",
            Self::Object => "mrt-object-manifest",
            Self::Add => "mrt-add-manifest",
        }
    }

    /// The URI that a manifest's `#%profile` has.
    #[must_use]
    pub fn uri(self) -> String {
        let [of_deposits, of_objects] = FOLDERS;
        let folder = match self {
            Self::Ingest | Self::Batch | Self::ContainerBatch | Self::SingleFileBatch => of_deposits,
            Self::Object | Self::Add => of_objects,
        };
        format!("{REGISTRY}{folder}/manifest/{}", self.as_str())
    }

    /// The profile with this URI, in either folder of the registry; white space in it is ignored, as today's reader
    /// does.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let uri: String = uri.chars().filter(|char| !char.is_whitespace()).take(256).collect();
        let name = uri.strip_prefix(OLD_REGISTRY).or_else(|| {
            let rest = uri.strip_prefix(REGISTRY)?;
            FOLDERS.iter().find_map(|folder| rest.strip_prefix(folder)?.strip_prefix("/manifest/"))
        })?;
        Self::ALL.into_iter().find(|one| name == one.as_str())
    }

    /// The profile that the first lines of a content name; `None` where they are not those of a manifest, or name none
    /// that is known.
    #[must_use]
    pub fn of_start(start: &[u8]) -> Option<Self> {
        uris(start).find_map(Self::of_uri)
    }

    /// The URI of the profile that a content names which begins as a manifest does, empty where it names none; `None`
    /// for any other content.
    #[must_use]
    pub fn named_in(start: &[u8]) -> Option<&str> {
        let first = headers(start).next()?;
        let is_manifest = first.get(..MANIFEST.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(MANIFEST));
        is_manifest.then(|| uris(start).next().unwrap_or_default())
    }

    /// Whether each row is an object of its own.
    #[must_use]
    pub fn is_batch(self) -> bool {
        matches!(self, Self::Batch | Self::ContainerBatch | Self::SingleFileBatch)
    }

    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Self::Ingest | Self::Add => &FILES,
            Self::Batch | Self::ContainerBatch | Self::SingleFileBatch => &OBJECTS,
            Self::Object => &CONTENTS,
        }
    }
}

/// The lines before the first row.
fn headers(start: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let lines = start.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty());
    lines.take_while(|line| line.starts_with(b"#"))
}

/// The URIs of profiles in these lines.
fn uris(start: &[u8]) -> impl Iterator<Item = &str> {
    headers(start).filter_map(|line| of_header(std::str::from_utf8(line).ok()?))
}

/// The URI of a line that is the header of a profile.
pub(super) fn of_header(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(HEADER)?;
    let uri = rest.trim_start_matches([' ', '\t', '|']);
    (uri.len() < rest.len()).then_some(uri.trim_end())
}
