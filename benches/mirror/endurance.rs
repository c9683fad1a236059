//! A long day in short: one server under a steady load with everybody at it, watched for what grows.

mod operator;
mod readers;
mod record;

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::Client;

use self::operator::Operator;
use self::readers::Readers;
use self::record::{Record, Sample};
use crate::fill::state_of;
use crate::load::Load;
use crate::served::{Reader, sum};
use crate::served_actions::ActionServer;
use crate::{connect, server};

/// The argument that says how many minutes it lasts.
pub(crate) const ARGUMENT: &str = "--minutes";

/// How long, unless it is said.
pub(crate) const MINUTES: u64 = 60;

/// Transitions a second.
const RATE: u32 = 200;

/// How many scrapes are between two samples; each stands for all scrapes and probes since the last.
const SCRAPES: u64 = 10;

const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);

/// The first space that the probe writes, from which on it counts: more than the job had before.
const FIRST_SPACE: u64 = 10_000_000;

/// How long a change may take to be seen before the probe gives up.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) async fn run(jobs: usize, minutes: u64) -> anyhow::Result<()> {
    println!(
        "endurance: {minutes} minutes, {jobs} jobs, {RATE} transitions/s, a scrape a second, {} open pages, {} clients of the API, an operator",
        readers::PAGES.len(),
        readers::CLIENTS
    );
    let server = server(jobs).await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let acting = ActionServer::start(&server.connect_string()).await?;
    let before = look(&acting).await?;
    let load = Load::start(connect(&server).await?, jobs, 0, RATE);
    let readers = Readers::start(&acting.served);
    let operator = Operator::start(acting.client(), jobs);
    let mut probe = Probe::start(client, acting.served.reader(), jobs);

    let mut record = Record::create()?;
    let (started, mut due) = (Instant::now(), every(SCRAPE_INTERVAL));
    let (mut ended, mut last) = (started, before.clone());
    for _ in 0..minutes * 60 / SCRAPES {
        let mut scrapes = Vec::new();
        for _ in 0..SCRAPES {
            let due = due.tick().await.into_std();
            // What the scrape before kept waiting has been waiting since it was due. That a timer wakes up to a
            // millisecond late is not the program's doing.
            let asked = if due < ended { due } else { Instant::now() };
            last = look(&acting).await?;
            ended = Instant::now();
            scrapes.push(ended - asked);
        }
        let sample = Sample::new(started.elapsed(), &last, &mut probe.taken()?, &mut readers.taken(), &mut scrapes);
        record.add(sample)?;
    }
    drop(probe);
    let actions = operator.stop().await?;
    let requests = readers.stop().await?;
    let committed = load.stop().await?;
    let after = at_rest(&acting, committed).await?;
    let grown = record.finish(&before, &after)?;
    println!(
        "  {committed} transitions committed and as many counted; {actions} actions; {requests} requests for pages and lists"
    );
    println!("  what events should have brought and did not: {}", after.drift);
    anyhow::ensure!(after.drift < 1.0, "the mirror drifted");
    anyhow::ensure!(grown.is_empty(), "from the second quarter to the last one this grew: {}", grown.join(", "));
    Ok(())
}

/// Fixed times from one such period after now on, which come one after the other where they could not be kept.
fn every(period: Duration) -> Interval {
    let mut due = interval_at(tokio::time::Instant::now() + period, period);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    due
}

/// What the process says of itself.
#[derive(Clone, Debug)]
struct Look {
    resident: f64,
    descriptors: f64,
    threads: f64,
    tasks: f64,
    cpu: f64,
    transitions: f64,
    drift: f64,
}

async fn look(server: &ActionServer) -> anyhow::Result<Look> {
    let (code, body) = server.served.get("/metrics").await?;
    anyhow::ensure!(code == 200, "/metrics answers {code}");
    let step = |labels| sum(&body, "merritt_job_transitions_total", labels);
    Ok(Look {
        resident: sum(&body, "process_resident_memory_bytes", ""),
        descriptors: sum(&body, "process_open_fds", ""),
        threads: sum(&body, "process_threads", ""),
        tasks: sum(&body, "queuekeeper_tasks", ""),
        cpu: sum(&body, "process_cpu_seconds_total", ""),
        transitions: step(r#"from="pending",to="held""#) + step(r#"from="held",to="pending""#),
        drift: sum(&body, "queuekeeper_mirror_drift_total", ""),
    })
}

/// Waits until every transition is counted and all who came have gone.
async fn at_rest(server: &ActionServer, committed: u64) -> anyhow::Result<Look> {
    let deadline = Instant::now() + Duration::from_mins(2);
    // An allocator gives memory back, and idle connections are closed, a while after.
    tokio::time::sleep(Duration::from_secs(30)).await;
    loop {
        let now = look(server).await?;
        if now.transitions >= committed as f64 {
            let more = now.transitions - committed as f64;
            anyhow::ensure!(more < 1.0, "{more} transitions more than the {committed} that were committed are counted");
            return Ok(now);
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "{committed} transitions were committed and {} counted",
            now.transitions
        );
        tokio::time::sleep(SCRAPE_INTERVAL).await;
    }
}

/// Changes a job that no other client changes once a second, and sees how long it takes until the API says so.
struct Probe {
    task: AbortOnDropHandle<anyhow::Result<()>>,
    taken: UnboundedReceiver<Duration>,
}

/// A change, and when it was committed.
type Change = (u64, Instant);

impl Probe {
    fn start(client: Client, reader: Reader, jobs: usize) -> Self {
        let (say, taken) = mpsc::unbounded_channel();
        let job = (0..jobs).find(|job| state_of(*job).0 == "Completed").unwrap_or(0);
        let task = tokio::spawn(async move {
            let jid = format!("jid{job:010}");
            let (changes, changed) = mpsc::unbounded_channel();
            tokio::try_join!(change(&client, &jid, changes), see(&reader, &jid, changed, say))?;
            Ok(())
        });
        Self { task: AbortOnDropHandle::new(task), taken }
    }

    /// What was measured since the last call.
    fn taken(&mut self) -> anyhow::Result<Vec<Duration>> {
        anyhow::ensure!(!self.task.is_finished(), "the probe ended: see whether the API shows the job's space");
        Ok(std::iter::from_fn(|| self.taken.try_recv().ok()).collect())
    }
}

/// Makes each change when it is due, whether the one before is seen or not: of a pause each has its part.
async fn change(client: &Client, jid: &str, changes: UnboundedSender<Change>) -> anyhow::Result<()> {
    let mut due = every(SCRAPE_INTERVAL);
    for space in FIRST_SPACE.. {
        due.tick().await;
        client.set_data(&format!("/jobs/{jid}/space_needed"), space.to_string().as_bytes(), None).await?;
        // Who sees them may have ended, and has said why.
        let _ = changes.send((space, Instant::now()));
    }
    Ok(())
}

async fn see(
    reader: &Reader,
    jid: &str,
    mut changed: UnboundedReceiver<Change>,
    say: UnboundedSender<Duration>,
) -> anyhow::Result<()> {
    while let Some((space, committed)) = changed.recv().await {
        loop {
            let answer: Value = serde_json::from_str(&reader.get(&format!("/api/v1/jobs/{jid}")).await?.1)?;
            if answer["space_needed_bytes"].as_u64().is_some_and(|seen| seen >= space) {
                break;
            }
            anyhow::ensure!(committed.elapsed() < PROBE_LIMIT, "a change is not seen after {PROBE_LIMIT:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let _ = say.send(committed.elapsed());
    }
    Ok(())
}
