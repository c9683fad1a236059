//! What is written for entries, references and priorities of a job.

use super::*;
use crate::id::BatchId;
use crate::path::StateFolder;
use crate::state::JobOutcome;
use crate::testing::job;

const ID: JobId = JobId::new(1);
const BATCH: BatchId = BatchId::new(7);
const STATUS: (JobNode, &str) = (JobNode::Status, r#"{"status":"Storing","retry_count":0}"#);
const BID: (JobNode, &str) = (JobNode::Bid, "bid0000000007");

fn entry(folder: impl Into<StateFolder>, priority: i32) -> (StateFolder, EntryName) {
    (folder.into(), EntryName { priority, job: ID })
}

fn inspection(entries: Vec<(StateFolder, EntryName)>, references: &[(BatchId, JobOutcome)]) -> JobInspection {
    JobInspection {
        id: ID,
        job: None,
        created: None,
        entries,
        references: references.to_vec(),
        is_batch_acquired: true,
        is_expanding: false,
        batch_state: None,
    }
}

#[test]
fn a_job_is_left_with_the_one_entry_of_its_state_and_priority() {
    let settled = |entries| {
        let mut transaction = Transaction::new();
        inspection(entries, &[]).settle_entries(&mut transaction, JobState::Storing, Priority::default());
        transaction.to_string()
    };
    let own = entry(JobState::Storing, 5);
    assert_eq!(settled(vec![own.clone()]), "");
    assert_eq!(settled(Vec::new()), "create /jobs/states/storing/05-jid0000000001\n");
    let others = [entry(JobState::Storing, 6), entry(StateFolder::Other("odd".into()), 5)];
    let deleted = "delete /jobs/states/storing/06-jid0000000001\ndelete /jobs/states/odd/05-jid0000000001\n";
    assert_eq!(settled([&[own][..], &others].concat()), deleted);
}

#[test]
fn a_priority_is_set_to_the_nearest_that_has_two_digits() {
    let none = || inspection(Vec::new(), &[]);
    let set = |number: &str| format!("set /jobs/jid0000000001/priority at version 3 = {number}\n");
    let create = |number: &str| format!("create /jobs/states/storing/{number}-jid0000000001\n");
    for (data, change, entry, loses) in [
        ("100", set("99"), "99", 1),
        ("-1", set("0"), "00", 1),
        (" -7\n", set("0"), "00", 1),
        // The node is right, and only its entry is not.
        ("7", String::new(), "07", 0),
    ] {
        let mut lost = Vec::new();
        let found = none().clamp_priority(&job(&[STATUS, (JobNode::Priority, data)]), &mut lost);
        let (summary, transaction) = found.unwrap();
        assert_eq!((transaction.to_string(), lost.len()), (change + &create(entry), loses), "{data:?}");
        let priority = entry.parse::<u8>().unwrap();
        let words = format!("Sets job jid0000000001 to priority {priority}, with one queue entry in Storing.");
        assert_eq!(summary, words);
    }
    let refused =
        |nodes: &[(JobNode, &str)]| none().clamp_priority(&job(nodes), &mut Vec::new()).unwrap_err().to_string();
    for (nodes, why) in
        [(&[STATUS][..], "does not exist"), (&[STATUS, (JobNode::Priority, "x")], ": the value is not a priority")]
    {
        let reason = refused(nodes);
        assert!(reason.starts_with("/jobs/jid0000000001/priority: ") && reason.contains(why), "{reason}");
        assert!(reason.ends_with(": repair unloadable_job of the job first"), "{reason}");
    }
}

#[test]
fn a_job_is_left_with_the_one_reference_of_its_batch_and_outcome() {
    let settled = |references: &[(BatchId, JobOutcome)]| {
        let (summary, transaction) =
            inspection(Vec::new(), references).settle_references(&job(&[STATUS, BID])).unwrap();
        assert_eq!(summary, "Leaves job jid0000000001 one reference, in batch-processing of batch bid0000000007.");
        transaction.to_string()
    };
    let path = |batch: BatchId, folder: &str| format!("/batches/{batch}/states/batch-{folder}/jid0000000001\n");
    assert_eq!(settled(&[(BATCH, JobOutcome::Processing)]), "");
    assert_eq!(settled(&[]), format!("create {}", path(BATCH, "processing")));
    let others =
        [(BATCH, JobOutcome::Failed), (BatchId::new(8), JobOutcome::Processing), (BATCH, JobOutcome::Processing)];
    let deleted = [path(BATCH, "failed"), path(BatchId::new(8), "processing")].map(|path| format!("delete {path}"));
    assert_eq!(settled(&others), deleted.concat());
    let lost = JobInspection { is_batch_acquired: false, ..inspection(Vec::new(), &[]) };
    let reason = "its batch bid0000000007 is gone or has no states, so no reference can be made";
    let refused = lost.settle_references(&job(&[STATUS, BID])).unwrap_err().to_string();
    assert_eq!(refused, format!("/jobs/jid0000000001: {reason}"));
    assert!(inspection(Vec::new(), &[]).settle_references(&job(&[STATUS])).is_err());
}

#[test]
fn what_belongs_to_nothing_is_removed() {
    let inspection = inspection(vec![entry(JobState::Storing, 5)], &[(BATCH, JobOutcome::Failed)]);
    let paths = inspection.entry_paths().chain(inspection.reference_paths());
    let expected = "delete /jobs/states/storing/05-jid0000000001\n\
                    delete /batches/bid0000000007/states/batch-failed/jid0000000001\n";
    assert_eq!(deletion(paths).to_string(), expected);
    let (path, cause) = (Path::Jobs, crate::error::RequestFailure::ChangedSince);
    let other = Error::Read { path, cause };
    assert_eq!((needed::<()>(Err(other.clone())), needed(Ok(1))), (Err(other), Ok(1)));
}
