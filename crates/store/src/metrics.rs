//! What stores count: requests, bytes, time, repetitions, and how many requests are allowed at once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::error::{ErrorKind, Operation};
use crate::name::StoreName;

/// The upper bounds of the buckets, in seconds; the last one is without bound.
const BUCKETS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 60.0];

/// The families of all stores, `queuekeeper_store_*`. Clones share them.
#[derive(Clone, Debug)]
pub struct StoreFamilies {
    requests: Family<RequestLabels, Counter>,
    durations: Family<OperationLabels, Histogram, fn() -> Histogram>,
    retries: Family<OperationLabels, Counter>,
    read: Family<StoreLabels, Counter>,
    written: Family<StoreLabels, Counter>,
    limits: Family<StoreLabels, Gauge>,
}

impl Default for StoreFamilies {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            retries: Family::default(),
            read: Family::default(),
            written: Family::default(),
            limits: Family::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    store: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    store: Arc<str>,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    store: Arc<str>,
    operation: &'static str,
    outcome: &'static str,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRequestOutcome {
    /// It was done.
    Ok,
    /// There is no such item or space.
    NotFound,
    /// The item is not what the condition requires.
    Precondition,
    /// Credentials, permissions, names: something must be changed.
    Refused,
    /// The store was busy or could not be reached.
    Unavailable,
    /// No answer came to what may have been done.
    Unknown,
    /// Anything else: the content, the key, the caller, the operating system.
    Failed,
}

impl StoreRequestOutcome {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::NotFound, Self::Precondition, Self::Refused, Self::Unavailable, Self::Unknown, Self::Failed];

    /// The label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::Precondition => "precondition",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
        }
    }
}

impl From<&ErrorKind> for StoreRequestOutcome {
    fn from(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound | ErrorKind::NoSpace => Self::NotFound,
            ErrorKind::Precondition => Self::Precondition,
            ErrorKind::Refused(_)
            | ErrorKind::Reserved(_)
            | ErrorKind::Archived
            | ErrorKind::Unreadable(_)
            | ErrorKind::NotYet(_) => Self::Refused,
            ErrorKind::Unavailable(_) | ErrorKind::Held(_) => Self::Unavailable,
            ErrorKind::Unknown(_) => Self::Unknown,
            ErrorKind::NotEmpty
            | ErrorKind::Unsupported(_)
            | ErrorKind::Digest { .. }
            | ErrorKind::Size { .. }
            | ErrorKind::Range { .. }
            | ErrorKind::Stopped(_)
            | ErrorKind::Source(_)
            | ErrorKind::Full
            | ErrorKind::Unrecorded(_)
            | ErrorKind::Answer(_)
            | ErrorKind::Io(_) => Self::Failed,
        }
    }
}

impl StoreFamilies {
    /// New families, registered, without a store yet.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        this.register_in(registry);
        this
    }

    /// Registers the families, where stores were opened before there was a registry.
    pub fn register_in(&self, registry: &mut Registry) {
        registry.register(
            "queuekeeper_store_requests",
            "Total number of requests to content stores, repeated ones included",
            self.requests.clone(),
        );
        registry.register(
            "queuekeeper_store_request_duration_seconds",
            "Time from sending a request to a content store to its response in seconds",
            self.durations.clone(),
        );
        registry.register(
            "queuekeeper_store_retries",
            "Total number of requests to content stores that repeated a failed one",
            self.retries.clone(),
        );
        registry.register(
            "queuekeeper_store_read_bytes",
            "Total number of bytes of content read from content stores",
            self.read.clone(),
        );
        registry.register(
            "queuekeeper_store_written_bytes",
            "Total number of bytes of content sent to content stores",
            self.written.clone(),
        );
        registry.register(
            "queuekeeper_store_concurrency_limit",
            "Number of requests to a content store that are allowed at the same time now",
            self.limits.clone(),
        );
    }

    /// What one store counts; each of its series exists from now on.
    #[must_use]
    pub fn store(&self, name: &StoreName) -> StoreMetrics {
        let store: Arc<str> = name.as_str().into();
        let labels = StoreLabels { store: Arc::clone(&store) };
        let operation = |operation: Operation| {
            let store = || Arc::clone(&store);
            let labels = OperationLabels { store: store(), operation: operation.as_str() };
            let requests = StoreRequestOutcome::ALL.map(|outcome| {
                let (operation, outcome) = (operation.as_str(), outcome.as_str());
                self.requests.get_or_create_owned(&RequestLabels { store: store(), operation, outcome })
            });
            OperationMetrics {
                requests,
                duration: self.durations.get_or_create_owned(&labels),
                retries: self.retries.get_or_create_owned(&labels),
            }
        };
        StoreMetrics(Arc::new(Handles {
            operations: Operation::ALL.map(operation),
            read: self.read.get_or_create_owned(&labels),
            written: self.written.get_or_create_owned(&labels),
            limit: self.limits.get_or_create_owned(&labels),
        }))
    }
}

