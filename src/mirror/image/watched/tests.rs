//! How long a job waited for its daemon, however the writes of a step were read.

use zookeeper_client::Stat;

use super::*;
use crate::mirror::failures::FailureCause;
use crate::mirror::image::JobEnd;
use crate::mirror::image::tests::{empty, new_stat};

const JOB: JobId = JobId::new(1);

/// The status of that version, written at a second.
fn status(text: &str, version: i32, at: i64) -> (Option<JobNode>, Found) {
    let stat = Stat { version, ..new_stat(at) };
    (Some(JobNode::Status), Found::Node { data: text.as_bytes().to_vec(), stat })
}

/// A lock that was created at a second.
fn lock(at: i64) -> (Option<JobNode>, Found) {
    (Some(JobNode::Lock), Found::Node { data: Vec::new(), stat: new_stat(at) })
}

const GONE: (Option<JobNode>, Found) = (Some(JobNode::Lock), Found::Nothing);

/// What the last of some reads meant, each made at a second, of a job that was created at the second 1 and entered
/// Storing at 10.
fn last(reads: Vec<(i64, (Option<JobNode>, Found))>) -> Change {
    let mut image = empty();
    image.apply_to_job(JOB, None, &Found::Node { data: Vec::new(), stat: new_stat(1) });
    let (node, found) = status(r#"{"status":"Storing"}"#, 4, 10);
    image.apply_to_job(JOB, node, &found);
    let mut change = Change::Nothing;
    for (at, (node, found)) in reads {
        image.set_now(at * 1_000);
        change = image.apply_to_job(JOB, node, &found);
    }
    change
}

/// The seconds that it was in the state, and of these those before the lock of the step.
fn times(change: Change) -> (Option<u64>, Option<u64>) {
    let Change::Job { spent, waited, .. } = change else { panic!("{change:?}") };
    (spent.map(|spent| spent.as_secs()), waited.map(|waited| waited.as_secs()))
}

#[test]
fn waiting_ends_with_the_lock_of_the_step_in_whichever_order_its_writes_were_read() {
    let step = || status(r#"{"status":"Recording"}"#, 5, 40);
    for (what, reads, waited) in [
        ("in order", vec![(25, lock(25)), (40, step())], Some(15)),
        ("the end of the lock first", vec![(25, lock(25)), (41, GONE), (41, step())], Some(15)),
        ("the next lock first", vec![(25, lock(25)), (41, lock(41)), (41, step())], Some(15)),
        ("taken, given back and taken again", vec![(12, lock(12)), (15, GONE), (30, lock(30)), (40, step())], Some(20)),
        ("given back, and the lock of the step not seen", vec![(12, lock(12)), (15, GONE), (40, step())], None),
        ("the lock of the step before", vec![(10, lock(9)), (11, GONE), (40, step())], None),
        ("no lock seen", vec![(40, step())], None),
    ] {
        assert_eq!(times(last(reads)), (Some(30), waited), "{what}");
    }
    let jump = vec![(25, lock(25)), (40, status(r#"{"status":"Notify"}"#, 6, 40))];
    assert_eq!(times(last(jump)), (None, None), "a jump");
}

#[test]
fn how_a_job_ended_is_told_with_it() {
    let end = |text: &str, version| {
        let Change::Job { end, .. } = last(vec![(60, status(text, version, 61))]) else { panic!("no step") };
        end
    };
    let lived = Some(std::time::Duration::from_mins(1));
    assert_eq!(
        end(r#"{"status":"Completed"}"#, 7),
        Some(JobEnd::Completed { lived, space_needed_bytes: 0 }),
        "a jump, too"
    );
    let timed_out = r#"{"status":"Failed","message":"java.net.SocketTimeoutException: Read timed out"}"#;
    assert_eq!(end(timed_out, 5), Some(JobEnd::Failed(FailureCause::Timeout)));
    let by_operator = r#"{"status":"Failed","message":"By alice with queuekeeper: a court order"}"#;
    assert_eq!(end(by_operator, 5), Some(JobEnd::Failed(FailureCause::Operator)));
    assert_eq!(end(r#"{"status":"Recording"}"#, 5), None);
}
