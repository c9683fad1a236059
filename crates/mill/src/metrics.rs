//! What a process of the mill counts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use queuekeeper_catalogue::tasks::TaskKind;

/// The upper bounds of the buckets, in seconds; the last one is without bound.
const BUCKETS: [f64; 6] = [0.01, 0.1, 1.0, 10.0, 60.0, 600.0];

/// The families of the mill of this process. Clones share them.
#[derive(Clone, Debug)]
pub struct MillMetrics {
    bytes: Family<DirectionLabels, Counter>,
    durations: Family<KindLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

const READ: DirectionLabels = DirectionLabels { direction: "read" };
const WRITTEN: DirectionLabels = DirectionLabels { direction: "written" };

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

impl Default for MillMetrics {
    fn default() -> Self {
        let (bytes, durations) = (Family::default(), Family::new_with_constructor(new_histogram as fn() -> Histogram));
        for labels in [READ, WRITTEN] {
            let _exported_from_the_start = Family::<_, Counter>::get_or_create_owned(&bytes, &labels);
        }
        Self { bytes, durations }
    }
}

fn new_histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl MillMetrics {
    /// New families, registered.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        this.register_in(registry);
        this
    }

    /// Registers the families, where the mill was opened before there was a registry.
    pub fn register_in(&self, registry: &mut Registry) {
        registry.register(
            "mill_bytes",
            "Total number of bytes of content that the mill of this process read from stores, or wrote to them",
            self.bytes.clone(),
        );
        registry.register(
            "mill_task_duration_seconds",
            "Time for which a worker of this process had a task in seconds",
            self.durations.clone(),
        );
    }

    /// How many bytes are read.
    pub(crate) fn read(&self) -> Counter {
        self.bytes.get_or_create_owned(&READ)
    }

    /// How many bytes are written.
    pub(crate) fn written(&self) -> Counter {
        self.bytes.get_or_create_owned(&WRITTEN)
    }

    /// How long tasks of a kind take; its series exist from now on.
    pub(crate) fn duration(&self, kind: TaskKind) -> TaskDurations {
        TaskDurations(self.durations.get_or_create_owned(&KindLabels { kind: kind.as_str() }))
    }
}

/// How long tasks of one kind take.
#[derive(Clone, Debug)]
pub(crate) struct TaskDurations(Histogram);

impl TaskDurations {
    pub(crate) fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}
