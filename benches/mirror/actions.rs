//! What one action takes over HTTP, against a bare read and a bare transaction of the same operations.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fill::state_of;
use crate::served_actions::ActionServer;
use crate::steps::{FAIL, Moving, RESUME, Target};
use crate::{connect, quantile, server_that_syncs, with_disk};

/// How many actions are given of each kind, and how many go before them to warm everything up.
const ACTIONS: usize = 1_000;
const WARMING: usize = 200;

const PRIORITY: u8 = 7;

pub(crate) async fn run(sizes: &[usize], durable: bool) -> anyhow::Result<()> {
    println!("actions: one action after another by POST /api/v1/actions, in turn with a bare read and transaction");
    for jobs in sizes {
        measure(*jobs, durable).await?;
    }
    Ok(())
}

async fn measure(jobs: usize, durable: bool) -> anyhow::Result<()> {
    let server = server_that_syncs(jobs, durable).await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let mut failed = Moving::fail(&client, jobs).await?;
    let count = failed.0.len();
    failed.0.truncate(count / 2 * 2);
    let acting = ActionServer::start(&server.connect_string()).await?;
    let requester = acting.client();
    println!("  {jobs} jobs, {}", with_disk(durable));

    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    loop {
        acting.sees_failed(count).await?;
        for pair in failed.0.as_chunks::<2>().0.iter().take(WARMING + ACTIONS - ours.len()) {
            ours.push(requester.action(json!({"action": "resume", "on": pair[0].jid()})).await?);
            let started = Instant::now();
            pair[1].read(&client, "batch-failed", "failed").await?;
            pair[1].take(&client, &RESUME).await?;
            bare.push(started.elapsed());
        }
        if ours.len() == WARMING + ACTIONS {
            break;
        }
        // A small queue has too few of them for one round.
        failed.were_taken();
        failed.take(&client, &FAIL).await?;
    }
    say("resume", &ours, &bare);

    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    // From the last on: those at the beginning have failed, and are where they have been resumed to.
    let have_failed: HashSet<usize> = failed.0.iter().map(|target| target.job).collect();
    let is_pending = |job: &usize| state_of(*job).0 == "Pending" && !have_failed.contains(job);
    let pending: Vec<Target> = (0..jobs).rev().filter(is_pending).map(Target::new).collect();
    for pair in pending.as_chunks::<2>().0.iter().take(WARMING + ACTIONS) {
        let action = json!({"action": "set_priority", "on": pair[0].jid(), "priority": PRIORITY});
        ours.push(requester.action(action).await?);
        let started = Instant::now();
        pair[1].read(&client, "batch-processing", "pending").await?;
        pair[1].set_priority(&client, PRIORITY).await?;
        bare.push(started.elapsed());
    }
    say("set priority", &ours, &bare);

    let mut healthy = Vec::new();
    for _ in 0..ACTIONS {
        let started = Instant::now();
        acting.served.get("/-/healthy").await?;
        healthy.push(started.elapsed());
    }
    let mut syncs = syncs(&acting.directory.path().join("sync"))?;
    let of = |times: &mut [Duration]| (quantile(times, 0.5), quantile(times, 0.99));
    println!(
        "  of which, p50 and p99: GET /-/healthy {:.2?}, two syncs of a file beside the audit trail {:.2?}",
        of(&mut healthy),
        of(&mut syncs)
    );
    Ok(())
}

/// Says what those took that came after the warming.
fn say(what: &str, ours: &[Duration], bare: &[Duration]) {
    let (ours, bare) = (ours.get(WARMING..).unwrap_or_default(), bare.get(WARMING..).unwrap_or_default());
    let actions = ours.len();
    if actions == 0 {
        println!("  {what:>12}: left out, as the queue has no jobs for more than the {WARMING} that come first");
        return;
    }
    let both = |times: &[Duration]| {
        let mut times = times.to_vec();
        [0.5, 0.99].map(|share| quantile(&mut times, share))
    };
    let (ours, bare) = (both(ours), both(bare));
    let ratio = |at: usize| ours[at].as_secs_f64() / bare[at].as_secs_f64();
    println!(
        "  {what:>12}: p50 {:.2?} / {:.2?} = {:.2}, p99 {:.2?} / {:.2?} = {:.2} (of {actions} actions)",
        ours[0],
        bare[0],
        ratio(0),
        ours[1],
        bare[1],
        ratio(1)
    );
}

/// How long it takes to write two lines one after the other, each of them synced.
fn syncs(path: &Path) -> anyhow::Result<Vec<Duration>> {
    let mut file = File::create(path)?;
    let line = [b'x'; 500];
    let times = (0..ACTIONS).map(|_| {
        let started = Instant::now();
        for _ in 0..2 {
            file.write_all(&line)?;
            file.sync_data()?;
        }
        anyhow::Ok(started.elapsed())
    });
    times.collect()
}
