//! From a deposit to Completed, one small file after the other in an idle system.

use std::time::{Duration, Instant};

use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_queue::state::BatchState;
use uuid::Uuid;

use crate::quantile;
use crate::world::{PROFILE, World};

/// How many deposits are timed.
const DEPOSITS: u32 = 200;

/// How many come before them, while the server's virtual machine is still getting to know its work.
const WARMING: u32 = 50;

/// How long the requests of a system at rest are counted.
const REST: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("one: from a deposit of one small file to its batch being Completed, in an idle system");
    let world = World::start("all").await?;
    for number in 0..WARMING {
        deposit(&world, number).await?;
    }
    let before = world.received()?;
    tokio::time::sleep(REST).await;
    let at_rest = (world.received()? - before) as f64 / REST.as_secs_f64();
    let (mut times, mut own, before, began) = (Vec::new(), 0, world.received()?, Instant::now());
    for number in 0..DEPOSITS {
        let began = Instant::now();
        own += deposit(&world, WARMING + number).await?;
        times.push(began.elapsed());
    }
    let all = (world.received()? - before - own) as f64 - at_rest * began.elapsed().as_secs_f64();
    println!(
        "  p50 {:.0?}, p99 {:.0?} of 300 ms at p50; {:.0} requests to ZooKeeper each, of 25, without those at rest \
         ({at_rest:.1} a second)",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        all / f64::from(DEPOSITS)
    );
    println!("  memory of the daemons: at most {} MB", world.daemons.peak_mb()?);
    Ok(())
}

/// Deposits one file and waits for its end; the answer is how many requests the waiting took.
async fn deposit(world: &World, number: u32) -> anyhow::Result<u64> {
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
