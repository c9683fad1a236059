//! What is shown of a job after it was looked at.

use super::*;

mod plain;

const ROW: u32 = 7;

fn glance(state: JobState, entered_ms: i64, lock: Option<(i64, i64)>) -> JobSnapshot {
    JobSnapshot { seen: ObservedState::In(state), entered_ms, retries: 0, priority: Some(5), lock }
}

fn lines(past: &Past) -> Vec<String> {
    lines_of(past, ROW)
}

fn lines_of(past: &Past, row: u32) -> Vec<String> {
    let events = past.of(row, Offset::default()).into_iter();
    events.map(|event| format!("{} {:?}", event.at.as_second(), event.what)).collect()
}

/// Notes each glance after the one before.
fn seen(glances: &[(JobSnapshot, i64)]) -> Past {
    let mut past = Past::default();
    for pair in glances.windows(2) {
        past.note(ROW, (pair[0].0, pair[1].0), pair[1].1, || None);
    }
    past
}

#[test]
fn a_step_of_a_daemon_is_one_record_however_it_was_read() {
    use JobState::{Estimating, Pending};
    let (before, after) = (glance(Pending, 1_000, None), glance(Estimating, 9_000, None));
    let lock = Some((77, 5_000));
    let expected = ["9 Moved { from: Some(Pending), to: Some(Estimating), session: Some(77), is_resumed: false }"];
    let in_order =
        [(before, 0), (glance(Pending, 1_000, lock), 5_000), (glance(Estimating, 9_000, lock), 9_000), (after, 9_500)];
    assert_eq!(lines(&seen(&in_order)), expected);
    let lock_first = [(before, 0), (glance(Pending, 1_000, lock), 5_000), (before, 9_500), (after, 9_500)];
    assert_eq!(lines(&seen(&lock_first)), expected);
    // The next step of the same session, whose lock is read in the same way.
    let next = glance(Estimating, 9_000, Some((77, 12_000)));
    let failed = glance(JobState::Failed, 20_000, None);
    let again = [&lock_first[..], &[(next, 12_000), (after, 20_100), (failed, 20_100)]].concat();
    let second = "20 Moved { from: Some(Estimating), to: Some(Failed), session: Some(77), is_resumed: false }";
    assert_eq!(lines(&seen(&again)), [expected[0], second]);
    let at_once = [(before, 0), (after, 9_500)];
    assert_eq!(lines(&seen(&at_once)), [expected[0].replace("Some(77)", "None")]);
}

#[test]
fn a_look_without_a_step_is_lines_as_it_was() {
    let pending = |lock| glance(JobState::Pending, 1_000, lock);
    let past = seen(&[(pending(None), 0), (pending(Some((77, 5_000))), 5_100), (pending(None), 8_000)]);
    assert_eq!(lines(&past), ["5 Locked { session: Some(77) }", "8 Released { session: Some(77) }"]);
}

#[test]
fn a_resumed_job_and_a_new_priority_are_lines() {
    let failed = glance(JobState::Failed, 1_000, None);
    let resumed = JobSnapshot { retries: 1, priority: Some(40), ..glance(JobState::Pending, 3_000, None) };
    assert_eq!(
        lines(&seen(&[(failed, 0), (resumed, 4_000)])),
        [
            "3 Moved { from: Some(Failed), to: Some(Pending), session: None, is_resumed: true }",
            "4 Priority { from: 5, to: 40 }"
        ]
    );
}

#[test]
fn records_are_bounded_and_go_with_the_job_and_sessions_with_their_last_record() {
    let mut past = Past::default();
    for row in 0..3_000 {
        for turn in 0..20 {
            let lock = Some((i64::from(turn) + 1, 1_000));
            past.note(row, (glance(JobState::Pending, 0, None), glance(JobState::Pending, 0, lock)), 0, || None);
            past.note(row, (glance(JobState::Pending, 0, lock), glance(JobState::Pending, 0, None)), 0, || None);
        }
        assert_eq!(past.of(row, Offset::default()).len(), RECORDS);
    }
    assert_eq!((past.sessions.by_session.len(), past.chunks.len()), (4, 3_000_usize.div_ceil(CHUNK)));
    for row in 0..3_000 {
        past.forget(row);
    }
    assert_eq!(past.sessions.by_session.len(), 0);
    past.note(ROW, (glance(JobState::Pending, 0, None), glance(JobState::Held, 2_000, None)), 0, || None);
    assert_eq!(lines(&past).len(), 1);
}

