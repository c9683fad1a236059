//! Jobs that wait for working storage: how soon the next one passes when one has freed its room.

use std::time::Duration;

use anyhow::Context as _;
use queuekeeper_ingest::manifest::{ManifestProfile, ManifestRow, Writer};
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::OriginFault;

use crate::quantile;
use crate::world::{World, base};

/// How many jobs wait behind the first.
const JOBS: usize = 100;

/// Which part of the room a job of unknown size takes: two do not fit.
const PART: f64 = 0.6;

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("space: {JOBS} jobs wait for working storage that has room for one at a time");
    let unknown = unknown_gib()?.to_string();
    let world = World::start_with("all", &["--space.unknown", &unknown]).await?;
    let mut writer = Writer::new(Vec::new(), ManifestProfile::SingleFileBatch)?;
    for number in 0..=JOBS {
        let path = format!("/files/{number}.txt");
        world.origin.serve(&path, format!("content of {number}"));
        // Who is asked for the size fails, so that it is unknown.
        world.origin.fail(&path, [OriginFault::Status(500, None)]);
        let url = Some(world.origin.url(&path).parse::<ContentUrl>()?);
        writer.write(&ManifestRow { url, name: format!("{number}.txt"), ..ManifestRow::default() })?;
    }
    let batch = world.deposit(writer.finish()?).await?;
    world.wait_for(batch, BatchState::Completed).await?;
    let mut gaps = gaps(&world).await?;
    println!(
        "  from the end of one job until the next one has passed and is downloaded and described: p50 {:.0?}, longest \
         {:.0?}; goal 1 s to pass",
        quantile(&mut gaps, 0.5),
        quantile(&mut gaps, 1.0)
    );
    Ok(())
}

/// What a job of unknown size is to count with, in GiB.
fn unknown_gib() -> anyhow::Result<u64> {
    let volume = rustix::fs::statvfs(base())?;
    let (total, free) = (volume.f_blocks * volume.f_frsize, volume.f_bfree * volume.f_frsize);
    // As the rule has it, with the threshold that is the default.
    let room = (total as f64 * 0.8 - (total - free) as f64) * PART;
    anyhow::ensure!(room > 1e10, "{} has too little room: set BENCH_DIR", base().display());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of GiB")]
    Ok((room / f64::from(1 << 30)) as u64)
}

/// By the server's clock, from each job's end until the next one left Processing.
async fn gaps(world: &World) -> anyhow::Result<Vec<Duration>> {
    let mut jobs = Vec::new();
    for entry in world.client.list_children("/jobs/states/completed").await? {
        let job = entry.split_once('-').context("an entry without its priority")?.1;
        let made = async |path: String| world.client.check_stat(&path).await;
        let described = made(format!("/jobs/{job}/identifiers")).await?.context("a job without identifiers")?.ctime;
        let ended = made(format!("/jobs/states/completed/{entry}")).await?.context("a job without its entry")?.ctime;
        jobs.push((ended, described));
    }
    jobs.sort_unstable();
    anyhow::ensure!(jobs.len() == JOBS + 1, "{} jobs have ended", jobs.len());
    let gaps = jobs.windows(2).map(|pair| {
        // One after the other, or there was room for two.
        let gap = u64::try_from(pair[1].1 - pair[0].0).context("a job passed before there was room for it")?;
        Ok(Duration::from_millis(gap))
    });
    gaps.collect()
}
