//! The columns that rows may have.

/// A column of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Column {
    Url,
    HashAlgorithm,
    HashValue,
    Size,
    Modified,
    Name,
    MimeType,
    PrimaryId,
    LocalId,
    Creator,
    Title,
    Date,
}

impl Column {
    /// The name in `#%fields`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Url => "nfo:fileURL",
            Self::HashAlgorithm => "nfo:hashAlgorithm",
            Self::HashValue => "nfo:hashValue",
            Self::Size => "nfo:fileSize",
            Self::Modified => "nfo:fileLastModified",
            Self::Name => "nfo:fileName",
            Self::MimeType => "mrt:mimeType",
            Self::PrimaryId => "mrt:primaryIdentifier",
            Self::LocalId => "mrt:localIdentifier",
            Self::Creator => "mrt:creator",
            Self::Title => "mrt:title",
            Self::Date => "mrt:date",
        }
    }
}
