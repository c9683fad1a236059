//! Room for archives, where the delivery store is a directory: its volume is not filled above the threshold.
//!
//! What an archive will take is allocated on the volume before it is begun, by a file without a name that shrinks as
//! the archive grows. So all processes see it as used, and it is free again when its process ends, however that is.
//! Where the file system cannot do that, as NFS before 4.2, each process knows of its own archives only.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use queuekeeper_store::Store;
use queuekeeper_store::store::Chunks;
use rustix::fs::{Mode, OFlags};

use super::failure::AccessFailure;
use crate::space::Rules;
use crate::working;

/// After how many bytes of an archive its allocation shrinks.
const STEP: u64 = 16 << 20;

/// How many bytes the archives of this process will still take that could not be allocated.
#[derive(Clone, Debug, Default)]
pub(super) struct UnallocatedBytes(Arc<Mutex<u64>>);

/// Room for an archive, as long as it is being written.
#[derive(Debug)]
pub(super) struct Taken {
    by: By,
    /// How many bytes the archive will still take.
    left: u64,
    /// How many of it came since the allocation shrank.
    fresh: u64,
}

/// What holds the room.
#[derive(Debug)]
enum By {
    /// Nothing: the store is no directory.
    None,
    /// The allocation of a file without a name.
    File(File),
    /// So many bytes of the count.
    Count(UnallocatedBytes, u64),
}

/// Why there is no room.
enum NoRoom {
    /// The volume has so many bytes at most.
    Never(u64),
    /// It has so many now.
    Now(u64),
}

impl UnallocatedBytes {
    /// Takes room for an archive of at most so many bytes.
    ///
    /// # Errors
    /// When there is none, or never will be, or the volume cannot be measured.
    pub(super) async fn take(&self, store: &Arc<dyn Store>, rules: Rules, bytes: u64) -> Result<Taken, AccessFailure> {
        let Some(directory) = store.directory().map(Path::to_owned) else {
            return Ok(Taken { by: By::None, left: bytes, fresh: 0 });
        };
        let room = self.clone();
        let taken = tokio::task::spawn_blocking(move || room.take_on(&directory, rules, bytes));
        match taken.await.map_err(io::Error::other).flatten() {
            Ok(Ok(taken)) => Ok(taken),
            Ok(Err(NoRoom::Never(capacity))) => {
                let why = format!(
                    "an archive of {bytes} bytes never fits: the volume of store {} has {capacity} bytes up to the threshold",
                    store.name()
                );
                Err(AccessFailure::Permanent(507, why))
            }
            Ok(Err(NoRoom::Now(left))) => Err(AccessFailure::Waits(format!(
                "store {} has no room for an archive of {bytes} bytes: its volume has {left} left up to the threshold",
                store.name()
            ))),
            Err(error) => Err(AccessFailure::Temporary(format!(
                "cannot find out how full the volume of store {} is: {error}",
                store.name()
            ))),
        }
    }

    fn take_on(&self, directory: &Path, rules: Rules, bytes: u64) -> io::Result<Result<Taken, NoRoom>> {
        // No other archive of this process comes between.
        let mut counted = self.0.lock();
        let (total, free) = working::space_of(directory)?;
        let capacity = rules.capacity(total);
        let left = capacity.saturating_sub(total.saturating_sub(free)).saturating_sub(*counted);
        if bytes > capacity {
            return Ok(Err(NoRoom::Never(capacity)));
        }
        if bytes > left {
            return Ok(Err(NoRoom::Now(left)));
        }
        let by = match allocated(directory, bytes) {
            Ok(file) => {
                // One of another process may have come between: then both see that they are too many.
                let (total, free) = working::space_of(directory)?;
                if total.saturating_sub(free).saturating_add(*counted) > rules.capacity(total) {
                    return Ok(Err(NoRoom::Now(left)));
                }
                By::File(file)
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(Err(NoRoom::Now(left))),
            Err(error) if is_unsupported(&error) => {
                *counted += bytes;
                By::Count(self.clone(), bytes)
            }
            Err(error) => return Err(error),
        };
        Ok(Ok(Taken { by, left: bytes, fresh: 0 }))
    }
}

/// A file without a name, to which so many bytes are allocated.
fn allocated(directory: &Path, bytes: u64) -> io::Result<File> {
    let file = rustix::fs::open(directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from(0o600))?;
    let file = File::from(file);
    // It shrinks with its length.
    file.set_len(bytes)?;
    if working::allocate(&file, bytes)? { Ok(file) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Whether the file system knows no files without names, or no allocation.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput)
}

impl Taken {
    /// The chunks of the archive: the room shrinks as they come, and is given back with them.
    pub(super) fn around(mut self, chunks: Chunks) -> Chunks {
        chunks.inspect_ok(move |chunk: &Bytes| self.came(chunk.len() as u64)).boxed()
    }

