//! What fails, as one line that names the store, what was being done, and to what.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::archive::NotYet;
use crate::digest::Digest;
use crate::name::StoreName;

/// A failure of one operation on a store.
#[derive(Debug, thiserror::Error)]
#[error("store {store}: {operation} {subject}: {kind}", subject = shortened(subject))]
pub struct Error {
    /// Which store.
    pub store: StoreName,
    /// What was being done, such as `put`.
    pub operation: Operation,
    /// To which item or space, as `SPACE/KEY`.
    pub subject: String,
    /// Why it failed.
    #[source]
    pub kind: ErrorKind,
}

/// How much of a name is shown in an error, in characters: of its beginning, and of its end.
const SHOWN: (usize, usize) = (120, 60);

/// The name of an item as errors have it: without its middle where it is long.
#[must_use]
pub fn shortened(name: &str) -> Cow<'_, str> {
    let (first, last) = SHOWN;
    let length = name.chars().count();
    if length <= first + last {
        return Cow::Borrowed(name);
    }
    let start: String = name.chars().take(first).collect();
    let end: String = name.chars().skip(length - last).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// What is done to a store: the name in errors, metrics and the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named after the function of the trait")]
pub enum Operation {
    Spaces,
    CreateSpace,
    DeleteSpace,
    List,
    Head,
    Get,
    Put,
    Copy,
    Delete,
    SetProperties,
    AbortUpload,
    Probe,
    Sweep,
    Restore,
}

impl Operation {
    /// All of them, each with its name.
    pub const ALL: [Self; 14] = [
        Self::Spaces,
        Self::CreateSpace,
        Self::DeleteSpace,
        Self::List,
        Self::Head,
        Self::Get,
        Self::Put,
        Self::Copy,
        Self::Delete,
        Self::SetProperties,
        Self::AbortUpload,
        Self::Probe,
        Self::Sweep,
        Self::Restore,
    ];

    /// The name, as in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spaces => "spaces",
            Self::CreateSpace => "create_space",
            Self::DeleteSpace => "delete_space",
            Self::List => "list",
            Self::Head => "head",
            Self::Get => "get",
            Self::Put => "put",
            Self::Copy => "copy",
            Self::Delete => "delete",
            Self::SetProperties => "set_properties",
            Self::AbortUpload => "abort_upload",
            Self::Probe => "probe",
            Self::Sweep => "sweep",
            Self::Restore => "restore",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such item.
    #[error("there is no such item")]
    NotFound,
    /// There is no such space.
    #[error("there is no such space")]
    NoSpace,
    /// The space has items.
    #[error("the space is not empty")]
    NotEmpty,
    /// The item is not what the condition requires; nothing was changed.
    #[error("the item has changed, or exists already; nothing was written")]
    Precondition,
    /// The store cannot hold this key, name or property; says which and why.
    #[error("this store cannot hold it: {0}")]
    Unsupported(String),
    /// What was read or sent is not what was expected; nothing was written.
    #[error("{algorithm} is {found}, expected {expected}", algorithm = expected.algorithm())]
    Digest {
        /// What the caller expected.
        expected: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// There are more or fewer bytes than announced; nothing was written.
    #[error("{found} bytes, expected {expected}")]
    Size {
        /// What was announced, in bytes.
        expected: u64,
        /// What came, in bytes.
        found: u64,
    },
    /// A range that lies beyond the end of the content.
    #[error("the range begins beyond the end, at {size} bytes")]
    Range {
        /// The size of the content, in bytes.
        size: u64,
    },
    /// The caller or its [`CommitGuard`](crate::store::CommitGuard) ended it; nothing was written, nor will be.
    #[error("stopped: {0}; nothing was written")]
    Stopped(String),
    /// The source of the content failed; nothing was written.
    #[error("reading what was to be written failed: {0}")]
    Source(#[source] io::Error),
    /// The store has no room.
    #[error("no space is left on it; nothing was written")]
    Full,
    /// It is in an archive, and cannot be read before it was restored.
    #[error("it is archived, and was not restored")]
    Archived,
    /// It cannot be read, for a reason that is its own; others of the store may be.
    #[error("{0}")]
    Unreadable(String),
    /// It can be read later: its restore has not ended, or as much as a day allows was read.
    #[error("it {0}")]
    NotYet(NotYet),
    /// Credentials, permissions, names, endpoint: it fails until something is changed. Says what to do.
    #[error("{0}")]
    Refused(String),
    /// The space is for a part of this program alone.
    #[error("{0}")]
    Reserved(String),
    /// Temporary: the connection, a time-out, a busy server. It may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// Another change of the same item is under way; nothing was changed. Says whose, and until when it holds the item.
    #[error("{0}; nothing was changed")]
    Held(String),
    /// It was sent, and no answer came: it may have happened.
    #[error("no answer was received, so it may have been done: {0}")]
    Unknown(String),
    /// It was done, but its record in the audit log is not written yet; it is completed by a look at the store.
    #[error("it was done, but its record in the audit log follows later: {0}")]
    Unrecorded(String),
    /// The store answered against its own protocol, such as with a listing out of order.
    #[error("the store's answer is wrong: {0}")]
    Answer(String),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl Error {
    /// Whether the same may succeed later without a change of its own or of the configuration: a full store may have
    /// room then. Of what is only unrecorded, nothing need be repeated.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable(_) | ErrorKind::Held(_) | ErrorKind::Unknown(_) | ErrorKind::Full)
    }

    /// Whether it failed since the item is not what the condition requires.
    #[must_use]
    pub fn is_precondition(&self) -> bool {
        matches!(self.kind, ErrorKind::Precondition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_shown_without_its_middle() {
        let subject = format!("space/{}end", "ä".repeat(500));
        let (store, operation, kind) = ("main".parse().unwrap(), Operation::Head, ErrorKind::NotFound);
        let text = Error { store, operation, subject, kind }.to_string();
        assert!(
            text.starts_with("store main: head space/ää") && text.ends_with("ääend: there is no such item"),
            "{text}"
        );
        assert!(text.contains("ä…ä") && text.chars().count() < 250, "{text}");
        assert_eq!(shortened("space/key"), "space/key");
    }
}
