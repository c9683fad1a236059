//! What is too large for one request.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::{Due, JobValue, NewJob, NextRows, REQUEST_LIMIT_BYTES, Transaction, WithdrawalOutcome};

use queuekeeper_testkit::queue::{World, base, borrowed, data, now};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_are_too_large_for_one_request_are_made_in_several() {
    let world = World::new(&borrowed(&base())).await;
    let large = format!(r#"{{"profile":"{}"}}"#, "x".repeat(100_000));
    let jobs: Vec<_> = (0..20).map(|_| NewJob::new(large.as_str())).collect();
    let made = world.queue.create_jobs("bid0000000000".parse().unwrap(), &jobs, now()).await.unwrap();
    assert_eq!(made.len(), jobs.len());
    let mut transactions = BTreeSet::new();
    for id in made {
        transactions.insert(world.stat(&Path::Job(id).to_string()).await.czxid);
    }
    assert_eq!(transactions.len(), 3, "nine of them fit into one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_chroot_and_acl_add_to_each_operation_counts_for_how_large_a_transaction_is() {
    const OPERATIONS: usize = 2_000;
    let world = World::new(&borrowed(&base())).await;
    for (room, is_refused) in [(30_000, true), (100_000, false)] {
        let mut transaction = Transaction::new();
        let bytes = (REQUEST_LIMIT_BYTES - room) / OPERATIONS;
        for number in 0..OPERATIONS {
            let path = Path::BatchUuid(format!("{room}-{number:04}").into());
            let own = 25 + path.to_string().len();
            transaction.create(path, vec![b'x'; bytes - own]);
        }
        assert!(transaction.size_bytes() <= REQUEST_LIMIT_BYTES - room);
        let found = world.queue.commit(&transaction).await;
        let is_reported =
            found.as_ref().err().is_some_and(|error| error.to_string().contains("exceeds the safe limit"));
        assert_eq!((found.is_err(), is_reported), (is_refused, is_refused), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_a_large_batch_are_created_some_at_a_time_and_of_each_row_one() {
    let world = World::new(&borrowed(&base())).await;
    let queue = world.queue.clone().with_jobs_per_transaction(2);
    queue.create_batch(br#"{"batchID":"u","profile":"demo"}"#, now()).await.unwrap();
    let locked = queue.poll_batches(Due::Jobs).await.unwrap().expanded().next(now()).await.unwrap().unwrap();
    let configurations: BTreeSet<_> = (0..6).map(|row| format!(r#"{{"row":{row}}}"#)).collect();
    let jobs: Vec<_> = configurations.iter().map(|configuration| NewJob::new(configuration.as_str())).collect();
    let (last, others) = jobs.split_last().unwrap();
    let (mut expansion, mut transactions) = (locked.new_expansion(), 0);
    while let Some(at) = expansion {
        let jobs = &others[usize::try_from(at.note.next).unwrap()..];
        let rows = NextRows { digest: "d", all: 6, jobs, last, has_end: true, most_children: None };
        expansion = queue.expand(&locked, &at, rows, now()).await.unwrap();
        transactions += 1;
        assert!(transactions <= 3, "two of six at a time");
    }
    let tree = data(&world.tree().await);
    let made: Vec<_> = tree.iter().filter(|(path, _)| path.ends_with("/configuration")).map(|(_, made)| made).collect();
    assert_eq!((made.len(), made.into_iter().cloned().collect()), (6, configurations));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_of_a_thousand_jobs_is_withdrawn_and_purged_in_transactions_that_are_not_too_large() {
    const JOBS: usize = 1_000;
    let (world, batch) = (World::new(&borrowed(&base())).await, BatchId::new(0));
    let (ark, local_ids) = ("ark:/1/1".to_owned(), vec![]);
    let [who, what, when, location] = ["who", "what", "when", "where"].map(str::to_owned);
    let job = NewJob::new("{}").with(JobValue::Identifiers { ark, local_ids });
    let job = job.with(JobValue::Metadata { who, what, when, location });
    world.queue.create_jobs(batch, &vec![job; JOBS], now()).await.unwrap();
    let by = WithdrawnNote { who: "alice", why: &"the wrong files ".repeat(20) };
    let outcome = world.queue.withdraw(batch, by, now(), |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs: JOBS });
    let plan = world.queue.plan_purge(batch).await.unwrap();
    assert_eq!(plan.jobs(), JOBS);
    let sizes: Vec<_> = plan.chunks.iter().map(|chunk| chunk.transaction.size_bytes()).collect();
    assert!(sizes.len() > 1, "{sizes:?}");
    assert_eq!(world.queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await, Ok(sizes.len()));
    assert!(world.tree().await.keys().all(|path| !path.contains("bid0000000000")));
}
