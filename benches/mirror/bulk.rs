//! What an action over many takes, against a bare loop of the same transactions, and what pages cost meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::served::Served;
use crate::served_actions::ActionServer;
use crate::steps::{FAIL, Moving, RESUME};
use crate::{ROUNDS, connect, median, quantile, server_that_syncs, with_disk};

/// The limit, as a ratio.
const LIMIT: f64 = 2.0;

/// How often pages are requested while nothing else happens, and beside how many actions.
const REQUESTS: usize = 200;
const BESIDE: usize = 3;

const PATHS: [&str; 8] = [
    "/",
    "/jobs",
    "/jobs?state=failed",
    "/failures",
    "/batches",
    "/api/v1/jobs?limit=100",
    "/api/v1/jobs?state=pending&sort=space_needed",
    "/api/v1/overview",
];

/// The times of each path.
type Times = [Vec<Duration>; PATHS.len()];

pub(crate) async fn run(sizes: &[usize], durable: bool) -> anyhow::Result<()> {
    for jobs in sizes {
        measure(*jobs, durable).await?;
    }
    Ok(())
}

async fn measure(jobs: usize, durable: bool) -> anyhow::Result<()> {
    let server = server_that_syncs(jobs, durable).await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let mut moving = Moving::fail(&client, jobs).await?;
    let count = moving.0.len();
    let acting = ActionServer::start(&server.connect_string()).await?;
    let (requester, list) = (acting.client(), json!({"action": "resume", "jobs": "state=failed"}));
    println!(
        "bulk: the {count} failed jobs of {jobs} resumed, 32 in flight, with the mirror beside; {}",
        with_disk(durable)
    );

    let (mut bare, mut ours, mut freezing) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        // By turns who is first, so that whatever else the machine does slows both down.
        for is_ours in [round % 2 == 0, round % 2 == 1] {
            acting.sees_failed(count).await?;
            let mut frozen = Duration::ZERO;
            let took = if is_ours {
                let id;
                (id, frozen) = requester.freeze(&list, count).await?;
                let took = requester.execute(&id).await?;
                moving.were_taken();
                took
            } else {
                moving.take(&client, &RESUME).await?
            };
            acting.sees_failed(0).await?;
            moving.take(&client, &FAIL).await?;
            // The first round warms both up.
            match (round, is_ours) {
                (0, _) => {}
                (_, true) => {
                    ours.push(took);
                    freezing.push(frozen);
                }
                (_, false) => bare.push(took),
            }
        }
    }
    let range = |times: &mut [Duration]| (median(times), times[0], times[times.len() - 1]);
    let ((ours, least, most), (bare, bare_least, bare_most)) = (range(&mut ours), range(&mut bare));
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "  action {ours:.2?} ({least:.2?} to {most:.2?}) / bare loop {bare:.2?} ({bare_least:.2?} to {bare_most:.2?}) \
         = {ratio:.2} of {LIMIT}{}; freezing the list before {:.1?}",
        if ratio > LIMIT { "  OVER" } else { "" },
        median(&mut freezing)
    );

    acting.sees_failed(count).await?;
    let mut before = Times::default();
    for _ in 0..REQUESTS {
        ask(&acting.served, &mut before).await?;
    }
    let (mut beside_bare, mut beside_ours) = (Times::default(), Times::default());
    let mut took = Vec::new();
    for _ in 0..BESIDE {
        acting.sees_failed(count).await?;
        asking_beside(&acting.served, &mut beside_bare, moving.take(&client, &RESUME)).await?;
        acting.sees_failed(0).await?;
        moving.take(&client, &FAIL).await?;
        acting.sees_failed(count).await?;
        let (id, _) = requester.freeze(&list, count).await?;
        took.push(asking_beside(&acting.served, &mut beside_ours, requester.execute(&id)).await?);
        moving.were_taken();
        acting.sees_failed(0).await?;
        moving.take(&client, &FAIL).await?;
    }
    println!(
        "  pages one after another, p50/p99 in ms: before, beside the bare loop, and beside the action, which takes \
         {:.2?} then",
        median(&mut took)
    );
    for (at, path) in PATHS.iter().enumerate() {
        let [before, bare, ours] = [&mut before[at], &mut beside_bare[at], &mut beside_ours[at]].map(|times| {
            let ms = |share, times: &mut Vec<Duration>| quantile(times, share).as_secs_f64() * 1e3;
            (ms(0.5, times), ms(0.99, times))
        });
        println!(
            "    {:6.2}/{:6.2}  {:6.2}/{:6.2}  {:6.2}/{:6.2}  ratio of p50 {:.2}  {path}",
            before.0,
            before.1,
            bare.0,
            bare.1,
            ours.0,
            ours.1,
            ours.0 / before.0
        );
    }
    Ok(())
}

/// Asks for pages while something is done.
async fn asking_beside<T>(
    served: &Served,
    times: &mut Times,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let is_over = AtomicBool::new(false);
    let asking = async {
        while !is_over.load(Ordering::Relaxed) {
            ask(served, times).await?;
        }
        anyhow::Ok(())
    };
    let working = async {
        let done = work.await;
        is_over.store(true, Ordering::Relaxed);
        done
    };
    let (asked, done) = tokio::join!(asking, working);
    asked?;
    done
}

/// Asks for each path once.
async fn ask(served: &Served, times: &mut Times) -> anyhow::Result<()> {
    for (path, times) in PATHS.iter().zip(times) {
        let started = Instant::now();
        let (code, _) = served.get(path).await?;
        times.push(started.elapsed());
        anyhow::ensure!(code == 200, "{path}: {code}");
    }
    Ok(())
}
