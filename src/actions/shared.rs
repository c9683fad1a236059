//! What all parts of the actions share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::engine;
use tokio_util::task::TaskTracker;

use super::audit::Audit;
use super::clock::Clock;
use super::execution::Executions;
use super::lists::Lists;
use super::metrics::Metrics;
use super::refusal::Refusal;
use super::session::Connected;
use crate::mirror::MirrorStore;
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connected: Connected,
    pub(super) store: Option<MirrorStore>,
    /// What the catalogue has of deposits, where there is one.
    pub(super) catalogue: OnceLock<Catalogue>,
    /// Whether the queue's daemons have the same one, as far as is known: they keep it for as long as a tree lives.
    pub(super) has_same_catalogue: AtomicBool,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) audit: Audit,
    pub(super) metrics: Metrics,
    pub(super) executions: Executions,
    pub(super) lists: Lists,
    pub(super) tasks: TaskTracker,
}

impl Shared {
    /// The queue, for a request that is recorded in a catalogue first: the daemons must have the same one, or they
    /// would never see what was recorded. A queue on which none has worked yet has none.
    ///
    /// # Errors
    /// When it is not connected, or its daemons have another one.
    pub(super) async fn queue_of(&self, catalogue: &Catalogue) -> Result<Queue, Refusal> {
        let queue = self.connected.queue_at_hand()?;
        if self.has_same_catalogue.load(Ordering::Relaxed) {
            return Ok(queue);
        }
        let read = queue.within(engine::catalogue(queue.client())).await;
        match read.map_err(|cause| Refusal::Unavailable(format!("ZooKeeper: {cause}; nothing was done, try again")))? {
            Some(other) if other != catalogue.id().to_string() => Err(Refusal::Unavailable(format!(
                "the daemons of this queue use catalogue {other} ({}), but this server uses {}: configure the same one",
                engine::CATALOGUE,
                catalogue.id(),
            ))),
            None => Ok(queue),
            Some(_) => {
                self.has_same_catalogue.store(true, Ordering::Relaxed);
                Ok(queue)
            }
        }
    }
}
