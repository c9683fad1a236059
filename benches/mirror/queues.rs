//! Several queues in one process, beside a process for each.

use std::time::Duration;

use futures::future::try_join_all;
use queuekeeper_zookeeper::{Config, PrivateServer};
use zookeeper_client::{Acls, CreateMode};

use crate::load::Load;
use crate::memory::{REWALK, rewalked, settle};
use crate::served::Served;
use crate::{connect, server};

/// The queues, each below a path of this name.
const QUEUES: [&str; 3] = ["one", "two", "three"];

/// How long each rate is watched.
const WATCHED: Duration = Duration::from_secs(20);

/// Transitions a second of each queue; none first.
const RATES: [u32; 2] = [0, 100];

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!(
        "queues: {} queues in one process, against a process for each: resident bytes after a re-walk, and processor \
         time",
        QUEUES.len()
    );
    let empty = of_each(&filled(0).await?, 0).await?;
    for jobs in sizes {
        let server = filled(*jobs).await?;
        let (each, together) = (of_each(&server, *jobs).await?, of_all(&server, *jobs).await?);
        let jobs_of_all = (jobs * QUEUES.len()) as f64;
        println!(
            "  {jobs:>7} jobs each: {} MiB together, {} MiB apart, of which {} MiB without jobs; ratio {:.2}, bytes a \
             job {:.0} and {:.0}",
            together.resident >> 20,
            each.resident >> 20,
            empty.resident >> 20,
            together.resident as f64 / each.resident as f64,
            together.resident.saturating_sub(empty.resident / QUEUES.len() as u64) as f64 / jobs_of_all,
            each.resident.saturating_sub(empty.resident) as f64 / jobs_of_all,
        );
        for ((rate, together), each) in RATES.into_iter().zip(together.busy).zip(each.busy) {
            println!(
                "          {rate:>4} transitions/s each: {:.1} % of a core together, {:.1} % apart",
                together * 100.0,
                each * 100.0
            );
        }
    }
    Ok(())
}

/// What processes needed together.
struct Cost {
    /// Bytes.
    resident: u64,
    /// The share of a core, at each of the rates.
    busy: [f64; RATES.len()],
}

/// A server whose queues have so many jobs each.
async fn filled(jobs: usize) -> anyhow::Result<PrivateServer> {
    let server = server(jobs * QUEUES.len()).await?;
    let root = connect(&server).await?;
    for name in QUEUES {
        root.create(&format!("/{name}"), b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await?;
        let client = Config::new(address(&server, name).parse()?).connect().await?;
        crate::fill::fill(&client, jobs).await?;
    }
    Ok(server)
}

/// The address of a queue.
fn address(server: &PrivateServer, name: &str) -> String {
    format!("{}/{name}", server.connect_string())
}

/// A process for each queue, all at once.
async fn of_each(server: &PrivateServer, jobs: usize) -> anyhow::Result<Cost> {
    let mut processes = Vec::new();
    for name in QUEUES {
        processes.push(Served::start(&address(server, name), &REWALK).await?);
    }
    for served in &processes {
        rewalked(served, "").await?;
    }
    cost(server, jobs, &processes).await
}

/// One process for all of them.
async fn of_all(server: &PrivateServer, jobs: usize) -> anyhow::Result<Cost> {
    let named = QUEUES.map(|name| format!("{name}={}", address(server, name)));
    let flags: Vec<&str> = named[1..].iter().flat_map(|queue| ["--zookeeper", queue]).chain(REWALK).collect();
    let served = Served::start(&named[0], &flags).await?;
    for name in QUEUES {
        rewalked(&served, &format!("deployment=\"{name}\"")).await?;
    }
    cost(server, jobs, &[served]).await
}

async fn cost(server: &PrivateServer, jobs: usize, processes: &[Served]) -> anyhow::Result<Cost> {
    try_join_all(processes.iter().map(settle)).await?;
    let mut resident = 0;
    for served in processes {
        resident += served.memory("VmRSS")?;
    }
    let mut busy = [0.0; RATES.len()];
    for (busy, rate) in busy.iter_mut().zip(RATES) {
        if rate > 0 && jobs == 0 {
            continue;
        }
        let mut loads = Vec::new();
        for name in QUEUES.into_iter().filter(|_| rate > 0) {
            let client = Config::new(address(server, name).parse()?).connect().await?;
            loads.push(Load::start(client, jobs, 0, rate));
        }
        let before = cpu(processes).await?;
        tokio::time::sleep(WATCHED).await;
        *busy = (cpu(processes).await? - before) / WATCHED.as_secs_f64();
        for load in loads {
            load.stop().await?;
        }
    }
    Ok(Cost { resident, busy })
}

/// Processor time so far, of all of them.
async fn cpu(processes: &[Served]) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for served in processes {
        sum += served.cpu().await?;
    }
    Ok(sum)
}
