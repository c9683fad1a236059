//! What each rule finds, given the facts: since when, from when on it counts, and at which znodes.

use std::time::Duration;

use super::*;
use crate::id::{BatchId, JobId};
use crate::path::{BatchNode, Path};
use crate::state::{BatchState, JobOutcome, JobState, State};

mod job;
mod limits;
mod request;
mod stuck;
mod table;

/// When the items of these tests were created, in milliseconds.
const CREATED: i64 = 1_000_000;

/// When they entered their state.
const ENTERED: i64 = 2_000_000;

/// Limits of which no two are the same.
fn limits() -> Limits {
    Limits {
        clean_up: Duration::from_secs(302),
        no_daemon: Duration::from_secs(301),
        held_backlog: Duration::from_secs(303),
        ..Limits::default()
    }
}

/// The findings of a rule, a line each. Instants and lengths are in milliseconds.
fn found(detect: impl FnOnce(&Limits, &mut dyn FnMut(FaultFinding<'_>))) -> Vec<String> {
    let mut lines = Vec::new();
    detect(&limits(), &mut |finding| {
        let FaultFinding { fault, since, lasting_ms, not_before_ms, mark, nodes, .. } = finding;
        let since = match since {
            Since::Known(at) => format!("since {at}"),
            Since::Seen(Some(at)) => format!("seen, {at} at the earliest"),
            Since::Seen(None) => "seen".to_owned(),
        };
        let from = if not_before_ms == i64::MIN { String::new() } else { format!(" from {not_before_ms}") };
        let mark = if mark == 0 { String::new() } else { format!(" mark {mark}") };
        let nodes: Vec<_> = nodes().iter().map(ToString::to_string).collect();
        lines.push(format!("{fault} {since} lasting {lasting_ms}{from}{mark}: {}", nodes.join(" ")));
    });
    lines
}

fn lock(created_ms: i64) -> LockFacts {
    LockFacts { created_ms, is_ephemeral: true }
}

/// A set of children of a batch, and the batch itself.
fn nodes(children: &[BatchNode]) -> NodeSet {
    NodeSet::from_bits(children.iter().fold(1 << NodeSet::OWN, |bits, node| bits | 1 << (*node as u8)))
}

/// A batch in Reporting with a job under way, of which nothing is wrong.
fn batch() -> BatchFacts<'static> {
    BatchFacts {
        id: BatchId::new(7),
        present: nodes(&[BatchNode::Status, BatchNode::Submission, BatchNode::States]),
        malformed: NodeSet::default(),
        denied: NodeSet::default(),
        state: Some(BatchState::Reporting),
        is_canonical: true,
        entered_ms: ENTERED,
        created_ms: CREATED,
        references: [Some(1); 4],
        below_reference: None,
        uuid: "uuid-7",
        is_found_by_uuid: Some(true),
        is_paused: false,
        lock: None,
        is_withdrawn: false,
        is_given_back: false,
    }
}

fn of_batch(batch: &BatchFacts<'_>) -> Vec<String> {
    found(|limits, sink| detect_batch(batch, limits, sink))
}

const B: &str = "/batches/bid0000000007";

/// References of which those under way are so many, and of the others none.
fn processing(jobs: Option<u32>) -> [Option<u32>; 4] {
    let mut references = [Some(0); 4];
    references[JobOutcome::Processing as usize] = jobs;
    references
}

#[test]
fn a_batch_shows_what_keeps_it_from_being_loaded() {
    assert_eq!(of_batch(&batch()), [""; 0]);
    let bare = BatchFacts { present: nodes(&[BatchNode::Lock]), ..batch() };
    assert_eq!(of_batch(&bare), [format!("unfinished_creation since 1000000 lasting 0 from 1005000: {B}")]);
    let no_status = BatchFacts { present: nodes(&[BatchNode::Submission, BatchNode::States]), state: None, ..batch() };
    assert_eq!(
        of_batch(&no_status),
        [format!("unloadable_batch seen, 1000000 at the earliest lasting 2000: {B}/status")]
    );
    let garbage = BatchFacts { malformed: nodes(&[BatchNode::Submission]), ..batch() };
    assert_eq!(
        of_batch(&garbage),
        [format!("unloadable_batch seen, 2000000 at the earliest lasting 2000: {B}/submission")]
    );
    let odd = BatchFacts { is_canonical: false, state: None, entered_ms: i64::MAX, ..batch() };
    assert_eq!(of_batch(&odd), [format!("unloadable_batch seen, 1000000 at the earliest lasting 2000: {B}/status")]);
    // What is not readable is reported elsewhere.
    let denied = BatchFacts { denied: nodes(&[BatchNode::Status]), ..odd.clone() };
    assert_eq!(of_batch(&denied), [""; 0]);
    let held = BatchFacts {
        state: Some(BatchState::Held),
        present: nodes(&[BatchNode::Status, BatchNode::Submission]),
        references: [None; 4],
        ..batch()
    };
    assert_eq!(
        of_batch(&held),
        [format!("unloadable_batch seen, 2000000 at the earliest lasting 2000: {B}/status {B}/states")]
    );
}

#[test]
fn a_batch_shows_what_keeps_it_from_its_report() {
    let due = BatchFacts { references: processing(Some(0)), ..batch() };
    let overdue = format!("overdue_batch seen lasting 300000 mark 2000000: {B}/status {B}/states/batch-processing");
    assert_eq!(of_batch(&due), [overdue]);
    assert_eq!(of_batch(&BatchFacts { is_paused: true, ..due.clone() }), [""; 0]);
    assert_eq!(of_batch(&BatchFacts { lock: Some(lock(ENTERED)), ..due.clone() }).len(), 1, "of the lock alone");
    let begun = BatchFacts { references: processing(None), state: Some(BatchState::Processing), ..batch() };
    let unfinished = "unfinished_creation seen, 2000000 at the earliest lasting 5000";
    assert_eq!(of_batch(&begun), [format!("{unfinished}: {B}/states {B}/states/batch-processing")]);
    // A daemon of ours gave it back, to create its jobs later.
    assert_eq!(of_batch(&BatchFacts { is_given_back: true, ..begun.clone() }), [""; 0]);
    // Without `states`, no daemon has acquired it.
    let waiting = BatchFacts { present: nodes(&[BatchNode::Status, BatchNode::Submission]), ..begun };
    assert_eq!(of_batch(&waiting), [""; 0]);
    let pending = BatchFacts { state: Some(BatchState::Pending), ..waiting };
    let untaken = format!("contradicting_batch seen lasting 300000 mark 2000000: {B}/status");
    assert_eq!(of_batch(&pending), [untaken]);
    assert_eq!(of_batch(&BatchFacts { is_paused: true, ..pending.clone() }), [""; 0]);
    for state in [BatchState::Completed, BatchState::Failed, BatchState::Deleted] {
        let skipped = BatchFacts { references: processing(None), state: Some(state), ..batch() };
        assert_eq!(of_batch(&BatchFacts { is_withdrawn: true, ..skipped.clone() }), [""; 0]);
        let found = format!("overdue_batch seen, 2000000 at the earliest lasting 2000: {B}/status");
        assert_eq!(of_batch(&skipped), [format!("{found} {B}/states/batch-processing")], "{state}");
    }
    let deleted = BatchFacts { references: processing(Some(0)), state: Some(BatchState::Deleted), ..batch() };
    let blocks = "deleted_batch_blocks_reporting seen, 2000000 at the earliest lasting 2000";
    assert_eq!(of_batch(&deleted), [format!("{blocks}: {B}/status {B}/states/batch-processing")]);
    let completed = BatchFacts { references: processing(Some(1)), state: Some(BatchState::Completed), ..batch() };
    let open = "contradicting_batch seen, 2000000 at the earliest lasting 2000";
    assert_eq!(of_batch(&completed), [format!("{open}: {B}/status {B}/states/batch-processing")]);
    let odd = format!("{B}/states/batch-failed/jid0000000001/x");
    let below = BatchFacts { below_reference: Some(&odd), ..batch() };
    assert_eq!(of_batch(&below), [format!("contradicting_batch seen lasting 2000: {odd}")]);
}

/// The findings with the fix that each has of its own.
fn fixes_of_batch(batch: &BatchFacts<'_>) -> Vec<(Fault, Option<&'static str>)> {
    let mut fixes = Vec::new();
    detect_batch(batch, &limits(), &mut |finding: FaultFinding<'_>| fixes.push((finding.fault, finding.fix)));
    fixes
}

#[test]
fn a_fault_of_a_batch_shows_the_fix_of_its_own_case() {
    let check = "Check whether the batch daemon is running and whether its log shows why it does not reach the batch.";
    let due = BatchFacts { references: processing(Some(0)), ..batch() };
    assert_eq!(fixes_of_batch(&due), [(Fault::OverdueBatch, Some(check))]);
    let skipped = |state| BatchFacts { references: processing(None), state: Some(state), ..batch() };
    let fix = |state| fixes_of_batch(&skipped(state))[0].1.unwrap();
    assert!(fix(BatchState::Failed).starts_with("Create batch-processing"));
    assert!(fix(BatchState::Deleted).starts_with("Purge it by name"));
    let creating = BatchFacts { state: Some(BatchState::Processing), lock: Some(lock(ENTERED + 5)), ..batch() };
    let fixes = fixes_of_batch(&creating);
    assert!(fixes[0].1.unwrap().contains("break the lock"), "{fixes:?}");
    assert_eq!(fixes[1], (Fault::LeakedLock, None));
    let present = nodes(&[BatchNode::Status, BatchNode::Submission]);
    let untaken = BatchFacts { state: Some(BatchState::Pending), present, references: [None; 4], ..batch() };
    let open = BatchFacts { references: processing(Some(1)), state: Some(BatchState::Completed), ..batch() };
    let below = BatchFacts { below_reference: Some("/batches/x"), ..batch() };
    for (facts, fix) in [
        (untaken, check),
        (open, "Finish or delete its unfinished jobs."),
        (below, "Delete the children of the reference by hand."),
    ] {
        assert_eq!(fixes_of_batch(&facts), [(Fault::ContradictingBatch, Some(fix))]);
    }
}

#[test]
fn a_batch_shows_a_lock_that_is_left_and_a_uuid_that_does_not_lead_to_it() {
    let creating = BatchFacts { state: Some(BatchState::Processing), lock: Some(lock(ENTERED + 5)), ..batch() };
    assert_eq!(
        of_batch(&creating),
        [
            format!("overdue_batch since 2000005 lasting 0 from 16400005: {B}/status {B}/lock"),
            format!("leaked_lock since 2000005 lasting 0 from 45200005: {B}/lock"),
        ]
    );
    // The limit of a state begins with the state where the lock is older.
    let old = BatchFacts { lock: Some(lock(CREATED)), ..batch() };
    assert_eq!(of_batch(&old), [format!("leaked_lock since 1000000 lasting 0 from 5600000: {B}/lock")]);
    let kept = BatchFacts { lock: Some(LockFacts { is_ephemeral: false, ..lock(CREATED) }), ..old.clone() };
    assert_eq!(of_batch(&kept)[0], format!("leaked_lock since 1000000 lasting 0 from 1002000: {B}/lock"));
    let at_rest = BatchFacts { state: Some(BatchState::Deleted), references: processing(Some(1)), ..old };
    assert_eq!(of_batch(&at_rest), [format!("leaked_lock since 1000000 lasting 0 from 2030000: {B}/lock")]);
    let lost = BatchFacts { is_found_by_uuid: Some(false), ..batch() };
    let dangling = |lasting| format!("dangling_uuid seen, 1000000 at the earliest lasting {lasting}: {B}/submission");
    assert_eq!(of_batch(&lost), [format!("{} /batch-uuids/uuid-7", dangling(2000))]);
    assert_eq!(of_batch(&BatchFacts { is_found_by_uuid: None, ..lost.clone() }), [""; 0]);
    assert_eq!(of_batch(&BatchFacts { uuid: "", ..lost.clone() }), [""; 0]);
    // A cleanup may delete the UUID first.
    let leaving = BatchFacts { state: Some(BatchState::Deleted), references: processing(Some(1)), ..lost };
    assert_eq!(of_batch(&leaving), [format!("{} /batch-uuids/uuid-7", dangling(302_000))]);
}

#[test]
fn a_state_is_stuck_when_nothing_leaves_it_and_without_daemon_when_nothing_is_taken() {
    let facts = StateFacts {
        is_served: false,
        oldest_ms: Some(ENTERED),
        oldest_due_ms: Some(ENTERED + 3),
        left_ms: i64::MIN,
        taken_ms: i64::MIN,
        locked: 1,
        is_head_blocked: false,
        stop: None,
    };
    let of = |state: JobState, facts: StateFacts| {
        let oldest = || vec![Path::Job(JobId::new(1))];
        found(|limits, sink| detect_state(state, facts, limits, &oldest, sink))
    };
    let stuck = |since: i64, from: i64| {
        format!("stuck_state since {since} lasting 0 from {from}: /jobs/states/storing /jobs/jid0000000001")
    };
    let day = 24 * 3_600_000;
    assert_eq!(of(JobState::Storing, facts), [stuck(ENTERED + 3, ENTERED + 3 + day)]);
    assert_eq!(of(JobState::Storing, StateFacts { oldest_due_ms: None, ..facts }), [""; 0]);
    let left = StateFacts { left_ms: ENTERED + 7, ..facts };
    assert_eq!(of(JobState::Storing, left), [stuck(ENTERED + 7, ENTERED + 7 + day)]);
    let without_daemon = |seen: &str, mark: i64| {
        let mark = mark.cast_unsigned();
        format!(
            "no_daemon seen, {seen} at the earliest lasting 301000 mark {mark}: /jobs/states/storing /jobs/jid0000000001"
        )
    };
    let free = StateFacts { locked: 0, ..facts };
    assert_eq!(of(JobState::Storing, free)[1..], [without_daemon("2000000", i64::MIN)]);
    let taken = StateFacts { taken_ms: ENTERED + 9, left_ms: ENTERED + 7, ..free };
    assert_eq!(of(JobState::Storing, taken)[1..], [without_daemon("2000009", ENTERED + 9)]);
    assert_eq!(of(JobState::Storing, StateFacts { is_head_blocked: true, ..free }).len(), 1);
    assert_eq!(of(JobState::Storing, StateFacts { is_served: true, ..free }).len(), 1);
    assert_eq!(of(JobState::Storing, StateFacts { stop: Some(Stop::Paused), ..free }), [""; 0]);
    // Jobs that no daemon takes although one is there wait for a store that is held; one at work does not.
    let held = StateFacts { stop: Some(Stop::StoreHeld), is_served: true, taken_ms: ENTERED + 9, ..free };
    assert_eq!(of(JobState::Storing, held), [""; 0]);
    assert_eq!(of(JobState::Storing, StateFacts { locked: 1, ..held }), [stuck(ENTERED + 9, ENTERED + 9 + day)]);
    assert_eq!(of(JobState::Storing, StateFacts { is_served: false, ..held }).len(), 2);
    assert_eq!(of(JobState::Storing, StateFacts { oldest_ms: None, ..free }), [""; 0]);
    for state in [JobState::Failed, JobState::Held, JobState::Completed, JobState::Deleted] {
        assert_eq!(of(state, free), [""; 0], "{state}");
        assert!(!state.is_worked_on());
    }
}

#[test]
fn locks_collections_and_uuids_show_what_is_left_of_them() {
    let path = Path::parse("/locks/inventory/ark_1_2");
    let of_lock = |lock| found(|limits, sink| detect_lock(&path, lock, limits, sink));
    let long = "leaked_lock since 1000000 lasting 0 from 8200000: /locks/inventory/ark_1_2";
    assert_eq!(of_lock(lock(CREATED)), [long]);
    let kept = "leaked_lock since 1000000 lasting 0 from 1002000: /locks/inventory/ark_1_2";
    assert_eq!(of_lock(LockFacts { is_ephemeral: false, ..lock(CREATED) }), [kept, long]);

    let path = Path::parse("/locks/storage/ark_1_2");
    let stored = |is| found(|limits, sink| detect_storage_lock(&path, lock(CREATED), is, limits, sink));
    assert_eq!(stored(true), [""; 0]);
    let left = "leaked_storage_lock since 1000000 lasting 2000 from 1060000 mark 1000000: /locks/storage/ark_1_2";
    assert_eq!(stored(false), [left]);

    let path = Path::parse("/locks/queue/ingest");
    let pause = found(|limits, sink| detect_pause(&path, lock(CREATED), limits, sink));
    assert_eq!(pause, ["forgotten_pause since 1000000 lasting 0 from 87400000: /locks/queue/ingest"]);

    let of_collection = |is_held, pending, held| {
        let facts = CollectionFacts { is_held, pending, held };
        found(|limits, sink| detect_collection(facts, limits, &|| vec![Path::Job(JobId::new(1))], sink))
    };
    let backlog = "held_collection_backlog seen lasting 303000";
    assert_eq!(of_collection(true, 1, 0), [format!("{backlog} mark 1: /jobs/jid0000000001")]);
    assert_eq!(of_collection(false, 0, 1), [format!("{backlog}: /jobs/jid0000000001")]);
    assert_eq!([of_collection(true, 0, 1), of_collection(false, 1, 0)], [[""; 0]; 2]);

    let path = Path::BatchUuid("uuid-7".into());
    let of_uuid = |leads| found(|limits, sink| detect_uuid(&path, UuidFacts { written_ms: 3, leads }, limits, sink));
    assert_eq!(of_uuid(UuidLeads::ToBatch), [""; 0]);
    let dangling = "dangling_uuid seen, 3 at the earliest lasting 2000: /batch-uuids/uuid-7";
    assert_eq!([of_uuid(UuidLeads::InSpaces), of_uuid(UuidLeads::Nowhere)], [[dangling]; 2]);
}

#[test]
fn a_folder_is_near_its_limit_and_a_name_is_malformed_as_long_as_they_last() {
    let of_folder = |children| found(|limits, sink| detect_folder(&Path::Jobs, children, limits, sink));
    assert_eq!([of_folder(44_999), of_folder(0)], [[""; 0]; 2]);
    assert_eq!([of_folder(45_000), of_folder(45_001)], [["folder_near_limit seen lasting 2000: /jobs"]; 2]);
    let large = BatchFacts { references: [Some(1), Some(45_000), None, Some(44_999)], ..batch() };
    assert_eq!(of_batch(&large), [format!("folder_near_limit seen lasting 2000: {B}/states/batch-failed")]);

    let of_name = |text: &str| found(|limits, sink| detect_name(&Path::parse(text), limits, sink));
    assert_eq!(of_name("/jobs/jid77777"), ["malformed_name seen lasting 2000: /jobs/jid77777"]);
    assert_eq!(of_name("/jobs/jid0000077777"), [""; 0]);
}

#[test]
fn a_misnamed_znode_is_described_by_what_it_should_be() {
    let how = |path: &str| {
        let mut how = "";
        detect_name(&Path::parse(path), &limits(), &mut |finding| how = finding.how);
        how
    };
    assert!(how("/jobs/states/pending/05-").starts_with("It is not a queue entry"));
    assert!(how("/jobs/jid77777").starts_with("It is not a job's id"));
    assert!(how("/batches/bid99999").starts_with("It is not a batch's id"));
}

#[test]
fn a_finding_counts_when_it_has_lasted_and_not_before_its_instant() {
    let finding = |lasting_ms, not_before_ms| FaultFinding {
        fault: Fault::LeakedLock,
        how: "",
        fix: None,
        since: Since::Seen(None),
        lasting_ms,
        not_before_ms,
        mark: 0,
        nodes: &|| Vec::new(),
    };
    assert_eq!(finding(10, i64::MIN).due_ms(5), 15);
    assert_eq!(finding(10, 20).due_ms(5), 20);
    assert_eq!(finding(10, 20).due_ms(i64::MAX), i64::MAX);
}
