//! As many transitions as the server commits, and how far the mirror is behind them.

use std::time::{Duration, Instant};

use crate::load::{Load, REST, movable, rest};
use crate::served::{Served, sum};
use crate::{connect, quantile, server};

/// How long each part lasts.
const LASTS: Duration = Duration::from_secs(15);

/// What comes first warms the server up.
const WARMING: Duration = Duration::from_secs(5);

/// How many transitions are on their way at once: with more the server commits no more.
const IN_FLIGHT: usize = 128;

const SCRAPE_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!(
        "throughput: transitions as fast as the server commits them, {IN_FLIGHT} in flight, {} s each",
        LASTS.as_secs()
    );
    for jobs in sizes {
        let server = server(*jobs).await?;
        let client = connect(&server).await?;
        crate::fill::fill(&client, *jobs).await?;
        let mut load = Load::as_fast(client.clone(), *jobs, 0, IN_FLIGHT);
        tokio::time::sleep(WARMING).await;
        let alone = rate(&load, LASTS).await;
        let before = load.stop().await?;

        let served = Served::start(&server.connect_string(), &[]).await?;
        load = Load::as_fast(client, *jobs, usize::try_from(before)?, IN_FLIGHT);
        tokio::time::sleep(WARMING).await;
        let (mut behind, cpu, committed, started) = (Vec::new(), served.cpu().await?, load.committed(), Instant::now());
        let mut is_synced = true;
        while started.elapsed() < LASTS {
            let sent = load.committed();
            let body = served.get("/metrics").await?.1;
            behind.push(sent.saturating_sub(counted(&body)));
            is_synced &= sum(&body, "queuekeeper_mirror_synced", "") > 0.0;
            tokio::time::sleep(SCRAPE_INTERVAL).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        let beside = (load.committed() - committed) as f64 / seconds;
        let busy = (served.cpu().await? - cpu) / seconds;
        let all = load.stop().await?;
        let stopped = Instant::now();
        let movable = movable(*jobs).count();
        // In a small queue that goes this fast a job moves again before it was read.
        let is_seen = rest(*jobs, beside) >= REST;
        let held = held_after(usize::try_from(before + all)?, movable);
        let in_the_end = loop {
            let body = served.get("/metrics").await?.1;
            let counted = counted(&body);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "this is a count")]
            let are_held = sum(&body, "merritt_jobs", r#"state="held""#) as usize;
            if counted == all || !is_seen && are_held == held {
                break counted;
            }
            anyhow::ensure!(stopped.elapsed() < Duration::from_mins(1), "{counted} of {all} transitions were counted");
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let caught_up = stopped.elapsed();
        if !is_seen {
            println!(
                "  {jobs:>7} jobs: {beside:.0}/s beside the mirror, {alone:.0}/s without it = {:.2}; each job moves {:.0} times \
                 a second, and {:.0} % of the steps were seen one by one; all was right {caught_up:.1?} after the last; {}, \
                 {:.0} % of a core",
                beside / alone,
                beside / movable as f64,
                in_the_end as f64 / all as f64 * 100.0,
                in_words(is_synced),
                busy * 100.0
            );
            continue;
        }
        let mut behind: Vec<Duration> =
            behind.into_iter().map(|transitions| Duration::from_secs_f64(transitions as f64 / beside)).collect();
        println!(
            "  {jobs:>7} jobs: {beside:.0}/s beside the mirror, {alone:.0}/s without it = {:.2}; behind by p50 {:.1?}, \
             p99 {:.1?}, most {:.1?}; all counted {:.1?} after the last; {}, {:.0} % of a core",
            beside / alone,
            quantile(&mut behind, 0.5),
            quantile(&mut behind, 0.99),
            quantile(&mut behind, 1.0),
            caught_up,
            in_words(is_synced),
            busy * 100.0
        );
    }
    Ok(())
}

fn in_words(is_synced: bool) -> &'static str {
    if is_synced { "never out of sync" } else { "OUT OF SYNC" }
}

/// How many jobs are held after so many turns, each of which takes the next job there or back.
fn held_after(turns: usize, movable: usize) -> usize {
    let last = turns % movable;
    if (turns / movable).is_multiple_of(2) { last } else { movable - last }
}

fn counted(exposition: &str) -> u64 {
    let step = |labels| sum(exposition, "merritt_job_transitions_total", labels);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "this is a count")]
    let counted = (step(r#"from="pending",to="held""#) + step(r#"from="held",to="pending""#)) as u64;
    counted
}

async fn rate(load: &Load, lasts: Duration) -> f64 {
    let (before, started) = (load.committed(), Instant::now());
    tokio::time::sleep(lasts).await;
    (load.committed() - before) as f64 / started.elapsed().as_secs_f64()
}
