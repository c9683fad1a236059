//! What follows for a job that the daemons cannot load.

use super::*;
use crate::id::JobId;
use crate::path::StateFolder;
use crate::state::JobOutcome;
use crate::testing::job;

const ID: JobId = JobId::new(1);
const BATCH: BatchId = BatchId::new(7);
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The znodes of a job that the daemons can load.
const NODES: [(JobNode, &[u8]); 5] = [
    (JobNode::Bid, b"bid0000000007"),
    (JobNode::Configuration, b"{}"),
    (JobNode::Status, br#"{"status":"Storing","last_successful_status":"Processing","retry_count":2}"#),
    (JobNode::Priority, b"5"),
    (JobNode::SpaceNeeded, b"70"),
];

fn with(node: JobNode, data: Option<&'static [u8]>) -> Job {
    let others = NODES.into_iter().filter(|(other, _)| *other != node);
    job(&others.chain(data.map(|data| (node, data))).collect::<Vec<_>>())
}

fn entry(state: JobState, priority: i32) -> (StateFolder, EntryName) {
    (state.into(), EntryName { priority, job: ID })
}

/// A job with one entry and one reference, in Storing, whose batch was acquired.
fn around() -> JobInspection {
    JobInspection {
        id: ID,
        job: None,
        created: None,
        entries: vec![entry(JobState::Storing, 4)],
        references: vec![(BATCH, JobOutcome::Processing)],
        is_batch_acquired: true,
        is_expanding: false,
        batch_state: None,
    }
}

/// What is written, in words, and whether the old data of the first znode is lost.
fn repaired(around: &JobInspection, job: &Job) -> Result<(String, bool), String> {
    let start = "it cannot be repaired, because the correct value cannot be derived from the rest of the tree: ";
    match around.loadable(job, NOW) {
        Ok(repair) => Ok((repair.words.join("; "), !repair.loses.is_empty())),
        Err(Error::Invalid { reason, .. }) => {
            let end = ". Write it by hand, or purge it by its name and have it submitted again";
            Err(reason.strip_prefix(start).and_then(|reason| reason.strip_suffix(end)).unwrap_or(&reason).to_owned())
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_loadable_job_needs_nothing() {
    let repair = around().loadable(&job(&NODES), NOW).unwrap();
    assert!(repair.changes.is_empty() && repair.words.is_empty() && repair.loses.is_empty() && !repair.writes_status);
    assert!(around().is_repairable(&job(&NODES), NOW));
    assert!(!around().is_repairable(&with(JobNode::Configuration, Some(b"[]")), NOW));
}

#[test]
fn a_plain_value_follows_from_itself_or_from_what_refers_to_the_job() {
    type Row = (JobNode, Option<&'static [u8]>, &'static str, bool);
    let all = around();
    let nothing = JobInspection { entries: Vec::new(), references: Vec::new(), ..around() };
    let rows: &[Row] = &[
        (JobNode::Bid, None, "bid: bid0000000007", false),
        (JobNode::Bid, Some(b"bid0000000007\n"), "bid: bid0000000007", false),
        (JobNode::Bid, Some(b"seven"), "bid: bid0000000007", true),
        (JobNode::Priority, None, "priority: 4", false),
        (JobNode::Priority, Some(b"7\n"), "priority: 7", false),
        (JobNode::Priority, Some(b"high"), "priority: 4", true),
        (JobNode::Priority, Some(b"100"), "", false),
        (JobNode::SpaceNeeded, None, "space_needed: 0", false),
        (JobNode::SpaceNeeded, Some(b" 70"), "space_needed: 70", false),
        (JobNode::SpaceNeeded, Some(b"a lot"), "space_needed: 0", true),
    ];
    for (node, data, words, loses) in rows {
        let found = repaired(&all, &with(*node, *data));
        assert_eq!(found, Ok(((*words).to_owned(), *loses)), "{node:?} {data:?}");
    }
    assert_eq!(repaired(&nothing, &with(JobNode::Priority, None)), Ok(("priority: 5".to_owned(), false)));
    let missing = "bid does not exist, and not exactly one batch refers to the job";
    assert_eq!(repaired(&nothing, &with(JobNode::Bid, None)).unwrap_err(), missing);
    let unread = "bid the value is not a batch id (bid and ten digits), and not exactly one batch refers to the job";
    let two = vec![(BATCH, JobOutcome::Processing), (BatchId::new(8), JobOutcome::Processing)];
    let two = JobInspection { references: two, ..around() };
    assert_eq!(repaired(&two, &with(JobNode::Bid, Some(b"seven"))).unwrap_err(), unread);

    // The most urgent entry in the job's own state, of those that have a valid priority.
    let entries = [(JobState::Storing, 9), (JobState::Storing, 8), (JobState::Storing, -1), (JobState::Pending, 1)];
    let entries = entries.map(|(state, priority)| entry(state, priority));
    let other = (StateFolder::Other("odd".into()), EntryName { priority: 2, job: ID });
    let entries = JobInspection { entries: entries.into_iter().chain([other]).collect(), ..around() };
    assert_eq!(repaired(&entries, &with(JobNode::Priority, None)), Ok(("priority: 8".to_owned(), false)));
}

#[test]
fn a_status_is_written_as_the_daemons_do_and_derived_where_it_names_no_state() {
    type Row = (&'static [u8], String, bool);
    let words = |state: &str, retries: u32| {
        format!("status: {state} and retry_count {retries}, which counts as entering the state now")
    };
    let derived = "Storing after its queue entry and reference";
    let rows: Vec<Row> = vec![
        (br#"{"status":"storing","retry_count":2}"#, words("Storing", 2), false),
        (br#"{"status":" Failed ","retry_count":2}"#, words("Failed", 2), false),
        (br#"{"status":"Storing"}"#, words("Storing", 0), false),
        (br#"{"status":"Storing","retry_count":1.5}"#, words("Storing", 0), true),
        (b"{\"status\":\"Storing\",\"retry_count\":2,\"message\":\"caf\xe9\"}", words("Storing", 2), false),
        (b"{}", words(derived, 0), false),
        (br#"{"status":""}"#, words(derived, 0), false),
        (b"", words(derived, 0), false),
        (b"x", words(derived, 0), true),
        (b"[]", words(derived, 0), true),
        (br#"{"status":"Failed","status":"Held"}"#, words(derived, 0), true),
    ];
    for (data, expected, loses) in rows {
        let found = repaired(&around(), &with(JobNode::Status, Some(data)));
        assert_eq!(found, Ok((expected, loses)), "{}", data.escape_ascii());
        assert!(around().loadable(&with(JobNode::Status, Some(data)), NOW).unwrap().writes_status);
    }
    assert_eq!(repaired(&around(), &with(JobNode::Status, None)), Ok((words(derived, 0), false)));
    let unknown = with(JobNode::Status, Some(br#"{"status":"Teleporting","retry_count":2}"#));
    assert_eq!(repaired(&around(), &unknown).unwrap_err(), "status has an unknown state, Teleporting");

    let mut contradictions = [around(), around(), around(), around()];
    contradictions[0].entries.push(entry(JobState::Storing, 5));
    contradictions[1].references.push((BATCH, JobOutcome::Failed));
    contradictions[2].references[0].1 = JobOutcome::Failed;
    contradictions[3].entries[0].0 = StateFolder::Other("odd".into());
    for around in contradictions {
        let rest = "and its queue entry and reference show different states";
        let missing = repaired(&around, &with(JobNode::Status, None)).unwrap_err();
        assert_eq!(missing, format!("status does not exist, {rest}"));
        let unread = repaired(&around, &with(JobNode::Status, Some(b"x"))).unwrap_err();
        assert_eq!(unread, format!("status is not JSON (line 1, column 1), {rest}"));
    }
}

#[test]
fn the_last_successful_state_is_the_one_that_is_named_or_that_before_a_derived_one() {
    let last = |data: Option<&'static [u8]>| {
        let changes = around().loadable(&with(JobNode::Status, data), NOW).unwrap().changes;
        let [operation] = changes.operations() else { panic!("{changes}") };
        let data = match operation {
            crate::transaction::Operation::Set { data, .. } | crate::transaction::Operation::Create { data, .. } => {
                data
            }
            other => panic!("{other}"),
        };
        JobStatus::decode(data).value.last_successful
    };
    assert_eq!(last(Some(br#"{"status":"storing","last_successful_status":"pending"}"#)), Some(JobState::Pending));
    assert_eq!(last(Some(br#"{"status":"storing"}"#)), None);
    assert_eq!(last(None), Some(JobState::Processing));
}

#[test]
fn an_optional_value_that_is_no_object_becomes_an_empty_one_and_parameters_do_not() {
    for node in [JobNode::Identifiers, JobNode::Identifier, JobNode::Metadata, JobNode::Store, JobNode::Inventory] {
        let words = format!("{}: an empty object, since it is JSON, but not an object", node.name());
        assert_eq!(repaired(&around(), &with(node, Some(b"[]"))), Ok((words, true)));
    }
    let unread = repaired(&around(), &with(JobNode::Configuration, Some(b"[]"))).unwrap_err();
    assert_eq!(unread, "configuration is JSON, but not an object");
    // The daemons read an empty one.
    assert_eq!(repaired(&around(), &with(JobNode::Configuration, None)), Ok((String::new(), false)));
}

#[test]
fn data_is_given_up_only_as_far_as_the_audit_trail_keeps_it() {
    let mut nodes: Vec<_> = NODES.iter().map(|(node, data)| (*node, data.to_vec())).collect();
    nodes.push((JobNode::Store, vec![b'x'; 16 << 10]));
    assert!(repaired(&around(), &job(&nodes)).is_ok());
    nodes.last_mut().unwrap().1.push(b'x');
    let reason = "store holds 16385 bytes, more than the audit trail records of discarded data";
    assert_eq!(repaired(&around(), &job(&nodes)).unwrap_err(), reason);
}

#[test]
fn states_are_made_only_for_a_batch_that_daemons_take_to_be_acquired() {
    use BatchState as S;
    let around = |batch_state| JobInspection { is_batch_acquired: false, batch_state, ..around() };
    for state in [S::Reporting, S::UpdateReporting, S::Failed, S::Held] {
        let words = format!("/batches/bid0000000007/states, since the batch is {state}");
        assert_eq!(repaired(&around(Some(state)), &job(&NODES)), Ok((words, false)));
    }
    for state in [S::Pending, S::Processing, S::Completed, S::Deleted] {
        let reason = format!("its batch bid0000000007 has no states and is {state}");
        assert_eq!(repaired(&around(Some(state)), &job(&NODES)), Err(reason));
    }
    let gone = "its batch bid0000000007 is gone, or neither its states nor its status is there";
    assert_eq!(repaired(&around(None), &job(&NODES)), Err(gone.to_owned()));
}
