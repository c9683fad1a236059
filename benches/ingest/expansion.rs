//! The jobs of a large batch, against a bare loop of the same transactions.

use std::time::{Duration, Instant};

use queuekeeper_ingest::manifest::{ManifestProfile, ManifestRow, Writer};
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_queue::state::BatchState;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::world::{World, connect};

pub(crate) async fn run(rows: usize) -> anyhow::Result<()> {
    println!("expansion: {rows} rows of a batch manifest to as many Pending jobs");
    let world = World::start("batch").await?;
    let mut writer = Writer::new(Vec::new(), ManifestProfile::SingleFileBatch)?;
    for number in 0..rows {
        let name = format!("{number}.txt");
        writer.write(&ManifestRow {
            url: Some(world.origin.url(&format!("/files/{name}")).parse::<ContentUrl>()?),
            local_ids: vec![format!("row-{number}")],
            title: Some(format!("File {number}")),
            name,
            ..ManifestRow::default()
        })?;
    }
    let manifest = writer.finish()?;
    let began = Instant::now();
    let batch = world.deposit(manifest).await?;
    world.wait_for(batch, BatchState::Reporting).await?;
    let took = began.elapsed();
    let jobs = world.client.list_children("/jobs").await?;
    let jobs: Vec<_> = jobs.into_iter().filter(|name| name.starts_with("jid")).collect();
    anyhow::ensure!(jobs.len() == rows, "{} jobs of {rows} rows", jobs.len());

    let shape = Shape::of(&world.client, &jobs).await?;
    let bare = shape.repeat(rows).await?;
    println!(
        "  {took:.1?}, {:.0} jobs a second, by {} in a transaction; {:.2} times a bare loop of such transactions \
         ({bare:.1?}); goal 2",
        rows as f64 / took.as_secs_f64(),
        shape.jobs,
        took.as_secs_f64() / bare.as_secs_f64()
    );
    println!("  memory of the daemon: at most {} MB", world.daemons.peak_mb()?);
    Ok(())
}

/// One transaction of the expansion.
struct Shape {
    /// How many jobs it has.
    jobs: usize,
    /// The znodes of a job below its own, and their values.
    nodes: Vec<(String, Vec<u8>)>,
}

impl Shape {
    /// As most of the transactions were.
    async fn of(client: &Client, jobs: &[String]) -> anyhow::Result<Self> {
        let middle = &jobs[jobs.len() / 2];
        let path = format!("/jobs/{middle}");
        let (names, stat) = client.get_children(&path).await?;
        let mut nodes = Vec::new();
        for name in names {
            let value = client.get_data(&format!("{path}/{name}")).await?.0;
            nodes.push((name, value));
        }
        let mut same = 0;
        for job in jobs {
            let found = client.check_stat(&format!("/jobs/{job}")).await?;
            same += usize::from(found.is_some_and(|found| found.czxid == stat.czxid));
        }
        Ok(Self { jobs: same, nodes })
    }

    /// Makes as many jobs on a server of its own, and says how long that took.
    async fn repeat(&self, rows: usize) -> anyhow::Result<Duration> {
        let server = PrivateServer::start(Options { heap_mib: 4096, durable: true, ..Options::default() }).await?;
        let client = connect(&server).await?;
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let folders = ["/jobs", "/jobs/states", "/jobs/states/pending", "/batches", "/batches/bid0000000000"];
        let deeper = ["/batches/bid0000000000/states", "/batches/bid0000000000/states/batch-processing", "/expansion"];
        for folder in folders.iter().chain(&deeper) {
            client.create(folder, b"", &persistent).await?;
        }
        let began = Instant::now();
        let mut made = 0;
        while made < rows {
            let mut writer = client.new_multi_writer();
            for number in made..rows.min(made + self.jobs) {
                let id = format!("jid{number:010}");
                writer.add_create(&format!("/jobs/{id}"), b"", &persistent)?;
                for (name, value) in &self.nodes {
                    writer.add_create(&format!("/jobs/{id}/{name}"), value, &persistent)?;
                }
                writer.add_create(&format!("/{}/{id}", &deeper[1][1..]), b"", &persistent)?;
                writer.add_create(&format!("/jobs/states/pending/05-{id}"), b"", &persistent)?;
            }
            writer.add_set_data("/expansion", made.to_string().as_bytes(), None)?;
            writer.commit().await?;
            made += self.jobs;
        }
        Ok(began.elapsed())
    }
}
