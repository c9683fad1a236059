//! Memory a job, and the peak while two images are there. What full histories add is measured by [`crate::histories`].

use std::time::Duration;

use queuekeeper_zookeeper::PrivateServer;

use crate::served::Served;
use crate::{connect, server};

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("memory: resident bytes a job beyond a process without jobs, after one re-walk; peak during the re-walk");
    let empty = settled(&server(0).await?).await?.0;
    for jobs in sizes {
        let server = server(*jobs).await?;
        let client = connect(&server).await?;
        crate::fill::fill(&client, *jobs).await?;
        drop(client);
        let (resident, peak) = settled(&server).await?;
        let each = |bytes: u64| (bytes.saturating_sub(empty)) as f64 / *jobs as f64;
        println!(
            "  {jobs:>7} jobs: {:>4.0} bytes a job, peak {:>4.0} ({} MiB, peak {} MiB, empty {} MiB)",
            each(resident),
            each(peak),
            resident >> 20,
            peak >> 20,
            empty >> 20
        );
    }
    Ok(())
}

/// When the last walk ended.
const LAST_WALK: &str = "queuekeeper_mirror_last_walk_timestamp_seconds";

/// The flags with which a re-walk comes soon.
pub(crate) const REWALK: [&str; 2] = ["--mirror.drift-interval", "40s"];

/// How often the process is scraped while it settles.
const SCRAPE_INTERVAL: Duration = Duration::from_millis(500);

/// It has settled when so many scrapes saw it no smaller.
const CALM_SCRAPES: u32 = 20;

/// No longer than this, and before the next re-walk.
const MOST_SCRAPES: u32 = 70;

/// Resident bytes after a re-walk, and the most during it.
///
/// An allocator gives memory back when it comes by, not when it is freed: the process is scraped, as it would be, until
/// its size stays the same.
async fn settled(server: &PrivateServer) -> anyhow::Result<(u64, u64)> {
    let served = Served::start(&server.connect_string(), &REWALK).await?;
    served.forget_peak()?;
    rewalked(&served, "").await?;
    settle(&served).await?;
    Ok((served.memory("VmRSS")?, served.memory("VmHWM")?))
}

/// Waits until the queue whose series have these labels has been walked again.
pub(crate) async fn rewalked(served: &Served, labels: &str) -> anyhow::Result<()> {
    let first = served.metric(LAST_WALK, labels).await?;
    while served.metric(LAST_WALK, labels).await? <= first {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Scrapes it until its size stays the same.
pub(crate) async fn settle(served: &Served) -> anyhow::Result<()> {
    let (mut calm, mut smallest) = (0, u64::MAX);
    for _ in 0..MOST_SCRAPES {
        tokio::time::sleep(SCRAPE_INTERVAL).await;
        served.get("/metrics").await?;
        let resident = served.memory("VmRSS")?;
        calm = if resident < smallest { 0 } else { calm + 1 };
        smallest = smallest.min(resident);
        if calm == CALM_SCRAPES {
            break;
        }
    }
    Ok(())
}
