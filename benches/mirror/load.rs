//! Transitions at a steady rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::fill::state_of;

/// How long a job must rest between two steps so that each is read: two steps between two reads are seen as one.
pub(crate) const REST: Duration = Duration::from_millis(250);

/// Jobs that go from Pending to Held and back, each time in one transaction as the queue core makes it. They never run
/// out, however small the queue is.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Load {
    /// Starts committing `rate` transitions a second, one after the other, until it is stopped.
    pub(crate) fn start(client: Client, jobs: usize, skip: usize, rate: u32) -> Self {
        Self::with(client, jobs, skip, Pace::Steady(rate))
    }

    /// Starts committing as many as the server takes with so many of them in flight, until it is stopped.
    pub(crate) fn as_fast(client: Client, jobs: usize, skip: usize, in_flight: usize) -> Self {
        Self::with(client, jobs, skip, Pace::InFlight(in_flight))
    }

    fn with(client: Client, jobs: usize, skip: usize, pace: Pace) -> Self {
        let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let task = tokio::spawn(commit_all(client, jobs, skip, pace, Arc::clone(&stop), Arc::clone(&committed)));
        Self { stop, committed, task }
    }

    /// How many transitions have been committed.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Stops, and gives how many transitions were committed.
    pub(crate) async fn stop(self) -> anyhow::Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await??;
        Ok(self.committed.load(Ordering::Relaxed))
    }
}

/// The jobs that it moves, of so many.
pub(crate) fn movable(jobs: usize) -> impl Iterator<Item = usize> {
    (0..jobs).filter(|job| state_of(*job).0 == "Pending")
}

/// How long each of them rests between two steps, at so many steps a second of all.
pub(crate) fn rest(jobs: usize, per_second: f64) -> Duration {
    Duration::from_secs_f64(movable(jobs).count() as f64 / per_second)
}

enum Pace {
    /// So many a second.
    Steady(u32),
    /// So many at once.
    InFlight(usize),
}

async fn commit_all(
    client: Client,
    jobs: usize,
    skip: usize,
    pace: Pace,
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match client.create("/jobs/states/held", b"", &options).await {
        Ok(_) | Err(zookeeper_client::Error::NodeExists) => {}
        Err(error) => return Err(error.into()),
    }
    let pending: Vec<usize> = movable(jobs).collect();
    let turns = stream::iter(skip..).take_while(|_| futures::future::ready(!stop.load(Ordering::Relaxed)));
    let started = Instant::now();
    let (spacing, in_flight) = match pace {
        Pace::Steady(rate) => (Duration::from_secs(1) / rate, 1),
        Pace::InFlight(in_flight) => (Duration::ZERO, in_flight.min(pending.len())),
    };
    let steps = turns.map(|turn| {
        let (client, pending, committed) = (&client, &pending, &committed);
        async move {
            let number = u32::try_from(turn - skip)?;
            tokio::time::sleep_until((started + spacing * number).into()).await;
            step(client, pending[turn % pending.len()], turn / pending.len()).await?;
            // Counted here and not in the order of starting: one slow answer would keep back those that have come
            // since.
            committed.fetch_add(1, Ordering::Relaxed);
            anyhow::Ok(())
        }
    });
    // A job's next step is started when the one before is done, which is why the order matters.
    steps.buffered(in_flight).try_collect().await
}

/// Takes a job from Pending to Held, or back, in the round of that number.
async fn step(client: &Client, job: usize, round: usize) -> anyhow::Result<()> {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let lock = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    let jid = format!("jid{job:010}");
    let (from, to, status) =
        if round.is_multiple_of(2) { ("pending", "held", "Held") } else { ("held", "pending", "Pending") };
    let status = format!(
        r#"{{"status":"{status}","last_modified":"2026-03-02 10:17:05 -0800","last_successful_status":null,"retry_count":0,"message":"Success"}}"#
    );
    let mut writer = client.new_multi_writer();
    writer.add_create(&format!("/jobs/{jid}/lock"), b"", &lock)?;
    writer.add_set_data(&format!("/jobs/{jid}/status"), status.as_bytes(), Some(i32::try_from(round)?))?;
    writer.add_delete(&format!("/jobs/states/{from}/05-{jid}"), None)?;
    writer.add_create(&format!("/jobs/states/{to}/05-{jid}"), b"", &options)?;
    writer.add_delete(&format!("/jobs/{jid}/lock"), None)?;
    writer.commit().await?;
    Ok(())
}
