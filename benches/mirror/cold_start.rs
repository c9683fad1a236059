//! How long the first walk takes, against a bare loop that reads what the walk has to read.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use prometheus_client::registry::Registry;
use queuekeeper::mirror::{self, Metrics, Writer};
use queuekeeper_zookeeper::{Config, PrivateServer, Sessions};
use rand::seq::IndexedRandom as _;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Client, Error, MultiReader};

use crate::{ROUNDS, connect, median, server};

/// The limit, as a ratio.
const LIMIT: f64 = 1.3;

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!(
        "cold start: time until the mirror is complete / time of a bare MultiReader loop that knows all paths: both read \
         each znode but entries and references, and list the folders of these"
    );
    for jobs in sizes {
        measure(*jobs).await?;
    }
    Ok(())
}

async fn measure(jobs: usize) -> anyhow::Result<()> {
    let server = server(jobs).await?;
    let client = connect(&server).await?;
    let paths = crate::fill::fill(&client, jobs).await?;
    drop(client);
    let needed = needed(&paths);
    let (mut bare, mut walked, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (mut bare_time, mut walk_time) = (Duration::ZERO, Duration::ZERO);
        // By turns who is first, so that whatever else the machine does slows both down.
        for is_walk in [round % 2 == 0, round % 2 == 1] {
            if is_walk {
                walk_time = start_mirror(&server).await?;
            } else {
                let client = connect(&server).await?;
                let started = Instant::now();
                read_needed(&client, &needed).await?;
                bare_time = started.elapsed();
            }
        }
        // The first round warms the server's virtual machine up.
        if round > 0 {
            bare.push(bare_time);
            walked.push(walk_time);
            ratios.push(walk_time.as_secs_f64() / bare_time.as_secs_f64());
        }
    }
    let (bare, walked) = (median(&mut bare), median(&mut walked));
    ratios.sort_by(f64::total_cmp);
    let (ratio, least, most) = (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]);
    println!(
        "  {jobs:>7} jobs, {:>9} znodes: {walked:>8.1?} / {bare:>8.1?}, {ratio:.2} ({least:.2} to {most:.2}) by rounds, of \
         {LIMIT}{}",
        paths.len(),
        if ratio > LIMIT { "  OVER" } else { "" }
    );
    let (single, reads) = one_by_one(&connect(&server).await?, &paths).await?;
    let script = single.as_secs_f64() * paths.len() as f64;
    println!(
        "          a script that reads every znode, one after the other, would take {script:.0} s, {:.0} times as long as \
         the mirror: {single:.1?} on the average of {reads} reads, times {} znodes",
        script / walked.as_secs_f64(),
        paths.len()
    );
    Ok(())
}

/// What the walk asks of a path.
enum Read<'a> {
    /// The znode.
    Node(&'a str),
    /// What its children are called.
    Names(&'a str),
}

/// What the walk cannot do without: that entries and references are there is all that matters of them, so it lists the
/// folders that they are in.
fn needed(paths: &[String]) -> Vec<Read<'_>> {
    let mut reads = Vec::new();
    for path in paths {
        let names: Vec<&str> = path.split('/').skip(1).collect();
        match names[..] {
            ["jobs", "states", _, _] | ["batches", _, "states", _, _] => {}
            ["jobs", "states", _] | ["batches", _, "states", _] => reads.extend([Read::Node(path), Read::Names(path)]),
            _ => reads.push(Read::Node(path)),
        }
    }
    reads
}

async fn read_needed(client: &Client, needed: &[Read<'_>]) -> anyhow::Result<()> {
    let add = |reader: &mut MultiReader<'_>, read: &Read<'_>| match read {
        Read::Node(path) => reader.add_get_data(path),
        Read::Names(path) => reader.add_get_children(path),
    };
    read_each(client, needed, add).await
}

/// Reads every znode in the same way.
pub(crate) async fn read_all(client: &Client, paths: &[String]) -> anyhow::Result<()> {
    read_each(client, paths, |reader, path| reader.add_get_data(path)).await
}

/// The bare loop: 512 reads a request, four requests in flight, nothing done with the answers.
async fn read_each<T>(
    client: &Client,
    reads: &[T],
    add: impl Fn(&mut MultiReader<'_>, &T) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let add = &add;
    let requests = reads.chunks(512).map(|chunk| async move {
        let mut reader = client.new_multi_reader();
        chunk.iter().try_for_each(|read| add(&mut reader, read))?;
        anyhow::Ok(reader.commit().await?.len())
    });
    let read: Vec<usize> = stream::iter(requests).buffer_unordered(4).try_collect().await?;
    anyhow::ensure!(read.iter().sum::<usize>() == reads.len(), "every read was answered");
    Ok(())
}

/// How long one read takes on the average of so many, each begun when the one before is done, as operators' scripts do.
/// They are drawn at random: every n-th would be of one kind, as all jobs have the same znodes in the same order.
async fn one_by_one(client: &Client, paths: &[String]) -> anyhow::Result<(Duration, u32)> {
    const READS: usize = 10_000;
    let drawn: Vec<&String> = paths.sample(&mut rand::rng(), READS).collect();
    let started = Instant::now();
    for path in &drawn {
        client.get_data(path).await?;
    }
    let reads = u32::try_from(drawn.len())?;
    Ok((started.elapsed() / reads, reads))
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
