//! What the rules find of a job, its entries and its references.

use super::*;
use crate::path::{EntryName, JobNode, StateFolder};

const JOB: JobId = JobId::new(1);
const BATCH: BatchId = BatchId::new(7);
const J: &str = "/jobs/jid0000000001";
const ENTRIES: &str = "/jobs/states";

static ENTRY: [(StateFolder, EntryName); 1] = [entry(JobState::Processing, 5)];
static FAILED_ENTRY: [(StateFolder, EntryName); 1] = [entry(JobState::Failed, 5)];

const fn entry(state: JobState, priority: i32) -> (StateFolder, EntryName) {
    (StateFolder::Known(state), EntryName { priority, job: JOB })
}

fn set(children: &[JobNode]) -> NodeSet {
    NodeSet::from_bits(children.iter().fold(1 << NodeSet::OWN, |bits, node| bits | 1 << (*node as u8)))
}

/// A job in Processing of which nothing is wrong.
fn job() -> JobFacts<'static> {
    JobFacts {
        id: JOB,
        present: set(&[JobNode::Bid, JobNode::Status, JobNode::Priority, JobNode::SpaceNeeded]),
        malformed: NodeSet::default(),
        denied: NodeSet::default(),
        state: Some(JobState::Processing),
        is_canonical: true,
        entered_ms: ENTERED,
        created_ms: CREATED,
        retry_count: Some(0),
        priority: Some(5),
        is_priority_out_of_range: false,
        batch: Some(BATCH),
        is_batch_acquired: true,
        is_leaving: false,
        entries: &ENTRY,
        references: &[(BATCH, JobOutcome::Processing)],
        lock: None,
        is_expanding: false,
    }
}

/// A failed job that was resumed so often, of which nothing else is wrong.
fn failed(retry_count: Option<u32>) -> JobFacts<'static> {
    JobFacts {
        state: Some(JobState::Failed),
        retry_count,
        entries: &FAILED_ENTRY,
        references: &[(BATCH, JobOutcome::Failed)],
        ..job()
    }
}

fn of(job: &JobFacts<'_>) -> Vec<String> {
    found(|limits, sink| detect_job(job, limits, sink))
}

#[test]
fn a_job_shows_what_keeps_it_from_being_loaded() {
    let gone = JobFacts { present: NodeSet::default(), entries: &[], references: &[], ..job() };
    assert_eq!([job(), gone].each_ref().map(of), [[""; 0]; 2]);
    let bare = JobFacts { present: set(&[JobNode::Lock]), ..job() };
    assert_eq!(of(&bare), [format!("unfinished_creation since 1000000 lasting 0 from 1005000: {J}")]);

    let unloadable = |at: i64, nodes: &str| format!("unloadable_job seen, {at} at the earliest lasting 2000: {nodes}");
    let bare_status = JobFacts { present: set(&[JobNode::Status, JobNode::Priority]), ..job() };
    assert_eq!(of(&bare_status), [unloadable(CREATED, &format!("{J}/bid {J}/space_needed"))]);
    let garbage = JobFacts { malformed: set(&[JobNode::Configuration, JobNode::Store]).without(NodeSet::OWN), ..job() };
    assert_eq!(of(&garbage), [unloadable(ENTERED, &format!("{J}/configuration {J}/store"))]);
    let status = unloadable(ENTERED, &format!("{J}/status"));
    assert_eq!(of(&JobFacts { is_canonical: false, ..job() }), [&*status]);
    assert_eq!(of(&JobFacts { retry_count: None, ..job() }), [&*status]);
    assert_eq!(of(&JobFacts { retry_count: None, is_canonical: false, ..job() }), [&*status]);
    let odd = JobFacts { retry_count: None, is_canonical: false, ..job() };
    for (job, count) in [
        (JobFacts { denied: set(&[JobNode::Status]), ..odd.clone() }, 0),
        // Each is reported once.
        (JobFacts { malformed: set(&[JobNode::Status]).without(NodeSet::OWN), ..odd.clone() }, 1),
        (JobFacts { present: set(&[JobNode::Bid, JobNode::Priority, JobNode::SpaceNeeded]), ..odd }, 1),
    ] {
        assert_eq!(of(&job).len(), count, "{job:?}");
    }
    let lost = JobFacts { is_batch_acquired: false, ..job() };
    assert_eq!(of(&lost), [unloadable(ENTERED, &format!("{J}/bid /batches/bid0000000007"))]);
    assert_eq!(of(&JobFacts { batch: None, ..lost.clone() }), [""; 0]);
    let unseen = JobFacts { entered_ms: i64::MAX, ..lost };
    assert_eq!(of(&unseen), [unloadable(CREATED, &format!("{J}/bid /batches/bid0000000007"))]);
}

