//! The queue itself: every `merritt_*` gauge and how the image stands, from one view of it for each scrape.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::encode::Families;
use super::working_storage::{self, MeasuredStorage, Space};
use crate::mirror::{Freshness, LargestCollections, MirrorStore, Summary};
use queuekeeper_queue::fault::FaultLimit;

mod access;
mod batches;
mod collections;
mod faults;
mod freshness;
mod jobs;
mod locks;

/// Where the figures come from, and which are wanted.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    /// The image.
    pub store: MirrorStore,
    /// The volume that the daemons work on, where it can be seen from here.
    pub storage: Option<MeasuredStorage>,
    /// The queue's own series are left out after the image was stale for this time.
    pub drop_after: Duration,
    /// How many collections get series of their own; 0 for none at all.
    pub collections: usize,
}

impl QueueMetrics {
    /// Registers the families.
    pub fn register(self, registry: &mut Registry) {
        registry.register_collector(Box::new(self));
    }

    /// Everything that a scrape at `now` exports, at one moment.
    #[must_use]
    pub fn view(&self, now: Timestamp) -> View {
        let freshness = self.store.freshness();
        let space = self.storage.as_ref().map(|storage| (storage.threshold(), storage.space()));
        let left = space.and_then(|(threshold, space)| space.map(|space| space.left_below(threshold)));
        View {
            dropped: freshness.stale_for(now) > self.drop_after,
            summary: self.store.summary(now, left),
            collections: (self.collections > 0)
                .then(|| self.store.largest_collections(collections::candidates(self.collections)))
                .flatten(),
            collections_limit: self.collections,
            storage: space,
            fault_limits: self.store.fault_limits().by_fault(),
            freshness,
        }
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.view(Timestamp::now()).encode(encoder)
    }
}

/// What one scrape exports of the queue and of its mirror.
#[derive(Debug)]
pub struct View {
    /// How the image stands.
    pub freshness: Freshness,
    /// The figures; `None` before the first walk.
    pub summary: Option<Summary>,
    /// The limits after which an item counts as faulty.
    pub fault_limits: Vec<FaultLimit>,
    /// Whether the image has been stale for so long that the queue's own series are left out rather than frozen.
    pub dropped: bool,
    /// Jobs by collection; `None` where they are not wanted or not there.
    pub collections: Option<LargestCollections>,
    /// How many collections get series of their own.
    pub collections_limit: usize,
    /// The threshold of working storage, 0 to 1, and how full the volume is, where it answered; `None` where no volume
    /// was named.
    pub storage: Option<(f64, Option<Space>)>,
}

impl Collector for View {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::new(encoder);
        let families = &mut families;
        if let Some(summary) = self.summary.as_ref().filter(|_| !self.dropped) {
            // Without a volume that answers it is not known which jobs wait for it.
            let waiting = self.storage.and_then(|(_, space)| space).map(|_| summary.waiting_for_space);
            jobs::write(families, summary, waiting)?;
            batches::write(families, summary)?;
            access::write(families, summary)?;
            locks::write(families, summary)?;
            faults::write(families, summary)?;
            if let Some(figures) = &self.collections {
                collections::write(families, figures, self.collections_limit)?;
            }
        }
        // What was configured is true without an image, too.
        faults::write_limits(families, &self.fault_limits)?;
        // The volume is measured by ourselves: it is true however the image stands.
        if let Some((threshold, space)) = self.storage {
            working_storage::write(families, threshold, space)?;
        }
        freshness::write(families, &self.freshness, self.summary.as_ref())
    }
}
