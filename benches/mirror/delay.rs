//! From a commit to `/metrics`, against a bare recursive watcher.

use std::time::{Duration, Instant};

use zookeeper_client::{AddWatchMode, EventType};

use crate::load::{Load, REST, rest};
use crate::served::{Served, sum};
use crate::{connect, quantile, server};

/// Transitions a second.
const RATES: [u32; 2] = [500, 1_000];

/// How many transitions are timed.
const TRANSITIONS: usize = 10_000;

/// How many come before them, while the server's virtual machine is still getting to know its work.
const WARMING: usize = 1_000;

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("delay: from a committed transition to its being in /metrics, beyond what a bare recursive watcher needs");
    for jobs in sizes {
        for rate in RATES {
            let rests = rest(*jobs, f64::from(rate));
            if rests < REST {
                println!(
                    "  {jobs:>7} jobs, {rate} transitions/s: left out, as a job would take its next step after \
                     {rests:.0?}, and two within {REST:?} may be seen as one"
                );
                continue;
            }
            measure(*jobs, rate).await?;
        }
    }
    Ok(())
}

async fn measure(jobs: usize, rate: u32) -> anyhow::Result<()> {
    let server = server(jobs).await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let served = Served::start(&server.connect_string(), &[]).await?;
    let watcher_client = connect(&server).await?;
    let mut watcher = watcher_client.watch("/", AddWatchMode::PersistentRecursive).await?;
    // Every job comes round again and again, but rests so long in between that each step is read: the n-th event is of
    // the n-th step that is counted.
    let transitions = WARMING + TRANSITIONS;
    let heard = tokio::spawn(async move {
        let mut heard = Vec::with_capacity(transitions);
        while heard.len() < transitions {
            let event = watcher.changed().await;
            if event.event_type == EventType::NodeDataChanged && event.path.ends_with("/status") {
                heard.push(Instant::now());
            }
        }
        heard
    });
    let load = Load::start(client, jobs, 0, rate);
    let mut visible = Vec::with_capacity(transitions);
    let mut scrapes = 0u64;
    while visible.len() < transitions {
        let body = served.get("/metrics").await?.1;
        let now = Instant::now();
        let step = |labels| sum(&body, "merritt_job_transitions_total", labels);
        let count = step(r#"from="pending",to="held""#) + step(r#"from="held",to="pending""#);
        while visible.len() < transitions && (visible.len() as f64) < count {
            visible.push(now);
        }
        scrapes += 1;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    let heard = heard.await?;
    load.stop().await?;
    let seconds = heard[transitions - 1].duration_since(heard[WARMING]).as_secs_f64();
    let timed = visible.iter().zip(&heard).skip(WARMING);
    let mut beyond: Vec<Duration> = timed.map(|(visible, heard)| visible.saturating_duration_since(*heard)).collect();
    println!(
        "  {jobs:>7} jobs, {:.0} transitions/s: p50 {:.1?}, p99 {:.1?}, most {:.1?} ({scrapes} scrapes)",
        TRANSITIONS as f64 / seconds,
        quantile(&mut beyond, 0.5),
        quantile(&mut beyond, 0.99),
        quantile(&mut beyond, 1.0),
    );
    Ok(())
}

/// How many packets the server has received, by its own count.
pub(crate) async fn received(server: &queuekeeper_zookeeper::PrivateServer) -> anyhow::Result<u64> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.connect_string()).await?;
    stream.write_all(b"srvr").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let line = answer.lines().find_map(|line| line.strip_prefix("Received: "));
    Ok(line.ok_or_else(|| anyhow::anyhow!("srvr does not say what was received"))?.trim().parse()?)
}
