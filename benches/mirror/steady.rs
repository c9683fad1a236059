//! What the mirror asks of ZooKeeper, and what it costs, while little or nothing changes.

use std::time::{Duration, Instant};

use crate::delay::received;
use crate::load::Load;
use crate::served::Served;
use crate::{connect, server};

/// How long each rate is watched.
const WATCHED: Duration = Duration::from_secs(10);

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("steady state: requests to ZooKeeper and processor time, {} s each", WATCHED.as_secs());
    for jobs in sizes {
        measure(*jobs).await?;
    }
    Ok(())
}

async fn measure(jobs: usize) -> anyhow::Result<()> {
    let server = server(jobs).await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let served = Served::start(&server.connect_string(), &[]).await?;
    let mut done = 0;
    for rate in [0, 10, 100, 500, 1_000] {
        let load = (rate > 0).then(|| Load::start(client.clone(), jobs, done, rate));
        let (requests, cpu, started) = (received(&server).await?, served.cpu().await?, Instant::now());
        tokio::time::sleep(WATCHED).await;
        let committed = load.as_ref().map_or(0, Load::committed);
        let (requests, seconds) = (received(&server).await? - requests, started.elapsed().as_secs_f64());
        let busy = (served.cpu().await? - cpu) / seconds;
        println!(
            "  {jobs:>7} jobs, {:>4.0} transitions/s: {:>5.1} requests/s with pings, {:>5.1} % of a core",
            committed as f64 / seconds,
            requests.saturating_sub(committed) as f64 / seconds,
            busy * 100.0
        );
        if let Some(load) = load {
            done += usize::try_from(load.stop().await?)?;
        }
    }
    Ok(())
}
