//! Many workers at the same queue: each item goes to exactly one of them.

use std::collections::BTreeSet;

use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState};
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob, Queue};
use tokio::task::JoinSet;

use queuekeeper_testkit::queue::{World, base, borrowed, now};

/// Runs as many workers, each with a session of its own, and gives what each of them took.
async fn work<T, F>(world: &World, workers: usize, take: impl Fn(Queue) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = Vec<T>> + Send + 'static,
{
    let mut set = JoinSet::new();
    for _ in 0..workers {
        set.spawn(take(world.another().await));
    }
    set.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_go_each_to_one_of_two_and_of_ten_workers() {
    let world = World::new(&borrowed(&base())).await;
    let batch = "bid0000000000".parse().unwrap();
    let jobs: Vec<NewJob> = (0..1_000)
        .map(|number| NewJob::new("{}").with_priority(queuekeeper_queue::id::Priority::new(number % 100).unwrap()))
        .collect();
    let made = world.queue.create_jobs(batch, &jobs, now()).await.unwrap();
    assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), 1_000);
    for (workers, state) in [(2, JobState::Pending), (10, JobState::Estimating)] {
        let mut taken = work(&world, workers, move |queue| async move {
            let mut ids = Vec::new();
            loop {
                let mut poll = queue.poll_jobs(state).await.unwrap();
                let before = ids.len();
                // A poll's list grows old: a new one every 50 jobs.
                while ids.len() < before + 50
                    && let Some(job) = poll.next(now()).await.unwrap()
                {
                    queue.finish_job(&job, &JobChange::success(), now()).await.unwrap();
                    ids.push(job.id());
                }
                assert_eq!(poll.skipped, [], "an entry that others moved is no fault");
                if ids.len() == before {
                    return ids;
                }
            }
        })
        .await;
        taken.sort_unstable();
        assert_eq!(taken, made, "{workers} workers");
    }
    let counts = world.queue.count_entries().await.unwrap();
    assert_eq!(counts[&JobState::Provisioning.into()], 1_000);
    assert_eq!(counts.values().sum::<u32>(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_requests_go_each_to_one_of_five_workers() {
    let world = World::new(&[]).await;
    let (mut batches, mut requests) = (Vec::new(), Vec::new());
    for number in 0..30 {
        let submission = format!(r#"{{"batchID":"u{number}"}}"#);
        batches.push(world.queue.create_batch(submission.as_bytes(), now()).await.unwrap());
        requests.push(world.queue.create_request(AccessQueue::Small, b"{}", now()).await.unwrap());
    }
    let mut taken = work(&world, 5, |queue| async move {
        let mut ids = Vec::new();
        while let (Some(batch), _) = queue.acquire_batch(Due::Jobs, now()).await.unwrap() {
            queue.finish_batch(&batch, &ItemChange::to(BatchState::Reporting), now()).await.unwrap();
            ids.push(batch.batch.id);
        }
        ids
    })
    .await;
    taken.sort_unstable();
    assert_eq!(taken, batches);
    let mut taken = work(&world, 5, |queue| async move {
        let mut ids = Vec::new();
        while let (Some(request), _) = queue.acquire_request(AccessQueue::Small).await.unwrap() {
            queue.finish_request(&request, &ItemChange::to(AccessState::Processing), None, now()).await.unwrap();
            ids.push(request.request.id);
        }
        ids
    })
    .await;
    taken.sort_unstable();
    assert_eq!(taken, requests);
    // They are in Processing and not locked, as a daemon leaves them that is killed.
    assert!(world.queue.acquire_request(AccessQueue::Small).await.unwrap().0.is_none());
    let completed = requests.remove(1);
    let target = (AccessQueue::Small, completed);
    world.queue.change_request(target, &ItemChange::to(AccessState::Completed), now()).await.unwrap();
    let mut poll = world.queue.poll_requests(AccessQueue::Small).await.unwrap().with_abandoned();
    let unwanted = requests.pop().unwrap();
    poll.retain(|request| request != unwanted);
    let mut taken = Vec::new();
    while let Some(request) = poll.next().await.unwrap() {
        assert_eq!(request.state, AccessState::Processing);
        taken.push(request.request.id);
    }
    assert_eq!((taken, poll.ended), (requests, vec![completed]));
}
