//! What the mirror reaches, as ratios of one run: `cargo bench --bench mirror -- [NAME ..] [--jobs N]`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod actions;
mod apply;
mod bulk;
mod cold_start;
mod delay;
mod dump;
mod endurance;
mod fill;
mod histories;
mod load;
mod memory;
mod pages;
mod queues;
mod scrape;
mod served;
mod served_actions;
mod steady;
mod steps;
mod streams;
mod throughput;

use std::time::Duration;

use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use zookeeper_client::Client;

// As the program itself has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How often each figure is taken; the median counts.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut names, mut sizes) = (Vec::new(), vec![2_000, 20_000, 200_000]);
    let (mut histories, mut minutes) = (None, endurance::MINUTES);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            histories::ARGUMENT => histories = arguments.next(),
            "--jobs" => {
                let jobs = arguments.next().ok_or_else(|| anyhow::anyhow!("--jobs takes a number"))?;
                sizes = vec![jobs.parse()?];
            }
            endurance::ARGUMENT => {
                minutes = arguments.next().ok_or_else(|| anyhow::anyhow!("--minutes takes a number"))?.parse()?;
            }
            _ => names.push(argument),
        }
    }
    if let Some(which) = histories {
        return histories::print(&which, sizes[0]);
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if wanted("apply") {
        apply::run(&sizes)?;
    }
    if wanted("cold-start") {
        cold_start::run(&sizes).await?;
    }
    if wanted("dump") || wanted("load") {
        dump::run(&sizes, wanted("dump"), wanted("load")).await?;
    }
    if wanted("memory") {
        histories::run(&sizes)?;
        memory::run(&sizes).await?;
    }
    if wanted("delay") {
        delay::run(&sizes).await?;
    }
    if wanted("scrape") {
        scrape::run(&sizes).await?;
    }
    if wanted("pages") {
        pages::run(&sizes).await?;
    }
    if wanted("throughput") {
        throughput::run(&sizes).await?;
    }
    if wanted("steady") {
        steady::run(&sizes).await?;
    }
    if wanted("queues") {
        queues::run(&sizes).await?;
    }
    if wanted("streams") {
        streams::run(&sizes).await?;
    }
    if wanted("actions") {
        for durable in [false, true] {
            actions::run(&sizes, durable).await?;
        }
    }
    if wanted("bulk") {
        for durable in [false, true] {
            bulk::run(&sizes, durable).await?;
        }
    }
    // Only where it is requested: it takes its time.
    if names.iter().any(|name| name == "endurance") {
        endurance::run(largest(&sizes), minutes).await?;
    }
    Ok(())
}

fn largest(sizes: &[usize]) -> usize {
    sizes.iter().copied().max().unwrap_or(0)
}

/// A server for that many jobs, which forces nothing to disk.
async fn server(jobs: usize) -> anyhow::Result<PrivateServer> {
    server_that_syncs(jobs, false).await
}

/// A server for that many jobs, which forces each transaction to disk before it answers, as those of production do, or
/// does not.
async fn server_that_syncs(jobs: usize, durable: bool) -> anyhow::Result<PrivateServer> {
    // Half a kilobyte for each of the ten znodes of a job, and as much again for what Java has not collected yet.
    let heap_mib = u32::try_from(jobs / 100)?.max(4096);
    Ok(PrivateServer::start(Options { heap_mib, durable, ..Options::default() }).await?)
}

/// What a server does with its transactions, in words.
fn with_disk(durable: bool) -> &'static str {
    if durable { "a server that forces each transaction to disk" } else { "a server that forces nothing to disk" }
}

async fn connect(server: &PrivateServer) -> anyhow::Result<Client> {
    Ok(Config::new(server.connect_string().parse()?).connect().await?)
}

/// The value below which that share of the times lie.
fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is between 0 and 1")]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at]
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
