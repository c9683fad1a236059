//! What is wrong with a manifest.

use std::fmt;
use std::io;

use queuekeeper_store::digest::DigestError;

use super::profile::ManifestProfile;
use crate::ark::ArkError;
use crate::name::NameError;
use crate::url::UrlError;

/// How many problems are collected before reading ends.
pub const MOST_PROBLEMS: usize = 100;

/// How much of what is wrong with a manifest is said in a message, in bytes: a status holds 1 KiB.
pub(crate) const PROBLEMS_BYTES: usize = 950;

/// A problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The character in the line, from 1.
    pub column: u64,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What is wrong at a place of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// Bytes that are no text.
    #[error("the line is not UTF-8 from here on")]
    NoText,
    /// A line that is too long.
    #[error("the line is longer than {0} bytes")]
    LineTooLong(usize),
    /// The manifest is too large.
    #[error("the manifest is larger than {0} bytes")]
    TooLarge(u64),
    /// It has too many rows.
    #[error("the manifest has more than {0} rows; divide it")]
    TooManyRows(u64),
    /// Its files have too many folders.
    #[error("the names of the files have more than {0} parts together; divide the manifest")]
    TooManyParts(usize),
    /// There is no profile.
    #[error("there is no line '#%profile | URI' before the first row")]
    NoProfile,
    /// The profile is not one of those that are known.
    #[error("the profile {0:?} is unknown; expected one of {known}", known = uris(ManifestProfile::ALL))]
    UnknownProfile(String),
    /// The profile is not the one of this use.
    #[error("the profile is {found}, but {expected} was expected", found = found.as_str(), expected = expected.as_str())]
    OtherProfile {
        /// The profile of the manifest.
        found: ManifestProfile,
        /// The one that it should have.
        expected: ManifestProfile,
    },
    /// The last line is missing.
    #[error("the manifest does not end with '#%eof': it was cut off; send all of it")]
    CutOff,
    /// Rows stand behind the last line.
    #[error("the manifest continues after '#%eof', which must be its last line")]
    BehindEof,
    /// It says nothing.
    #[error("the manifest has no rows")]
    NoRows,
    /// A row without URL.
    #[error("the row has no URL")]
    NoUrl,
    /// A URL that is not taken.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// A URL that should be a file's of one directory.
    #[error("the URL is not below {0}")]
    Elsewhere(String),
    /// An algorithm that is not supported.
    #[error("algorithm {0:?} is not supported; use one of {known}", known = super::profile::ALGORITHMS.map(queuekeeper_store::Algorithm::as_str).join(", "))]
    Algorithm(String),
    /// A digest of a wrong form.
    #[error("{0}")]
    Digest(#[from] DigestError),
    /// A size that is no number.
    #[error("{0:?} is not a size in bytes")]
    Size(String),
    /// A row without name.
    #[error("the row has no file name, and its URL does not end with one")]
    NoName,
    /// A name that is refused.
    #[error("{0}")]
    Name(#[from] NameError),
    /// A name that another row has.
    #[error("the file name is that of line {0}")]
    Repeated(u64),
    /// A name for which a file would have to be a folder.
    #[error("the file name and that of line {0} use one name for both a file and a folder")]
    Conflict(u64),
    /// An identifier of the object that no object can have.
    #[error("{0}")]
    Ark(#[from] ArkError),
    /// A character that no description may have.
    #[error("the column has a control character")]
    Control,
}

/// The URIs of some profiles, as a message lists them.
pub(crate) fn uris(profiles: impl IntoIterator<Item = ManifestProfile>) -> String {
    profiles.into_iter().map(ManifestProfile::uri).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "line {}, column {}: {}", self.line, self.column, self.kind)
    }
}

/// Why there is nothing to be had from a manifest.
#[derive(Debug)]
pub enum ManifestError {
    /// It cannot be read; whether it is valid is not known.
    Read(io::Error),
    /// It is invalid.
    Invalid {
        /// The problems in their order, one at least, at most [`MOST_PROBLEMS`].
        problems: Vec<Problem>,
        /// Whether reading ended at that number.
        has_more: bool,
    },
}

impl ManifestError {
    /// The problems of the manifest; none where it could not be read.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Read(_) => &[],
            Self::Invalid { problems, .. } => problems,
        }
    }
}

/// One sentence with the first problem, and the number of the others.
impl ManifestError {
    /// All that is wrong in one line, as far as so many bytes hold it; at least the first problem.
    #[must_use]
    pub fn in_full(&self, most_bytes: usize) -> String {
        let Self::Invalid { problems, has_more } = self else { return self.to_string() };
        in_one_line("invalid manifest", problems, *has_more, most_bytes)
    }
}

/// What is wrong in one line behind its beginning, as far as so many bytes hold it, and the number of what is left; at
/// least the first of it.
pub(crate) fn in_one_line(
    beginning: &str,
    problems: &[impl fmt::Display],
    has_more: bool,
    most_bytes: usize,
) -> String {
    let (mut text, mut shown) = (beginning.to_owned(), 0);
    for problem in problems {
        let more = format!("{} {problem}", if shown == 0 { ":" } else { ";" });
        if shown > 0 && text.len() + more.len() > most_bytes {
            break;
        }
        text.push_str(&more);
        shown += 1;
    }
    let rest = problems.len() - shown;
    if rest > 0 || has_more {
        let at_least = if has_more { "at least " } else { "" };
        let _ = fmt::Write::write_fmt(&mut text, format_args!(" (and {at_least}{rest} more)"));
    }
    text
}

impl fmt::Display for ManifestError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problems, has_more) = match self {
            Self::Read(error) => return write!(to, "cannot read the manifest: {error}"),
            Self::Invalid { problems, has_more } => (problems, *has_more),
        };
        to.write_str("invalid manifest")?;
        if let Some(first) = problems.first() {
            write!(to, ": {first}")?;
        }
        match (problems.len(), has_more) {
            (..=1, false) => Ok(()),
            (2, false) => to.write_str(" (and 1 other problem)"),
            (count, false) => write!(to, " (and {} other problems)", count - 1),
            (count, true) => write!(to, " (and at least {} other problems)", count - 1),
        }
    }
}

impl std::error::Error for ManifestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Invalid { .. } => None,
        }
    }
}
