//! One large file over HTTP, against `curl` piped through the same two digests.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_queue::state::BatchState;
use uuid::Uuid;

use crate::world::{PROFILE, World};

pub(crate) async fn run(size: usize) -> anyhow::Result<()> {
    println!("large: Downloading one file of {} MB over loopback HTTP", size / 1_000_000);
    let world = World::start("all").await?;
    world.origin.serve("/large.bin", vec![b'x'; size]);
    let url = world.origin.url("/large.bin");
    let pipe = format!("set -o pipefail; curl -sSf {url} | tee >(sha256sum >/dev/null) | sha512sum >/dev/null");
    let began = Instant::now();
    let piped = tokio::task::spawn_blocking(move || Command::new("bash").args(["-c", &pipe]).status()).await??;
    anyhow::ensure!(piped.success(), "curl and its digests: {piped}");
    let rival = began.elapsed();

    let before = world.daemons.peak_mb()?;
    let new = NewDeposit {
        profile: PROFILE.to_owned(),
        file_name: "large.bin".to_owned(),
        local_ids: vec!["large".to_owned()],
        ..NewDeposit::default()
    };
    let made = new.refer(&world.queue, None, Uuid::new_v4(), &url.parse::<ContentUrl>()?).await?;
    world.wait_for(made.batch, BatchState::Completed).await?;
    let seconds = world.daemons.metric("merritt_daemon_work_seconds_sum{daemon=\"downloading\"}").await?;
    let took = Duration::try_from_secs_f64(seconds).context("the time of its work")?;
    let rate = |took: Duration| size as f64 / took.as_secs_f64() / 1e6;
    println!(
        "  {took:.1?}, {:.0} MB a second with both digests, written and synced; {:.2} of curl piped through two digests \
         ({:.0} MB a second); goal 0.8",
        rate(took),
        rival.as_secs_f64() / took.as_secs_f64(),
        rate(rival)
    );
    println!("  memory of the daemons: at most {} MB, {before} MB before, of 100", world.daemons.peak_mb()?);
    Ok(())
}
