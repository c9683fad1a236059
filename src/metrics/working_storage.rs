//! Working storage: how full the volume is that the daemons work on.
//!
//! Such a volume is often on NFS, and reading the usage of a file system whose server is gone blocks for minutes. So it
//! is read from time to time on a thread of its own, and a scrape exports the last answer while that is not too old.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::encode::Families;

mod past;

use past::Past;

/// How often the file system is read.
const PERIOD: Duration = Duration::from_secs(15);

/// After this time an answer says nothing any more.
const STALE_AFTER: Duration = Duration::from_mins(1);

/// The volume and what is known of it; clones share it.
#[derive(Clone, Debug)]
pub struct MeasuredStorage {
    /// `None` where its owner sets how full it is, and no file system is read.
    path: Option<Arc<Path>>,
    threshold: f64,
    latest: Arc<Mutex<Option<(Instant, Space)>>>,
    past: Arc<Mutex<Past>>,
    /// Why it could not be read the last time.
    failure: Arc<Mutex<Option<String>>>,
    /// When it was first to be read.
    made: Instant,
}

/// How full a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it, in bytes.
    pub size_bytes: u64,
    /// What is free, in bytes, with what is reserved for root: the daemons reckon with that too.
    pub free_bytes: u64,
}

impl Space {
    /// How many bytes a job may need and not be kept back by the daemons; negative where the volume is above the
    /// threshold already.
    ///
    /// A job is kept back while `100 - (free - own size) / size` in percent exceeds the threshold.
    #[must_use]
    pub fn left_below(self, threshold: f64) -> i64 {
        let left = self.free_bytes as f64 - (1.0 - threshold) * self.size_bytes as f64;
        // A job's size is whole bytes, so the part of one below the limit lets nothing more through.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float beyond i64 becomes its nearest end, which is meant"
        )]
        let whole = left.floor() as i64;
        whole
    }
}

impl Space {
    /// How full the volume is that holds `path`. A file system that is dead may take for ever.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Self {
            size_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bfree.saturating_mul(found.f_frsize),
        })
    }
}

impl MeasuredStorage {
    /// The volume that holds `path`; `threshold` is the part of it, 0 to 1, above which the daemons keep jobs back.
    #[must_use]
    pub fn new(path: PathBuf, threshold: f64) -> Self {
        Self {
            path: Some(path.into()),
            threshold,
            latest: Arc::default(),
            past: Arc::default(),
            failure: Arc::default(),
            made: Instant::now(),
        }
    }

    /// A volume that is no file system of its own, such as that of a demo: its usage is the last one passed to
    /// [`Self::report`].
    #[must_use]
    pub fn reported(threshold: f64) -> Self {
        Self { path: None, ..Self::new(PathBuf::new(), threshold) }
    }

    /// The volume that holds `path`, read once: for a process that ends before the answer is old. A file system that
    /// is dead may take for ever.
    #[must_use]
    pub fn read_once(path: PathBuf, threshold: f64) -> Self {
        let answer = Space::of(&path);
        let storage = Self::new(path, threshold);
        match answer {
            Ok(space) => storage.learn(space),
            Err(error) => *storage.failure.lock() = Some(error.to_string()),
        }
        storage
    }

    /// Sets the usage of a volume made by [`Self::reported`], until it is set again.
    pub fn report(&self, space: Space) {
        self.learn(space);
    }

    fn learn(&self, space: Space) {
        *self.latest.lock() = Some((Instant::now(), space));
        self.past.lock().note(Timestamp::now(), space);
    }

    /// The largest used part of the volume, 0 to 1, in each of so many steps of time; `None` where it was not known.
    /// Six hours are kept.
    #[must_use]
    pub fn used(&self, from: Timestamp, step: Duration, steps: usize) -> Vec<Option<f64>> {
        let (past, now) = (self.past.lock(), Timestamp::now());
        // What a file system does not say again is not known any more; what was reported by hand stays.
        past.used(from, step, steps, if self.path.is_none() { None } else { Some(STALE_AFTER) }, now)
    }

