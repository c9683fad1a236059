//! A batch by its znodes, and the transaction of a change of its state.

use super::*;
use crate::item::ItemChange;
use crate::testing::{batch, stat};
use crate::transaction::Transaction;

const ID: BatchId = BatchId::new(7);
const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const B: &str = "/batches/bid0000000007";

const NODES: [(BatchNode, &str); 3] = [
    (BatchNode::Submission, r#"{"batchID":"uuid-7","profile":"ucb_demo"}"#),
    (BatchNode::Status, r#"{"status":"Failed"}"#),
    (BatchNode::States, ""),
];

/// A batch in that state, with `states` or without.
fn in_state(state: &str, is_acquired: bool) -> Batch {
    let status = format!(r#"{{"status":"{state}"}}"#);
    let states = is_acquired.then_some((BatchNode::States, ""));
    let nodes: Vec<_> = [NODES[0], (BatchNode::Status, &status)].into_iter().chain(states).collect();
    batch(&nodes, &[])
}

#[test]
fn a_batch_is_what_its_znodes_say() {
    let folders = [(JobOutcome::Processing, 0), (JobOutcome::Failed, 2)];
    let all = batch(&[&NODES[..], &[(BatchNode::StatusReport, "{}"), (BatchNode::Lock, "")]].concat(), &folders);
    assert_eq!(all.references, [Some(0), Some(2), None, None]);
    assert_eq!((all.references(JobOutcome::Failed), all.references(JobOutcome::Deleted)), (Some(2), None));
    assert_eq!(
        (&*all.submitted().value.uuid, all.state(), all.version()),
        ("uuid-7", Some(BatchState::Failed), Some(3))
    );
    assert_eq!(all.entered(), Some(Timestamp::from_second(2).unwrap()));
    assert!(all.is_done() && all.is_acquired() && BatchNode::ALL.iter().all(|node| all.has(*node)));
    let lock = all.lock().unwrap();
    assert_eq!((lock.path.to_string(), lock.czxid), (format!("{B}/lock"), 10));

    let bare = batch(&[], &[(JobOutcome::Processing, 1)]);
    assert!(!bare.is_done() && !bare.is_acquired() && !batch(&[], &[]).is_done());
    assert!(BatchNode::ALL.iter().all(|node| !bare.has(*node)));
    let withdrawn = batch(&[(BatchNode::Status, r#"{"status":"Deleted","message":"by alice"}"#)], &[]);
    assert_eq!([withdrawn.message(), bare.message()], ["by alice", ""]);
    assert_eq!((bare.state(), bare.version(), bare.entered(), bare.lock()), (None, None, None, None));
    assert!(bare.status_found().is_none() && all.status_found().is_some());
    assert_eq!((bare.folders(), all.folders()), (0, 0));
    let full = Batch { states: Some(Stat { num_children: 4, ..stat() }), ..all };
    assert_eq!(full.folders(), 4);
    assert_eq!(Batch::reads(ID).len(), Batch::READS);
    assert!(Batch::from_found(ID, [Found::Nothing]).is_none());
}

#[test]
fn a_batch_is_loadable_by_the_daemons_or_shows_what_they_reject() {
    assert_eq!(batch(&NODES, &[]).check_loadable(), Ok(BatchState::Failed));
    assert_eq!(batch(&NODES, &[]).check_submission(), Ok(()));
    for (nodes, expected) in [
        (&NODES[1..], "submission does not exist"),
        (&NODES[..1], "status does not exist"),
        (&[(BatchNode::Submission, "[]"), NODES[1]], "submission is JSON, but not an object"),
        (&[NODES[0], (BatchNode::Status, "{}")], "status has no status"),
        (
            &[NODES[0], (BatchNode::Status, r#"{"status":"failed"}"#)],
            "status status is not the name of a state as the daemons write it",
        ),
        (&[NODES[0], (BatchNode::Status, r#"{"status":"odd"}"#)], "status status is not the name of a state"),
    ] {
        assert_eq!(batch(nodes, &[]).check_loadable().unwrap_err().to_string(), format!("{B}/{expected}"));
    }
    let wrong = r#"{"status":"Failed","message":[]}"#;
    let wrong = batch(&[NODES[0], (BatchNode::Status, wrong)], &[]).check_loadable().unwrap_err();
    assert_eq!(wrong.to_string(), format!("{B}/status status is not the name of a state as the daemons write it"));
    // They do without a submission when they list batches.
    assert_eq!(batch(&NODES[1..], &[]).check_submission(), Ok(()));
    assert_eq!(batch(&[(BatchNode::Submission, "[]")], &[]).check_submission(), Err(Malformed::NotObject));
    assert_eq!(in_state("failed", true).state_to_change(), Ok(BatchState::Failed));
    assert!(in_state("odd", true).state_to_change().is_err());
}

#[test]
fn a_change_applies_only_to_what_its_caller_saw() {
    let seen = BatchTarget::from(&batch(&NODES, &[]));
    assert_eq!((seen.id, seen.version), (ID, Some(3)));
    assert_eq!(BatchTarget::from(ID).with_jobs([JobId::new(1)]).jobs, Some(vec![JobId::new(1)]));
    for version in [None, Some(3)] {
        assert_eq!(BatchTarget { version, ..seen.clone() }.check(&batch(&NODES, &[])), Ok(()));
    }
    let status = Path::BatchNode(ID, BatchNode::Status);
    let changed = ConflictKind::Changed { seen: 4, found: 3, since: Timestamp::from_second(2).unwrap() };
    let outdated = seen.clone().at_version(4).check(&batch(&NODES, &[]));
    assert_eq!(outdated, Err(Error::conflict(status.clone(), changed)));
    assert_eq!(BatchTarget::from(ID).check(&batch(&[], &[])), Err(Error::Missing(status)));

    let locked = batch(&[&NODES[..], &[(BatchNode::Lock, "")]].concat(), &[]);
    let held = ConflictKind::Locked { session: None, since: Timestamp::from_second(1).unwrap() };
    assert_eq!(seen.check(&locked), Err(Error::conflict(Path::BatchNode(ID, BatchNode::Lock), held)));
    let lock = locked.lock().unwrap();
    let ours = LockedBatch {
        batch: locked.clone(),
        state: BatchState::Failed,
        version: 3,
        lock: lock.clone(),
        status: None,
        is_expansion_new: false,
        pending: PendingUpdate::default(),
    };
    let target = BatchTarget::from(&ours);
    assert_eq!((target.held(), target.lock_path(), target.version), (Some(&lock), lock.path.clone(), Some(3)));
    assert_eq!(target.check(&locked), Ok(()));
    let lost = ConflictKind::LockLost { now: None };
    assert_eq!(target.check(&batch(&NODES, &[])), Err(Error::conflict(lock.path.clone(), lost)));
}

/// The operations of a change, without the values that they write.
fn planned(batch: &Batch, target: &BatchTarget, to: BatchState) -> Result<Vec<String>, String> {
    let change = ItemChange::to(to).by_operator();
    let (transaction, changed) = batch.plan_change(target, &change, NOW).map_err(|error| error.to_string())?;
    assert_eq!((changed.to, changed.version), (to, 4));
    let words =
        |operation: &crate::transaction::Operation| operation.to_string().split(" = ").next().unwrap().to_owned();
    Ok(transaction.operations().iter().map(words).collect())
}

#[test]
fn a_change_writes_the_status_under_the_lock_and_states_where_the_daemons_look_for_it() {
    use BatchState as S;
    let set = format!("set {B}/status at version 3");
    let (take, give) = (format!("create {B}/lock (ephemeral)"), format!("delete {B}/lock"));
    let (make, unmake) = (format!("create {B}/states"), format!("delete {B}/states"));
    let whole = |middle: Option<&String>| Ok([&take, &set].into_iter().chain(middle).chain([&give]).cloned().collect());
    for (from, is_acquired, to, middle) in [
        ("Pending", false, S::Held, Some(&make)),
        ("Pending", false, S::Processing, Some(&make)),
        ("Pending", true, S::Processing, None),
        ("Held", true, S::Pending, Some(&unmake)),
        ("Held", false, S::Pending, None),
        ("Failed", true, S::UpdateReporting, None),
    ] {
        let found = planned(&in_state(from, is_acquired), &ID.into(), to);
        assert_eq!(found, whole(middle), "{from} -> {to}");
    }
    // It was acquired all the same, and its jobs are there.
    let with_jobs = Batch { states: Some(Stat { num_children: 1, ..stat() }), ..in_state("Held", true) };
    assert_eq!(planned(&with_jobs, &ID.into(), S::Pending), whole(None));
    let deleted = planned(&in_state("Held", true), &ID.into(), S::Deleted);
    assert_eq!(deleted, Err(format!("{B}: a batch is deleted together with its jobs")));
    assert_eq!(
        planned(&in_state("Completed", true), &ID.into(), S::Pending),
        Err(format!("{B} may not go from Completed to Pending"))
    );

    let locked = batch(&[&NODES[..], &[(BatchNode::Lock, "")]].concat(), &[]);
    let ours = BatchTarget { lock: locked.lock(), ..ID.into() };
    let checked = [format!("check {B}/lock at version 1"), set.clone()];
    assert_eq!(planned(&locked, &ours, S::UpdateReporting), Ok(checked.to_vec()));
}

#[test]
fn a_change_leads_where_the_states_and_its_author_allow() {
    use BatchState as S;
    let item = Path::Batch(ID);
    for (change, from, expected) in [
        (ItemChange::success(), S::Processing, Ok(S::Reporting)),
        (ItemChange::success(), S::Failed, Err("may not go from Failed to the next state")),
        (ItemChange::to(S::Failed).with_message("why"), S::Processing, Ok(S::Failed)),
        (ItemChange::to(S::Pending), S::Held, Err("may not go from Held to Pending unless an operator requests it")),
        (ItemChange::to(S::Pending).by_operator(), S::Held, Ok(S::Pending)),
        (ItemChange::to(S::Pending).by_operator(), S::Failed, Err("may not go from Failed to Pending")),
    ] {
        let found = change.target(&item, from).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(|words| format!("{B} {words}")), "{change:?} from {from}");
    }
    assert_eq!(ItemChange::to(S::Failed).with_message("why").message, "why");
}

#[test]
fn a_report_lists_each_job_once_and_is_failed_by_one_that_failed() {
    let [one, two, three, four] = [1, 2, 3, 4].map(JobId::new);
    let report =
        BatchReport { processing: vec![one], failed: vec![two], completed: vec![three, four], deleted: Vec::new() };
    let lists = JobOutcome::ALL.map(|outcome| report.of(outcome).len());
    assert_eq!((lists, report.len(), report.is_empty()), ([1, 1, 2, 0], 4, false));
    assert_eq!(report.of(JobOutcome::Completed), [three, four]);
    assert!(BatchReport::default().is_empty());
    let done = BatchReport { completed: vec![one], ..BatchReport::default() };
    let verdicts = [&report, &done, &BatchReport::default()].map(BatchReport::verdict);
    assert_eq!(verdicts, [BatchState::Failed, BatchState::Completed, BatchState::Failed]);

    let lists = r#""failed_jobs":["jid0000000002"],"successful_jobs":["jid0000000003","jid0000000004"]"#;
    let time = r#""last_modified":"1970-01-01 00:00:00 +0000""#;
    for (old, words) in [
        (None, format!("create {B}/status-report = {{{time},{lists}}}\n")),
        (Some(r#"{"by":1}"#), format!("set {B}/status-report at version 3 = {{\"by\":1,{time},{lists}}}\n")),
    ] {
        let nodes: Vec<_> = old.map(|data| (BatchNode::StatusReport, data)).into_iter().collect();
        let mut transaction = Transaction::new();
        batch(&nodes, &[]).set_report(&mut transaction, &report, NOW);
        assert_eq!(transaction.to_string(), words);
    }
    let reported = r#"{"failed_jobs":["jid0000000003","odd",1,"jid0000000002"],"successful_jobs":null}"#;
    let reported = batch(&[(BatchNode::StatusReport, reported)], &[]).last_report().unwrap();
    assert_eq!(reported, LastReport { number: 4, failed: vec![two, three], completed: Vec::new() });
    assert_eq!(batch(&[], &[]).last_report(), None);
}
