//! The daemons that assemble access requests: one for small requests, one for large.

use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::daemon::{Daemon, unless_lost};
use super::dice::Dice;
use super::world::World;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::AccessState;
use queuekeeper_queue::{Error, ItemChange, LockedRequest, Queue};

/// The daemon of one access queue.
#[derive(Debug)]
pub(super) struct Assembler {
    world: Arc<World>,
    access: AccessQueue,
    dice: Dice,
}

impl Assembler {
    pub(super) fn new(world: &Arc<World>, access: AccessQueue) -> Self {
        let dice = Dice::new(world.seed, ("assembler", access.name()));
        Self { world: Arc::clone(world), access, dice }
    }

    async fn assemble(&mut self, queue: &Queue, mut request: LockedRequest) -> Result<(), Error> {
        let begun = queue.step_request(&mut request, &ItemChange::success(), Timestamp::now()).await;
        if unless_lost("starting an assembly", begun)?.is_none() {
            unless_lost("releasing a request", queue.unlock_request(&request).await)?;
            return Ok(());
        }
        let seconds = match self.access {
            AccessQueue::Small => self.dice.float(1.0, 4.0),
            AccessQueue::Large => self.dice.float(8.0, 25.0),
        };
        sleep(self.world.pace.time(seconds)).await;
        let change = if self.dice.happens(0.06) {
            ItemChange::to(AccessState::Failed).with_message("[error] assembly: cloud read failed: 404 NoSuchKey")
        } else {
            ItemChange::success()
        };
        let token = request.request.token.as_deref().and_then(assembled);
        let finished = queue.finish_request(&request, &change, token.as_deref(), Timestamp::now()).await;
        if unless_lost("finishing an assembly", finished)?.is_none() {
            unless_lost("releasing a request", queue.unlock_request(&request).await)?;
        }
        Ok(())
    }
}

impl Daemon for Assembler {
    fn name(&self) -> &'static str {
        match self.access {
            AccessQueue::Small => "access small",
            AccessQueue::Large => "access large",
        }
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            let mut list = queue.poll_requests(self.access).await?;
            while let Some(request) = list.next().await? {
                self.assemble(&queue, request).await?;
            }
            sleep(self.world.pace.poll()).await;
        }
    }
}

/// The token with the address of the assembled object; `None` if the token cannot be read.
fn assembled(token: &[u8]) -> Option<Vec<u8>> {
    let mut token: Value = serde_json::from_slice(token).ok()?;
    let url = format!("https://access.example.org/assembled/{}.zip", token.get("token")?.as_str()?);
    let object = token.as_object_mut()?;
    object.insert("status".into(), json!(200));
    object.insert("url".into(), url.into());
    Some(token.to_string().into_bytes())
}
