//! Every action on every state, locked or not, seen fresh or stale: it does exactly what its name says, or is refused
//! and changes nothing.

use std::collections::BTreeMap;

use queuekeeper::actions::{Action, Order, Refusal, Role, Seen, Subject};
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::state::{JobState, State as _};
use serde_json::json;

use super::desk::{Desk, actor};
use crate::queue::world::{EPHEMERAL, World, base, borrowed, data, folder, job, now, outcome};

const JID: &str = "jid0000000001";

/// What an action on a job of the table does: the state that it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Enters(&'static str),
    SetsPriority,
    Removes,
    /// It is refused.
    Nothing,
}

/// The table of actions, as it would be told to an operator.
fn does(action: Action, state: &str, is_reported: bool) -> Does {
    let is_running = !["Held", "Failed", "Completed", "Deleted"].contains(&state);
    match (action, state) {
        // Its last successful state is Provisioning.
        (Action::Resume, "Failed") => Does::Enters("Downloading"),
        (Action::Hold, "Pending") => Does::Enters("Held"),
        (Action::Release, "Held") => Does::Enters("Pending"),
        (Action::Fail, _) if is_running => Does::Enters("Failed"),
        (Action::Delete, "Failed" | "Held") => Does::Enters("Deleted"),
        (Action::SetPriority, _) if state != "Completed" && state != "Deleted" => Does::SetsPriority,
        (Action::Purge, "Completed" | "Deleted") if is_reported => Does::Removes,
        _ => Does::Nothing,
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

/// The tree of the design afterwards.
fn after(mut tree: BTreeMap<String, String>, state: &str, does: Does) -> BTreeMap<String, String> {
    let entry = |state: &str, priority: &str| format!("/jobs/states/{}/{priority}-{JID}", folder(state));
    let reference = |state: &str| format!("/batches/bid0000000000/states/{}/{JID}", outcome(state));
    match does {
        Does::Nothing => {}
        Does::Removes => tree.retain(|path, _| !path.contains(JID)),
        Does::SetsPriority => {
            tree.insert(format!("/jobs/{JID}/priority"), "9".to_owned());
            tree.remove(&entry(state, "05"));
            tree.insert(entry(state, "09"), String::new());
        }
        Does::Enters(to) => {
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

#[tokio::test(flavor = "multi_thread")]
async fn every_action_on_a_job_does_what_its_name_says_or_nothing() {
    let (mut done, mut refused) = (0, 0);
    for is_reported in [false, true] {
        for state in JobState::ALL.iter().map(|state| state.name()) {
            let nodes = nodes(state, is_reported);
            let mut world = World::new(&borrowed(&nodes)).await;
            let mut desk = Desk::over(&world);
            for (action, _) in Subject::Job(JobId::new(1)).actions() {
                for (is_locked, version) in [(false, Some(0)), (false, None), (false, Some(7)), (true, Some(0))] {
                    let what =
                        format!("{action} {state} locked: {is_locked} seen: {version:?} reported: {is_reported}");
                    if is_locked {
                        world.raw.create(&format!("/jobs/{JID}/lock"), b"", &EPHEMERAL).await.unwrap();
                    }
                    let before = world.tree().await;
                    let seen = version.map(|version| Seen { version: Some(version), ..Seen::default() });
                    let order =
                        Order { seen, priority: Priority::new(9), ..Order::new(*action, Subject::Job(JobId::new(1))) };
                    // A dry run says the same, and does nothing.
                    let planned = desk.actions.plan(&order, &actor(Role::Admin), "tried by hand", now()).await;
                    assert_eq!(world.tree().await, before, "{what}");
                    let ordered = desk.order(order, Role::Admin, "tried by hand").await;
                    assert_eq!(planned.is_ok(), ordered.is_ok(), "{what}: {planned:?} {ordered:?}");
                    let is_possible = !is_locked && version != Some(7);
                    let does = if is_possible { does(*action, state, is_reported) } else { Does::Nothing };
                    let tree = world.tree().await;
                    if does == Does::Nothing {
                        refused += 1;
                        let refusal = ordered.err().unwrap_or_else(|| panic!("{what} was done"));
                        assert!(matches!(refusal, Refusal::Conflict { .. }), "{what}: {refusal:?}");
                        assert!(refusal.to_string().len() > 20, "{what}: {refusal}");
                        if let Refusal::Conflict { state: found, .. } = refusal {
                            assert_eq!(found, Some(JobState::from_name(state).unwrap().label()), "{what}");
                        }
                        assert_eq!(tree, before, "{what}");
                    } else {
                        done += 1;
                        ordered.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
                        assert_eq!(data(&tree), after(data(&before), state, does), "{what}");
                        world = World::new(&borrowed(&nodes)).await;
                        desk = Desk::over(&world);
                    }
                    if is_locked {
                        world.raw.delete(&format!("/jobs/{JID}/lock"), None).await.unwrap();
                    }
                }
            }
        }
    }
    // Twice for each that may be done: seen as it is, and not looked at.
    let allowed = 1 + 1 + 1 + 8 + 2 + 10;
    assert_eq!((done, refused), (2 * (2 * allowed + 2), 2 * 12 * 7 * 4 - 2 * (2 * allowed + 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_on_a_batch_does_what_its_name_says_or_nothing() {
    let states = ["Pending", "Held", "Processing", "Reporting", "Failed", "UpdateReporting", "Completed", "Deleted"];
    for state in states {
        for (action, _) in Subject::Batch(BatchId::new(0)).actions() {
            for (is_locked, version) in [(false, 0), (false, 7), (true, 0)] {
                let what = format!("{action} {state} locked: {is_locked} seen: {version}");
                let mut nodes = base();
                nodes.extend(job(1, if state == "Deleted" { "Deleted" } else { "Failed" }));
                let status = nodes
                    .iter_mut()
                    .find(|(path, _)| path == "/batches/bid0000000000/status")
                    .expect("a batch's status");
                status.1 = status.1.replace("Reporting", state);
                if state == "Held" {
                    nodes.retain(|(path, _)| !path.contains("/states/batch-") && !path.contains(JID));
                }
                if state == "Deleted" {
                    nodes.retain(|(path, _)| !path.ends_with("/batch-processing"));
                }
                let world = World::new(&borrowed(&nodes)).await;
                let desk = Desk::over(&world);
                if is_locked {
                    world.raw.create("/batches/bid0000000000/lock", b"", &EPHEMERAL).await.unwrap();
                }
                let before = world.tree().await;
                let seen = Some(Seen { version: Some(version), ..Seen::default() });
                let order = Order { seen, ..Order::new(*action, Subject::Batch(BatchId::new(0))) };
                let ordered = desk.order(order, Role::Admin, "tried by hand").await;
                let is_possible = !is_locked && version == 0;
                let mut expected = data(&before);
                let enters = |expected: &mut BTreeMap<String, String>, to: &str| {
                    let status = json!({
                        "status": to, "last_modified": "2026-03-02 18:17:05 +0000", "message": "By tester with queuekeeper: tried by hand",
                        "by": "java",
                    });
                    expected.insert("/batches/bid0000000000/status".to_owned(), status.to_string());
                };
                let is_done = is_possible
                    && match (*action, state) {
                        (Action::Release, "Held") => {
                            enters(&mut expected, "Pending");
                            expected.remove("/batches/bid0000000000/states");
                            true
                        }
                        (Action::ReportAgain, "Failed") => {
                            enters(&mut expected, "UpdateReporting");
                            true
                        }
                        // Of one that is Deleted, what a deletion that was cut short has left is removed.
                        (Action::Delete, "Held" | "Failed" | "Deleted") | (Action::Purge, "Completed" | "Deleted") => {
                            // Jobs that are not done are no part of a batch that is.
                            expected.retain(|path, _| {
                                !path.contains(JID) && !path.contains("bid0000000000") && path != "/batch-uuids/uuid-0"
                            });
                            !(*action == Action::Purge && state == "Completed")
                        }
                        _ => false,
                    };
                if is_done {
                    ordered.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
                    assert_eq!(data(&world.tree().await), expected, "{what}");
                } else {
                    let refusal = ordered.err().unwrap_or_else(|| panic!("{what} was done"));
                    assert!(matches!(refusal, Refusal::Conflict { .. }), "{what}: {refusal:?}");
                    assert_eq!(world.tree().await, before, "{what}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_order_it_is_told_so_and_reads_nothing() {
    let world = World::new(&borrowed(&nodes("Failed", false))).await;
    let desk = Desk::over(&world);
    let before = world.tree().await;
    for (subject, actions) in [
        ("jid0000000001", "resume hold release fail set_priority delete purge"),
        ("bid0000000000", "release report_again delete purge"),
        ("queue:ingest", "pause unpause"),
        ("collection:demo", "hold release"),
        ("lock:/jobs/jid0000000001/lock", "break_lock"),
        ("fault:missing_entry:/jobs/jid0000000001", "mend"),
        ("batches", "clean_up"),
    ] {
        let subject: Subject = subject.parse().unwrap();
        let known: Vec<_> = subject.actions().iter().map(|(action, _)| action.label()).collect();
        assert_eq!(known.join(" "), actions, "{subject}");
        for (action, needs) in subject.actions() {
            for role in Role::ALL.into_iter().filter(|role| role < needs) {
                let refusal = desk.order(Order::new(*action, subject.clone()), role, "why").await.unwrap_err();
                assert_eq!(refusal, Refusal::Forbidden { needs: *needs, has: role }, "{action} {subject} {role}");
            }
        }
    }
    assert_eq!(world.tree().await, before);
    assert_eq!(desk.records().len(), 0, "what was not ordered is not in the audit trail");
}
