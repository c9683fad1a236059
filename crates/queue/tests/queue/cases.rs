//! The cases of `cases.txt`, each below a chroot of its own, and all of them at the root.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;

use queuekeeper_queue::id::{BatchId, JobId, Priority, RequestId};
use queuekeeper_queue::path::{self, AccessQueue, LockFolder, Path};
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};
use queuekeeper_queue::{Due, Error, ItemChange, JobChange, JobValue, NewJob, Queue, Transaction};

use queuekeeper_testkit::queue::{World, base, borrowed, data, job, now};

const CASES: &str = include_str!("cases.txt");

/// Plans and does what an operator may request; `None` for a word that is none of these.
async fn action(queue: &Queue, word: &str, argument: &str) -> Option<Result<Transaction, Error>> {
    let (batch, request) = (BatchId::new(0), (AccessQueue::Large, RequestId::new(0)));
    let ingest = path::QueueName::Ingest;
    Some(match word {
        "plan-purge-job" => queue.plan_purge_job(JobId::new(1)).await.map(|plan| plan.transaction),
        "purge-request" => queue.plan_purge_request(request).await.map(|plan| plan.transaction),
        "action-request" => {
            let change = ItemChange::to(AccessState::from_any(argument).unwrap()).by_operator();
            queue.plan_request_change(request, &change, None, now()).await.map(|(transaction, _)| transaction)
        }
        "release-batch" => {
            let plan = queue.plan_release_batch(batch, "go on", argument == "even-if-held", now()).await;
            plan.map(|plan| plan.transaction)
        }
        "report-again" => queue.plan_report_again(batch, "repaired", now()).await.map(|plan| plan.transaction),
        "break-lock" => {
            let path = Path::parse(argument);
            let lock = queue.find_lock(&path).await.unwrap().unwrap();
            queue.plan_break_lock(&lock).await
        }
        "plan-pause" => queue.plan_pause(ingest, "me", "disk", now()).await,
        "plan-unpause" => queue.plan_unpause(ingest, None).await,
        "plan-hold" => queue.plan_hold_collection(argument, "me", "disk", now()).await,
        "plan-release" => queue.plan_release_collection(argument, None).await,
        _ => return None,
    })
}

/// Does one operation; `Err` is what it says went wrong.
async fn operate(queue: &Queue, operation: &str) -> Result<(), String> {
    let (word, argument) = operation.split_once(' ').unwrap_or((operation, ""));
    let (batch, id) = (BatchId::new(0), JobId::new(1));
    if let Some(plan) = action(queue, word, argument).await {
        let transaction = plan.map_err(|error| error.to_string())?;
        return queue.commit(&transaction).await.map(drop).map_err(|error| error.to_string());
    }
    let done: Result<(), Error> = match word {
        "create-batch" => queue.create_batch(argument.as_bytes(), now()).await.map(drop),
        "create-job" => {
            let names = JobValue::Identifiers { ark: String::new(), local_ids: vec!["a".into()] };
            let job = NewJob::new(argument).with_priority(Priority::new(3).unwrap()).with(names);
            queue.create_job(batch, &job, now()).await.map(drop)
        }
        "create-request" => queue.create_request(AccessQueue::Large, argument.as_bytes(), now()).await.map(drop),
        "resume" => {
            let change = JobChange::resume();
            let change = argument.parse().map_or(change.clone(), |priority| change.with_priority(priority));
            queue.change_job(id, &change, now()).await.map(drop)
        }
        "fail" => queue.change_job(id, &JobChange::failure(argument), now()).await.map(drop),
        "action" => {
            let change = JobChange::to(JobState::from_any(argument).unwrap()).by_operator();
            queue.change_job(id, &change, now()).await.map(drop)
        }
        "action-batch" => {
            let change = ItemChange::to(BatchState::from_any(argument).unwrap()).by_operator();
            queue.change_batch(batch, &change, now()).await.map(drop)
        }
        "success" => queue.change_job(id, &JobChange::success(), now()).await.map(drop),
        "priority" => queue.set_priority(id, argument.parse().unwrap()).await.map(drop),
        "values" => {
            let text = str::to_owned;
            let values = [
                JobValue::SpaceNeeded(Some(12)),
                JobValue::Identifiers { ark: text("ark:/1/2"), local_ids: vec![text("a")] },
                JobValue::Metadata { who: text("w"), what: text("x"), when: text("y"), location: text("z") },
                JobValue::Store { manifest_url: text("u"), mode: text("add/1/ark"), delete: Some(true.into()) },
                JobValue::Inventory { manifest_url: text("u"), mode: text("m") },
            ];
            queue.update_job(id, &values).await
        }
        "acquire-batch" => queue.acquire_batch(Due::Jobs, now()).await.map(|(taken, _)| assert!(taken.is_some())),
        "report" => {
            let (locked, poll) = queue.acquire_batch(Due::Report, now()).await.unwrap();
            let Some(locked) = locked else {
                return Err(if poll.paused.is_some() { "paused" } else { "nothing is due" }.into());
            };
            let report = queue.batch_report(batch).await.unwrap();
            queue.finish_report(&locked, &report, "reported", now()).await.map(drop)
        }
        "pause" => queue.pause(path::QueueName::Ingest, "me", "disk", now()).await.map(drop),
        "unpause" => {
            let pause = queue.paused(path::QueueName::Ingest).await.unwrap().unwrap();
            assert_eq!((pause.who.as_str(), pause.why.as_str(), pause.since), ("me", "disk", now()));
            queue.unlock(&pause.lock).await.map(drop)
        }
        "hold" => queue.hold_collection(argument, "me", "disk", now()).await.map(drop),
        "release" => {
            let hold = queue.held_collection(argument).await.unwrap().unwrap();
            assert_eq!((hold.who.as_str(), hold.why.as_str(), hold.since), ("me", "disk", now()));
            queue.unlock(&hold.lock).await.map(drop)
        }
        "acquire-job" => {
            let state = JobState::from_any(argument).unwrap();
            let (taken, poll) = queue.acquire_job(state, now()).await.unwrap();
            match taken {
                Some(taken) => assert_eq!((taken.id(), taken.lock.session), (id, Some(queue.session()))),
                None => return Err(if poll.paused.is_some() { "paused" } else { "nothing to do" }.into()),
            }
            Ok(())
        }
        "acquire-and-unlock" => {
            let (taken, _) = queue.acquire_job(JobState::Failed, now()).await.unwrap();
            queue.unlock_job(&taken.unwrap()).await.map(drop)
        }
        "object" => {
            let lock = queue.lock_object(LockFolder::Storage, "ark:/1/2").await.unwrap();
            queue.unlock(&lock).await.map(drop)
        }
        other => panic!("no such operation: {other}"),
    };
    done.map_err(|error| error.to_string())
}

