//! What follows for a batch that the daemons cannot load, and for its UUID.

use super::*;
use crate::testing::{batch, found};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn inspection(nodes: &[(BatchNode, &str)], processing: Option<i32>, entry: Option<&str>) -> BatchInspection {
    let folders: Vec<_> = processing.map(|jobs| (JobOutcome::Processing, jobs)).into_iter().collect();
    let path = Path::BatchUuid("uuid-7".into());
    let entry = entry.map(|data| (path, if data.is_empty() { Found::Nothing } else { found(data) }));
    let (uuid, batch) = (String::new(), batch(nodes, &folders));
    BatchInspection { batch, created: None, uuid, entry, is_paused: false, is_given_back: false }
}

#[test]
fn a_batch_is_made_loadable_by_what_its_status_or_its_jobs_show() {
    const SUBMISSION: (BatchNode, &str) = (BatchNode::Submission, "{}");
    let status = |data| [SUBMISSION, (BatchNode::Status, data)];
    let written = |state: &str| Ok(format!("status: {state}, which counts as entering the state now"));
    let held = r#"{"status":"Held"}"#;
    let underivable = |why: &str| Err(why.to_owned());
    for (nodes, processing, expected, loses) in [
        (&status(r#"{"status":"Reporting"}"#)[..], None, Ok(String::new()), 0),
        (&status(r#"{"status":"reporting"}"#), None, written("Reporting"), 0),
        (&status(r#"{"status":" Failed "}"#), None, written("Failed"), 0),
        (&status(r#"{"status":"Failed","message":[]}"#), None, written("Failed"), 1),
        (&[SUBMISSION], Some(1), written("Reporting"), 0),
        (&status("{}"), Some(1), written("Reporting"), 0),
        (&status("x"), Some(1), written("Reporting"), 1),
        (&status("x"), Some(0), underivable("status is not JSON (line 1, column 1)"), 0),
        (&[SUBMISSION], Some(0), underivable("status does not exist"), 0),
        (&[SUBMISSION], None, underivable("status does not exist"), 0),
        (&status(r#"{"status":"odd"}"#), Some(1), underivable("status has an unknown state, odd"), 0),
        (&status(held), None, Ok("states, which a batch that is Held has".to_owned()), 0),
        (&[SUBMISSION, (BatchNode::Status, held), (BatchNode::States, "")], None, Ok(String::new()), 0),
        (
            &[(BatchNode::Submission, "[]"), (BatchNode::Status, "{}")],
            Some(1),
            underivable("submission is JSON, but not an object"),
            0,
        ),
    ] {
        let (mut changes, mut lost) = (Transaction::new(), Vec::new());
        let inspection = inspection(nodes, processing, None);
        let found = inspection.loadable(NOW, &mut changes, &mut lost);
        assert_eq!(inspection.is_repairable(NOW), expected.is_ok());
        match expected {
            Ok(words) => {
                assert_eq!((found.unwrap().join("; "), lost.len()), (words.clone(), loses), "{nodes:?}");
                assert_eq!(changes.is_empty(), words.is_empty());
            }
            Err(why) => {
                let found = found.unwrap_err().to_string();
                assert!(found.contains(&format!("rest of the tree: {why}. Write it by hand")), "{found}");
            }
        }
    }
}

#[test]
fn a_uuid_is_made_to_lead_to_its_batch_unless_it_leads_to_another() {
    let large = "x".repeat((16 << 10) + 1);
    let lead = "Makes /batch-uuids/uuid-7 lead to batch bid0000000007.";
    let (create, set) = ("create /batch-uuids/uuid-7", "set /batch-uuids/uuid-7 at version 3");
    for (entry, expected, operation, loses) in [
        (None, Ok(None), "", 0),
        (Some("bid0000000007"), Ok(None), "", 0),
        (Some(""), Ok(Some(lead)), create, 0),
        (Some("odd"), Ok(Some(lead)), set, 1),
        (Some("bid0000000008"), Err("it leads to bid0000000008"), "", 0),
        (Some(&large[1..]), Ok(Some(lead)), set, 1),
        (Some(&large), Err("it holds 16385 bytes"), "", 0),
    ] {
        let (mut changes, mut lost) = (Transaction::new(), Vec::new());
        match (inspection(&[], None, entry).link(&mut changes, &mut lost), expected) {
            (Err(Error::Invalid { reason, .. }), Err(start)) => assert!(reason.starts_with(start), "{reason}"),
            (found, expected) => assert_eq!(found.ok(), expected.ok().map(|words| words.map(str::to_owned))),
        }
        let operations = if operation.is_empty() { String::new() } else { format!("{operation} = bid0000000007\n") };
        assert_eq!((changes.to_string(), lost.len()), (operations, loses));
    }
}

#[test]
fn a_status_is_given_up_only_as_far_as_the_audit_trail_keeps_it() {
    let text = "x".repeat((16 << 10) + 1);
    let repairable = |status: &str| {
        let nodes = [(BatchNode::Submission, "{}"), (BatchNode::Status, status)];
        inspection(&nodes, Some(1), None).is_repairable(NOW)
    };
    assert!(repairable(&text[1..]) && !repairable(&text));
    // Of an object each key is kept, however long.
    assert!(repairable(&format!(r#"{{"status":"reporting","message":"{text}"}}"#)));
    assert!(repairable(&format!(r#"{{"message":"{text}"}}"#)));
}
