//! Bulk actions that are cancelled: what was done stays, and a new request does the rest.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::ops::RangeInclusive;

use queuekeeper::actions::audit::Record;
use queuekeeper::actions::{Action, ActionKind, ActionOutcome, Reason, Role, Target};
use queuekeeper_queue::id::BatchId;

use super::served::{Served, action_on, actor};
use queuekeeper_testkit::queue::{World, base, borrowed, job, now};

const JOBS: u32 = 7;

/// Executes an action, and cancels it as soon as it has started.
async fn act_and_cancel(served: &Served, action: Action) -> ActionOutcome {
    let cancel = async {
        loop {
            if let Some(work) = served.actions.running().first() {
                served.actions.cancel(work.id, &actor(Role::Operator)).unwrap();
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let (outcome, ()) = tokio::join!(served.action(action, Role::Admin, "given up"), cancel);
    outcome.unwrap()
}

#[tokio::test]
async fn a_deletion_that_is_cancelled_leaves_a_batch_that_can_be_deleted_again() {
    let mut nodes = base();
    for (path, data) in &mut nodes {
        if path.ends_with("/status") {
            *data = data.replace("Reporting", "Failed");
        }
    }
    nodes.extend((1..=JOBS).flat_map(|number| job(number, "Failed")));
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::on(world.queue.clone().with_jobs_per_transaction(2));
    let delete = || action_on(ActionKind::Delete, Target::Batch(BatchId::new(0)));

    let outcome = act_and_cancel(&served, delete()).await;
    assert!(outcome.is_cancelled, "{outcome:?}");
    assert_eq!(
        (outcome.before.as_deref(), outcome.after.as_deref(), outcome.detail.as_deref()),
        (Some("failed"), Some("failed"), Some("2 jobs"))
    );
    assert_eq!(world.json("/batches/bid0000000000/status").await["status"], "Failed");
    let mut deleted = 0;
    for number in 1..=JOBS {
        let status = world.json(&format!("/jobs/jid{number:010}/status")).await;
        deleted += u32::from(status["status"] == "Deleted");
    }
    assert_eq!(deleted, 2);
    let records = served.records();
    let [Record::Requested { id, .. }, _, Record::Outcome { id: of, outcome, cancelled_by, after, .. }] = &*records
    else {
        panic!("{records:?}")
    };
    // Whatever the outcome, the jobs are recorded before, each with its state.
    let jobs = |numbers: RangeInclusive<u32>, state: &str| -> Vec<_> {
        numbers.map(|number| (format!("jid{number:010}"), state.to_owned())).collect()
    };
    assert_eq!(started(&records), [jobs(1..=JOBS, "failed")]);
    assert_eq!((id, &**outcome, cancelled_by.as_deref()), (of, "cancelled", Some("tester")));
    assert_eq!(after.as_deref(), Some("failed"));

    let outcome = served.action(delete(), Role::Admin, "given up").await.unwrap();
    assert!(!outcome.is_cancelled && outcome.after.is_none(), "{outcome:?}");
    assert!(world.tree().await.keys().all(|path| !path.contains("bid0000000000") && !path.contains("jid")));
    // A deletion marks the remaining jobs Deleted, and then purges all of them.
    assert_eq!(started(&served.records()[3..]), [jobs(3..=JOBS, "failed"), jobs(1..=JOBS, "deleted")]);
}

/// The items that are recorded before they are changed, each with its state, by record.
fn started(records: &[Record]) -> Vec<Vec<(String, String)>> {
    let of = |record: &Record| match record {
        Record::Started { targets, before_each, .. } => {
            Some(targets.iter().cloned().zip(before_each.iter().cloned()).collect())
        }
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_clean_up_that_is_cancelled_reports_what_it_left() {
    let mut nodes = base();
    nodes.retain(|(path, _)| !path.contains("bid0000000000"));
    for number in 0..3 {
        nodes.push((format!("/batches/bid{number:010}"), String::new()));
        nodes.push((format!("/batches/bid{number:010}/status"), r#"{"status":"Completed"}"#.into()));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let clean_up = || action_on(ActionKind::CleanUp, Target::Batches);
    let outcome = act_and_cancel(&served, clean_up()).await;
    assert_eq!(
        (outcome.is_cancelled, outcome.detail.as_deref()),
        (true, Some("0 done, 0 not done, 0 unknown, 3 not started"))
    );
    assert_eq!(world.tree().await.keys().filter(|path| path.ends_with("/status")).count(), 3);
    let reason = Reason::new("tidy").unwrap();
    let taken = served.actions.execute(clean_up(), actor(Role::Admin), reason, None, now()).await.unwrap();
    let reached = taken.execution.progress();
    assert_eq!((reached.done, reached.failed, reached.of), (3, 0, 3));
    assert!(world.tree().await.keys().all(|path| !path.ends_with("/status")));
    let batches: Vec<_> = (0..3).map(|number| (format!("bid{number:010}"), "completed".to_owned())).collect();
    assert_eq!(started(&served.records()), [batches.clone(), batches]);
}
