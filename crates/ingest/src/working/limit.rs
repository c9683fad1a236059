//! A working storage that may use only a part of its file system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a working storage in bytes, which may be set while it is in use. Clones share it.
///
/// How much is used is found by looking at every file, so this is for a storage of few files that has no volume to
/// itself, such as that of a demo.
#[derive(Clone, Debug)]
pub struct SizeLimit(Arc<AtomicU64>);

impl SizeLimit {
    /// So many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Sets it anew.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// How many bytes it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The size, and how much of it the files below `root` leave free.
    pub(super) fn space(&self, root: &Path) -> io::Result<(u64, u64)> {
        let bytes = self.bytes();
        Ok((bytes, bytes.saturating_sub(used(root)?)))
    }
}

/// How many bytes the files below a directory take on the disk. What goes meanwhile takes none.
fn used(directory: &Path) -> io::Result<u64> {
    let mut sum = 0u64;
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(facts) if facts.is_dir() => sum = sum.saturating_add(used(&entry.path())?),
            facts => sum = sum.saturating_add(facts?.blocks().saturating_mul(super::STAT_BLOCK)),
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::super::WorkingStorage;
    use super::*;

    #[test]
    fn a_limited_storage_is_as_full_as_its_files_make_it() {
        let here = tempfile::tempdir().unwrap();
        let limit = SizeLimit::new(1 << 20);
        let storage = WorkingStorage::open(here.path()).unwrap().limited(limit.clone());
        let (size, before) = storage.space().unwrap();
        assert_eq!(size, 1 << 20);
        fs::create_dir_all(here.path().join("batch/job")).unwrap();
        fs::write(here.path().join("batch/job/file"), vec![1; 300 << 10]).unwrap();
        let (_, free) = storage.space().unwrap();
        assert!((300 << 10..400 << 10).contains(&(before - free)), "{before} {free}");
        // A sparse file takes what it has, and more than all is all.
        fs::File::create(here.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(storage.space().unwrap().1, free);
        limit.set(100 << 10);
        assert_eq!(storage.space().unwrap(), (100 << 10, 0));
    }
}
