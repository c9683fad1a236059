//! What a scrape costs, under load, against `/-/healthy`.

use std::time::{Duration, Instant};

use crate::load::Load;
use crate::served::Served;
use crate::{connect, quantile, server};

const RATE: u32 = 500;
const SCRAPES: usize = 2_000;

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("scrape: GET /metrics against GET /-/healthy, in turn, at {RATE} transitions/s");
    for jobs in [&[200], sizes].concat() {
        let server = server().await?;
        let client = connect(&server).await?;
        crate::fill::fill(&client, jobs).await?;
        let served = Served::start(&server.connect_string(), &[]).await?;
        let load = Load::start(client, jobs, 0, RATE);
        let (mut scrape, mut healthy, mut bytes) = (Vec::new(), Vec::new(), 0);
        let (cpu, started) = (served.cpu().await?, Instant::now());
        for _ in 0..SCRAPES {
            healthy.push(time(&served, "/-/healthy").await?.0);
            let (duration, size) = time(&served, "/metrics").await?;
            scrape.push(duration);
            bytes = size;
        }
        let busy = (served.cpu().await? - cpu) / started.elapsed().as_secs_f64();
        let transitions = load.stop().await?;
        println!(
            "  {jobs:>7} jobs: p50 {:.2?} (healthy {:.2?}), p99 {:.2?} (healthy {:.2?}), {bytes} bytes; {transitions} transitions, {:.0} % of a core",
            quantile(&mut scrape, 0.5),
            quantile(&mut healthy, 0.5),
            quantile(&mut scrape, 0.99),
            quantile(&mut healthy, 0.99),
            busy * 100.0
        );
    }
    Ok(())
}

async fn time(served: &Served, path: &str) -> anyhow::Result<(Duration, usize)> {
    let started = Instant::now();
    let (status, body) = served.get(path).await?;
    anyhow::ensure!(status == 200, "{path} answers {status}");
    Ok((started.elapsed(), body.len()))
}
