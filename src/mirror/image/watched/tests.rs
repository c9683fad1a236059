//! How long a job waited for its daemon, however the writes of a step were read.

use zookeeper_client::Stat;

use super::*;
use crate::mirror::failures::FailureCause;
use crate::mirror::image::JobEnd;
use crate::mirror::image::tests::{empty, new_stat};
use crate::mirror::past::BatchEvent;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::BatchNode;
use queuekeeper_queue::record::DaemonNote;

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
fn how_a_job_ended_is_lines_with_it() {
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

#[test]
fn the_changes_of_a_batch_are_remembered_with_who_held_it_and_go_with_it() {
    const BATCH: BatchId = BatchId::new(4);
    let node = |version, at, data: &str| Found::Node {
        data: data.as_bytes().to_vec(),
        stat: Stat { version, ephemeral_owner: 0x1f, ..new_stat(at) },
    };
    let mut image = empty();
    let read = |image: &mut Image, at: i64, node: Option<BatchNode>, found: &Found| {
        image.set_now(at * 1_000);
        let path = node.map_or(Path::Batch(BATCH), |node| Path::BatchNode(BATCH, node));
        image.apply_to_batch(BATCH, path, found);
    };
    let (status, lock) = (Some(BatchNode::Status), Some(BatchNode::Lock));
    let by_operator = r#"{"status":"Held","message":"By anna with queuekeeper: disk"}"#;
    read(&mut image, 1, None, &node(0, 1, ""));
    read(&mut image, 1, status, &node(0, 1, r#"{"status":"Pending"}"#));
    read(&mut image, 5, lock, &node(0, 5, ""));
    // The end of the lock may be read before the step that was made under it.
    read(&mut image, 9, lock, &Found::Nothing);
    read(&mut image, 9, status, &node(1, 9, r#"{"status":"Processing"}"#));
    read(&mut image, 40, status, &node(2, 40, by_operator));
    let lines = |image: &Image| {
        let line = |event: BatchEvent| {
            let BatchEvent { at, is_new, from, to, session, note } = event;
            format!("{} {is_new} {from:?} {to:?} {session:x?} {}", at.as_second(), note.as_deref().unwrap_or("-"))
        };
        image.batch_past(BATCH, Offset::default()).into_iter().map(line).collect::<Vec<_>>()
    };
    let expected = [
        "1 true None Some(Pending) None -",
        "9 false Some(Pending) Some(Processing) Some(1f) -",
        "40 false Some(Processing) Some(Held) None By anna with queuekeeper: disk",
    ];
    assert_eq!(lines(&image), expected);

    // Of the transaction that acquires it, the lock may be read last; a lock of later has not made the step.
    for (locked_at, by) in [(41, "None"), (42, "Some(1f)")] {
        read(&mut image, 42, status, &node(3, 42, r#"{"status":"Processing"}"#));
        read(&mut image, 42, lock, &node(0, locked_at, ""));
        let last = format!("42 false Some(Held) Some(Processing) {by} -");
        assert_eq!(lines(&image).last(), Some(&last));
        read(&mut image, 43, lock, &Found::Nothing);
        image.watched.batches.pop(BATCH);
        read(&mut image, 40, status, &node(2, 40, by_operator));
        image.watched.batches.pop(BATCH);
    }

    // Another walk keeps what was seen, and adds what has happened meanwhile.
    let mut walked = empty();
    read(&mut walked, 50, None, &node(0, 1, ""));
    read(&mut walked, 50, status, &node(3, 45, r#"{"status":"Completed"}"#));
    walked.inherit(Some(&image), 50_000);
    assert_eq!(lines(&walked)[..3], expected);
    assert_eq!(lines(&walked)[3..], ["45 false Some(Held) Some(Completed) None -"]);

    // No more than eight, and none of a batch that is gone.
    for step in 0..20 {
        let state = if step % 2 == 0 { "Held" } else { "Pending" };
        read(&mut walked, 60 + step, status, &node(4, 60 + step, &format!(r#"{{"status":"{state}"}}"#)));
    }
    assert_eq!(lines(&walked).len(), 8);
    for node in [status, None] {
        read(&mut walked, 90, node, &Found::Nothing);
    }
    assert!(lines(&walked).is_empty());
}

#[test]
fn a_state_is_without_a_daemon_since_none_was_seen_there_and_no_longer_than_the_tree_is_read() {
    let mut image = empty();
    let since = |image: &mut Image, at: i64| {
        image.note_unserved(at * 1_000);
        image.unserved_ms(JobState::Storing).map(|since| since / 1_000)
    };
    assert_eq!(image.unserved_ms(JobState::Storing), None);
    assert_eq!((since(&mut image, 5), since(&mut image, 6)), (Some(5), Some(5)));
    // A daemon of any program holds a job.
    image.apply_to_job(JOB, None, &Found::Node { data: Vec::new(), stat: new_stat(1) });
    let (node, found) = status(r#"{"status":"Storing"}"#, 4, 10);
    image.apply_to_job(JOB, node, &found);
    assert_eq!(since(&mut image, 11), Some(5));
    let (node, found) = lock(20);
    image.apply_to_job(JOB, node, &found);
    assert_eq!(since(&mut image, 21), None);
    image.apply_to_job(JOB, GONE.0, &GONE.1);
    assert_eq!(since(&mut image, 30), Some(30));
    // One that is gone before that was noted.
    let (node, found) = lock(40);
    image.apply_to_job(JOB, node, &found);
    image.apply_to_job(JOB, GONE.0, &GONE.1);
    assert_eq!(since(&mut image, 41), Some(40));
    // A process that has workers, and waits.
    let workers = std::collections::BTreeMap::from([("storing".to_owned(), 1)]);
    let note = DaemonNote {
        host: "host".to_owned(),
        pid: 1,
        version: String::new(),
        since: jiff::Timestamp::UNIX_EPOCH,
        volume: String::new(),
        workers,
        mail: None,
        waits: Vec::new(),
    };
    image.apply(Path::daemon(1), &Found::Node { data: note.encode(), stat: new_stat(50) });
    assert_eq!(since(&mut image, 51), None);
    let mut next = empty();
    next.inherit(Some(&image), 60_000);
    assert_eq!((since(&mut next, 60), image.unserved_ms(JobState::Storing)), (Some(60), None));
    image.apply(Path::daemon(1), &Found::Nothing);
    assert_eq!(since(&mut image, 61), Some(61));
    let mut next = empty();
    next.inherit(Some(&image), 70_000);
    assert_eq!(since(&mut next, 70), Some(61));
}
