//! What `queuekeeper dump` and `queuekeeper load` take, over bare loops that read and write the same znodes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::stream::{self, StreamExt, TryStreamExt};
use queuekeeper_queue::dump::line::{self, DumpLine};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::cold_start::read_all;
use crate::{ROUNDS, connect, median, server};

/// How large the bare loop's transactions are, and how many are in flight: as those of a load.
const CHUNK_BYTES: usize = 256 << 10;
const IN_FLIGHT: usize = 4;

/// How often a load is measured, each time into a new server.
const LOADS: usize = 2;

/// The limits, as ratios.
const DUMP_LIMIT: f64 = 2.0;
const LOAD_LIMIT: f64 = 3.0;

pub(crate) async fn run(sizes: &[usize], is_dump: bool, is_load: bool) -> anyhow::Result<()> {
    for jobs in sizes {
        let server = server(*jobs).await?;
        let client = connect(&server).await?;
        let paths = crate::fill::fill(&client, *jobs).await?;
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("queue.jsonl");
        let (mut bare, mut dumps, mut peak) = (Vec::new(), Vec::new(), 0);
        // Where only the load is measured, one dump is enough for it.
        for round in 0..=if is_dump { ROUNDS } else { 0 } {
            let started = Instant::now();
            read_all(&client, &paths).await?;
            let bare_time = started.elapsed();
            let (time, most) = program("dump", &server.connect_string(), &["--output", text(&file)?])?;
            // The first round warms the server's virtual machine up.
            if round > 0 {
                bare.push(bare_time);
                dumps.push(time);
                peak = peak.max(most);
            }
        }
        if is_dump {
            say("dump", *jobs, paths.len(), median(&mut dumps), median(&mut bare), DUMP_LIMIT, peak);
        }
        drop(client);
        drop(server);
        if is_load {
            load(*jobs, &file).await?;
        }
    }
    Ok(())
}

async fn load(jobs: usize, file: &Path) -> anyhow::Result<()> {
    let nodes = nodes(file)?;
    let (mut bare, mut loads, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..LOADS {
        let writing = server(jobs).await?;
        let client = connect(&writing).await?;
        let started = Instant::now();
        write_all(&client, &nodes).await?;
        bare.push(started.elapsed());
        drop((client, writing));
        let loading = server(jobs).await?;
        let (time, most) = program("load", &loading.connect_string(), &[text(file)?])?;
        loads.push(time);
        peak = peak.max(most);
    }
    // A new server is cold each time, so the shorter of both is the one that nothing else disturbed.
    let least = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    say("load", jobs, nodes.len(), least(&loads), least(&bare), LOAD_LIMIT, peak);
    Ok(())
}

fn say(what: &str, jobs: usize, znodes: usize, time: Duration, bare: Duration, limit: f64, peak: u64) {
    let ratio = time.as_secs_f64() / bare.as_secs_f64();
    let over = if ratio > limit { "  OVER" } else { "" };
    println!(
        "{what}: {jobs:>7} jobs, {znodes:>9} znodes: {time:>8.1?} / bare loop {bare:>8.1?} = {ratio:.2} of {limit}{over}; \
         peak {} MiB",
        peak >> 20
    );
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a temporary path is text")
}

/// Runs the program, and gives how long it took and the most memory that it had.
fn program(command: &str, zookeeper: &str, arguments: &[&str]) -> anyhow::Result<(Duration, u64)> {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
        .args([command, "--zookeeper", zookeeper])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            anyhow::ensure!(status.success(), "{command}: {status}");
            return Ok((started.elapsed(), peak));
        }
        // It may have ended since, and then has no figures any more.
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
            peak = peak.max(kib.unwrap_or(0) * 1024);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The znodes of a dump but for its root, ready to be written.
fn nodes(file: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let dump = std::fs::read(file)?;
    let lines = dump.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty());
    let mut nodes = Vec::new();
    for line in lines {
        if let DumpLine::Node(node) = line::read_line(line)?
            && node.path != "/"
        {
            nodes.push((node.path.into_owned(), node.data));
        }
    }
    Ok(nodes)
}

async fn write_all(client: &Client, nodes: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    let mut chunks = vec![Vec::new()];
    let mut bytes = 0;
    for node in nodes {
        // About what the protocol and the open ACL add.
        bytes += node.0.len() + node.1.len() + 60;
        if bytes > CHUNK_BYTES {
            chunks.push(Vec::new());
            bytes = 0;
        }
        chunks.last_mut().context("there is one")?.push(node);
    }
    let persistent = &CreateMode::Persistent.with_acls(Acls::anyone_all());
    let requests = chunks.into_iter().map(|chunk| async move {
        let mut writer = client.new_multi_writer();
        for (path, data) in chunk {
            writer.add_create(path, data, persistent)?;
        }
        anyhow::Ok(writer.commit().await?.len())
    });
    let written: Vec<usize> = stream::iter(requests).buffered(IN_FLIGHT).try_collect().await?;
    anyhow::ensure!(written.iter().sum::<usize>() == nodes.len(), "every znode was written");
    Ok(())
}
