//! Comparing the image with the tree, which should never find anything.

use tracing::warn;
use zookeeper_client::Client;

use super::follow::{Follower, read};
use super::image::{Change, Image};
use super::read::Found;
use super::watch::{Interrupted, Watch};
use crate::queue::path::Path;

/// How many rows are compared under one lock, for some tenths of a millisecond.
const ROWS_AT_ONCE: usize = 512;

impl Follower {
    /// Reads what an image from a walk has otherwise than ours, counts what a second read confirms and no event has
    /// told of since the walk began, and mends it.
    ///
    /// A walk is no snapshot: most of what differs has changed while it went on.
    pub(super) async fn mend_drift(
        &mut self,
        client: &Client,
        watch: &mut Watch,
        walked: &Image,
    ) -> Result<(), Interrupted> {
        let mut paths = self.writer.with_image(|image| image.differing_rest(walked)).unwrap_or_default();
        let slots = self.writer.with_image(Image::job_slots).unwrap_or(0);
        for start in (0..slots.max(walked.job_slots())).step_by(ROWS_AT_ONCE) {
            let range = start..start + ROWS_AT_ONCE;
            let differing = self.writer.with_image(|image| {
                let mut paths = image.differing_jobs(range.clone(), walked);
                paths.extend(walked.missing_jobs(range, image));
                paths
            });
            paths.extend(differing.unwrap_or_default());
            tokio::task::yield_now().await;
        }
        watch.drain()?;
        paths.retain(|path| !watch.is_touched(path));
        if paths.is_empty() {
            return Ok(());
        }
        let (mut reads, _) = watch.during(read(client, paths)).await??;
        self.metrics.reads.inc_by(reads.len() as u64);
        watch.drain()?;
        reads.retain(|(path, _)| !watch.is_touched(path));
        let first = reads.first().map(|(path, _)| path.to_string()).unwrap_or_default();
        // No event tells of what is closed to us: servers keep them to themselves since CVE-2024-23944 was mended, and a
        // change of permissions is no event at all.
        let is_closed = |path: &Path, found: &Found| {
            let was_unreadable = self.writer.with_image(|image| image.is_unreadable(path)).unwrap_or(false);
            was_unreadable || matches!(found, Found::Denied)
        };
        let (closed, reads): (Vec<_>, Vec<_>) = reads.into_iter().partition(|(path, found)| is_closed(path, found));
        let mut drifted = 0;
        let metrics = &self.metrics;
        self.writer.apply(closed, |_, change| metrics.change(change));
        self.writer.apply(reads, |_, change| {
            metrics.change(change);
            drifted += u64::from(change != Change::Nothing);
        });
        if drifted > 0 {
            self.metrics.drift.inc_by(drifted);
            warn!(differences = drifted, near = first, "the image had drifted from the tree and was mended");
        }
        Ok(())
    }
}
