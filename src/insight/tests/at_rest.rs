//! Jobs that no daemon works on.

use super::*;

#[test]
fn holds_are_shown_with_who_and_why() {
    let mut pending = job(JobState::Pending);
    pending.hold = Some(pause());
    assert_eq!(
        of_job(&pending)[..2],
        [
            "stopped: It will be held: its collection is held.",
            "collection_held: Its collection “demo” has been held for 2.0 h. | By “alice”; reason: “the volume is\\u{202e} \
             enlarged”. When its turn comes, it is moved to Held instead of being processed.",
        ]
    );
    let mut held = job(JobState::Held);
    assert_eq!(
        of_job(&held),
        [
            "stopped: It is held and needs an operator.",
            "held: It has been held for 12 min. | Its collection “demo” is not held; daemons do not release held jobs.",
        ]
    );
    held.hold = Some(PauseSituation::default());
    assert_eq!(
        of_job(&held),
        [
            "stopped: It is held with its collection.",
            "held: It has been held for 12 min. | Its collection “demo” is held."
        ]
    );
    held.message = "By alice with queuekeeper: a court order".into();
    assert_eq!(
        of_job(&held),
        [
            "stopped: An operator is holding it.",
            "held: “alice” has held it for 12 min: “a court order” | Its collection “demo” is held too.",
        ]
    );
    (held.hold, held.message) = (None, "a court order".into());
    assert_eq!(
        of_job(&held)[1],
        "held: It has been held for 12 min: “a court order” | Its collection “demo” is not held; daemons do not release held jobs."
    );
    // Of those that delay the ones behind them, how many are ahead says more.
    let mut behind = job(JobState::Pending);
    behind.in_state.as_mut().unwrap().backlog = Some(Backlog { collection: "ucla".into(), jobs: 212 });
    assert_eq!(
        of_job(&behind).last().map(String::as_str),
        Some(
            "held_backlog: 212 pending jobs of the held collection “ucla” are moved to Held when their turn comes, one per poll, and delay all jobs behind them."
        )
    );
}

#[test]
fn a_failed_job_tells_where_and_how_many_with_it() {
    let mut failed = job(JobState::Failed);
    failed.last_successful = Some(JobState::Provisioning);
    failed.message = "404 for https://deposit.example.edu/<x>".into();
    (failed.same_message, failed.retries) = (37, 3);
    failed.faults = vec![fault(Fault::RetriesExhausted, Path::JobNode(JOB, JobNode::Status))];
    failed.batch.as_mut().unwrap().state = Some(BatchState::Failed);
    assert_eq!(
        of_job(&failed),
        [
            "stopped: It failed in Downloading and needs an operator.",
            "failed: It failed in Downloading 12 min ago: “404 for https://deposit.example.edu/<x>” | 37 other jobs failed \
             with the same message (numbers and names ignored). It has been resumed 3 times.",
            "retries_exhausted: It has been resumed 3 times and failed again. | It fails each time it is resumed, and \
             needs an operator. Resuming does not help until the cause is fixed.",
            "batch_at_rest: Its batch bid0000000007 failed 1.0 h ago.",
        ]
    );
    failed.message = "By alice with queuekeeper: wrong <file>".into();
    assert_eq!(
        of_job(&failed)[..2],
        [
            "stopped: An operator moved it to Failed.",
            "failed: “alice” moved it to Failed in Downloading 12 min ago: “wrong <file>” | No daemon reported an error.",
        ]
    );
    failed.message = " ".into();
    assert!(of_job(&failed)[1].starts_with("failed: It failed in Downloading 12 min ago, without a message | "));
}
