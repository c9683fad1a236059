//! Files that decide whom this program trusts and what it may do, and those that it keeps its records in: whoever can
//! change or replace one of them could let himself do anything.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The permission of everyone to write.
const OTHERS_WRITE: u32 = 0o002;

/// In a directory with this bit only the owner of a file can replace it, whoever may write the directory.
const STICKY: u32 = 0o1000;

/// Reads a file, if it is a plain one of that many bytes at most, and neither it nor a directory on the way to it may be
/// written by everyone.
///
/// # Errors
/// When it cannot be read, or is none of that.
pub(crate) fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    // A pipe would be waited for otherwise.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if is_writable_by_all(&facts) {
        return Err(io::Error::other("everyone on this machine may write it; chmod o-w"));
    }
    check_directories(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::other(format!("it is larger than {} MiB", most_bytes >> 20)));
    }
    Ok(bytes)
}

/// Refuses a path that everyone on the machine can make lead to another file: each directory up to the root is looked at,
/// by the path as it is given and as it is without symbolic links. The file need not be there.
///
/// # Errors
/// Names the directory that everyone may write, or that cannot be looked at.
pub(crate) fn check_directories(path: &Path) -> io::Result<()> {
    let given = std::path::absolute(path)?;
    let folder = given.parent().unwrap_or(&given);
    let mut looked_at: Vec<PathBuf> = folder.ancestors().map(Path::to_owned).collect();
    for real in [folder.canonicalize(), given.canonicalize()].into_iter().flatten() {
        looked_at.extend(real.ancestors().map(Path::to_owned));
    }
    looked_at.sort();
    looked_at.dedup();
    for directory in looked_at {
        let facts = std::fs::metadata(&directory)?;
        if facts.is_dir() && is_writable_by_all(&facts) && facts.permissions().mode() & STICKY == 0 {
            let why = format!(
                "everyone on this machine may write the directory {}, and so replace the file; chmod o-w",
                directory.display()
            );
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Opens a file of records for appending, which is made where it is not there, readable for its owner alone. One that is
/// there is taken only as a plain file of ours or root's that nobody else writes and not everyone reads.
///
/// # Errors
/// When it cannot be opened, is a symbolic link, or belongs to or is open to others.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).read(true).mode(0o600).custom_flags(flags).open(path);
    let file = opened.map_err(|why| match rustix::io::Errno::from_io_error(&why) {
        Some(rustix::io::Errno::LOOP) => io::Error::other("it is a symbolic link; name the file that it leads to"),
        _ => why,
    })?;
    let facts = file.metadata()?;
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    if !facts.is_file() {
        return refuse("it is not a file");
    }
    match facts.permissions().mode() {
        mode if mode & 0o022 != 0 => return refuse("others than its owner may write it; chmod go-w"),
        mode if mode & 0o004 != 0 => return refuse("everyone on this machine may read it; chmod o-r"),
        _ => {}
    }
    let owner = std::os::unix::fs::MetadataExt::uid(&facts);
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user, who could change it");
    }
    check_directories(path)?;
    Ok(file)
}

fn is_writable_by_all(facts: &Metadata) -> bool {
    facts.permissions().mode() & OTHERS_WRITE != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_everyone_can_replace_is_not_read_by_whichever_path() {
        let root = tempfile::tempdir().unwrap();
        let [open, closed] = ["open", "closed"].map(|name| root.path().join(name));
        for folder in [&open, &closed] {
            std::fs::create_dir_all(folder.join("inner")).unwrap();
            std::fs::write(folder.join("inner/file"), "x").unwrap();
        }
        symlink(closed.join("inner"), open.join("link")).unwrap();
        symlink(open.join("inner/file"), closed.join("link")).unwrap();
        let paths = [open.join("inner/file"), open.join("link/file"), closed.join("link")];
        let refused = |path: &Path| read(path, 10).err().map(|why| why.to_string());
        for mode in [0o755, 0o775, 0o1777] {
            set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert_eq!(paths.each_ref().map(|path| refused(path)), [None, None, None], "{mode:o}");
        }
        set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        for path in &paths {
            let why = refused(path).unwrap();
            assert!(why.contains(open.to_str().unwrap()) && why.contains("chmod o-w"), "{}: {why}", path.display());
        }
        assert_eq!(refused(&closed.join("inner/file")), None);
        assert!(refused(&closed).unwrap().contains("not a file"));
        std::fs::write(closed.join("inner/file"), "x".repeat(11)).unwrap();
        assert!(refused(&closed.join("inner/file")).unwrap().contains("larger"));
    }

    #[test]
    fn records_go_to_a_file_of_our_own_and_to_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let refused = |name: &str| append(&path(name)).err().map(|why| why.to_string());
        assert_eq!(refused("new"), None);
        assert_eq!(std::fs::metadata(path("new")).unwrap().permissions().mode() & 0o777, 0o600);
        symlink(path("new"), path("link")).unwrap();
        assert!(refused("link").unwrap().contains("symbolic link"));
        symlink(path("none"), path("dangling")).unwrap();
        assert!(refused("dangling").unwrap().contains("symbolic link") && !path("none").exists());
        for (mode, told) in [(0o600, None), (0o640, None), (0o644, Some("may read")), (0o660, Some("may write"))] {
            set_permissions(path("new"), Permissions::from_mode(mode)).unwrap();
            let why = refused("new");
            assert_eq!(why.is_some(), told.is_some(), "{mode:o}: {why:?}");
            assert!(told.is_none_or(|told| why.unwrap().contains(told)), "{mode:o}");
        }
        std::fs::create_dir(path("folder")).unwrap();
        assert!(refused("folder").is_some());
    }
}