#[test]
fn a_job_shows_entries_that_are_missing_in_the_wrong_place_or_too_many() {
    let seen = |fault: &str, mark: u64| format!("{fault} seen, 2000000 at the earliest lasting 2000 mark {mark}:");
    let missing = |entry: &str| format!("{} {J}{entry}", seen("missing_entry", 2_000_000));
    let own = format!(" {ENTRIES}/processing/05-jid0000000001");
    let with = |entries| JobFacts { entries, ..job() };
    assert_eq!(of(&JobFacts { is_expanding: true, ..with(&[]) }), [""; 0]);
    assert_eq!(of(&with(&[])), [missing(&own)]);
    assert_eq!(of(&JobFacts { priority: None, ..with(&[]) }), [missing("")]);
    for (state, entries) in [(JobState::Completed, 0), (JobState::Deleted, 0), (JobState::Held, 1)] {
        let references = [(BATCH, state.outcome())];
        let at_rest = JobFacts { state: Some(state), references: &references, ..with(&[]) };
        assert_eq!(of(&at_rest).len(), entries, "{state}");
    }
    // Of another priority it is not its own, but any is while its own is not known.
    let other = [entry(JobState::Processing, 6)];
    assert_eq!(of(&with(&other)), [missing(&own)]);
    assert_eq!(of(&JobFacts { priority: None, ..with(&other) }), [""; 0]);

    let (storing, unknown) = (entry(JobState::Storing, 5), (StateFolder::Other("odd".into()), ENTRY[0].1));
    let orphans = [storing.clone(), ENTRY[0].clone(), unknown];
    let found = of(&with(&orphans));
    let nodes = format!("{ENTRIES}/storing/05-jid0000000001 {ENTRIES}/odd/05-jid0000000001 {J}/status");
    assert!(
        matches!(&found[..], [orphan] if orphan.starts_with("orphan_entry") && orphan.ends_with(&nodes)),
        "{found:?}"
    );
    // Of a job whose state is not known, no entry is in the wrong place.
    let found = of(&JobFacts { state: None, references: &[], ..with(&orphans[..2]) });
    let nodes = format!(": {ENTRIES}/processing/05-jid0000000001 {ENTRIES}/storing/05-jid0000000001");
    assert!(matches!(&found[..], [two] if two.starts_with("duplicate_entry") && two.ends_with(&nodes)), "{found:?}");
    let twice = [entry(JobState::Processing, 6), ENTRY[0].clone(), storing];
    let found = of(&with(&twice));
    let nodes = format!(": {ENTRIES}/processing/05-jid0000000001 {ENTRIES}/processing/06-jid0000000001");
    assert!(found.len() == 2 && found[0].starts_with("duplicate_entry") && found[0].ends_with(&nodes), "{found:?}");
}

#[test]
fn an_orphan_in_another_state_or_of_another_priority_is_another_orphan() {
    let mark = |entries: &[_]| {
        let mut mark = None;
        detect_job(&JobFacts { entries, ..job() }, &limits(), &mut |finding| {
            if finding.fault == Fault::OrphanEntry {
                mark = Some(finding.mark);
            }
        });
        mark.unwrap()
    };
    let [one, other, urgent] =
        [entry(JobState::Storing, 5), entry(JobState::Recording, 5), entry(JobState::Storing, 4)];
    let first = entry(JobState::Pending, 0);
    let unknown = (StateFolder::Other("odd".into()), EntryName { priority: 5, job: JOB });
    let sets = [
        vec![one.clone()],
        vec![other.clone()],
        vec![urgent],
        vec![unknown],
        vec![first.clone()],
        vec![one.clone(), other.clone()],
        vec![one.clone(), first],
    ];
    let marks: std::collections::BTreeSet<_> = sets.iter().map(|entries| mark(entries)).collect();
    assert_eq!(marks.len(), sets.len());
    assert_eq!(mark(&[one.clone(), other.clone()]), mark(&[other, one]), "in whatever order they are kept");
}

