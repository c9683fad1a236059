//! What the operating system says, as what went wrong.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::error::ErrorKind;

/// The kind of a failure of the operating system.
pub(super) fn kind(error: io::Error) -> ErrorKind {
    // What adds a path to an error leaves its number out.
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge) {
        return ErrorKind::Full;
    }
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS | Errno::PERM) => ErrorKind::Refused(
            "permission denied; change the owner or mode of the file, or of the directories above it".to_owned(),
        ),
        Some(Errno::ROFS) => ErrorKind::Refused("the file system is mounted read-only".to_owned()),
        Some(Errno::XDEV) => ErrorKind::Refused(
            "a space and the store's directory are on different file systems; mount them as one".to_owned(),
        ),
        Some(Errno::NAMETOOLONG) => {
            ErrorKind::Unsupported("the file system does not support a name or path of that length".to_owned())
        }
        Some(Errno::ILSEQ | Errno::INVAL) => {
            ErrorKind::Unsupported(format!("the file system does not support that name ({error})"))
        }
        Some(Errno::NOTDIR) => ErrorKind::Refused(
            "a file or a symbolic link is where the store needs a directory; move it away".to_owned(),
        ),
        Some(Errno::LOOP) => ErrorKind::Refused(
            "a symbolic link is in its place, and links are not followed; replace it by what it leads to".to_owned(),
        ),
        // The last ones are those of a file system whose server, process or device does not answer.
        Some(
            Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::AGAIN
            | Errno::INTR
            | Errno::STALE
            | Errno::TIMEDOUT
            | Errno::NOTCONN
            | Errno::CONNABORTED
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::NODEV
            | Errno::NXIO,
        ) => ErrorKind::Unavailable(error.to_string()),
        _ => ErrorKind::Io(error),
    }
}

/// Checks that the directory of a store is the one that was opened: `own` is in it from then on, and not in the mount
/// point of a volume that is away.
pub(super) fn check_there(top: &Path, own: &Path) -> Result<(), ErrorKind> {
    if own.is_dir() {
        return Ok(());
    }
    let shown = top.display();
    Err(ErrorKind::Unavailable(if top.is_dir() {
        format!(
            "{shown} does not have this store's marker; mount its volume there, or restart if it is the right directory"
        )
    } else {
        format!("there is no directory {shown}; mount its volume")
    }))
}

/// The kind of a failure, where what is missing may be missing since all is.
pub(super) fn unless_away(kind: ErrorKind, top: &Path, own: &Path) -> ErrorKind {
    let is_missing = match &kind {
        ErrorKind::NoSpace | ErrorKind::NotFound => true,
        ErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    };
    if is_missing { check_there(top, own).err().unwrap_or(kind) } else { kind }
}

impl From<io::Error> for ErrorKind {
    fn from(error: io::Error) -> Self {
        kind(error)
    }
}

impl From<Errno> for ErrorKind {
    fn from(error: Errno) -> Self {
        kind(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_with_its_number_and_without() {
        let numbered = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].map(io::Error::from);
        for error in numbered {
            assert!(matches!(kind(io::Error::new(error.kind(), "at a path")), ErrorKind::Full));
            assert!(matches!(kind(error), ErrorKind::Full));
        }
        assert!(matches!(kind(Errno::IO.into()), ErrorKind::Io(_)));
    }
}