#[test]
fn what_a_new_image_takes_over_is_lines_as_before_and_the_sessions_of_the_rest_are_forgotten() {
    let held = |session| glance(JobState::Pending, 0, Some((session, 1_000)));
    let mut old = Past::default();
    for (row, session) in [(0, 70), (1, 71), (900, 72)] {
        old.note(row, (glance(JobState::Pending, 0, None), held(session)), 0, || None);
    }
    old.forget(0);
    let mut new = Past::heir(&old);
    new.take_over(ROW, &old, 900);
    // What came meanwhile: a session that was not taken over yet is let go and taken again.
    new.note(8, (held(71), glance(JobState::Pending, 0, None)), 2_000, || None);
    new.forget(8);
    new.take_over(8, &old, 1);
    new.forget(8);
    new.settle(&old);
    assert_eq!(lines(&new), lines_of(&old, 900));
    assert_eq!(lines(&new), ["1 Locked { session: Some(72) }"]);
    assert_eq!(new.sessions.by_session.keys().collect::<Vec<_>>(), [&72]);
    new.forget(ROW);
    assert_eq!((lines(&new).len(), new.sessions.by_session.len()), (0, 0));
}

#[test]
fn the_records_of_a_job_stay_small() {
    assert_eq!(size_of::<Slot>(), 64);
}

#[test]
fn what_an_operator_wrote_goes_with_its_change_and_with_the_job() {
    let (pending, held) = (glance(JobState::Pending, 1_000, None), glance(JobState::Held, 2_000, None));
    let released = glance(JobState::Pending, 3_000, None);
    let why = || Some(Cow::Borrowed("By alice with queuekeeper: why"));
    let mut past = Past::default();
    past.note(ROW, (pending, held), 0, why);
    past.note(ROW, (held, released), 0, || None);
    let notes =
        |past: &Past, row| past.of(row, Offset::default()).into_iter().map(|event| event.note).collect::<Vec<_>>();
    assert_eq!(notes(&past, ROW), [why().map(Into::into), None]);
    // Another image has the job in another row.
    let mut new = Past::heir(&past);
    new.take_over(9, &past, ROW);
    assert_eq!(notes(&new, 9), notes(&past, ROW));
    // Each change of many has the same text, which is kept once.
    for row in 0..3 {
        past.note(row, (pending, held), 0, why);
    }
    let texts: Vec<_> = (0..3).map(|row| notes(&past, row).pop().flatten().unwrap()).collect();
    assert!(texts.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
    // What falls out at the front, and what goes with its job, leaves nothing.
    for turn in 0..10 {
        let (from, to) = if turn % 2 == 0 { (pending, held) } else { (held, pending) };
        let at = |glance: JobSnapshot| JobSnapshot { entered_ms: 10_000 * (turn + 1), ..glance };
        past.note(0, (from, at(to)), 0, why);
    }
    assert_eq!(past.notes.by_change.keys().filter(|(row, _)| *row == 0).count(), RECORDS);
    // A priority that was set in the same second, and is forgotten first, is another change.
    past.forget(0);
    let same = state_code(pending.seen);
    let set = JobSnapshot { priority: Some(same), ..held };
    past.note(0, (held, set), 3_000, || None);
    past.note(0, (set, JobSnapshot { priority: Some(same), ..released }), 3_000, why);
    for turn in (1_i64..).take(RECORDS - 1) {
        let (from, to) = if turn % 2 == 0 { (held, pending) } else { (pending, held) };
        let at = |glance: JobSnapshot| JobSnapshot { entered_ms: 10_000 * turn, ..glance };
        past.note(0, (from, at(to)), 0, || None);
    }
    assert_eq!(notes(&past, 0)[0], why().map(Into::into));
    for row in (0..3).chain([ROW]) {
        past.forget(row);
    }
    assert!(past.notes.by_change.is_empty());
}
