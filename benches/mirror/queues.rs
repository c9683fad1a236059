//! Several queues in one process, beside a process for each.

use std::time::Duration;

use futures::future::try_join_all;
use queuekeeper_zookeeper::{Config, PrivateServer};
use zookeeper_client::{Acls, Client, CreateMode};

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
    let empty = World::new(0).await?.of_each().await?;
    for jobs in sizes {
        let mut world = World::new(*jobs).await?;
        let (each, together) = (world.of_each().await?, world.of_all().await?);
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

/// A server with the queues.
struct World {
    server: PrivateServer,
    /// How many jobs each has.
    jobs: usize,
    /// How many transitions each had.
    done: [usize; QUEUES.len()],
}

impl World {
    async fn new(jobs: usize) -> anyhow::Result<Self> {
        let server = server(jobs * QUEUES.len()).await?;
        let world = Self { server, jobs, done: [0; QUEUES.len()] };
        let root = connect(&world.server).await?;
        for name in QUEUES {
            root.create(&format!("/{name}"), b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await?;
            crate::fill::fill(&world.client(name).await?, jobs).await?;
        }
        Ok(world)
    }

    fn address(&self, name: &str) -> String {
        format!("{}/{name}", self.server.connect_string())
    }

    async fn client(&self, name: &str) -> anyhow::Result<Client> {
        Ok(Config::new(self.address(name).parse()?).connect().await?)
    }

    /// A process for each queue, all at once.
    async fn of_each(&mut self) -> anyhow::Result<Cost> {
        let mut processes = Vec::new();
        for name in QUEUES {
            processes.push(Served::start(&self.address(name), &REWALK).await?);
        }
        try_join_all(processes.iter().map(|served| rewalked(served, ""))).await?;
        self.cost(&processes).await
    }

    /// One process for all of them.
    async fn of_all(&mut self) -> anyhow::Result<Cost> {
        let named = QUEUES.map(|name| format!("{name}={}", self.address(name)));
        let flags: Vec<&str> = named[1..].iter().flat_map(|queue| ["--zookeeper", queue]).chain(REWALK).collect();
        let served = Served::start(&named[0], &flags).await?;
        let labels = QUEUES.map(|name| format!("deployment=\"{name}\""));
        try_join_all(labels.iter().map(|labels| rewalked(&served, labels))).await?;
        self.cost(&[served]).await
    }

    async fn cost(&mut self, processes: &[Served]) -> anyhow::Result<Cost> {
        try_join_all(processes.iter().map(settle)).await?;
        let mut resident = 0;
        for served in processes {
            resident += served.memory("VmRSS")?;
        }
        let mut busy = [0.0; RATES.len()];
        for (busy, rate) in busy.iter_mut().zip(RATES).filter(|(_, rate)| *rate == 0 || self.jobs > 0) {
            let mut loads = Vec::new();
            for (name, done) in QUEUES.into_iter().zip(self.done).filter(|_| rate > 0) {
                loads.push(Load::start(self.client(name).await?, self.jobs, done, rate));
            }
            let before = cpu(processes).await?;
            tokio::time::sleep(WATCHED).await;
            *busy = (cpu(processes).await? - before) / WATCHED.as_secs_f64();
            for (load, done) in loads.into_iter().zip(&mut self.done) {
                *done += usize::try_from(load.stop().await?)?;
            }
        }
        Ok(Cost { resident, busy })
    }
}

/// Processor time so far, of all of them.
async fn cpu(processes: &[Served]) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for served in processes {
        sum += served.cpu().await?;
    }
    Ok(sum)
}
