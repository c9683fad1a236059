//! Where views come from.

use std::time::Duration;

use jiff::Timestamp;

use super::error::ViewError;
use crate::alerts::Alerts;
use crate::metrics::working_storage::{MeasuredStorage, Space};
use crate::mirror::{MirrorStore, Summary, Volume};
use queuekeeper_zookeeper::Servers;

/// What views are worked out from: a server has all of it, the command line what it was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewSource<'a> {
    /// The queue.
    pub(crate) store: &'a MirrorStore,
    /// Working storage; `None` where none is measured.
    pub(crate) storage: Option<&'a MeasuredStorage>,
    /// The rules for alerts; `None` where no alerts are taken.
    pub(crate) alerts: Option<&'a Alerts>,
    /// Where ZooKeeper is: hosts, ports and chroot.
    pub(crate) servers: &'a Servers,
    /// How long no job must have left a state for it to be stalled.
    pub(crate) stalled_after: Duration,
}

impl ViewSource<'_> {
    /// The figures of the whole queue.
    ///
    /// # Errors
    /// Before the first walk.
    pub(crate) fn summary(&self, now: Timestamp) -> Result<Summary, ViewError> {
        self.store.summary(now, self.space_left()).ok_or(ViewError::NoMirror)
    }

    /// The threshold of working storage, 0 to 1, and how full the volume is; `None` where it is not measured.
    pub(crate) fn measured(&self) -> Option<(f64, Space)> {
        let storage = self.storage?;
        Some((storage.threshold(), storage.space()?))
    }

    /// Working storage, as the daemons reckon with it; likewise.
    pub(crate) fn volume(&self) -> Option<Volume> {
        let (threshold, space) = self.measured()?;
        let Space { size_bytes, free_bytes } = space;
        Some(Volume { size_bytes, free_bytes, threshold, left_bytes: space.left_below(threshold) })
    }

    /// From where a session is connected, where the servers report it.
    pub(crate) fn address(&self, session: i64) -> Option<String> {
        self.store.address(session).map(|address| address.to_string())
    }

    /// How many bytes a job may need and not be kept back; `None` where working storage is not measured.
    pub(crate) fn space_left(&self) -> Option<i64> {
        self.storage?.left_bytes()
    }
}
