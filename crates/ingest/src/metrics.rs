//! What the daemons count.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use queuekeeper_mail::metrics::{self as outbox, OutboxMetrics};

use crate::daemon::Daemon;
use crate::outbox::KINDS;

/// How the work of a daemon on one thing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It was done.
    Done,
    /// It failed for good.
    Failed,
    /// It is tried again later.
    Delayed,
    /// The lock or the session was lost, or another changed the job.
    Lost,
}

impl Ended {
    const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Delayed, Self::Lost];

    /// Its name in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Delayed => "delayed",
            Self::Lost => "lost",
        }
    }
}

impl EncodeLabelValue for Ended {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

impl EncodeLabelValue for Daemon {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.name(), encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfThing {
    what: &'static str,
}

/// What cleanup removes.
const CLEANED: [&str; 7] = ["batch", "entry", "message", "directory", "store", "request", "delivery"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDaemon {
    daemon: Daemon,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    daemon: Daemon,
    outcome: Ended,
}

/// The families of the daemons; clones share them.
#[derive(Clone, Debug)]
pub struct DaemonMetrics {
    taken: Family<OfDaemon, Counter>,
    ended: Family<OfOutcome, Counter>,
    seconds: Family<OfDaemon, Histogram>,
    busy: Family<OfDaemon, Gauge>,
    workers: Family<OfDaemon, Gauge>,
    downloaded: Counter,
    stored: Counter,
    archived: Counter,
    granted: Gauge,
    waiting: Gauge,
    store_waiting: Gauge,
    /// What is counted of the outbox.
    pub outbox: OutboxMetrics,
    cleaned: Family<OfThing, Counter>,
    withheld: Gauge,
}

impl Default for DaemonMetrics {
    fn default() -> Self {
        let histogram = || Histogram::new(exponential_buckets(0.001, 4.0, 12));
        let metrics = Self {
            taken: Family::default(),
            ended: Family::default(),
            seconds: Family::new_with_constructor(histogram as fn() -> Histogram),
            busy: Family::default(),
            workers: Family::default(),
            downloaded: Counter::default(),
            stored: Counter::default(),
            archived: Counter::default(),
            granted: Gauge::default(),
            waiting: Gauge::default(),
            store_waiting: Gauge::default(),
            outbox: OutboxMetrics::new(&KINDS),
            cleaned: Family::default(),
            withheld: Gauge::default(),
        };
        for what in CLEANED {
            metrics.cleaned.get_or_create_owned(&OfThing { what });
        }
        for daemon in Daemon::ALL {
            metrics.taken.get_or_create_owned(&OfDaemon { daemon });
            metrics.seconds.get_or_create_owned(&OfDaemon { daemon });
            metrics.busy.get_or_create_owned(&OfDaemon { daemon });
            metrics.workers.get_or_create_owned(&OfDaemon { daemon });
            for outcome in Ended::ALL {
                metrics.ended.get_or_create_owned(&OfOutcome { daemon, outcome });
            }
        }
        metrics
    }
}

impl DaemonMetrics {
    /// Adds the families to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix(outbox::PREFIX);
        registry.register(
            "taken",
            "Total number of jobs, batches and access requests that a daemon of this process took",
            self.taken.clone(),
        );
        registry.register(
            "ended",
            "Total number of attempts at jobs, batches and access requests, by outcome",
            self.ended.clone(),
        );
        let help = "Time that a daemon worked on a job, batch or access request in one state";
        registry.register_with_unit("work", help, Unit::Seconds, self.seconds.clone());
        registry.register("workers_busy", "Number of busy workers", self.busy.clone());
        registry.register("workers", "Number of workers of a daemon in this process", self.workers.clone());
        let help = "Total number of bytes fetched into working storage";
        registry.register_with_unit("downloaded", help, Unit::Bytes, self.downloaded.clone());
        let help = "Total number of bytes of versions written to stores";
        registry.register_with_unit("stored", help, Unit::Bytes, self.stored.clone());
        let help = "Total number of bytes of files written into archives for access requests";
        registry.register_with_unit("archived", help, Unit::Bytes, self.archived.clone());
        let help = "Working storage that is granted to jobs";
        registry.register_with_unit("granted", help, Unit::Bytes, self.granted.clone());
        registry.register("space_waiting", "Number of jobs that wait for working storage", self.waiting.clone());
        let help = "Number of jobs that this process leaves in Storing because their store is held";
        registry.register("store_waiting", help, self.store_waiting.clone());
        self.outbox.register(registry);
        let help = "Total number of items that cleanup has removed: batches, queue entries, access requests, messages, \
                    directories of working storage, delivered archives, and leftovers of writers in stores";
        registry.register("cleaned", help, self.cleaned.clone());
        let help = "Number of directories of working storage that the last cleanup kept because of --cleanup.share";
        registry.register("cleanup_withheld", help, self.withheld.clone());
    }

    /// A daemon has so many workers here.
    pub fn set_workers(&self, daemon: Daemon, workers: usize) {
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        self.workers.get_or_create_owned(&OfDaemon { daemon }).set(workers);
    }

    /// A worker begins; the answer is to be given back at its end.
    #[must_use]
    pub fn begin(&self, daemon: Daemon) -> Busy {
        self.taken.get_or_create_owned(&OfDaemon { daemon }).inc();
        let gauge = self.busy.get_or_create_owned(&OfDaemon { daemon });
        gauge.inc();
        Busy(gauge)
    }

    /// A worker has ended.
    pub fn end(&self, daemon: Daemon, outcome: Ended, time: Duration) {
        self.ended.get_or_create_owned(&OfOutcome { daemon, outcome }).inc();
        self.seconds.get_or_create_owned(&OfDaemon { daemon }).observe(time.as_secs_f64());
    }

    /// Bytes were fetched.
    pub fn downloaded(&self, bytes: u64) {
        self.downloaded.inc_by(bytes);
    }

    /// Bytes were written to a store.
    pub fn stored(&self, bytes: u64) {
        self.stored.inc_by(bytes);
    }

    /// Bytes of files were put into an archive.
    pub fn archived(&self, bytes: u64) {
        self.archived.inc_by(bytes);
    }

    /// Cleanup has removed so many.
    pub fn cleaned(&self, what: &'static str, count: usize) {
        self.cleaned.get_or_create_owned(&OfThing { what }).inc_by(count as u64);
    }

    /// Cleanup has left so many directories for an operator to look at.
    pub fn withheld(&self, count: usize) {
        self.withheld.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// What is granted, and how many jobs wait.
    pub fn space(&self, granted: u64, waiting: usize) {
        self.granted.set(i64::try_from(granted).unwrap_or(i64::MAX));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// So many jobs in Storing wait for held stores.
    pub fn store_waiting(&self, jobs: usize) {
        self.store_waiting.set(i64::try_from(jobs).unwrap_or(i64::MAX));
    }
}

/// A worker at work, counted until it is dropped.
#[derive(Debug)]
pub struct Busy(Gauge);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.dec();
    }
}
