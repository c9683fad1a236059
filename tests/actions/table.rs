//! Every action in every state, locked or not, with a current or outdated precondition: it does exactly what its name
//! says, or is refused and changes nothing.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;

use queuekeeper::actions::{ActionKind, Precondition, Refusal, Role, Target, TargetKind};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::{JobState, State as _};
use serde_json::json;
use tokio::task::JoinSet;

use super::served::{Served, action_on, actor, least, with};
use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, data, folder, job, now, outcome};

const JID: &str = "jid0000000001";

/// The effect of an action on a job: the state that it enters, or another change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Enters(&'static str),
    SetsPriority,
    Removes,
    /// It is refused.
    Nothing,
}

/// The effects as documented for operators.
fn effect_of(action: ActionKind, state: &str, is_reported: bool) -> Effect {
    let is_running = !["Held", "Failed", "Completed", "Deleted"].contains(&state);
    match (action, state) {
        // Its last successful state is Provisioning.
        (ActionKind::Resume, "Failed") => Effect::Enters("Downloading"),
        (ActionKind::Hold, "Pending") => Effect::Enters("Held"),
        (ActionKind::Release, "Held") => Effect::Enters("Pending"),
        (ActionKind::Fail, _) if is_running => Effect::Enters("Failed"),
        (ActionKind::Delete, "Failed" | "Held") => Effect::Enters("Deleted"),
        (ActionKind::SetPriority, _) if state != "Completed" && state != "Deleted" => Effect::SetsPriority,
        (ActionKind::Purge, "Completed" | "Deleted") if is_reported => Effect::Removes,
        _ => Effect::Nothing,
    }
}

fn nodes(state: &str, is_reported: bool) -> Vec<(String, String)> {
    let mut nodes = base();
    nodes.extend(job(1, state));
    if is_reported {
        let status =
            nodes.iter_mut().find(|(path, _)| path == "/batches/bid0000000000/status").expect("a batch's status");
        status.1 = status.1.replace("Reporting", "Completed");
    }
    nodes
}

/// The expected tree after the action.
fn after(mut tree: BTreeMap<String, String>, state: &str, effect: Effect) -> BTreeMap<String, String> {
    let entry = |state: &str, priority: &str| format!("/jobs/states/{}/{priority}-{JID}", folder(state));
    let reference = |state: &str| format!("/batches/bid0000000000/states/{}/{JID}", outcome(state));
    match effect {
        Effect::Nothing => {}
        Effect::Removes => tree.retain(|path, _| !path.contains(JID)),
        Effect::SetsPriority => {
            tree.insert(format!("/jobs/{JID}/priority"), "9".to_owned());
            tree.remove(&entry(state, "05"));
            tree.insert(entry(state, "09"), String::new());
        }
        Effect::Enters(to) => {
            tree.remove(&entry(state, "05"));
            tree.insert(entry(to, "05"), String::new());
            tree.remove(&reference(state));
            tree.insert(reference(to), String::new());
            let aside = |state| ["Failed", "Held", "Deleted"].contains(&state);
            let status = json!({
                "status": to, "last_modified": "2026-03-02 18:17:05 +0000",
                "last_successful_status": if aside(state) || aside(to) { "Provisioning" } else { state },
                "retry_count": if state == "Failed" && to != "Deleted" { 2 } else { 1 },
                "message": "By tester with queuekeeper: tried by hand", "by": "java",
            });
            tree.insert(format!("/jobs/{JID}/status"), status.to_string());
        }
    }
    tree
}

