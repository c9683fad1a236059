//! What open event streams cost: the process with 200 of them on the overview, and beside it without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::load::Load;
use crate::served::Served;
use crate::{connect, server};

const STREAMS: usize = 200;
const RATE: u32 = 500;
const TIME: Duration = Duration::from_secs(20);

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("streams: {STREAMS} event streams on the overview");
    for jobs in sizes {
        let server = server(*jobs).await?;
        let client = connect(&server).await?;
        crate::fill::fill(&client, *jobs).await?;
        let served = Served::start(&server.connect_string(), &[]).await?;
        measure(&served, &format!("{jobs:>7} jobs at rest")).await?;
        let load = Load::start(client, *jobs, 0, RATE);
        measure(&served, &format!("{jobs:>7} jobs at {RATE} transitions/s")).await?;
        load.stop().await?;
    }
    Ok(())
}

async fn measure(served: &Served, when: &str) -> anyhow::Result<()> {
    let without = busy(served).await?;
    let bytes = Arc::new(AtomicU64::new(0));
    let (reader, mut readers) = (served.reader(), JoinSet::new());
    let from = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|address| reader.from(address.into()));
    let [first, second] = from;
    let from = [first?, second?];
    for reader in from.iter().cycle().take(STREAMS) {
        let (mut response, bytes) = (reader.open("/events?page=").await?, Arc::clone(&bytes));
        readers.spawn(async move {
            while let Ok(Some(chunk)) = response.chunk().await {
                bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }
        });
    }
    // What each gets at first is not what it costs to stay.
    tokio::time::sleep(Duration::from_secs(2)).await;
    bytes.store(0, Ordering::Relaxed);
    let with = busy(served).await?;
    let each = bytes.load(Ordering::Relaxed) as f64 / STREAMS as f64 / TIME.as_secs_f64();
    println!(
        "  {when}: {:.1} % of a core for the streams ({:.1} % with, {:.1} % without), {each:.0} bytes/s each",
        (with - without) * 100.0,
        with * 100.0,
        without * 100.0
    );
    readers.shutdown().await;
    Ok(())
}

/// The part of a core that the process takes.
async fn busy(served: &Served) -> anyhow::Result<f64> {
    let (cpu, started) = (served.cpu().await?, Instant::now());
    tokio::time::sleep(TIME).await;
    Ok((served.cpu().await? - cpu) / started.elapsed().as_secs_f64())
}