#[test]
fn a_job_shows_a_priority_that_does_not_have_two_digits() {
    let at = |nodes: &str| format!("priority_out_of_range seen, 2000000 at the earliest lasting 2000: {nodes}");
    let odd = [entry(JobState::Processing, 100), entry(JobState::Processing, -1), ENTRY[0].clone()];
    let entries = format!("{ENTRIES}/processing/-1-jid0000000001 {ENTRIES}/processing/100-jid0000000001");
    assert_eq!(of(&JobFacts { entries: &odd, ..job() })[0], at(&entries));
    // The daemons read it, so it is not malformed.
    let malformed = set(&[JobNode::Priority]).without(NodeSet::OWN);
    let unread = JobFacts { priority: None, malformed, ..job() };
    let ranged = JobFacts { is_priority_out_of_range: true, ..unread.clone() };
    assert_eq!(of(&ranged), [at(&format!("{J}/priority"))]);
    assert_eq!(of(&unread), [format!("unloadable_job seen, 2000000 at the earliest lasting 2000: {J}/priority")]);
    for priority in [0, 99] {
        let entries = [entry(JobState::Processing, priority)];
        assert_eq!(of(&JobFacts { entries: &entries, priority: None, ..job() }), [""; 0], "{priority}");
    }
}

#[test]
fn a_job_shows_references_that_are_missing_contradict_it_or_are_too_many() {
    let seen =
        |fault: &str, nodes: &str| format!("{fault} seen, 2000000 at the earliest lasting 2000 mark 2000000: {nodes}");
    let with = |references| JobFacts { references, ..job() };
    let own = "/batches/bid0000000007/states/batch-processing/jid0000000001";
    assert_eq!(of(&with(&[])), [seen("missing_reference", &format!("{J} {own}"))]);
    assert_eq!(of(&JobFacts { batch: None, ..with(&[]) }), [seen("missing_reference", J)]);
    let failed = "/batches/bid0000000007/states/batch-failed/jid0000000001";
    let contradicts = of(&with(&[(BATCH, JobOutcome::Failed)]));
    assert_eq!(contradicts, [seen("missing_reference", &format!("{J} {own} {failed}"))]);
    let others = [(BatchId::new(8), JobOutcome::Processing)];
    let elsewhere = "/batches/bid0000000008/states/batch-processing/jid0000000001";
    assert_eq!(of(&with(&others)), [seen("missing_reference", &format!("{J} {own} {elsewhere}"))]);
    assert_eq!(of(&JobFacts { batch: None, ..with(&others) }), [""; 0]);
    let two = [(BATCH, JobOutcome::Failed), (BATCH, JobOutcome::Processing)];
    let duplicate = seen("duplicate_reference", &format!("{own} {failed}"));
    assert_eq!(of(&with(&two)), [&*duplicate]);
    assert_eq!(of(&JobFacts { state: None, ..with(&two) })[0], duplicate);
    assert_eq!(of(&JobFacts { state: None, ..with(&[]) }), [""; 0]);
}

#[test]
fn what_a_job_leaves_behind_is_a_fault_and_may_lie_longer_while_its_batch_is_cleaned_up() {
    let gone = JobFacts { present: NodeSet::default(), state: None, ..job() };
    let stray = format!("stray_entry seen lasting 2000: {ENTRIES}/processing/05-jid0000000001");
    let reference = "/batches/bid0000000007/states/batch-processing/jid0000000001";
    let missing = |lasting| format!("missing_reference seen lasting {lasting}: {reference}");
    assert_eq!(of(&gone), [&*stray, &*missing(2_000)]);
    assert_eq!(of(&JobFacts { is_leaving: true, ..gone.clone() }), [stray, missing(302_000)]);
    assert_eq!(of(&JobFacts { entries: &[], ..gone }), [missing(2_000)]);
}

#[test]
fn a_job_shows_a_lock_that_is_left_and_retries_that_are_exhausted() {
    let leaked = |from: i64| format!("leaked_lock since 2000005 lasting 0 from {from}: {J}/lock");
    let locked = JobFacts { lock: Some(lock(ENTERED + 5)), ..job() };
    let day = 24 * 3_600_000;
    assert_eq!(of(&locked), [leaked(ENTERED + 5 + day)]);
    let later = JobFacts { entered_ms: ENTERED + 7, ..locked.clone() };
    assert_eq!(of(&later), [leaked(ENTERED + 7 + day)]);
    assert_eq!(of(&JobFacts { entered_ms: i64::MAX, ..locked }), [leaked(ENTERED + 5 + day)]);
    let at_rest = JobFacts { lock: Some(lock(ENTERED + 5)), ..failed(Some(0)) };
    assert_eq!(of(&at_rest), [leaked(ENTERED + 5 + 30_000)]);

    assert_eq!(of(&failed(Some(2))), [""; 0]);
    for retries in [3, 4] {
        let exhausted = format!("retries_exhausted since 2000000 lasting 0 from 2002000: {J}/status");
        assert_eq!(of(&failed(Some(retries))), [exhausted], "{retries}");
    }
    assert_eq!(of(&JobFacts { retry_count: Some(3), ..job() }), [""; 0]);
}
