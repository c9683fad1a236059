//! The profiles of manifests, and which columns each has.

use super::column::Column;

/// The header that names the profile.
pub(super) const HEADER: &str = "#%profile";

const REGISTRY: &str = "http://uc3.cdlib.org/registry/";

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
        let folder = match self {
            Self::Ingest | Self::Batch | Self::ContainerBatch | Self::SingleFileBatch => "ingest",
            Self::Object | Self::Add => "store",
        };
        format!("{REGISTRY}{folder}/manifest/{}", self.as_str())
    }

    /// The profile with this URI; white space in it is ignored, as today's reader does.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let uri: String = uri.chars().filter(|char| !char.is_whitespace()).take(256).collect();
        let old = uri.strip_prefix(OLD_REGISTRY);
        Self::ALL.into_iter().find(|one| uri == one.uri() || old == Some(one.as_str()))
    }

    /// The profile that the first lines of a content name; `None` where they are not those of a manifest.
    #[must_use]
    pub fn of_start(start: &[u8]) -> Option<Self> {
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let lines = start.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty());
        let headers = lines.take_while(|line| line.starts_with(b"#"));
        headers.filter_map(|line| of_header(std::str::from_utf8(line).ok()?)).find_map(Self::of_uri)
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

/// The URI of a line that is the header of a profile.
pub(super) fn of_header(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(HEADER)?;
    let uri = rest.trim_start_matches([' ', '\t', '|']);
    (uri.len() < rest.len()).then_some(uri.trim_end())
}
