//! A connection that is lost while a dump is taken.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use queuekeeper_queue::dump::{DumpError, DumpOptions};
use queuekeeper_queue::{Error, Queue};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wire::{Cut, Point, Wire};

use super::world::{World, now, odd};

/// Dumps a queue through a connection that is cut at its fifth request, with which znodes are read.
async fn dump(world: &World, cut: Cut) -> Result<Vec<u8>, DumpError> {
    let wire = Wire::start(shared().await.port()).await;
    let (_, chroot) = world.address.split_once('/').unwrap();
    let client = connect(&format!("{}/{chroot}", wire.connect_string())).await;
    let queue = Queue::new(client).with_time_limit(Duration::from_secs(2));
    wire.arm(Some((Point::Unanswered(5), cut)));
    let options = DumpOptions { id: "0123456789abcdef".into(), now: now(), redaction: None };
    let mut written = Vec::new();
    let dumped = queue.dump(&mut written, &options, |_| {}).await;
    assert!(wire.was_cut());
    dumped.map(|_| written)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_goes_on_after_a_lost_connection_and_fails_where_none_comes_back() {
    let world = odd().await;
    let whole = world.dump(None).await;
    assert_eq!(dump(&world, Cut::Short).await.unwrap(), whole);
    let failed = dump(&world, Cut::Long).await.unwrap_err();
    assert!(matches!(&failed, DumpError::Read(error) if Error::is_connection(error)), "{failed}");
}
