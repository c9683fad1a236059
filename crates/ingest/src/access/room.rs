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
    /// Takes room for an archive of about so many bytes. What is written of other archives counts twice, as used and as
    /// taken: too little room is taken for free, and never too much.
    ///
    /// # Errors
    /// When there is none, or the volume cannot be measured.
    pub(super) async fn take(&self, store: &Arc<dyn Store>, rules: Rules, bytes: u64) -> Result<Taken, Trouble> {
        let of = Arc::clone(store);
        let measured = tokio::task::spawn_blocking(move || of.directory().map(directory::space_of).transpose());
        let measured = measured.await.map_err(std::io::Error::other).and_then(|measured| measured);
        let measured = measured.map_err(|error| {
            Trouble::Temporary(format!("cannot find out how full the volume of store {} is: {error}", store.name()))
        })?;
        let mut taken = self.0.lock();
        if let Some((total, free)) = measured {
            let left = rules.capacity(total).saturating_sub(total.saturating_sub(free)).saturating_sub(*taken);
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
