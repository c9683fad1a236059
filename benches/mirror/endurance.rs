//! A long day in short: one server under a steady load with everybody at it, watched for what grows.

mod operator;
mod readers;
mod record;

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::Client;

use self::operator::Operator;
use self::readers::Readers;
use self::record::{Record, Sample};
use crate::desk::Desk;
use crate::fill::state_of;
use crate::load::Load;
use crate::served::sum;
use crate::{connect, server};

/// The argument that says how many minutes it lasts.
pub(crate) const ARGUMENT: &str = "--minutes";

/// How long, unless it is said.
pub(crate) const MINUTES: u64 = 60;

/// Transitions a second.
const RATE: u32 = 200;

/// How far apart samples are; each stands for all scrapes and probes since the last.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a change may take to be seen before the probe gives up.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) async fn run(jobs: usize, minutes: u64) -> anyhow::Result<()> {
    println!(
        "endurance: {minutes} minutes, {jobs} jobs, {RATE} transitions/s, a scrape a second, {} open pages, {} clients of the API, an operator",
        readers::PAGES.len(),
        readers::CLIENTS
    );
    let server = server().await?;
    let client = connect(&server).await?;
    crate::fill::fill(&client, jobs).await?;
    let desk = Desk::start(&server.connect_string()).await?;
    let before = look(&desk).await?;
    let load = Load::start(connect(&server).await?, jobs, 0, RATE);
    let readers = Readers::start(&desk.served);
    let operator = Operator::start(desk.orderer(), jobs);
    let mut probe = Probe::start(client, desk.served.reader(), jobs);

    let mut record = Record::create()?;
    let started = Instant::now();
    let (mut next, mut last) = (started, before.clone());
    while started.elapsed() < Duration::from_secs(minutes * 60) {
        next += SAMPLE_INTERVAL;
        let mut scrapes = Vec::new();
        while Instant::now() < next {
            let scraped = Instant::now();
            last = look(&desk).await?;
            scrapes.push(scraped.elapsed());
            tokio::time::sleep_until((scraped + SCRAPE_INTERVAL).into()).await;
        }
        let sample = Sample::new(started.elapsed(), &last, &mut probe.taken()?, &mut readers.taken(), &mut scrapes);
        record.add(sample)?;
    }
    drop(probe);
    let orders = operator.stop().await?;
    let requests = readers.stop().await?;
    let committed = load.stop().await?;
    let after = at_rest(&desk, committed).await?;
    record.finish(&before, &after)?;
    println!(
        "  {committed} transitions committed and as many counted; {orders} orders; {requests} requests for pages and lists"
    );
    println!("  what events should have brought and did not: {}", after.drift);
    anyhow::ensure!(after.drift < 1.0, "the image drifted");
    Ok(())
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

async fn look(desk: &Desk) -> anyhow::Result<Look> {
    let (code, body) = desk.served.get("/metrics").await?;
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
async fn at_rest(desk: &Desk, committed: u64) -> anyhow::Result<Look> {
    let deadline = Instant::now() + Duration::from_mins(2);
    // An allocator gives memory back, and idle connections are closed, a while after.
    tokio::time::sleep(Duration::from_secs(30)).await;
    loop {
        let now = look(desk).await?;
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

/// Changes a job that nobody else does once a second, and sees how long it takes until the API says so.
struct Probe {
    task: AbortOnDropHandle<anyhow::Result<()>>,
    taken: tokio::sync::mpsc::UnboundedReceiver<Duration>,
}

impl Probe {
    fn start(client: Client, reader: crate::served::Reader, jobs: usize) -> Self {
        let (say, taken) = tokio::sync::mpsc::unbounded_channel();
        let job = (0..jobs).find(|job| state_of(*job).0 == "Completed").unwrap_or(0);
        let task = tokio::spawn(async move {
            let jid = format!("jid{job:010}");
            for space in 1_u64.. {
                let next = Instant::now() + SCRAPE_INTERVAL;
                client.set_data(&format!("/jobs/{jid}/space_needed"), space.to_string().as_bytes(), None).await?;
                let committed = Instant::now();
                loop {
                    let answer: Value = serde_json::from_str(&reader.get(&format!("/api/v1/jobs/{jid}")).await?.1)?;
                    if answer["space_needed_bytes"] == space {
                        break;
                    }
                    anyhow::ensure!(committed.elapsed() < PROBE_LIMIT, "a change is not seen after {PROBE_LIMIT:?}");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let _ = say.send(committed.elapsed());
                tokio::time::sleep_until(next.into()).await;
            }
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