async fn run(world: &World, case: &str) {
    let title = case.lines().next().unwrap_or_default();
    let mut nodes: BTreeMap<String, String> = base().into_iter().chain(job(1, "Failed")).collect();
    let mut operations = Vec::new();
    let mut differences = Vec::new();
    for line in case.lines().skip(1).filter(|line| !line.is_empty()) {
        let (kind, rest) = line.split_once(' ').unwrap();
        let (path, data) = rest.split_once(' ').unwrap_or((rest, ""));
        match kind {
            "=" if data == "-" => drop(nodes.remove(path).expect(title)),
            "=" => drop(nodes.insert(path.to_owned(), data.to_owned())),
            ">" => operations.push((rest, None)),
            "!" => operations.last_mut().unwrap().1 = Some(rest),
            _ => differences.push((kind, path, data.replace("<now>", "2026-03-02 18:17:05 +0000"))),
        }
    }
    // The sequence numbers are those of the order of creation: the base's own first, then what the case adds.
    let nodes: Vec<_> = nodes.into_iter().collect();
    world.make(&borrowed(&nodes)).await;
    let before = world.tree().await;
    let fails_only = differences.is_empty() && operations.iter().all(|(_, error)| error.is_some());
    for (operation, expected) in operations {
        match (operate(&world.queue, operation).await, expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => assert!(error.contains(expected), "{title}: {error}"),
            (result, _) => panic!("{title}: {operation}: {result:?}"),
        }
    }
    let found = world.tree().await;
    if fails_only {
        assert_eq!(found, before, "{title}: to the last version");
    }
    let mut expected = data(&before);
    for (kind, path, data) in differences {
        let old = match kind {
            "-" => expected.remove(path),
            _ => expected.insert(path.to_owned(), data),
        };
        assert_eq!(old.is_some(), kind != "+", "{title}: {kind} {path}");
    }
    assert_eq!(data(&found), expected, "{title}");
    if let Some((_, status)) = found.get("/jobs/jid0000000001/status") {
        let is_changed = before["/jobs/jid0000000001/status"].0 != found["/jobs/jid0000000001/status"].0;
        assert_eq!(status.version, i32::from(is_changed), "{title}: the status is written for a change of state alone");
    }
}

fn cases() -> impl Iterator<Item = &'static str> {
    CASES.split("\ncase ").skip(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_leaves_exactly_the_designed_tree_below_a_chroot() {
    assert!(cases().count() >= 40);
    for case in cases() {
        run(&World::new(&[]).await, case).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_leaves_exactly_the_designed_tree_at_the_root() {
    for case in cases() {
        let world = World::at("").await;
        run(&world, case).await;
        world.clear().await;
    }
}