/// How many actions on a job in that state are done, and how many refused.
async fn actions_on_a_job(state: &str, is_reported: bool) -> (usize, usize) {
    let (mut done, mut refused) = (0, 0);
    let nodes = nodes(state, is_reported);
    let mut world = World::new(&borrowed(&nodes)).await;
    let mut served = Served::over(&world);
    for kind in Target::Job(JobId::new(1)).actions().map(|spec| spec.kind) {
        for (is_locked, version) in [(false, Some(0)), (false, None), (false, Some(7)), (true, Some(0))] {
            let what = format!("{kind} {state} locked: {is_locked} seen: {version:?} reported: {is_reported}");
            if is_locked {
                world.raw.create(&format!("/jobs/{JID}/lock"), b"", &EPHEMERAL).await.unwrap();
            }
            let before = world.tree().await;
            let precondition =
                version.map(|version| Precondition { version: Some(version), ..Precondition::default() });
            let action = with(kind, Target::Job(JobId::new(1)), least(kind, 9)).only_if(precondition);
            // A dry run has the same result, and changes nothing.
            let planned = served.actions.plan(&action, &actor(Role::Admin), "tried by hand", now()).await;
            assert_eq!(world.tree().await, before, "{what}");
            let requested = served.action(action, Role::Admin, "tried by hand").await;
            assert_eq!(planned.is_ok(), requested.is_ok(), "{what}: {planned:?} {requested:?}");
            let is_possible = !is_locked && version != Some(7);
            let effect = if is_possible { effect_of(kind, state, is_reported) } else { Effect::Nothing };
            let tree = world.tree().await;
            if effect == Effect::Nothing {
                refused += 1;
                let refusal = requested.err().unwrap_or_else(|| panic!("{what} was done"));
                assert!(matches!(refusal, Refusal::Conflict { .. }), "{what}: {refusal:?}");
                assert!(refusal.to_string().len() > 20, "{what}: {refusal}");
                if let Refusal::Conflict { state: found, .. } = refusal {
                    assert_eq!(found, Some(JobState::from_name(state).unwrap().label()), "{what}");
                }
                assert_eq!(tree, before, "{what}");
            } else {
                done += 1;
                requested.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
                assert_eq!(data(&tree), after(data(&before), state, effect), "{what}");
                world = World::new(&borrowed(&nodes)).await;
                served = Served::over(&world);
            }
            if is_locked {
                world.raw.delete(&format!("/jobs/{JID}/lock"), None).await.unwrap();
            }
        }
    }
    (done, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_on_a_job_does_what_its_name_says_or_nothing() {
    // All states at once: each mostly waits for answers.
    let mut tried: JoinSet<(usize, usize)> = [false, true]
        .into_iter()
        .flat_map(|is_reported| JobState::ALL.iter().map(move |state| actions_on_a_job(state.name(), is_reported)))
        .collect();
    let (mut done, mut refused) = (0, 0);
    while let Some(counts) = tried.join_next().await {
        let counts = counts.unwrap();
        (done, refused) = (done + counts.0, refused + counts.1);
    }
    // Twice for each that succeeds: with a precondition and without.
    let allowed = 1 + 1 + 1 + 8 + 2 + 10;
    assert_eq!((done, refused), (2 * (2 * allowed + 2), 2 * 12 * 7 * 4 - 2 * (2 * allowed + 2)));
}

async fn actions_on_a_batch(state: &str) {
    for kind in Target::Batch(BatchId::new(0)).actions().map(|spec| spec.kind) {
        for (is_locked, version) in [(false, 0), (false, 7), (true, 0)] {
            let what = format!("{kind} {state} locked: {is_locked} seen: {version}");
            let mut nodes = base();
            nodes.extend(job(1, if state == "Deleted" { "Deleted" } else { "Failed" }));
            let status =
                nodes.iter_mut().find(|(path, _)| path == "/batches/bid0000000000/status").expect("a batch's status");
            status.1 = status.1.replace("Reporting", state);
            if state == "Held" {
                nodes.retain(|(path, _)| !path.contains("/states/batch-") && !path.contains(JID));
            }
            if state == "Deleted" {
                nodes.retain(|(path, _)| !path.ends_with("/batch-processing"));
            }
            let world = World::new(&borrowed(&nodes)).await;
            let served = Served::over(&world);
            if is_locked {
                world.raw.create("/batches/bid0000000000/lock", b"", &EPHEMERAL).await.unwrap();
            }
            let before = world.tree().await;
            let precondition = Some(Precondition { version: Some(version), ..Precondition::default() });
            let action = action_on(kind, Target::Batch(BatchId::new(0))).only_if(precondition);
            let requested = served.action(action, Role::Admin, "tried by hand").await;
            let is_possible = !is_locked && version == 0;
            let mut expected = data(&before);
            let enters = |expected: &mut BTreeMap<String, String>, to: &str| {
                let by = if kind == ActionKind::Withdraw { "Withdrawn by" } else { "By" };
                let message = format!("{by} tester with queuekeeper: tried by hand");
                let status = json!({
                    "status": to, "last_modified": "2026-03-02 18:17:05 +0000", "message": message, "by": "java",
                });
                expected.insert("/batches/bid0000000000/status".to_owned(), status.to_string());
            };
            let is_done = is_possible
                && match (kind, state) {
                    (ActionKind::Release, "Held") => {
                        enters(&mut expected, "Pending");
                        expected.remove("/batches/bid0000000000/states");
                        true
                    }
                    // It has no jobs. That of the others has failed, and so left Pending.
                    (ActionKind::Withdraw, "Held") => {
                        enters(&mut expected, "Deleted");
                        true
                    }
                    (ActionKind::ReportAgain, "Failed") => {
                        enters(&mut expected, "UpdateReporting");
                        true
                    }
                    // For a Deleted batch, the remains of an interrupted deletion are removed.
                    (ActionKind::Delete, "Held" | "Failed" | "Deleted")
                    | (ActionKind::Purge, "Completed" | "Deleted") => {
                        // A batch with unfinished jobs is never finished.
                        expected.retain(|path, _| {
                            !path.contains(JID) && !path.contains("bid0000000000") && path != "/batch-uuids/uuid-0"
                        });
                        !(kind == ActionKind::Purge && state == "Completed")
                    }
                    _ => false,
                };
            if is_done {
                requested.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
                assert_eq!(data(&world.tree().await), expected, "{what}");
            } else {
                let refusal = requested.err().unwrap_or_else(|| panic!("{what} was done"));
                assert!(matches!(refusal, Refusal::Conflict { .. }), "{what}: {refusal:?}");
                assert_eq!(world.tree().await, before, "{what}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_on_a_batch_does_what_its_name_says_or_nothing() {
    let states = ["Pending", "Held", "Processing", "Reporting", "Failed", "UpdateReporting", "Completed", "Deleted"];
    states.into_iter().map(actions_on_a_batch).collect::<JoinSet<()>>().join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_without_the_role_is_refused_before_anything_is_read() {
    let world = World::new(&borrowed(&nodes("Failed", false))).await;
    let served = Served::over(&world);
    let before = world.tree().await;
    let rows = [
        ("jid0000000001", "resume hold release fail set_priority delete purge"),
        ("bid0000000000", "release report_again withdraw delete purge"),
        ("small/qid0000000001", "resume delete purge"),
        ("queue:ingest", "pause unpause"),
        ("collection:demo", "hold release"),
        ("store:main", "hold release"),
        ("lock:/jobs/jid0000000001/lock", "break_lock"),
        ("fault:missing_entry:/jobs/jid0000000001", "repair"),
        ("batches", "clean_up"),
    ]
    .map(|(target, actions)| (target.parse::<Target>().unwrap(), actions));
    assert_eq!(rows.each_ref().map(|(target, _)| target.kind()), TargetKind::ALL, "a target of each kind");
    for (target, actions) in rows {
        let known: Vec<_> = target.actions().map(|spec| spec.kind.label()).collect();
        assert_eq!(known.join(" "), actions, "{target}");
        for kind in target.actions().map(|spec| spec.kind) {
            let needs = target.role(kind).unwrap();
            for role in Role::ALL.into_iter().filter(|role| *role < needs) {
                let refusal = served.action(with(kind, target.clone(), least(kind, 9)), role, "why").await.unwrap_err();
                assert_eq!(refusal, Refusal::Forbidden { needs, has: role }, "{kind} {target} {role}");
            }
        }
    }
    assert_eq!(world.tree().await, before);
    assert_eq!(served.records().len(), 0, "what was not requested is not in the audit trail");
}
