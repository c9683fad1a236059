//! What a change of a job leads to, and the transaction that makes it.

use super::super::context::{JobContext, JobLocation};
use super::super::edit::JobEdit;
use super::super::plan::begin;
use super::*;
use crate::error::ConflictKind;
use crate::lock::ChangeTarget as _;
use crate::path::EntryName;
use crate::state::{BatchState, JobOutcome, State};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn priority(number: i64) -> Priority {
    Priority::new(number).unwrap()
}

/// A job in that state, with a last successful one.
fn in_state(state: &str, last: &str) -> Job {
    let status = format!(r#"{{"status":"{state}","last_successful_status":"{last}","retry_count":2}}"#);
    let others =
        NODES.into_iter().filter(|(node, _)| *node != JobNode::Status).map(|(node, data)| (node, data.to_owned()));
    job(&others.chain([(JobNode::Status, status)]).collect::<Vec<_>>())
}

#[test]
fn a_change_leads_where_the_states_and_its_author_allow() {
    use JobState as S;
    let held = in_state("Failed", "Held");
    let job = in_state("Failed", "Downloading");
    let operator = |state| JobChange::to(state).by_operator();
    for (change, from, expected) in [
        (JobChange::success(), S::Pending, Ok(S::Estimating)),
        (JobChange::success(), S::Failed, Err("may not go from Failed to the next state")),
        (JobChange::failure("disk full"), S::Storing, Ok(S::Failed)),
        (JobChange::failure("disk full"), S::Held, Err("may not go from Held to Failed")),
        (JobChange::to(S::Held), S::Pending, Ok(S::Held)),
        (JobChange::to(S::Pending), S::Failed, Err("may not go from Failed to Pending unless an operator requests it")),
        (operator(S::Pending), S::Failed, Ok(S::Pending)),
        (operator(S::Completed), S::Failed, Err("may not go from Failed to Completed")),
        (operator(S::Failed), S::Storing, Ok(S::Failed)),
        (JobChange::resume(), S::Failed, Ok(S::Processing)),
        (JobChange::resume(), S::Held, Err("may not go from Held to where it failed")),
    ] {
        let found = change.target(&job, from).map_err(|error| error.to_string());
        let expected = expected.map_err(|words| format!("/jobs/jid0000000001 {words}"));
        assert_eq!(found, expected, "{change:?} from {from}");
    }
    assert_eq!(JobChange::resume().target(&held, S::Failed), Ok(S::Pending));
}

#[test]
fn a_retry_is_counted_when_an_operator_takes_a_failed_job_back_to_work() {
    use JobState as S;
    for (change, from, to, retries) in [
        (JobChange::resume(), S::Failed, S::Pending, 3),
        (JobChange::to(S::Storing).by_operator(), S::Failed, S::Storing, 3),
        (JobChange::to(S::Deleted).by_operator(), S::Failed, S::Deleted, 2),
        (JobChange::to(S::Pending).by_operator(), S::Held, S::Pending, 2),
        (JobChange::success(), S::Storing, S::Recording, 2),
        (JobChange::to(S::Pending), S::Failed, S::Pending, 2),
    ] {
        let data = change.clone().with_message("why").status(&job(&NODES), from, to, NOW);
        let status = JobStatus::decode(&data).value;
        assert_eq!((status.status.state, status.retry_count), (Some(to), Some(retries)), "{change:?} from {from}");
        assert_eq!(status.message, "why");
    }
    let first = JobChange::resume().status(&with(JobNode::Status, "{}"), S::Failed, S::Pending, NOW);
    assert_eq!(JobStatus::decode(&first).value.retry_count, Some(1));
    assert_eq!(
        JobStatus::decode(&JobChange::success().status(&job(&NODES), S::Storing, S::Recording, NOW)).value.message,
        "Success"
    );
}

#[test]
fn a_hold_is_looked_for_where_a_change_may_lead_to_pending() {
    let looks = |change: Option<&JobChange>| {
        JobEdit { change: change.map(|change| (change, NOW)), priority: None }.may_lead_to_pending()
    };
    let pending = JobChange::to(JobState::Pending);
    assert!(looks(Some(&JobChange::resume())) && looks(Some(&pending)));
    assert!(!looks(Some(&JobChange::success())) && !looks(Some(&JobChange::to(JobState::Held))) && !looks(None));
}

#[test]
fn a_target_says_what_its_caller_knows() {
    let bare = JobTarget::from(ID);
    assert!(bare.id == ID && bare.location().is_none() && bare.version.is_none() && bare.collection.is_none());
    let located = JobTarget::new(ID).at_version(9).located_in(BatchId::new(8), priority(4)).in_collection("ucb_open");
    let entry = EntryName { priority: 4, job: ID };
    assert_eq!(located.location(), Some(JobLocation { batch: BatchId::new(8), old: entry, new: entry }));
    assert_eq!((located.version, located.collection.as_deref()), (Some(9), Some("ucb_open")));
    let seen = JobTarget::from(&job(&NODES));
    let entry = EntryName { priority: 5, job: ID };
    assert_eq!(seen.location(), Some(JobLocation { batch: BatchId::new(7), old: entry, new: entry }));
    assert_eq!((seen.version, seen.collection.as_deref()), (Some(3), Some("ucb_demo")));
    assert!(JobTarget::from(&with(JobNode::Bid, "7")).location().is_none());
    assert!(JobTarget::from(&with(JobNode::Priority, "high")).location().is_none());

    let locked = with(JobNode::Lock, "");
    let lock = locked.lock().unwrap();
    let entry = EntryName { priority: 3, job: ID };
    let locked = LockedJob::new(locked, JobState::Failed, entry, lock.clone(), None);
    let ours = JobTarget::from(&locked);
    assert_eq!((locked.id(), ours.held(), ours.lock_path()), (ID, Some(&lock), lock.path.clone()));
    assert_eq!(ours.location().map(|location| location.old), Some(entry));
    // The entry by which it was acquired counts, not that of its priority.
    let (_, location) = begin(&locked.job, &ours, JobEdit { change: None, priority: Some(priority(9)) }).unwrap();
    assert_eq!((location.old, location.new.priority), (entry, 9));
    let (_, location) = begin(&locked.job, &seen, JobEdit { change: None, priority: Some(priority(9)) }).unwrap();
    assert_eq!((location.old.priority, location.new.priority), (5, 9));
}

#[test]
fn a_change_applies_only_to_what_its_caller_saw() {
    let seen = JobTarget::new(ID);
    assert_eq!(seen.check(&job(&NODES)), Ok(()));
    assert_eq!(seen.clone().at_version(3).check(&job(&NODES)), Ok(()));
    let changed = ConflictKind::Changed { seen: 2, found: 3, since: Timestamp::from_second(2).unwrap() };
    let status = Path::JobNode(ID, JobNode::Status);
    assert_eq!(seen.clone().at_version(2).check(&job(&NODES)), Err(Error::conflict(status.clone(), changed)));
    assert_eq!(seen.check(&job::<&str>(&[])), Err(Error::Missing(status)));
    let held = ConflictKind::Locked { session: None, since: Timestamp::from_second(1).unwrap() };
    let lock = Path::JobNode(ID, JobNode::Lock);
    assert_eq!(seen.check(&with(JobNode::Lock, "")), Err(Error::conflict(lock, held)));

    assert_eq!(state_of(&job(&NODES)), Ok(JobState::Failed));
    for (data, expected) in [
        (r#"{"status":"odd"}"#, "/jobs/jid0000000001/status status is not the name of a state"),
        ("[]", "/jobs/jid0000000001/status is JSON, but not an object"),
    ] {
        assert_eq!(state_of(&with(JobNode::Status, data)).unwrap_err().to_string(), expected);
    }
}

fn context(references: &[JobOutcome], entries: &[(JobState, i32)]) -> JobContext {
    JobContext {
        has_batch: true,
        is_batch_acquired: true,
        batch_status: Some((Some(BatchState::Reporting), 1)),
        references: references.to_vec(),
        entries: entries.iter().map(|(state, priority)| (*state, EntryName { priority: *priority, job: ID })).collect(),
    }
}

/// The operations of a plan, without the values that they write.
fn planned(context: &JobContext, job: &Job, edit: JobEdit<'_>) -> (JobPlan, Vec<String>) {
    let target = JobTarget::from(job);
    let (mut plan, location) = begin(job, &target, edit).unwrap();
    plan.fill(context, &target, job, &location, edit).unwrap();
    let words = |operation: &Operation| operation.to_string().split(" = ").next().unwrap_or_default().to_owned();
    let operations = plan.transaction.operations().iter().map(words).collect();
    (plan, operations)
}

#[test]
fn a_plan_moves_entry_and_reference_and_repairs_what_it_touches() {
    use JobState as S;
    let change = JobChange::resume().with_priority(priority(6));
    let edit = JobEdit { change: Some((&change, NOW)), priority: change.priority };
    let (plan, operations) = planned(&context(&[JobOutcome::Failed], &[(S::Failed, 5)]), &job(&NODES), edit);
    let (job_path, batch) = ("/jobs/jid0000000001", "/batches/bid0000000007/states");
    let expected = [
        format!("create {job_path}/lock (ephemeral)"),
        format!("set {job_path}/status at version 3"),
        format!("set {job_path}/priority at version 3"),
        "delete /jobs/states/failed/05-jid0000000001".to_owned(),
        "create /jobs/states/processing/06-jid0000000001".to_owned(),
        format!("delete {batch}/batch-failed/jid0000000001"),
        format!("create {batch}/batch-processing/jid0000000001"),
        format!("delete {job_path}/lock"),
    ];
    assert_eq!(operations, expected);
    assert_eq!((plan.from, plan.to, plan.version, plan.status_at), (S::Failed, S::Processing, 3, Some(1)));
    assert_eq!((plan.priority_before, plan.priority), (Some(priority(5)), priority(6)));
    assert_eq!((plan.batch, plan.batch_state), (BatchId::new(7), Some(BatchState::Reporting)));

    // Only the priority: the status is checked. What is right already stays.
    let edit = JobEdit { change: None, priority: Some(priority(6)) };
    let entries = [(S::Failed, 6), (S::Pending, 5)];
    let (plan, operations) =
        planned(&context(&[JobOutcome::Failed, JobOutcome::Deleted], &entries), &job(&NODES), edit);
    let expected = [
        format!("create {job_path}/lock (ephemeral)"),
        format!("check {job_path}/status at version 3"),
        format!("set {job_path}/priority at version 3"),
        "delete /jobs/states/pending/05-jid0000000001".to_owned(),
        format!("delete {batch}/batch-deleted/jid0000000001"),
        format!("delete {job_path}/lock"),
    ];
    assert_eq!((operations, plan.status_at), (expected.to_vec(), None));

    // Below a batch without `states` no reference is made, and a priority that is missing is.
    let lost = JobContext { is_batch_acquired: false, ..context(&[], &[(S::Failed, 6)]) };
    let (_, operations) = planned(&lost, &without(JobNode::Priority), edit);
    let expected = [
        format!("create {job_path}/lock (ephemeral)"),
        format!("check {job_path}/status at version 3"),
        format!("create {job_path}/priority"),
        format!("delete {job_path}/lock"),
    ];
    assert_eq!(operations, expected);
}

#[test]
fn a_job_is_looked_for_in_every_state_under_its_old_name_and_its_new() {
    let (old, new) = (EntryName { priority: 5, job: ID }, EntryName { priority: 6, job: ID });
    let location = JobLocation { batch: BatchId::new(7), old, new };
    let reads: Vec<_> = JobContext::reads(&location).iter().map(|read| read.path().to_string()).collect();
    assert_eq!(reads.len(), 3 + 4 + 2 * JobState::ALL.len());
    assert_eq!(
        reads[..3],
        ["/batches/bid0000000007", "/batches/bid0000000007/states", "/batches/bid0000000007/status"]
    );
    assert_eq!(JobContext::reads(&JobLocation { new: old, ..location }).len(), 3 + 4 + JobState::ALL.len());

    let there = [
        "/batches/bid0000000007",
        "/batches/bid0000000007/states/batch-failed/jid0000000001",
        "/jobs/states/pending/06-jid0000000001",
    ];
    let find = |path: &String| match path.as_str() {
        "/batches/bid0000000007/status" => found(r#"{"status":"Reporting"}"#),
        path if there.contains(&path) => found(""),
        _ => Found::Nothing,
    };
    let context = JobContext::from_found(&location, &mut reads.iter().map(find));
    assert!(context.has_batch && !context.is_batch_acquired);
    assert_eq!(context.batch_status, Some((Some(BatchState::Reporting), 3)));
    assert_eq!((context.references, context.entries), (vec![JobOutcome::Failed], vec![(JobState::Pending, new)]));
}

#[test]
fn what_is_around_a_job_is_regular_until_any_of_it_differs() {
    let entry = |priority| EntryName { priority, job: ID };
    let location = JobLocation { batch: BatchId::new(7), old: entry(5), new: entry(5) };
    let regular = || JobContext::regular(JobState::Storing, &location);
    // What state the batch is in does not count.
    let reported = JobContext { batch_status: Some((Some(BatchState::Failed), 4)), ..regular() };
    assert!([regular(), reported].iter().all(|context| context.is_regular(JobState::Storing, &location)));
    for odd in [
        JobContext { has_batch: false, ..regular() },
        JobContext { is_batch_acquired: false, ..regular() },
        JobContext { references: Vec::new(), ..regular() },
        JobContext { references: vec![JobOutcome::Processing, JobOutcome::Failed], ..regular() },
        JobContext { entries: Vec::new(), ..regular() },
        JobContext { entries: vec![(JobState::Storing, entry(6))], ..regular() },
        JobContext { entries: vec![(JobState::Recording, entry(5))], ..regular() },
    ] {
        assert!(!odd.is_regular(JobState::Storing, &location), "{odd:?}");
    }
}
