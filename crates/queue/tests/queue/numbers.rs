//! Foretold names among the sequential ones of other clients.

use std::collections::BTreeSet;

use queuekeeper_queue::NewJob;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::AccessQueue;
use tokio::task::JoinSet;

use queuekeeper_testkit::queue::{SEQUENTIAL, World, base, borrowed, now};

#[tokio::test(flavor = "multi_thread")]
async fn what_we_make_between_two_sequential_creations_has_the_number_between_them() {
    let world = World::new(&borrowed(&base())).await;
    let raw = async |prefix: &str| {
        let (_, sequence) = world.raw.create(prefix, b"", &SEQUENTIAL).await.unwrap();
        u32::try_from(sequence.into_i64()).unwrap()
    };
    for round in 0..3 {
        let before = raw("/batches/bid").await;
        let ours = world.queue.create_batch(format!(r#"{{"batchID":"u{round}"}}"#).as_bytes(), now()).await.unwrap();
        assert_eq!([ours.number(), raw("/batches/bid").await], [before + 1, before + 2]);

        let before = raw("/jobs/jid").await;
        let ours = world.queue.create_job(BatchId::new(0), &NewJob::new("{}"), now()).await.unwrap();
        assert_eq!([ours.number(), raw("/jobs/jid").await], [before + 1, before + 2]);
        let many = world.queue.create_jobs(BatchId::new(0), &vec![NewJob::new("{}"); 3], now()).await.unwrap();
        assert_eq!(many.iter().map(|job| job.number()).collect::<Vec<_>>(), [before + 3, before + 4, before + 5]);

        let before = raw("/access/large/qid").await;
        let ours = world.queue.create_request(AccessQueue::Large, b"{}", now()).await.unwrap();
        assert_eq!([ours.number(), raw("/access/large/qid").await], [before + 1, before + 2]);
        // A deletion counts in cversion, too.
        world.raw.delete(&format!("/access/large/qid{:010}", before + 2), None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn makers_at_the_same_moment_all_get_a_number_of_their_own() {
    let world = World::new(&borrowed(&base())).await;
    let mut makers = JoinSet::new();
    for maker in 0..4 {
        let (queue, raw) = (world.another().await, world.raw.clone());
        makers.spawn(async move {
            let mut numbers = Vec::new();
            for _ in 0..40 {
                if maker == 0 {
                    let (_, sequence) = raw.create("/jobs/jid", b"", &SEQUENTIAL).await.unwrap();
                    numbers.push(u32::try_from(sequence.into_i64()).unwrap());
                } else {
                    numbers.push(queue.create_job(BatchId::new(0), &NewJob::new("{}"), now()).await.unwrap().number());
                }
            }
            numbers
        });
    }
    let numbers: Vec<u32> = makers.join_all().await.into_iter().flatten().collect();
    // `states` was the first child of /jobs, and has number 0.
    assert_eq!(numbers.iter().copied().collect::<BTreeSet<_>>(), (1..=160).collect());
    assert_eq!(world.queue.batch_report(BatchId::new(0)).await.unwrap().processing.len(), 120);
}