    fn came(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.fresh += bytes;
        if self.fresh < STEP {
            return;
        }
        self.fresh = 0;
        match &mut self.by {
            By::None => {}
            // Otherwise these bytes would be used and allocated until the archive ends, and no more than that.
            By::File(file) => drop(file.set_len(self.left)),
            By::Count(room, held) => {
                *room.0.lock() -= held.saturating_sub(self.left);
                *held = self.left;
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let By::Count(room, held) = &self.by {
            *room.0.lock() -= held;
        }
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::DirectoryStore;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// What other programs write to the volume meanwhile, or remove, is less than some of these.
    const PART: u64 = 64 * MIB;

    /// A store that takes so many bytes more.
    async fn store(bytes: u64) -> (tempfile::TempDir, Arc<dyn Store>, Rules) {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open("out".parse().unwrap(), directory.path().to_owned()).await.unwrap();
        let (total, free) = working::space_of(directory.path()).unwrap();
        let threshold = (total - free + bytes) as f64 / total as f64;
        (directory, Arc::new(store), Rules { threshold, ..Rules::default() })
    }

    #[tokio::test]
    async fn an_archive_waits_for_the_room_of_another_process_and_fails_where_there_never_will_be_any() {
        let (_directory, store, rules) = store(24 * PART).await;
        // What they share is the volume.
        let [one, other] = [UnallocatedBytes::default(), UnallocatedBytes::default()];
        let taken = one.take(&store, rules, 16 * PART).await.unwrap();
        assert!(matches!(taken.by, By::File(_)), "{taken:?}");
        for room in [&one, &other] {
            assert!(matches!(room.take(&store, rules, 16 * PART).await, Err(AccessFailure::Waits(_))));
        }
        assert!(matches!(other.take(&store, rules, u64::MAX).await, Err(AccessFailure::Permanent(507, _))));
        // What is written is used, and not taken any more.
        let chunk = Bytes::from(vec![0; 64 << 20]);
        let chunks = futures::stream::iter((0..13).map(move |_| Ok(chunk.clone()))).boxed();
        let mut chunks = taken.around(chunks);
        while chunks.try_next().await.unwrap().is_some() {}
        drop(other.take(&store, rules, 16 * PART).await.unwrap());
        drop(chunks);
        assert!(one.take(&store, rules, 16 * PART).await.is_ok());
    }

    #[test]
    fn what_cannot_be_allocated_is_counted_until_it_has_come() {
        let room = UnallocatedBytes(Arc::new(Mutex::new(100 * MIB)));
        let mut taken = Taken { by: By::Count(room.clone(), 100 * MIB), left: 100 * MIB, fresh: 0 };
        taken.came(10 * MIB);
        assert_eq!(*room.0.lock(), 100 * MIB);
        taken.came(30 * MIB);
        assert_eq!(*room.0.lock(), 60 * MIB);
        drop(taken);
        assert_eq!(*room.0.lock(), 0);
    }
}
