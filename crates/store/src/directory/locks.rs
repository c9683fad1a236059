//! Advisory locks, which hold the instant in which a file takes its place against other writers, of other processes,
//! too.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::digest::{Algorithm, Hashers};
use crate::key::Key;
use crate::name::SpaceName;

/// How many locks the items of a space share.
const SHARES: u8 = 64;

/// The locks of a space.
pub(super) struct Locks {
    directory: PathBuf,
}

/// A lock that is held until this is dropped.
#[must_use = "the lock is held until this is dropped"]
pub(super) struct Held {
    _files: Vec<File>,
}

impl Locks {
    /// The locks of a space, in a directory that is made if it is missing.
    pub(super) fn new(top: &Path, space: &SpaceName) -> Self {
        Self { directory: top.join(space.as_str()) }
    }

    fn lock(&self, name: &str, how: FlockOperation) -> io::Result<File> {
        let path = self.directory.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = options.open(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => fs::create_dir_all(&self.directory).and_then(|()| options.open(&path)),
            _ => Err(error),
        })?;
        loop {
            match rustix::fs::flock(&file, how) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for the lock of an item, which it may share with others.
    pub(super) fn item(&self, key: &Key) -> io::Result<Held> {
        // The space's first, always: a process that wants all of it waits for no item.
        let space = self.lock("space", FlockOperation::LockShared)?;
        // The same in every process, of any version.
        let mut hasher = Hashers::new([Algorithm::Crc32]);
        hasher.update(key.as_bytes());
        let share =
            hasher.finish().strongest().and_then(|digest| digest.as_bytes().last().copied()).unwrap_or_default();
        let item = self.lock(&(share % SHARES).to_string(), FlockOperation::LockExclusive)?;
        Ok(Held { _files: vec![item, space] })
    }

    /// Waits for the lock of all items.
    pub(super) fn space(&self) -> io::Result<Held> {
        Ok(Held { _files: vec![self.lock("space", FlockOperation::LockExclusive)?] })
    }
}