    /// The part of the volume, 0 to 1, above which the daemons keep jobs back.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// How full the volume is; `None` where it did not answer lately.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        let fresh = |(at, _): &(Instant, Space)| self.path.is_none() || at.elapsed() < STALE_AFTER;
        (*self.latest.lock()).filter(fresh).map(|(_, space)| space)
    }

    /// Why the volume cannot be measured, in one line; `None` where it can, and until it had time to answer.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let path = self.path.as_ref()?.display();
        if let Some(failure) = &*self.failure.lock() {
            return Some(format!("{path}: {failure}"));
        }
        let is_silent = self.space().is_none() && self.made.elapsed() >= STALE_AFTER;
        is_silent.then(|| format!("{path}: the file system has not answered for a minute"))
    }

    /// How many bytes a job may need and not be kept back; `None` where the volume did not answer lately.
    #[must_use]
    pub fn left_bytes(&self) -> Option<i64> {
        Some(self.space()?.left_below(self.threshold()))
    }

    /// Asks the file system from time to time, until `shutdown`. A volume whose usage is set has nothing to ask.
    ///
    /// A call that hangs is not waited for at the end: nothing can take it back, and the process may go without it.
    pub async fn poll(self, shutdown: CancellationToken) {
        let Some(volume) = &self.path else { return shutdown.cancelled().await };
        loop {
            let path = Arc::clone(volume);
            let ask = tokio::task::spawn_blocking(move || Space::of(&path));
            let answer = tokio::select! {
                () = shutdown.cancelled() => return,
                answer = ask => answer.unwrap_or_else(|panic| Err(std::io::Error::other(panic))),
            };
            match answer {
                Ok(space) => {
                    self.learn(space);
                    *self.failure.lock() = None;
                }
                Err(error) => {
                    *self.latest.lock() = None;
                    // Once for each failure, not every 15 seconds for as long as it lasts.
                    if self.failure.lock().replace(error.to_string()).is_none() {
                        tracing::warn!(path = %volume.display(), %error, "failed to measure working storage");
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }
}

/// Writes `merritt_working_storage_*`.
pub(super) fn write(families: &mut Families<'_>, threshold: f64, space: Option<Space>) -> fmt::Result {
    families.count(
        "merritt_working_storage_up",
        "Whether working storage could be measured within the last minute.",
        u64::from(space.is_some()),
    )?;
    families.gauge(
        "merritt_working_storage_size_bytes",
        "Size of working storage in bytes.",
        space.map(|space| space.size_bytes as f64),
    )?;
    families.gauge(
        "merritt_working_storage_free_bytes",
        "Free space of working storage in bytes, including the reserve for root.",
        space.map(|space| space.free_bytes as f64),
    )?;
    families.gauge(
        "merritt_working_storage_threshold_ratio",
        "Used fraction of working storage above which the daemons keep jobs in Provisioning.",
        threshold,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_kept_back_exactly_where_the_daemons_keep_it() {
        for size_bytes in [1_000, 10_007, 1 << 45] {
            for percent_free in [0, 5, 20, 21, 50, 100] {
                let space = Space { size_bytes, free_bytes: size_bytes / 100 * percent_free };
                let left = space.left_below(0.8);
                // The daemons' rule as their design words it, a little off the limit on both sides.
                let kept_back =
                    |own: i64| 100.0 - (space.free_bytes as f64 - own as f64) / size_bytes as f64 * 100.0 > 80.0 + 1e-9;
                let step = i64::try_from(size_bytes / 1_000).unwrap();
                assert!(!kept_back(left - step), "{space:?}");
                assert!(kept_back(left + step + 1), "{space:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reported_volume_does_not_age() {
        let storage = MeasuredStorage::reported(0.8);
        assert_eq!(storage.space(), None);
        let space = Space { size_bytes: 100, free_bytes: 40 };
        storage.report(space);
        tokio::time::advance(STALE_AFTER * 10).await;
        assert_eq!(storage.space(), Some(space));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_exported_until_it_is_old_and_a_failure_takes_it_back() {
        let here = tempfile::tempdir().unwrap();
        let storage = MeasuredStorage::new(here.path().to_owned(), 0.8);
        assert_eq!(storage.space(), None);
        let shutdown = CancellationToken::new();
        assert_eq!(storage.problem(), None);
        let polling = tokio::spawn(storage.clone().poll(shutdown.clone()));
        while storage.space().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let space = storage.space().unwrap();
        assert!(space.size_bytes > space.free_bytes && space.free_bytes > 0, "{space:?}");
        here.close().unwrap();
        let gone = async {
            while storage.space().is_some() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PERIOD * 2, gone).await.unwrap();
        let problem = storage.problem().unwrap();
        assert!(problem.contains("No such file or directory"), "{problem}");
        shutdown.cancel();
        polling.await.unwrap();

        *storage.latest.lock() = Some((Instant::now(), space));
        tokio::time::advance(STALE_AFTER.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(storage.space(), Some(space));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(storage.space(), None);
        *storage.failure.lock() = None;
        assert!(storage.problem().is_some_and(|problem| problem.ends_with("has not answered for a minute")));
    }
}
