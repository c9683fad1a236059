//! Comparing the image with the tree, which should never find anything.

use tracing::warn;
use zookeeper_client::Client;

use super::follow::Follower;
use super::image::{Change, Image};
use super::read::{Estimates, Found, Query, Reader, nodes};
use super::watch::{Interrupted, Watch};
use queuekeeper_queue::path::Path;

/// How many rows are compared under one lock, for some tenths of a millisecond.
const ROWS_AT_ONCE: usize = 512;

/// How many rows are compared between two looks at what has changed meanwhile, for some ten milliseconds.
const ROWS_BETWEEN: usize = 32 * ROWS_AT_ONCE;

impl Follower {
    /// Reads the znodes that differ between an image from a walk and ours. Differences that a second read confirms, and
    /// that no event has reported since the walk began, are counted and repaired.
    ///
    /// A walk is not a snapshot: most differences are changes that happened during it.
    pub(super) async fn repair_drift(
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
            if start % ROWS_BETWEEN == 0 {
                watch.drain()?;
                Box::pin(self.flush(client, watch)).await?;
            }
        }
        watch.drain()?;
        paths.retain(|path| !watch.is_touched(path));
        if paths.is_empty() {
            return Ok(());
        }
        let mut reader = Reader::for_changes(client, self.writer.read_budget(), Estimates::default(), None);
        for path in paths {
            reader.push(Query::Node(path));
        }
        let mut drifted = DriftReport::default();
        while let Some(answers) = watch.during(reader.next()).await?? {
            watch.drain()?;
            let mut reads = nodes(answers);
            reads.retain(|(path, _)| !watch.is_touched(path));
            self.repair(reads, &mut drifted);
        }
        self.metrics.reads.inc_by(reader.reads);
        if drifted.differences > 0 {
            self.metrics.drift.inc_by(drifted.differences);
            let near = drifted.first.map(|path| path.to_string()).unwrap_or_default();
            warn!(differences = drifted.differences, near, "mirror differed from the tree; corrected it");
        }
        Ok(())
    }

    /// Applies what a second read has confirmed.
    fn repair(&mut self, reads: Vec<(Path, Found)>, drifted: &mut DriftReport) {
        // No event reports unreadable znodes: servers withhold such events since the fix of CVE-2024-23944, and a
        // change of permissions causes no event. Nor does one report what is below the references of a batch, which is
        // read for the first time when the batch ends.
        let is_unreported = |path: &Path, found: &Found| {
            let was_unreadable = self.writer.with_image(|image| image.is_unreadable(path)).unwrap_or(false);
            was_unreadable || matches!(found, Found::Denied) || matches!(path.parent(), Some(Path::Reference(..)))
        };
        let (unreported, reads): (Vec<_>, Vec<_>) =
            reads.into_iter().partition(|(path, found)| is_unreported(path, found));
        self.apply_unreported(unreported);
        let metrics = &self.metrics;
        let first = reads.first().map(|(path, _)| path.clone());
        let mut differences = 0;
        self.writer.apply(reads, |_, change| {
            metrics.change(change);
            differences += u64::from(change != Change::Nothing);
        });
        drifted.differences += differences;
        if differences > 0 && drifted.first.is_none() {
            drifted.first = first;
        }
    }
}

/// What was found to be wrong.
#[derive(Default)]
struct DriftReport {
    differences: u64,
    /// One path of those that were read again with the first of them.
    first: Option<Path>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::registry::Registry;
    use queuekeeper_testkit::wait::eventually;
    use tokio_util::sync::CancellationToken;
    use zookeeper_client::{Acls, CreateMode};

    use super::*;
    use crate::mirror::{Metrics, MirrorStore, Writer, run};
    use queuekeeper_queue::id::JobId;
    use queuekeeper_queue::state::JobState;
    use queuekeeper_zookeeper::server::Options;
    use queuekeeper_zookeeper::{Config, PrivateServer, Sessions};

    const LIMIT: Duration = Duration::from_secs(30);

    fn state(store: &MirrorStore, job: u32) -> Option<JobState> {
        store.job(JobId::new(job)).and_then(|job| job.state)
    }

    #[tokio::test]
    async fn what_no_event_reported_is_counted_once_and_repaired() {
        let server = PrivateServer::start(Options::default()).await.unwrap();
        // A walk after a lost session would repair all without counting it.
        let config =
            Config { session_timeout: Duration::from_mins(1), ..Config::new(server.connect_string().parse().unwrap()) };
        let client = config.connect().await.unwrap();
        let pending = br#"{"status":"Pending","retry_count":0}"#;
        for (path, data) in [
            ("/jobs", &b""[..]),
            ("/jobs/jid0000000001", b""),
            ("/jobs/jid0000000001/status", pending),
            ("/jobs/jid0000000002", b""),
            ("/jobs/jid0000000002/status", pending),
        ] {
            client.create(path, data, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
        }
        let metrics = Metrics::register(&mut Registry::default());
        let (writer, shutdown) = (Writer::new(), CancellationToken::new());
        let store = writer.store();
        let interval = Some(Duration::from_millis(50));
        let mirror = tokio::spawn(run(Sessions::new(config), writer, metrics.clone(), interval, shutdown.clone()));
        eventually(LIMIT, "the first walk", async || state(&store, 1) == Some(JobState::Pending)).await;
        assert_eq!(metrics.drift.get(), 0);

        // Wrong in three ways: a value that was missed, an item that is none, and one that is not there any more.
        let (data, stat) = client.get_data("/jobs/jid0000000002/status").await.unwrap();
        let failed = String::from_utf8(data).unwrap().replace("Pending", "Failed").into_bytes();
        let wrong = Found::Node { data: failed, stat };
        for (path, found) in [
            ("/jobs/jid0000000001/status", &Found::Nothing),
            ("/jobs/jid0000000002/status", &wrong),
            ("/jobs/jid0000000003", &wrong),
        ] {
            assert_ne!(store.falsify(Path::parse(path), found), Some(Change::Nothing));
        }
        let is_right = || {
            let states = [1, 2].map(|job| state(&store, job));
            states == [Some(JobState::Pending); 2] && store.job(JobId::new(3)).is_none()
        };
        eventually(LIMIT, "all is repaired", async || is_right() && metrics.drift.get() >= 3).await;
        // Repaired is repaired: later checks find nothing.
        let reads = metrics.reads.get();
        eventually(LIMIT, "two more checks", async || metrics.reads.get() >= reads + 3 * 8).await;
        assert_eq!(metrics.drift.get(), 3);
        shutdown.cancel();
        mirror.await.unwrap().unwrap();
    }
}
