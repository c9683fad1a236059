//! A curve is what a plain sum over the events of each piece of time gives.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::mirror::history::Sample;
use crate::mirror::image::{Change, ObservedState};

/// An instant at which a step begins, and a point of any width up to a minute.
const START_S: i64 = 1_795_255_200;

const STORING: Option<JobState> = Some(JobState::Storing);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START_S + second).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Sample(u32),
    Completed,
    Failed,
    Stored,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0u32..50).prop_map(Event::Sample),
        1 => Just(Event::Completed),
        1 => Just(Event::Failed),
        1 => Just(Event::Stored),
    ]
}

fn sample(value: u32) -> Sample {
    let mut figures = Figures { faults: value, batches_in_progress: value + 1, ..Figures::default() };
    let state = index(STORING);
    figures.oldest = [u32::MAX; STATES];
    (figures.jobs[state], figures.locked[state]) = (value + 2, value + 3);
    // Of some samples no age is known.
    figures.oldest[state] = if value.is_multiple_of(5) { u32::MAX } else { value + 4 };
    Sample { figures, batches: Vec::new() }
}

fn change(event: Event) -> Change {
    let (from, to) = match event {
        Event::Completed => (JobState::Notify, JobState::Completed),
        Event::Failed => (JobState::Notify, JobState::Failed),
        Event::Stored | Event::Sample(_) => (JobState::Storing, JobState::Recording),
    };
    Change::OtherJob { from: ObservedState::In(from), to: ObservedState::In(to) }
}

/// What happened in a step of ten seconds.
#[derive(Clone, Debug, Default)]
struct Seen {
    sample: Option<u32>,
    completed: u32,
    failed: u32,
    stored: u32,
}

proptest! {
    #[test]
    fn a_point_is_what_its_steps_show(
        events in vec((0i64..40, any_event()), 1..60),
        later_s in 0i64..15,
        window_s in 1u64..400,
        most in 1usize..40,
    ) {
        let mut record = Record::default();
        let mut plain: std::collections::BTreeMap<i64, Seen> = std::collections::BTreeMap::new();
        let mut second = 0;
        for (after_s, event) in &events {
            // Most events are close together, some behind a gap.
            second += if *after_s < 30 { after_s / 6 } else { *after_s };
            let seen = plain.entry(second / 10).or_default();
            match event {
                Event::Sample(value) => {
                    record.sample(sample(*value), at(second));
                    seen.sample = Some(*value);
                }
                Event::Completed => seen.completed += 1,
                Event::Failed => seen.failed += 1,
                Event::Stored => seen.stored += 1,
            }
            if !matches!(event, Event::Sample(_)) {
                record.note([change(*event)], at(second));
            }
        }
        let (until, since) = (second, events[0].0);
        let since = if since < 30 { since / 6 } else { since };
        let now = until + later_s;
        let history = record.points(at(now), Duration::from_secs(window_s), most);

        // As few steps make a point as give no more points than are wanted.
        let steps = i64::try_from(window_s / 10).unwrap().max(1);
        let width = (1..=steps).find(|width| (steps + width - 1) / width <= i64::try_from(most).unwrap()).unwrap();
        prop_assert_eq!((history.step, history.since), (Duration::from_secs(u64::try_from(width).unwrap() * 10), Some(at(since))));
        let count = i64::try_from(history.points.len()).unwrap();
        prop_assert_eq!(count, steps / width);
        // The step that has just begun is left out until it has a sample.
        let sampled = plain.iter().rev().find(|(_, seen)| seen.sample.is_some()).map(|(number, _)| *number);
        let end = if sampled == Some(now / 10 - 1) { now / 10 - 1 } else { now / 10 };
        let first_step = START_S / 10;
        let last = (end + first_step) / width;
        for (number, point) in (last + 1 - count..).zip(&history.points) {
            let begin = number * width - first_step;
            if number == last + 1 - count {
                prop_assert_eq!(history.from, Some(at(begin * 10)));
            }
            let piece: Vec<_> = plain.range(begin..begin + width).collect();
            let samples: Vec<u32> = piece.iter().filter_map(|(_, seen)| seen.sample).collect();
            let Some(last) = samples.last().copied() else {
                prop_assert_eq!(point, &None);
                continue;
            };
            let point = point.as_ref().unwrap();
            prop_assert_eq!(point.at, at(begin * 10));
            let value = |of: &ByState<JobState, u64>| *of.get(STORING);
            prop_assert_eq!((value(&point.jobs), value(&point.locked)), (u64::from(last + 2), u64::from(last + 3)));
            prop_assert_eq!((point.batches_in_progress, *point.jobs.get(None)), (u64::from(last + 1), 0));
            prop_assert_eq!(point.faults, u64::from(samples.iter().copied().max().unwrap()));
            let oldest = samples.iter().filter(|value| !value.is_multiple_of(5)).max();
            prop_assert_eq!(*point.oldest.get(STORING), oldest.map(|value| Duration::from_secs(u64::from(value + 4))));
            // A step behind a gap stands for the time of the gap, too; before the first and behind the last event
            // nothing was seen.
            let seconds: i64 = piece.iter().map(|(number, _)| {
                let before = plain.range(..**number).next_back().map_or(**number, |(before, _)| before + 1);
                ((**number + 1) * 10).min(until) - (before * 10).max(since)
            }).sum();
            let covered = (seconds as f64).max(1.0);
            let rate = |count: &dyn Fn(&Seen) -> u32| f64::from(piece.iter().map(|(_, seen)| count(seen)).sum::<u32>()) / covered;
            for (found, expected) in [
                (point.completed_per_second, rate(&|seen| seen.completed)),
                (point.failed_per_second, rate(&|seen| seen.failed)),
                (*point.left_per_second.get(STORING), rate(&|seen| seen.stored)),
            ] {
                prop_assert!((found - expected).abs() < 1e-9, "{} instead of {}", found, expected);
            }
        }
    }
}
