//! The facts that follow from the znodes of an item.

use super::*;
use crate::state::{AccessState, JobState};
use crate::testing::{batch, found, job, request, stat};

const BATCH: BatchId = BatchId::new(7);

fn children(nodes: NodeSet, all: usize) -> Vec<usize> {
    (0..all).filter(|node| nodes.has(u8::try_from(*node).unwrap())).collect()
}

fn inspection(job: Option<Job>) -> JobInspection {
    let (entries, references) = (Vec::new(), vec![(BATCH, JobOutcome::Failed)]);
    let created = Some(stat());
    JobInspection {
        id: JobId::new(1),
        job,
        created,
        entries,
        references,
        is_batch_acquired: true,
        batch_state: None,
        is_expanding: false,
    }
}

#[test]
fn the_facts_of_a_job_are_those_of_its_znodes() {
    let nodes = [
        (JobNode::Bid, "bid0000000007"),
        (JobNode::Status, r#"{"status":"Storing","retry_count":2}"#),
        (JobNode::Priority, "100"),
        (JobNode::Store, "[]"),
        (JobNode::Lock, ""),
    ];
    let whole = inspection(Some(job(&nodes)));
    let facts = whole.facts();
    assert_eq!(children(facts.present, 11), [0, 2, 3, 8, 10]);
    assert!(facts.present.has(NodeSet::OWN) && !facts.malformed.has(NodeSet::OWN) && facts.denied.is_empty());
    assert_eq!(children(facts.malformed, 11), [3, 8]);
    assert_eq!((facts.state, facts.is_canonical, facts.retry_count), (Some(JobState::Storing), true, Some(2)));
    assert_eq!((facts.entered_ms, facts.created_ms), (2_000, 1_000));
    assert_eq!((facts.priority, facts.is_priority_out_of_range, facts.batch), (None, true, Some(BATCH)));
    assert_eq!((facts.is_batch_acquired, facts.references), (true, &[(BATCH, JobOutcome::Failed)][..]));
    assert_eq!(facts.lock, Some(LockFacts { created_ms: 1_000, is_ephemeral: false }));
    let mut references = whole.reference_paths();
    let reference = Path::Reference(BATCH, JobOutcome::Failed, JobId::new(1));
    assert_eq!((references.next(), references.next(), whole.entry_paths().next()), (Some(reference), None, None));

    let facts = inspection(Some(job(&[(JobNode::Status, r#"{"status":"storing"}"#), (JobNode::Priority, "9")])));
    let facts = facts.facts();
    assert!(!facts.is_canonical && facts.retry_count.is_none() && !facts.is_priority_out_of_range);
    assert_eq!((facts.priority, facts.batch, facts.lock), (Some(9), None, None));
    let gone = JobInspection { created: None, ..inspection(None) };
    let gone = gone.facts();
    assert!(gone.present.is_empty() && gone.state.is_none() && !gone.is_canonical);
    assert_eq!((gone.entered_ms, gone.created_ms), (i64::MAX, i64::MAX));
}

#[test]
fn the_facts_of_a_batch_are_those_of_its_znodes_and_of_its_uuid() {
    let inspection = |nodes: &[(BatchNode, &str)], entry| BatchInspection {
        batch: batch(nodes, &[(JobOutcome::Failed, 2)]),
        created: Some(stat()),
        uuid: "uuid-7".to_owned(),
        entry,
        is_paused: true,
        is_given_back: false,
    };
    let nodes = [(BatchNode::Submission, "[]"), (BatchNode::Status, r#"{"status":"held"}"#), (BatchNode::Lock, "")];
    let path = Path::BatchUuid("uuid-7".into());
    let leads = |data: &str| Some((path.clone(), found(data)));
    let whole = inspection(&nodes, leads("bid0000000007"));
    let facts = whole.facts();
    assert_eq!((children(facts.present, 5), children(facts.malformed, 5)), (vec![0, 1, 3], vec![0]));
    assert!(facts.present.has(NodeSet::OWN) && facts.is_paused && !facts.is_canonical);
    assert_eq!((facts.state, facts.entered_ms, facts.created_ms), (Some(BatchState::Held), 2_000, 1_000));
    assert_eq!((facts.references, facts.uuid), ([None, Some(2), None, None], "uuid-7"));
    assert_eq!(facts.lock, Some(LockFacts { created_ms: 1_000, is_ephemeral: false }));
    for (entry, is_found) in [
        (leads("bid0000000007"), Some(true)),
        (leads("bid0000000008"), Some(false)),
        (leads("odd"), Some(false)),
        (Some((path.clone(), Found::Nothing)), Some(false)),
        (None, None),
    ] {
        assert_eq!(inspection(&nodes, entry).facts().is_found_by_uuid, is_found);
    }
    let malformed = |status| children(inspection(&[(BatchNode::Status, status)], None).facts().malformed, 5);
    assert_eq!([malformed("[]"), malformed(r#"{"status":"odd"}"#)], [vec![1], vec![]]);
    // What is missing is not malformed.
    assert!(inspection(&[], None).facts().malformed.is_empty());
}

#[test]
fn the_facts_of_a_request_are_those_of_its_znodes() {
    let nodes = [(RequestNode::Token, "[]"), (RequestNode::Status, r#"{"status":"Failed"}"#), (RequestNode::Lock, "")];
    let facts = request_facts(&request(&nodes), 9);
    assert_eq!((children(facts.present, 3), children(facts.malformed, 3)), (vec![0, 1, 2], vec![0]));
    assert_eq!((facts.state, facts.is_canonical), (Some(AccessState::Failed), true));
    assert_eq!((facts.entered_ms, facts.created_ms), (2_000, 9));
    assert!(facts.present.has(NodeSet::OWN) && facts.lock.is_some());
    let unread = request_facts(&request(&[(RequestNode::Status, "x")]), 9);
    assert_eq!((children(unread.present, 3), children(unread.malformed, 3)), (vec![1], vec![1]));
    assert!(!unread.is_canonical && unread.lock.is_none());
    let bare = request_facts(&request(&[]), 9);
    assert_eq!((children(bare.present, 3), bare.malformed.is_empty(), bare.entered_ms), (vec![], true, i64::MAX));
}

#[test]
fn a_lock_is_ephemeral_where_a_session_holds_it() {
    let lock = |ephemeral_owner| {
        let stat = Stat { ephemeral_owner, ..stat() };
        lock_facts(&Lock::from_stat(Path::Root, &stat))
    };
    assert_eq!(lock(7), LockFacts { created_ms: 1_000, is_ephemeral: true });
    assert!(!lock(0).is_ephemeral);
}