/// What one store counts. Clones share it.
#[derive(Clone, Debug)]
pub struct StoreMetrics(Arc<Handles>);

#[derive(Debug)]
struct Handles {
    operations: [OperationMetrics; Operation::ALL.len()],
    read: Counter<u64, AtomicU64>,
    written: Counter<u64, AtomicU64>,
    limit: Gauge,
}

#[derive(Debug)]
struct OperationMetrics {
    requests: [Counter; StoreRequestOutcome::ALL.len()],
    duration: Histogram,
    retries: Counter,
}

impl StoreMetrics {
    fn operation(&self, operation: Operation) -> &OperationMetrics {
        &self.0.operations[operation as usize]
    }

    /// Counts a request that has ended after this time.
    pub fn request(&self, operation: Operation, outcome: StoreRequestOutcome, duration: Duration) {
        let metrics = self.operation(operation);
        metrics.requests[outcome as usize].inc();
        metrics.duration.observe(duration.as_secs_f64());
    }

    /// Counts a request that is going to repeat one.
    pub fn retry(&self, operation: Operation) {
        self.operation(operation).retries.inc();
    }

    /// Counts bytes of content that were read.
    pub fn read(&self, bytes: u64) {
        self.0.read.inc_by(bytes);
    }

    /// Counts bytes of content that were sent.
    pub fn written(&self, bytes: u64) {
        self.0.written.inc_by(bytes);
    }

    /// Shows how many requests are allowed at once now.
    pub fn limit(&self, allowed: usize) {
        self.0.limit.set(i64::try_from(allowed).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn every_series_of_a_store_is_there_from_the_start_and_counts_what_it_names() {
        let mut registry = Registry::default();
        let families = StoreFamilies::register(&mut registry);
        let metrics = families.store(&"cold".parse().unwrap());
        for (at, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, at, "the order of the handles");
        }
        for (at, outcome) in StoreRequestOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, at, "the order of the handles");
        }
        metrics.request(Operation::Get, StoreRequestOutcome::Unavailable, Duration::from_millis(50));
        metrics.retry(Operation::Get);
        metrics.read(3);
        metrics.limit(7);
        let mut exposition = String::new();
        text::encode(&mut exposition, &registry).unwrap();
        for line in [
            r#"queuekeeper_store_requests_total{store="cold",operation="get",outcome="unavailable"} 1"#,
            r#"queuekeeper_store_requests_total{store="cold",operation="sweep",outcome="failed"} 0"#,
            r#"queuekeeper_store_request_duration_seconds_bucket{le="0.1",store="cold",operation="get"} 1"#,
            r#"queuekeeper_store_retries_total{store="cold",operation="get"} 1"#,
            r#"queuekeeper_store_read_bytes_total{store="cold"} 3"#,
            r#"queuekeeper_store_written_bytes_total{store="cold"} 0"#,
            r#"queuekeeper_store_concurrency_limit{store="cold"} 7"#,
        ] {
            assert!(exposition.lines().any(|found| found == line), "{line}\n{exposition}");
        }
    }
}
