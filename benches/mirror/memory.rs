//! Memory a job, and the peak while two images are there.

use std::time::Duration;

use queuekeeper::zookeeper::PrivateServer;

use crate::served::Served;
use crate::{connect, server};

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("memory: resident bytes a job beyond a process without jobs, after one re-walk; peak during the re-walk");
    let empty = settled(&server().await?).await?.0;
    for jobs in sizes {
        let server = server().await?;
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

/// Resident bytes after a re-walk, and the most during it.
async fn settled(server: &PrivateServer) -> anyhow::Result<(u64, u64)> {
    let served = Served::start(&server.connect_string(), &["--mirror.drift-interval", "10s"]).await?;
    served.forget_peak()?;
    while served.metric("queuekeeper_mirror_walks_total", "drift_check").await? < 1.0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut calm = 0;
    let mut cpu = served.cpu().await?;
    while calm < 5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = served.cpu().await?;
        calm = if now - cpu < 0.02 { calm + 1 } else { 0 };
        cpu = now;
    }
    Ok((served.memory("VmRSS")?, served.memory("VmHWM")?))
}
