//! An action does what was shown, and reports its outcome correctly.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::sync::Arc;

use queuekeeper::actions::audit::{Audit, Destination, Rotation};
use queuekeeper::actions::{
    Action, ActionKind, ActionParameters, Actions, BulkAction, Clock, Execution, ListOf, Precondition, Reason, Refusal,
    Role, Target,
};
use queuekeeper_queue::NewJob;
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::Path;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::served::{Served, action_on, actor, with};
use queuekeeper_testkit::queue::{PERSISTENT, World, base, borrowed, job, now};

/// The action with the precondition from a dry run.
async fn looked_at(served: &Served, action: &Action) -> Action {
    let prepared = served.actions.plan(action, &actor(Role::Admin), "tried by hand", now()).await.unwrap();
    action.clone().only_if(Some(prepared.precondition))
}

#[tokio::test]
async fn an_item_that_has_changed_since_it_was_shown_is_not_removed() {
    let mut nodes = base();
    nodes.push(("/jobs/jid0000000001".into(), String::new()));
    nodes.push(("/jobs/jid0000000001/bid".into(), "bid0000000000".into()));
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let purge = action_on(ActionKind::Purge, Target::Job(JobId::new(1)));
    let shown = looked_at(&served, &purge).await;
    assert!(shown.precondition.as_ref().unwrap().plan.is_some());
    let path = "/jobs/jid0000000001/configuration";
    world.raw.create(path, br#"{"precious":1}"#, &PERSISTENT).await.unwrap();
    let before = world.tree().await;
    let refused = served.action(shown, Role::Admin, "half a job").await.unwrap_err();
    assert!(matches!(&refused, Refusal::Conflict { why, .. } if why.contains("since it was shown")), "{refused}");
    assert_eq!(world.tree().await, before);
    // Neither a repair nor a list removes it.
    let repair = action_on(ActionKind::Repair, Target::Fault(Fault::UnloadableJob, Path::Job(JobId::new(1))));
    let refused = served.action(repair, Role::Admin, "half a job").await.unwrap_err();
    assert!(matches!(&refused, Refusal::Conflict { why, .. } if why.contains("status does not exist")), "{refused}");
    let each = BulkAction::new(ActionKind::Purge);
    let work = list(&served, each, vec![Target::Job(JobId::new(1))]).await;
    assert!(work.not_done()[0].1.to_string().contains("purge it by itself"), "{:?}", work.not_done());
    assert_eq!(world.tree().await, before);
    let shown = looked_at(&served, &purge).await;
    served.action(shown, Role::Admin, "half a job").await.unwrap();
    assert!(!world.exists("/jobs/jid0000000001").await);
}

/// Executes an action on each item, to the end.
async fn list(served: &Served, each: BulkAction, items: Vec<Target>) -> Arc<Execution> {
    let items = items.into_iter().map(|target| (target, None)).collect();
    let frozen = served.actions.freeze(each, ListOf::ChosenItems, items, &actor(Role::Admin), now()).unwrap();
    let reason = Reason::new("tried by hand").unwrap();
    let work = served.actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
    work.finished().await.unwrap();
    work
}

#[tokio::test]
async fn repairs_name_what_they_write_and_one_write_that_repairs_two_faults_counts_for_both() {
    let mut nodes = base();
    nodes.extend([job(1, "Pending"), job(2, "Pending"), job(3, "Pending"), job(4, "Failed")].concat());
    let world = World::new(&borrowed(&nodes)).await;
    let set = async |path: &str, data: &str| world.raw.set_data(path, data.as_bytes(), None).await.unwrap();
    set("/jobs/jid0000000002/space_needed", "much").await;
    set("/jobs/jid0000000003/configuration", "no json").await;
    // One superfluous entry in another state, and one in the job's own.
    let entries = ["/jobs/states/storing/05-jid0000000001", "/jobs/states/pending/07-jid0000000001"];
    for path in entries.into_iter().chain(["/jobs/jid0000000004/lock"]) {
        world.raw.create(path, b"", &PERSISTENT).await.unwrap();
    }
    let served = Served::over(&world);
    let fault = |fault, number| Target::Fault(fault, Path::Job(JobId::new(number)));
    let each = BulkAction::new(ActionKind::Repair);
    let items = vec![
        fault(Fault::OrphanEntry, 1),
        fault(Fault::DuplicateEntry, 1),
        fault(Fault::UnloadableJob, 2),
        fault(Fault::UnloadableJob, 3),
    ];
    let work = list(&served, each, items).await;
    let reached = work.progress();
    assert_eq!((reached.done, reached.failed), (3, 1), "{:?}", work.not_done());
    let (on, why) = &work.not_done()[0];
    assert_eq!(on, "fault:unloadable_job:/jobs/jid0000000003");
    assert!(why.to_string().contains("configuration is not JSON"), "{why}");
    assert!(world.exists("/jobs/jid0000000003").await);
    let written: Vec<_> = work.written().into_iter().map(|(on, what)| format!("{on}: {what}")).collect();
    let count = |records: &[String], what: &str| records.iter().filter(|record| record.contains(what)).count();
    let lines = served.records().into_iter().map(|record| serde_json::to_string(&record).unwrap());
    let (started, audit): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains(r#""record":"started""#));
    // Repairs are recorded before they are executed, and refused ones are not.
    assert_eq!(count(&started, "/jobs/jid0000000002/space_needed was much"), 1, "{started:?}");
    assert_eq!(count(&started, "/jobs/jid0000000003"), 0, "{started:?}");
    for records in [&written, &audit] {
        assert_eq!(count(records, "delete /jobs/states/storing/05-jid0000000001"), 1, "{records:?}");
        assert_eq!(count(records, "the fault is not present now"), 1, "{records:?}");
        assert_eq!(count(records, "set /jobs/jid0000000002/space_needed at version 1 = 0"), 1, "{records:?}");
        assert_eq!(count(records, "/jobs/jid0000000002/space_needed was much"), 1, "{records:?}");
    }

    // One after the other, the second one is not needed either.
    for path in entries {
        world.raw.create(path, b"", &PERSISTENT).await.unwrap();
    }
    let actions = [Fault::OrphanEntry, Fault::DuplicateEntry].map(|kind| action_on(ActionKind::Repair, fault(kind, 1)));
    let shown = looked_at(&served, &actions[1]).await;
    let first = served.action(actions[0].clone(), Role::Operator, "tidy").await.unwrap();
    assert_eq!(first.detail, None);
    let second = served.action(shown, Role::Operator, "tidy").await.unwrap();
    assert_eq!(
        (second.label(), second.detail.as_deref()),
        ("done", Some("the fault is not present now; nothing was written"))
    );
    let nowhere =
        served.action(action_on(ActionKind::Repair, fault(Fault::OrphanEntry, 99)), Role::Operator, "tidy").await;
    assert!(matches!(nowhere, Err(Refusal::Missing(_))), "{nowhere:?}");

    // Breaking a lock requires the same role, as a lock or as a fault.
    let leaked = action_on(ActionKind::Repair, fault(Fault::LeakedLock, 4));
    let refused = served.action(leaked.clone(), Role::Operator, "stuck").await.unwrap_err();
    assert_eq!(refused, Refusal::Forbidden { needs: Role::Admin, has: Role::Operator });
    // The lock is newer than the test's clock: it is too young to count, and not reported as repaired.
    let refused = served.action(leaked, Role::Admin, "stuck").await.unwrap_err();
    assert!(refused.to_string().contains("does not count as leaked_lock before"), "{refused}");
}

#[tokio::test]
async fn a_clean_up_purges_the_batches_that_were_shown_and_names_each() {
    let mut nodes = base();
    for number in 1..=3 {
        nodes.push((format!("/batches/bid{number:010}"), String::new()));
        let state = if number == 3 { "Reporting" } else { "Completed" };
        nodes.push((format!("/batches/bid{number:010}/status"), format!(r#"{{"status":"{state}"}}"#)));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let clean_up = action_on(ActionKind::CleanUp, Target::Batches);
    let shown = looked_at(&served, &clean_up).await;
    let (data, _) = world.raw.get_data("/batches/bid0000000001/status").await.unwrap();
    world.raw.set_data("/batches/bid0000000003/status", &data, None).await.unwrap();
    let refused = served.action(shown, Role::Admin, "tidy").await.unwrap_err();
    assert!(matches!(refused, Refusal::Conflict { .. }), "{refused}");
    let planned = served.actions.plan(&clean_up, &actor(Role::Admin), "tidy", now()).await.unwrap();
    assert_eq!((planned.batches(), planned.jobs()), (3, 0));
    let shown = looked_at(&served, &clean_up).await;
    let outcome = served.action(shown, Role::Admin, "tidy").await.unwrap();
    assert_eq!(
        (outcome.label(), outcome.detail.as_deref()),
        ("done", Some("3 done, 0 not done, 0 unknown, 0 not started"))
    );
    let records: Vec<_> = served.records().iter().map(|record| serde_json::to_value(record).unwrap()).collect();
    for number in 1..=3 {
        let batch = format!("bid{number:010}");
        assert!(records.iter().any(|record| record["target"] == batch && record["outcome"] == "done"), "{records:?}");
        assert!(records[0]["operations"].to_string().contains(&batch), "{}", records[0]);
    }
}

#[tokio::test]
async fn a_key_of_an_action_that_was_refused_can_be_used_again() {
    let mut nodes = base();
    nodes.extend(job(1, "Pending"));
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let action = |action| action_on(action, Target::Job(JobId::new(1)));
    let reason = || Reason::new("tried by hand").unwrap();
    let keyed = |action| served.actions.execute(action, actor(Role::Admin), reason(), Some("k1"), now());
    let refused = keyed(action(ActionKind::Release)).await.unwrap_err();
    assert!(refused.to_string().contains("only a held job can be released"), "{refused}");
    served.action(action(ActionKind::Hold), Role::Admin, "wait").await.unwrap();
    keyed(action(ActionKind::Release)).await.unwrap();
    // After it is done, the same key returns the same outcome, although the job is no longer held.
    let again = keyed(action(ActionKind::Release)).await.unwrap();
    assert_eq!(again.outcome.unwrap().after.as_deref(), Some("pending"));
    assert_eq!(world.json("/jobs/jid0000000001/status").await["status"], "Pending");
}

#[tokio::test]
async fn what_a_new_priority_changes_is_the_priority() {
    let mut nodes = base();
    nodes.extend(job(1, "Pending"));
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let requested = ActionParameters { priority: Priority::new(7), ..ActionParameters::default() };
    let requested = with(ActionKind::SetPriority, Target::Job(JobId::new(1)), requested);
    let prepared = served.actions.plan(&requested, &actor(Role::Admin), "sooner", now()).await.unwrap();
    assert_eq!(prepared.priority, Priority::new(7).map(|to| (Priority::new(5), to)));
    let done = served.action(requested, Role::Admin, "sooner").await.unwrap();
    assert_eq!((done.before.as_deref(), done.after.as_deref()), (Some("priority 5"), Some("priority 7")));
}

#[tokio::test]
async fn the_outcome_of_a_list_without_any_success_is_not_done() {
    let mut nodes = base();
    nodes.extend([job(1, "Completed"), job(2, "Completed"), job(3, "Failed")].concat());
    let world = World::new(&borrowed(&nodes)).await;
    let served = Served::over(&world);
    let each = BulkAction::new(ActionKind::Resume);
    for (jobs, label) in [(&[1, 2, 2][..], "conflict"), (&[1, 3], "in_part")] {
        let items = jobs.iter().map(|number| (Target::Job(JobId::new(*number)), None)).collect();
        let frozen = served.actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
        assert_eq!(frozen.items.len(), 2, "an item that is named twice is executed once");
        let reason = Reason::new("tried by hand").unwrap();
        let work = served.actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
        assert_eq!(work.finished().await.unwrap().label(), label);
        let late = served.actions.cancel(work.id, &actor(Role::Admin)).unwrap_err();
        assert!(matches!(late, Refusal::Missing(_)), "{late}");
    }
    let stale = Precondition { version: Some(7), ..Precondition::default() };
    let action = action_on(ActionKind::Delete, Target::Job(JobId::new(1))).only_if(Some(stale));
    assert!(matches!(served.action(action, Role::Admin, "no").await, Err(Refusal::Conflict { .. })));
}

/// A file of 40 KiB has room for the request and some outcomes; then it cannot be rotated.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_cancelled_when_its_outcomes_cannot_be_recorded() {
    const JOBS: u32 = 1_000;
    let world = World::new(&borrowed(&base())).await;
    let batch = BatchId::new(0);
    let new: Vec<_> = (0..JOBS).map(|_| NewJob::new(r#"{"profile":"demo"}"#)).collect();
    let jobs = world.queue.create_jobs(batch, &new, now()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let rotation = Rotation { size_bytes: 40 << 10, files: 1 };
    let (audit, writer) = Audit::open(Destination::File(file, rotation)).unwrap();
    std::fs::create_dir_all(folder.path().join("audit.jsonl.1/in the way")).unwrap();
    let _writer = AbortOnDropHandle::new(tokio::spawn(writer.run(CancellationToken::new())));
    let actions = Actions::over(world.queue.clone(), (None, Clock::Mirror), Limits::default(), audit);
    let each = BulkAction::new(ActionKind::Hold);
    let items = jobs.iter().map(|job| (Target::Job(*job), None)).collect();
    let frozen = actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
    let reason = Reason::new("tried by hand").unwrap();
    let work = actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
    let outcome = work.finished().await.unwrap();
    assert!(outcome.is_cancelled && outcome.warnings.iter().any(|said| said.contains("not recorded")), "{outcome:?}");
    let held = world.tree().await.keys().filter(|path| path.starts_with("/jobs/states/held/")).count();
    assert_eq!(held as u64, work.progress().done, "what is said to be done is done");
    assert!(held < jobs.len(), "nothing more was started");
}
