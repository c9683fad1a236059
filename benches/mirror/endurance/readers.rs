//! People with pages open, and programs that read the API.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::served::{Reader, Served};

/// The pages that are open.
pub(super) const PAGES: [&str; 10] = [
    "",
    "jobs",
    "jobs?state=failed",
    "jobs?text=rbn&sort=space_needed",
    "jobs/jid0000000042",
    "failures",
    "batches",
    "locks",
    "faults",
    "audit",
];

/// How many programs read the API.
pub(super) const CLIENTS: usize = 10;

/// What they ask for.
const LISTS: [&str; 9] = [
    "/api/v1/overview",
    "/api/v1/jobs?limit=500",
    "/api/v1/jobs?state=pending&sort=priority",
    "/api/v1/jobs?text=rbn&state=held&sort=space_needed",
    "/api/v1/failures",
    "/api/v1/batches",
    "/api/v1/locks",
    "/api/v1/faults",
    "/api/v1/jobs/jid0000000043",
];

/// How long a user views a page before loading it again, in seconds.
const STAYS: std::ops::Range<u64> = 20..60;

/// How long a program waits between two requests, in milliseconds.
const PAUSES: std::ops::Range<u64> = 100..300;

pub(super) struct Readers {
    tasks: JoinSet<anyhow::Result<u64>>,
    times: Arc<Mutex<Vec<Duration>>>,
    over: CancellationToken,
}

impl Readers {
    pub(super) fn start(served: &Served) -> Self {
        let (mut tasks, times, over) = (JoinSet::new(), Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
        for page in PAGES {
            tasks.spawn(look_at(served.reader(), page, over.clone()));
        }
        for _ in 0..CLIENTS {
            tasks.spawn(ask(served.reader(), Arc::clone(&times), over.clone()));
        }
        Self { tasks, times, over }
    }

    /// How long answers of the API took since the last call.
    pub(super) fn taken(&self) -> Vec<Duration> {
        std::mem::take(&mut self.times.lock())
    }

    /// All of them leave; gives how many requests they made.
    pub(super) async fn stop(mut self) -> anyhow::Result<u64> {
        self.over.cancel();
        let mut requests = 0;
        while let Some(reader) = self.tasks.join_next().await {
            requests += reader??;
        }
        Ok(requests)
    }
}

/// Opens a page, stays with its events for a while, and loads it again.
async fn look_at(reader: Reader, page: &str, over: CancellationToken) -> anyhow::Result<u64> {
    let stream = format!("/events?page={}", page.replace('?', "%3F").replace('&', "%26").replace('=', "%3D"));
    for loads in 1.. {
        let (code, _) = reader.get(&format!("/{page}")).await?;
        anyhow::ensure!(code == 200, "/{page} answers {code}");
        let mut events = reader.open(&stream).await?;
        let stays = Duration::from_secs(rand::random_range(STAYS));
        let read = async {
            while events.chunk().await?.is_some() {}
            anyhow::bail!("the events of /{page} end by themselves")
        };
        tokio::select! {
            ended = read => return ended,
            () = tokio::time::sleep(stays) => {}
            () = over.cancelled() => return Ok(loads),
        }
    }
    unreachable!("people come back for ever")
}

async fn ask(reader: Reader, times: Arc<Mutex<Vec<Duration>>>, over: CancellationToken) -> anyhow::Result<u64> {
    let mut requests = 0;
    while !over.is_cancelled() {
        let path: &str = LISTS[rand::random_range(0..LISTS.len())];
        let asked = Instant::now();
        let (code, _) = reader.get(path).await?;
        anyhow::ensure!(code == 200, "{path} answers {code}");
        times.lock().push(asked.elapsed());
        requests += 1;
        let pause = Duration::from_millis(rand::random_range(PAUSES));
        tokio::time::sleep(pause).await;
    }
    Ok(requests)
}
