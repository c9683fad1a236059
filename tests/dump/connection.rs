//! A connection that is lost while a dump is taken or loaded.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use futures::stream;
use queuekeeper_queue::dump::{DumpError, DumpOptions};
use queuekeeper_queue::load::LoadError;
use queuekeeper_queue::{Error, Queue};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wire::{Cut, Point, Wire};

use super::world::{SEQUENTIAL, World, now, odd};

/// Dumps a queue through a connection that is cut at its fifth request, with which znodes are read.
async fn dump(world: &World, cut: Cut) -> Result<Vec<u8>, DumpError> {
    let wire = Wire::start(shared().await.port()).await;
    let (_, chroot) = world.address.split_once('/').unwrap();
    let client = connect(&format!("{}/{chroot}", wire.connect_string())).await;
    // Where a connection comes back, a busy machine may take its time.
    let limit = Duration::from_secs(if cut == Cut::Short { 60 } else { 2 });
    let queue = Queue::new(client).with_time_limit(limit);
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

/// Loads into a chroot of its own through a connection that is cut at one request, and gives what is there in the end and
/// how many requests there were until it ended or stopped. A load that stops says so, and is resumed.
async fn load(wire: &Wire, dump: &[u8], cut: Option<Point>) -> (World, usize) {
    let copy = World::new().await;
    let (_, chroot) = copy.address.split_once('/').unwrap();
    let client = connect(&format!("{}/{chroot}", wire.connect_string())).await;
    let through = World { client, address: copy.address.clone() };
    wire.arm(cut.map(|point| (point, Cut::Short)));
    let blocks = stream::iter([Ok(dump.to_vec())]);
    let loaded = through.load_blocks(dump, blocks, false).await;
    let requests = wire.requests();
    assert_eq!(wire.was_cut(), cut.is_some());
    if let Err(error) = loaded {
        let has_begun = matches!(error, LoadError::Stopped { .. });
        let why = if let LoadError::Stopped { why, .. } = error { *why } else { error };
        assert!(matches!(&why, LoadError::Queue(error) if error.is_connection()), "{cut:?}: {why}");
        copy.load(dump, None, has_begun).await.unwrap_or_else(|error| panic!("{cut:?}: {why}; then {error}"));
    }
    (copy, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_whose_connection_is_lost_at_any_request_ends_or_says_how_to_go_on() {
    let source = World::new().await;
    let large = vec![b'x'; 1_040_000];
    source.make(&[("/jobs", b""), ("/jobs/jid0000004200", b""), ("/jobs/jid0000004200/configuration", &large)]).await;
    source.make(&[("/batches", b""), ("/batches/bid0000000003", b"")]).await;
    let (wanted, dump) = (source.lasting().await, source.dump(None).await);
    let wire = Wire::start(shared().await.port()).await;
    let (_, requests) = load(&wire, &dump, None).await;
    for number in 1..=requests {
        for point in [Point::Unsent(number), Point::Unanswered(number)] {
            let (copy, _) = load(&wire, &dump, Some(point)).await;
            assert!(copy.lasting().await == wanted, "{point:?}");
            let (_, next) = copy.client.create("/jobs/jid", b"", &SEQUENTIAL).await.unwrap();
            assert_eq!(next.to_string(), "0000004201", "{point:?}");
        }
    }
}
