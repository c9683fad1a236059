//! What a scrape costs, under load, against `/-/healthy`.

use std::time::{Duration, Instant};

use crate::load::Load;
use crate::served::Served;
use crate::{connect, quantile, server};

const RATE: u32 = 500;
const SCRAPES: usize = 2_000;

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!(
        "scrape: GET /metrics, as Prometheus asks (OpenMetrics, gzip) and plainly, against GET /-/healthy, in turn, at \
         {RATE} transitions/s"
    );
    for jobs in [&[200], sizes].concat() {
        let server = server(jobs).await?;
        let client = connect(&server).await?;
        crate::fill::fill(&client, jobs).await?;
        let served = Served::start(&server.connect_string(), &[]).await?;
        let load = Load::start(client, jobs, 0, RATE);
        let (mut scraped, mut plain, mut healthy) = (Vec::new(), Vec::new(), Vec::new());
        let (mut packed_bytes, mut bytes) = (0, 0);
        let (cpu, started) = (served.cpu().await?, Instant::now());
        for _ in 0..SCRAPES {
            healthy.push(time(served.get("/-/healthy")).await?.0);
            let (duration, (_, sent)) = time(served.scrape()).await?;
            scraped.push(duration);
            packed_bytes = sent;
            let (duration, (_, body)) = time(served.get("/metrics")).await?;
            plain.push(duration);
            bytes = body.len();
        }
        let busy = (served.cpu().await? - cpu) / started.elapsed().as_secs_f64();
        let transitions = load.stop().await?;
        let mut at = |share: f64| [&mut scraped, &mut plain, &mut healthy].map(|times| quantile(times, share));
        let ([p50, plain_p50, healthy_p50], [p99, plain_p99, healthy_p99]) = (at(0.5), at(0.99));
        println!(
            "  {jobs:>7} jobs: p50 {p50:.2?}, plainly {plain_p50:.2?}, healthy {healthy_p50:.2?}; p99 {p99:.2?}, plainly \
             {plain_p99:.2?}, healthy {healthy_p99:.2?}; {packed_bytes} bytes sent, plainly {bytes}; {transitions} \
             transitions, {:.0} % of a core",
            busy * 100.0
        );
    }
    Ok(())
}

/// How long an answer takes that must be a good one.
async fn time<T>(answer: impl Future<Output = anyhow::Result<(u16, T)>>) -> anyhow::Result<(Duration, (u16, T))> {
    let started = Instant::now();
    let answer = answer.await?;
    anyhow::ensure!(answer.0 == 200, "the answer is {}", answer.0);
    Ok((started.elapsed(), answer))
}
