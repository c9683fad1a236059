//! A daemon that estimates the size of jobs, on a queue of its own: `cargo run -p queuekeeper-queue --example daemon`.
//!
//! It needs ZooKeeper as `.ci/install zookeeper` installs it. The first part of `main` is what other daemons do before.

#![expect(clippy::print_stdout, reason = "it shows what it does")]

use anyhow::Context as _;
use jiff::Timestamp;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, ItemChange, JobChange, JobValue, NewJob, Queue};
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let server = PrivateServer::start(Options::default()).await?;
    let queue = Queue::new(Config::new(server.connect_string().parse()?).connect().await?);

    // A deposit of three objects comes in, becomes jobs, and a daemon moves these on from Pending.
    let now = Timestamp::now;
    queue.create_batch(br#"{"batchID":"a-uuid"}"#, now()).await?;
    let batch = queue.acquire_batch(Due::Jobs, now()).await?.0.context("no batch is due")?;
    let urls = ["a.example/1", "a.example/22", "a.example/333"];
    let jobs: Vec<_> = urls.iter().map(|url| NewJob::new(format!(r#"{{"filename":"{url}"}}"#))).collect();
    queue.create_jobs(batch.batch.id, &jobs, now()).await?;
    queue.finish_batch(&batch, &ItemChange::success(), now()).await?;
    work(&queue, JobState::Pending, |_| Ok(Vec::new())).await?;

    // The daemon itself. A real one goes on for ever, and pauses between two polls that found nothing.
    work(&queue, JobState::Estimating, |name| match name.len() {
        11 => Err("404 for the object".to_owned()),
        bytes => Ok(vec![JobValue::SpaceNeeded(Some(bytes as u64))]),
    })
    .await
}

/// Does the work on each job of a state, and says how it went.
async fn work(
    queue: &Queue,
    state: JobState,
    step: impl Fn(&str) -> Result<Vec<JobValue>, String>,
) -> anyhow::Result<()> {
    let mut poll = queue.poll_jobs(state).await?;
    while let Some(job) = poll.next(Timestamp::now()).await? {
        let name = job.job.configuration().value.filename.into_owned();
        let change = match step(&name) {
            Ok(values) => queue.update_job(&job, &values).await.map(|()| JobChange::success())?,
            Err(why) => JobChange::failure(why),
        };
        let changed = queue.finish_job(&job, &change, Timestamp::now()).await?;
        println!("{} of {name}: from {state} to {}", changed.id, changed.to);
    }
    Ok(())
}
