//! What is kept of jobs, packed into a few bytes, is what a plain list of each job keeps.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// The records of one job, oldest first.
type Events = Vec<(u32, Happening, Option<&'static str>)>;

fn session_of(lock: Option<(i64, i64)>) -> Option<i64> {
    lock.map(|(session, _)| session).filter(|session| *session != 0)
}

fn state_in(seen: ObservedState<JobState>) -> Option<JobState> {
    match seen {
        ObservedState::In(state) => Some(state),
        ObservedState::Nowhere | ObservedState::Other => None,
    }
}

fn push(events: &mut Events, at_s: u32, what: Happening, note: Option<&'static str>) {
    events.push((at_s, what, note));
    if events.len() > RECORDS {
        events.remove(0);
    }
}

fn note(events: &mut Events, before: JobSnapshot, after: JobSnapshot, now_s: u32, said: Option<&'static str>) {
    if before.lock != after.lock
        && let Some((_, at_ms)) = after.lock
    {
        push(events, seconds(at_ms), Happening::Locked { session: session_of(after.lock) }, None);
    }
    if before.seen != after.seen {
        let is_dated = after.seen != ObservedState::Nowhere && after.entered_ms != UNKNOWN_MS;
        let at_s = if is_dated { seconds(after.entered_ms) } else { now_s };
        let session = match events.last() {
            Some((released_s, Happening::Released { session }, _)) if *released_s >= at_s => {
                let session = *session;
                events.pop();
                session
            }
            _ => session_of(after.lock.or(before.lock)),
        };
        if matches!(events.last(), Some((_, Happening::Locked { session: of }, _)) if *of == session) {
            events.pop();
        }
        let (from, to) = (state_in(before.seen), state_in(after.seen));
        let is_resumed = from == Some(JobState::Failed) && after.retries > before.retries;
        push(events, at_s, Happening::Moved { from, to, session, is_resumed }, said);
    }
    if let (Some(from), Some(to)) = (before.priority, after.priority)
        && from != to
    {
        push(events, now_s, Happening::Priority { from, to }, None);
    }
    if before.lock.is_some() && after.lock.is_none() {
        let session = session_of(before.lock);
        let last = events.iter().rev().take(2).take_while(|(_, what, _)| !matches!(what, Happening::Locked { .. }));
        let is_recorded = last.map(|(_, what, _)| what.session()).any(|of| session.is_some() && of == session);
        if !is_recorded {
            push(events, now_s, Happening::Released { session }, None);
        }
    }
}

/// What a job shows next: its state and since when (in seconds before now, `None` where it is not known), retries,
/// priority, and the session of its lock with that lock's age.
type Look = (ObservedState<JobState>, Option<u32>, u32, Option<u8>, Option<(i64, u32)>);

fn any_look() -> impl Strategy<Value = Look> {
    use JobState::{Estimating, Failed, Held, Pending};
    let seen = prop_oneof![
        1 => Just(ObservedState::Nowhere),
        1 => Just(ObservedState::Other),
        6 => select(vec![Pending, Estimating, Failed, Held]).prop_map(ObservedState::In),
    ];
    let age = option::weighted(0.9, 0u32..3);
    (seen, age, 0u32..2, option::of(select(vec![5u8, 40])), option::of((0i64..3, 0u32..3)))
}

/// The last row of a piece of memory and the first one of the next.
const ROWS: [u32; 3] = [0, 63, 64];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn records_are_those_of_a_plain_list(
        looks in vec((0usize..3, any_look(), any::<bool>(), 0u8..30), 0..120),
    ) {
        let mut past = Past::default();
        let seen = ObservedState::Nowhere;
        let nothing = JobSnapshot { seen, entered_ms: UNKNOWN_MS, retries: 0, priority: None, lock: None };
        let mut jobs: [(JobSnapshot, Events); 3] = std::array::from_fn(|_| (nothing, Events::new()));
        let mut first_row = 0;
        for (now_s, (job, (seen, age, retries, priority, lock), is_said, what)) in (1..).zip(looks) {
            // Ten seconds apart, so that no two changes are of one second.
            let now_s: u32 = now_s * 10;
            let at_ms = |age: u32| i64::from(now_s - age) * 1_000 + 999;
            let row = first_row + ROWS[job];
            if what == 0 {
                past.forget(row);
                jobs[job] = (nothing, Events::new());
            } else if what == 1 {
                // Another image has the jobs in other rows, and one of them not at all.
                let mut heir = Past::heir(&past);
                for (_, row) in ROWS.iter().enumerate().filter(|(other, _)| *other != job) {
                    heir.take_over(first_row + 100 + row, &past, first_row + row);
                }
                jobs[job] = (nothing, Events::new());
                heir.settle(&past);
                first_row += 100;
                past = heir;
            } else {
                let after = JobSnapshot {
                    seen,
                    entered_ms: age.map_or(UNKNOWN_MS, at_ms),
                    retries,
                    priority,
                    lock: lock.map(|(session, age)| (session, at_ms(age))),
                };
                let said = is_said.then_some("By alice with queuekeeper: why");
                let (before, events) = &mut jobs[job];
                past.note(row, (*before, after), i64::from(now_s) * 1_000, || said.map(Cow::Borrowed));
                note(events, *before, after, now_s, said);
                *before = after;
            }
            let mut sessions = BTreeSet::new();
            let mut notes = 0;
            for ((_, events), row) in jobs.iter().zip(ROWS) {
                let kept = past.of(first_row + row, Offset::of_ms(-500));
                let kept: Vec<_> = kept.iter().map(|event| (event.at, event.what, event.note.as_deref())).collect();
                // Ours is half a second ahead.
                let at = |at_s: u32| jiff::Timestamp::from_millisecond(i64::from(at_s) * 1_000 + 500).unwrap();
                let expected: Vec<_> = events.iter().map(|(at_s, what, note)| (at(*at_s), *what, *note)).collect();
                prop_assert_eq!(kept, expected);
                sessions.extend(events.iter().filter_map(|(_, what, _)| what.session()));
                notes += events.iter().filter(|(.., note)| note.is_some()).count();
            }
            // What no record has is kept no longer.
            prop_assert_eq!(past.sessions.by_session.keys().copied().collect::<BTreeSet<_>>(), sessions);
            prop_assert_eq!(past.notes.by_change.len(), notes);
        }
    }
}

#[test]
fn instants_are_kept_to_the_second_from_1970_to_2106() {
    let kept: BTreeMap<i64, u32> = [-1, 0, 999, 1_000, 59_999, i64::from(u32::MAX) * 1_000 + 999, i64::MAX]
        .into_iter()
        .map(|at_ms| (at_ms, seconds(at_ms)))
        .collect();
    assert_eq!(kept.into_values().collect::<Vec<_>>(), [0, 0, 0, 1, 59, u32::MAX, u32::MAX]);
}
