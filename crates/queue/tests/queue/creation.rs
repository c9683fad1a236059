//! How a creation of jobs is taken up that another began, and who may do what with new znodes.

use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::{Due, NewJob, NextRows, Transaction};

use queuekeeper_testkit::queue::{World, base, borrowed, job, now};
use zookeeper_client::{Acl, AuthId, Permission};

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_is_taken_up_queues_the_job_of_the_last_row_unless_it_is_or_was_queued() {
    let entry = "/jobs/states/pending/05-jid0000000001";
    for (state, has_entry, is_queued) in [("Pending", false, true), ("Pending", true, true), ("Failed", false, false)] {
        let mut nodes = [base(), job(1, state)].concat();
        nodes.retain(|(path, _)| has_entry || !path.ends_with("/05-jid0000000001"));
        let world = World::new(&borrowed(&nodes)).await;
        let submission = br#"{"batchID":"u","profile":"demo"}"#;
        let batch = world.queue.create_batch(submission, now()).await.unwrap();
        world.raw.set_data("/jobs/jid0000000001/bid", batch.to_string().as_bytes(), None).await.unwrap();
        let mut poll = world.queue.poll_batches(Due::Jobs).await.unwrap().expanded();
        let locked = poll.next(now()).await.unwrap().unwrap();
        let at = world.queue.expansion(&locked).await.unwrap().unwrap();
        for last in [JobId::new(1), JobId::new(77)] {
            let behind = world.queue.behind_existing(at.clone(), 3, Some(last)).await.unwrap();
            assert_eq!((behind.note.next, behind.note.last), (3, Some(last)));
        }
        let behind = world.queue.behind_existing(at, 3, Some(JobId::new(1))).await.unwrap();
        let rows =
            NextRows { digest: "d", all: 4, jobs: &[], last: &NewJob::new("{}"), has_end: true, most_children: None };
        assert_eq!(world.queue.expand(&locked, &behind, rows, now()).await.unwrap(), None);
        assert_eq!(world.exists(entry).await, is_queued, "{state} {has_entry}");
        assert_eq!(world.queue.expansion(&locked).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_znodes_are_open_to_anyone_or_have_the_acl_that_was_set() {
    let world = World::new(&borrowed(&base())).await;
    let read_only = vec![Acl::new(Permission::READ, AuthId::anyone())];
    for (number, acl, expected) in [(1, vec![], "ALL"), (2, read_only, "READ")] {
        let path = Path::Batch(BatchId::new(number));
        let queue = world.queue.clone().with_acl(acl);
        queue.commit(Transaction::new().create(path.clone(), "")).await.unwrap();
        let (found, _) = world.raw.get_acl(&path.to_string()).await.unwrap();
        assert_eq!(found.iter().map(|acl| acl.permission().to_string()).collect::<Vec<_>>(), [expected]);
    }
}
