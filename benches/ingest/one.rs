//! From a deposit to Completed, one small file after the other in an idle system.

use std::time::Instant;

use anyhow::Context as _;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_queue::state::BatchState;
use uuid::Uuid;

use crate::quantile;
use crate::world::{PROFILE, World};

/// How many deposits are timed.
const DEPOSITS: u32 = 200;

/// How many come before them, while the server's virtual machine is still getting to know its work.
const WARMING: u32 = 50;

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("one: from a deposit of one small file to its batch being Completed, in an idle system");
    let world = World::start_counted("all").await?;
    let wire = world.wire.as_ref().context("nothing counts")?;
    for number in 0..WARMING {
        deposit(&world, number).await?;
    }
    // Most cost the same; with some of them fall the reads of all batches that batch and report daemons repeat.
    let (mut times, mut requests, mut round_trips) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..DEPOSITS {
        wire.arm(None);
        let began = Instant::now();
        deposit(&world, WARMING + number).await?;
        times.push(began.elapsed());
        requests.push(wire.requests());
        round_trips.push(wire.round_trips());
    }
    let average = requests.iter().sum::<usize>() as f64 / f64::from(DEPOSITS);
    println!(
        "  p50 {:.0?}, p99 {:.0?} of 300 ms at p50; {} requests of the daemons to ZooKeeper, in {} round trips, of 25, at \
         p50; {average:.1} requests on average",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        quantile(&mut requests, 0.5),
        quantile(&mut round_trips, 0.5)
    );
    println!("  memory of the daemons: at most {} MB", world.daemons.peak_mb()?);
    Ok(())
}

/// Deposits one file and waits for its end.
pub(crate) async fn deposit(world: &World, number: u32) -> anyhow::Result<()> {
    let new = NewDeposit {
        profile: PROFILE.to_owned(),
        file_name: format!("{number}.txt"),
        local_ids: vec![format!("one-{number}")],
        ..NewDeposit::default()
    };
    let payload = std::io::Cursor::new(format!("the content of {number}\n").into_bytes());
    let made = Box::pin(new.upload(&world.queue, &world.storage, Uuid::new_v4(), payload)).await?;
    world.wait_for(made.batch, BatchState::Completed).await
}
