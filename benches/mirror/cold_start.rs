//! How long the first walk takes, against a bare loop that reads the same znodes.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use prometheus_client::registry::Registry;
use queuekeeper::mirror::{self, Metrics, Writer};
use queuekeeper::zookeeper::{Config, PrivateServer, Sessions};
use tokio_util::sync::CancellationToken;
use zookeeper_client::Client;

use crate::{ROUNDS, connect, median, server};

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("cold start: time until the image is complete / time of a bare MultiReader loop over the same znodes");
    for jobs in sizes {
        let server = server().await?;
        let client = connect(&server).await?;
        let paths = crate::fill::fill(&client, *jobs).await?;
        drop(client);
        let single = one_by_one(&connect(&server).await?, &paths).await?;
        let (mut bare, mut walked) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let client = connect(&server).await?;
            let started = Instant::now();
            read_all(&client, &paths).await?;
            let bare_time = started.elapsed();
            let walk_time = start_mirror(&server).await?;
            // The first round warms the server's virtual machine up.
            if round > 0 {
                bare.push(bare_time);
                walked.push(walk_time);
            }
        }
        let (bare, walked) = (median(&mut bare), median(&mut walked));
        println!(
            "  {jobs:>7} jobs, {:>9} znodes: {:>8.1?} / {:>8.1?} = {:.2}; one by one, at {:.0} reads/s, {:.0?} = {:.0} times as long",
            paths.len(),
            walked,
            bare,
            walked.as_secs_f64() / bare.as_secs_f64(),
            1.0 / single.as_secs_f64(),
            single * u32::try_from(paths.len())?,
            single.as_secs_f64() * paths.len() as f64 / walked.as_secs_f64()
        );
    }
    Ok(())
}

/// The bare loop: 512 reads a request, four requests in flight, nothing done with the answers.
pub(crate) async fn read_all(client: &Client, paths: &[String]) -> anyhow::Result<()> {
    let requests = paths.chunks(512).map(|chunk| async move {
        let mut reader = client.new_multi_reader();
        chunk.iter().try_for_each(|path| reader.add_get_data(path))?;
        anyhow::Ok(reader.commit().await?.len())
    });
    let read: Vec<usize> = stream::iter(requests).buffer_unordered(4).try_collect().await?;
    anyhow::ensure!(read.iter().sum::<usize>() == paths.len(), "every znode was read");
    Ok(())
}

/// How long one read takes on the average of many, each begun when the one before is done, as operators' scripts do.
async fn one_by_one(client: &Client, paths: &[String]) -> anyhow::Result<Duration> {
    const READS: usize = 10_000;
    let step = (paths.len() / READS).max(1);
    let (started, mut reads) = (Instant::now(), 0);
    for path in paths.iter().step_by(step) {
        client.get_data(path).await?;
        reads += 1;
    }
    Ok(started.elapsed() / reads)
}

async fn start_mirror(server: &PrivateServer) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let (writer, shutdown) = (Writer::new(), CancellationToken::new());
    let store = writer.store();
    let metrics = Metrics::register(&mut Registry::default());
    let sessions = Sessions::new(Config::new(server.connect_string().parse()?));
    let mirror = tokio::spawn(mirror::run(sessions, writer, metrics, None, shutdown.clone()));
    while !store.freshness().is_synced() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let time = started.elapsed();
    shutdown.cancel();
    mirror.await??;
    Ok(time)
}
