//! Readers: they request objects as archives.

use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use queuekeeper_ingest::access::{self, Extent, Format, RequestError, RequestedArchive};
use queuekeeper_ingest::services::Services;
use tokio::time::sleep;

use super::collections::COLLECTIONS;
use super::dice::Dice;
use super::person::{Person, unless_lost};
use super::world::World;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::{Error, Queue};

/// The maximum number of requests in an access queue, in any state.
const MAX_REQUESTS: usize = 40;

/// How often they look for something to read, in seconds at the natural rate.
const ROUND_SECONDS: f64 = 5.0;

/// All readers.
pub(super) struct Readers {
    world: Arc<World>,
    services: Arc<Services>,
    dice: Dice,
}

impl Readers {
    pub(super) fn new(world: &Arc<World>, services: &Arc<Services>) -> Self {
        let dice = Dice::new(world.seed, "readers");
        Self { world: Arc::clone(world), services: Arc::clone(services), dice }
    }

    async fn request(&mut self, queue: &Queue) -> Result<(), Error> {
        for access in [AccessQueue::Small, AccessQueue::Large] {
            if queue.requests(access).await?.len() >= MAX_REQUESTS {
                return Ok(());
            }
        }
        let Some(settings) = &self.services.settings.access else { return Ok(()) };
        let catalogue = &self.services.catalogue;
        // Somewhere in the list; ARKs are scattered.
        let first = char::from(*self.dice.pick(b"0123456789bcdfghjkmnpqrstvwxz"));
        let shoulder = self.dice.pick(COLLECTIONS).shoulder;
        let after = format!("ark:/99999/{shoulder}{first}");
        let Ok(found) = catalogue.objects(None, &after, 1).await else { return Ok(()) };
        let Some(ark) = found.first().and_then(|object| object.ark.parse().ok()) else { return Ok(()) };
        let format = self.dice.weighted(&[(3, Format::Zip), (1, Format::Tar)]);
        let token = self.dice.uuid().to_string();
        let wanted = RequestedArchive { token, ark, version: None, format, extent: Extent::Full };
        match access::request(queue, catalogue, settings, wanted, Timestamp::now()).await {
            Ok(_) => {}
            Err(RequestError::Queue(error)) => {
                unless_lost("an access request", Err::<(), _>(error))?;
            }
            Err(RequestError::Find(error)) => tracing::debug!(%error, "abandoned: an access request"),
        }
        Ok(())
    }
}

impl Person for Readers {
    fn name(&self) -> &'static str {
        "readers"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            self.request(&queue).await?;
            sleep(self.world.pace.time(ROUND_SECONDS * self.dice.float(0.3, 1.7))).await;
        }
    }
}
