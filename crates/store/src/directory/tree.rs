//! The directory of a space, by descriptors: no symbolic link in it is followed, and no path leads out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::names::SELF;
use crate::error::ErrorKind;

/// How directories are opened.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// How files are opened: without waiting for a writer, should it be a pipe.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// How often a path is opened again while what it leads to is moved away.
const MOST_OPENINGS: usize = 100;

/// The directory of a space.
pub(super) struct Tree {
    top: OwnedFd,
}

/// Where content goes: a name in a directory.
pub(super) struct NamedEntry {
    directory: OwnedFd,
    name: Vec<u8>,
}

/// What is found on the way to a place.
pub(super) enum Way {
    /// It is free to be taken; a file may be there already.
    To(NamedEntry),
    /// After so many names there is a file, where a directory would have to be.
    File(usize),
}

impl Tree {
    /// The tree below a directory; `None` where there is no such directory.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match rustix::fs::open(path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(top) => Ok(Some(Self { top })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The directory that these names lead to, from the top; `None` where there is none.
    pub(super) fn directory(&self, names: &[Vec<u8>]) -> io::Result<Option<OwnedFd>> {
        if names.is_empty() {
            return self.top.try_clone().map(Some);
        }
        match open_beneath(&self.top, &names.join(&b'/'), DIRECTORY) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The file that a key's names lead to, with its facts; `None` where there is none.
    pub(super) fn file(&self, names: &[Vec<u8>]) -> Result<Option<(File, Stat)>, ErrorKind> {
        let path = names.join(&b'/');
        // A file that is turned into a directory is there again in the next instant.
        for _ in 0..3 {
            let opened = match open_beneath(&self.top, &path, FILE) {
                Ok(opened) => opened,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let facts = rustix::fs::fstat(&opened)?;
            match FileType::from_raw_mode(facts.st_mode) {
                FileType::RegularFile => return Ok(Some((opened.into(), facts))),
                FileType::Directory => match open_beneath(&opened, SELF, FILE) {
                    Ok(own) => {
                        let facts = rustix::fs::fstat(&own)?;
                        return Ok(Some((own.into(), facts)));
                    }
                    Err(Errno::NOENT) if self.is_directory(&path) => return Ok(None),
                    Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                },
                _ => return Err(ErrorKind::Refused("it is neither a file nor a directory; remove it".to_owned())),
            }
        }
        Err(ErrorKind::Unavailable("it changes between a file and a directory; try again".to_owned()))
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        open_beneath(&self.top, path, DIRECTORY).is_ok()
    }

    /// The place of a key's content. Directories that are missing on the way are made if `make` is set, durably.
    pub(super) fn way(&self, names: &[Vec<u8>], make: bool) -> io::Result<Option<Way>> {
        let (last, parents) = names.split_last().expect("a key has at least one name");
        let mut directory = self.top.try_clone()?;
        for (depth, name) in parents.iter().enumerate() {
            directory = match enter(&directory, name) {
                Ok(next) => next,
                Err(Errno::NOTDIR) => return Ok(Some(Way::File(depth + 1))),
                Err(Errno::NOENT) if make => {
                    match rustix::fs::mkdirat(&directory, name.as_slice(), Mode::from_raw_mode(0o777)) {
                        Ok(()) => sync(&directory)?,
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    enter(&directory, name)?
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        let place = match enter(&directory, last) {
            Ok(own) => NamedEntry { directory: own, name: SELF.to_vec() },
            Err(Errno::NOENT | Errno::NOTDIR) => NamedEntry { directory, name: last.clone() },
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Way::To(place)))
    }

    /// Removes the directories that lead to a key's place, and its own, from the innermost outwards, as far as they are
    /// empty.
    pub(super) fn prune(&self, names: &[Vec<u8>]) {
        for depth in (1..=names.len()).rev() {
            let Ok(Some(parent)) = self.directory(&names[..depth - 1]) else { return };
            match rustix::fs::unlinkat(&parent, names[depth - 1].as_slice(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                // It is in use, or cannot be removed: an empty directory harms nothing.
                Err(_) => return,
            }
        }
    }

    /// Turns the file that these names lead to into a directory that has it as its own content. Both are there at every
    /// instant. `spare` is an empty directory on the same file system, and is gone afterwards.
    pub(super) fn turn_into_directory(&self, names: &[Vec<u8>], spare: &Path) -> Result<(), ErrorKind> {
        let (last, parents) = names.split_last().expect("a key has at least one name");
        let Some(parent) = self.directory(parents)? else { return Ok(()) };
        let new = rustix::fs::open(spare, DIRECTORY, Mode::empty())?;
        match rustix::fs::statat(&parent, last.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) if FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile => {}
            // Another writer has turned or removed it.
            Ok(_) | Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        rustix::fs::linkat(&parent, last.as_slice(), &new, SELF, AtFlags::empty())?;
        sync(&new)?;
        let unsupported = || ErrorKind::Unsupported("the file system cannot hold a key beside one below it".to_owned());
        match rustix::fs::renameat_with(rustix::fs::CWD, spare, &parent, last.as_slice(), RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS) => return Err(unsupported()),
            Err(error) => return Err(error.into()),
        }
        sync(&parent)?;
        rustix::fs::unlink(spare)?;
        Ok(())
    }
}

impl NamedEntry {
    /// Renames a file to this place; the answer is the directory that has to be synced.
    pub(super) fn take(&self, from: &Path) -> io::Result<OwnedFd> {
        rustix::fs::renameat(rustix::fs::CWD, from, &self.directory, self.name.as_slice())?;
        self.directory.try_clone()
    }

    /// Deletes the file here, if there is one; the answer is the directory that has to be synced.
    pub(super) fn clear(&self) -> io::Result<&OwnedFd> {
        match rustix::fs::unlinkat(&self.directory, self.name.as_slice(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(&self.directory),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens what a path leads to. No name is `..` and no link is followed, so that nothing lies outside but what another
/// writer moves out in that instant, as [`Tree::turn_into_directory`] does: what has taken its place is opened then.
fn open_beneath(from: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..MOST_OPENINGS {
        match rustix::fs::openat2(&from, path, flags, Mode::empty(), resolve) {
            Err(Errno::XDEV | Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

fn enter(directory: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Makes the names in a directory durable.
pub(super) fn sync(directory: impl AsFd) -> io::Result<()> {
    let directory: BorrowedFd<'_> = directory.as_fd();
    Ok(rustix::fs::fsync(directory)?)
}

/// A file name as the standard library has it.
pub(super) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{fs, thread};

    use super::*;

    #[test]
    fn what_is_moved_out_while_it_is_opened_is_what_has_taken_its_place() {
        let top = tempfile::tempdir().unwrap();
        let (space, outside) = (top.path().join("space"), top.path().join("outside"));
        fs::create_dir(&space).unwrap();
        fs::write(space.join("a"), "one").unwrap();
        fs::write(&outside, "two").unwrap();
        let tree = Tree::open(&space).unwrap().unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let (inside, cwd) = (space.join("a"), rustix::fs::CWD);
                    rustix::fs::renameat_with(cwd, &inside, cwd, &outside, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let found: Vec<_> = (0..50_000).map(|_| tree.file(&[b"a".to_vec()]).map(|found| found.is_some())).collect();
            is_done.store(true, Ordering::Relaxed);
            for found in found {
                assert!(found.unwrap());
            }
        });
    }
}
