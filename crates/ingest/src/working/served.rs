//! What other programs may read of the working storage.

use std::fs::File;
use std::io;

use rustix::io::Errno;

use super::PRODUCER;
use super::{WorkingStorage, check_name};
use crate::file_root::FileRoot;
use crate::steps::processing::SYSTEM;

impl WorkingStorage {
    /// Opens a file of a job by its path below the storage: `BATCH/JOB/producer/..` or `BATCH/JOB/system/..`, as the
    /// job's manifest names it. `None` where there is none, and for all that is none: folders, links, our own helper
    /// files.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn served_file(&self, path: &str) -> io::Result<Option<File>> {
        if !is_served(path) {
            return Ok(None);
        }
        match FileRoot::open(&self.root, &self.root)?.file(path) {
            Err(error) if is_none(&error) => Ok(None),
            opened => opened,
        }
    }
}

/// Whether a path is that of a file of a job. What a depositor has called by a name with a dot is content; what has
/// such a name elsewhere is ours.
fn is_served(path: &str) -> bool {
    let mut parts = path.split('/');
    let ids = [parts.next(), parts.next()];
    if !ids.into_iter().all(|id| id.is_some_and(|id| check_name(id).is_ok())) {
        return false;
    }
    match parts.next() {
        Some(PRODUCER) => parts.next().is_some(),
        Some(SYSTEM) => parts.next().is_some_and(|name| !name.starts_with('.')) && parts.next().is_none(),
        Some(_) | None => false,
    }
}

/// Whether what a path names is no file: an invalid name, a link on the way, a folder, a device.
fn is_none(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(number) => {
            [Errno::LOOP, Errno::XDEV, Errno::NXIO, Errno::NAMETOOLONG].contains(&Errno::from_raw_os_error(number))
        }
        None => matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Other),
    }
}
