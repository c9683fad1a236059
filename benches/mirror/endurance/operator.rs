//! An operator that requests random actions, one after the other.

use std::time::Duration;

use rand::seq::SliceRandom;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::fill::state_of;
use crate::served_actions::Client;

/// How long is thought between two actions, in milliseconds.
const THINKS: std::ops::Range<u64> = 500..2_500;

/// How many jobs are on a list.
const LIST: usize = 50;

/// The collections that are held and released.
const COLLECTION: &str = "collection:merritt_demo_content";

/// Jobs by what was done to them last, so that each action is one that can be carried out.
struct Knows {
    failed: Vec<usize>,
    resumed: Vec<usize>,
    provisioning: Vec<usize>,
    is_paused: bool,
    is_held: bool,
}

pub(super) struct Operator {
    task: JoinHandle<anyhow::Result<u64>>,
    over: CancellationToken,
}

impl Operator {
    pub(super) fn start(client: Client, jobs: usize) -> Self {
        let over = CancellationToken::new();
        let of = |name: &str| {
            let mut jobs: Vec<usize> = (0..jobs).filter(|job| state_of(*job).0 == name).collect();
            jobs.shuffle(&mut rand::rng());
            jobs
        };
        let knows = Knows {
            failed: of("Failed"),
            resumed: Vec::new(),
            provisioning: of("Provisioning"),
            is_paused: false,
            is_held: false,
        };
        let task = tokio::spawn(act_on(client, knows, over.clone()));
        Self { task, over }
    }

    /// Gives how many actions were carried out.
    pub(super) async fn stop(self) -> anyhow::Result<u64> {
        self.over.cancel();
        self.task.await?
    }
}

fn jid(job: usize) -> String {
    format!("jid{job:010}")
}

async fn act_on(client: Client, mut knows: Knows, over: CancellationToken) -> anyhow::Result<u64> {
    for actions in 0.. {
        if over.is_cancelled() {
            return Ok(actions);
        }
        let which = rand::random_range(0..10);
        match which {
            0..=2 if !knows.failed.is_empty() => {
                let job = knows.failed.pop().expect("there is one");
                client.action(json!({"action": "resume", "on": jid(job)})).await?;
                knows.resumed.push(job);
            }
            3..=4 if !knows.resumed.is_empty() => {
                let job = knows.resumed.pop().expect("there is one");
                client.action(json!({"action": "fail", "on": jid(job)})).await?;
                knows.failed.insert(0, job);
            }
            5..=6 => {
                let priority = rand::random_range(0..100);
                let at = rand::random_range(0..knows.provisioning.len());
                let job = jid(knows.provisioning[at]);
                client.action(json!({"action": "set_priority", "on": job, "priority": priority})).await?;
            }
            7 => {
                let action = if knows.is_paused { "unpause" } else { "pause" };
                client.action(json!({"action": action, "on": "queue:ingest"})).await?;
                knows.is_paused = !knows.is_paused;
            }
            8 => {
                let action = if knows.is_held { "release" } else { "hold" };
                client.action(json!({"action": action, "on": COLLECTION})).await?;
                knows.is_held = !knows.is_held;
            }
            _ => {
                let (action, from, to) = if knows.resumed.len() < LIST {
                    ("resume", &mut knows.failed, &mut knows.resumed)
                } else {
                    ("fail", &mut knows.resumed, &mut knows.failed)
                };
                let jobs: Vec<usize> = from.drain(..LIST.min(from.len())).collect();
                let items: Vec<String> = jobs.iter().map(|job| jid(*job)).collect();
                let list = client.freeze(&json!({"action": action, "items": items}), jobs.len()).await?.0;
                client.execute(&list).await?;
                to.splice(0..0, jobs);
            }
        }
        let pause = Duration::from_millis(rand::random_range(THINKS));
        tokio::time::sleep(pause).await;
    }
    unreachable!("there is always one more action")
}
