//! Room for archives, where the delivery store is a directory: its volume is not filled above the threshold.

use std::sync::Arc;

use parking_lot::Mutex;
use queuekeeper_store::Store;

use super::trouble::Trouble;
use crate::directory;
use crate::space::Rules;

/// How many bytes the archives have that are being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Arc<Mutex<u64>>);

/// Room for an archive, as long as it is being written.
#[derive(Debug)]
pub(super) struct Taken {
    room: Room,
    bytes: u64,
}

impl Room {
    /// Takes room for an archive whose files have so many bytes; what its form adds is not counted, nor what other processes
    /// are writing. What is written of other archives here counts twice, as used and as taken.
    ///
    /// # Errors
    /// When there is none, or never will be, or the volume cannot be measured.
    pub(super) async fn take(&self, store: &Arc<dyn Store>, rules: Rules, bytes: u64) -> Result<Taken, Trouble> {
        // An archive that ends while the volume is measured counts still.
        let (of, before) = (Arc::clone(store), *self.0.lock());
        let measured = tokio::task::spawn_blocking(move || of.directory().map(directory::space_of).transpose());
        let measured = measured.await.map_err(std::io::Error::other).and_then(|measured| measured);
        let measured = measured.map_err(|error| {
            Trouble::Temporary(format!("cannot find out how full the volume of store {} is: {error}", store.name()))
        })?;
        let mut taken = self.0.lock();
        if let Some((total, free)) = measured {
            let capacity = rules.capacity(total);
            if bytes > capacity {
                let why = format!(
                    "an archive of {bytes} bytes never fits: the volume of store {} has {capacity} bytes up to the threshold",
                    store.name()
                );
                return Err(Trouble::Permanent(507, why));
            }
            let left = capacity.saturating_sub(total.saturating_sub(free)).saturating_sub(before.max(*taken));
            if bytes > left {
                return Err(Trouble::Waits(format!(
                    "store {} has no room for an archive of {bytes} bytes: its volume takes {left} more up to the threshold",
                    store.name()
                )));
            }
        }
        *taken += bytes;
        drop(taken);
        Ok(Taken { room: self.clone(), bytes })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.room.0.lock() -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::DirectoryStore;

    use super::*;

    #[tokio::test]
    async fn an_archive_waits_for_room_and_fails_where_there_never_will_be_any() {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open("out".parse().unwrap(), directory.path().to_owned()).await.unwrap();
        let (store, room): (Arc<dyn Store>, _) = (Arc::new(store), Room::default());
        let all = Rules { threshold: 1.0, ..Rules::default() };
        let (total, free) = directory::space_of(directory.path()).unwrap();
        let taken = room.take(&store, all, free / 2 + 1).await.unwrap();
        assert!(matches!(room.take(&store, all, free / 2 + 1).await, Err(Trouble::Waits(_))));
        assert!(matches!(room.take(&store, all, total + 1).await, Err(Trouble::Permanent(507, _))));
        drop(taken);
        assert!(room.take(&store, all, free / 2 + 1).await.is_ok());
    }
}
