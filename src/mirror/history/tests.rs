use super::step::{Figures, STATES};
use super::*;
use crate::mirror::clock::Offset;

const HOUR: i64 = 3_600;

/// So many seconds after an instant at which a step begins.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_795_255_200 + seconds).unwrap()
}

/// With clocks that agree.
fn flow(record: &Record) -> Flow {
    record.flow(Offset::default(), at(24 * HOUR))
}

fn job(from: ObservedState<JobState>, to: ObservedState<JobState>) -> Change {
    Change::Job { from, to, spent: None, waited: None, end: None, is_new: false }
}

const DONE: Change = Change::Job {
    from: ObservedState::In(JobState::Notify),
    to: ObservedState::In(JobState::Completed),
    spent: None,
    waited: None,
    end: None,
    is_new: false,
};

fn sample(pending: u32) -> Sample {
    let mut figures = Figures { oldest: [u32::MAX; STATES], faults: pending, ..Figures::default() };
    figures.jobs[index(Some(JobState::Pending))] = pending;
    figures.oldest[index(Some(JobState::Pending))] = pending * 10;
    Sample { figures, batches: Vec::new() }
}

#[test]
fn each_kind_of_transition_counts_where_it_left_and_where_it_came_to() {
    let mut record = Record::default();
    record.sample(sample(0), at(0));
    let changes = [
        Change::Nothing,
        Change::Quiet,
        job(ObservedState::Nowhere, ObservedState::In(JobState::Pending)),
        // Created as it is, as a restored one: it was not completed here.
        job(ObservedState::Nowhere, ObservedState::In(JobState::Completed)),
        // The same, read before its status was there.
        Change::Job {
            from: ObservedState::Other,
            to: ObservedState::In(JobState::Completed),
            spent: None,
            waited: None,
            end: None,
            is_new: true,
        },
        job(ObservedState::In(JobState::Recording), ObservedState::In(JobState::Completed)),
        job(ObservedState::Other, ObservedState::In(JobState::Failed)),
        job(ObservedState::In(JobState::Failed), ObservedState::In(JobState::Recording)),
        Change::OtherJob { from: ObservedState::In(JobState::Failed), to: ObservedState::In(JobState::Pending) },
    ];
    record.note(changes, at(60));
    record.sample(sample(0), at(60));
    let flow = flow(&record);
    let left = |state| flow.states.get(state).left_5m.count;
    assert_eq!(left(Some(JobState::Recording)), 1);
    assert_eq!(left(Some(JobState::Notify)), 1, "a jump passes the states between");
    assert_eq!(left(None), 1);
    assert_eq!(left(Some(JobState::Failed)), 2, "a way back passes nothing");
    assert_eq!([left(Some(JobState::Pending)), left(Some(JobState::Completed))], [0, 0]);
    assert_eq!(flow.completed_1h, Pace { count: 1, over: Duration::from_mins(1) });
    assert_eq!(flow.failed_1h.count, 1);
    assert_eq!(flow.states.get(Some(JobState::Notify)).last_left, Some(at(60)));
    assert_eq!(flow.states.get(Some(JobState::Pending)).last_left, None);
}

#[test]
fn a_hold_of_many_jobs_is_no_throughput_of_their_state() {
    let mut record = Record::default();
    record.sample(sample(0), at(0));
    let held = job(ObservedState::In(JobState::Pending), ObservedState::In(JobState::Held));
    let failed = job(ObservedState::In(JobState::Pending), ObservedState::In(JobState::Failed));
    let gone = job(ObservedState::In(JobState::Pending), ObservedState::Nowhere);
    let taken = job(ObservedState::In(JobState::Pending), ObservedState::In(JobState::Provisioning));
    record.note([taken], at(60));
    record.note(vec![held; 500].into_iter().chain([failed, gone]), at(61));
    record.sample(sample(0), at(61));
    let flow = flow(&record);
    let of = |state| flow.states.get(Some(state));
    assert_eq!([of(JobState::Pending), of(JobState::Estimating)].map(|flow| flow.left_5m.count), [1, 1]);
    assert_eq!(of(JobState::Pending).seen_left, Some(at(61)), "it has left, whereto does not matter");
    assert_eq!(of(JobState::Pending).seen_passed, Some(at(60)), "nor does a hold say that a daemon has taken one");
    let points = record.points(at(61), Duration::from_mins(5), 30).points;
    let left: f64 = points.iter().flatten().map(|point| *point.left_per_second.get(Some(JobState::Pending))).sum();
    assert!(left > 0.0 && left < 0.2, "{left}");
}

#[test]
fn what_the_jobs_of_an_image_tell_is_taken_where_it_is_later_than_what_was_seen() {
    let mut record = Record::default();
    record.note([DONE], at(100));
    for (inferred, expected) in [(at(50), at(100)), (at(150), at(150))] {
        let mut left = ByState::default();
        *left.get_mut(Some(JobState::Notify)) = Some(inferred.as_millisecond());
        record.infer_left(&left);
        assert_eq!(flow(&record).states.get(Some(JobState::Notify)).last_left, Some(expected));
    }
}

#[test]
fn a_clock_that_is_set_changes_nothing_of_how_long_ago_something_was() {
    for by in [-HOUR, 5 * HOUR, 56 * 365 * 24 * HOUR] {
        let mut record = Record::default();
        for second in 0..HOUR {
            record.note([DONE], at(second));
        }
        record.sample(sample(7), at(HOUR));
        let before = flow(&record);
        record.shift(by * 1_000);
        let after = flow(&record);
        assert_eq!(after.completed_1h, before.completed_1h, "{by}");
        assert_eq!(after.states.get(Some(JobState::Notify)).last_left, Some(at(by + HOUR - 1)));
        assert_eq!(after.states.get(Some(JobState::Notify)).seen_passed, Some(at(by + HOUR - 1)));
        let points = record.points(at(by + HOUR), Duration::from_hours(1), 360);
        assert_eq!(points.since, Some(at(by)));
        assert_eq!(
            points.points.last().unwrap().as_ref().map(|point| *point.jobs.get(Some(JobState::Pending))),
            Some(7)
        );
        // And goes on from there.
        record.note([DONE], at(by + HOUR + 10));
        assert!(flow(&record).completed_5m.count > 280, "{by}");
    }
}

#[test]
fn an_instant_is_shifted_to_the_end_of_days_and_no_further() {
    assert_eq!([shifted(at(0), 1_000), shifted(at(0), -1_000)], [at(1), at(-1)]);
    assert_eq!([shifted(Timestamp::MAX, 1), shifted(Timestamp::MIN, -1)], [Timestamp::MAX, Timestamp::MIN]);
}

#[test]
fn what_happens_to_no_job_does_not_begin_the_record() {
    let mut record = Record::default();
    let states = (ObservedState::Nowhere, ObservedState::Nowhere);
    record.note([Change::Nothing, Change::Quiet, Change::OtherBatch { from: states.0, to: states.1 }], at(0));
    record.note([DONE], at(60));
    assert_eq!(flow(&record).completed_1h, Pace { count: 1, over: Duration::ZERO });
}

#[test]
fn rates_are_of_the_time_that_was_seen() {
    let mut record = Record::default();
    assert_eq!(flow(&record).completed_5m.per_second(), None);
    // One each second for two hours, then none for a minute.
    for second in 0..2 * HOUR {
        record.note([DONE], at(second));
        if second == 10 {
            assert_eq!(flow(&record).completed_5m.per_second(), None, "ten seconds say nothing");
        }
        if second == 99 {
            assert_eq!(flow(&record).completed_1h, Pace { count: 100, over: Duration::from_secs(99) });
        }
    }
    record.sample(sample(1), at(2 * HOUR + 60));
    let flow = flow(&record);
    assert_eq!(flow.completed_5m, Pace { count: 240, over: Duration::from_mins(5) });
    assert_eq!(flow.completed_1h, Pace { count: 3_540, over: Duration::from_hours(1) });
    assert_eq!(flow.completed_1h.per_hour(), Some(3_540.0));
    assert_eq!(flow.completed_1h.time_for(59), Some(Duration::from_mins(1)));
    assert_eq!(flow.states.get(Some(JobState::Pending)).left_1h.time_for(1), None, "nothing moves");
    let notify = flow.states.get(Some(JobState::Notify)).rates();
    assert_eq!((notify.present(), notify.is_still()), (flow.completed_5m, false));
    // 3,540 an hour, and 240 in the last five minutes.
    assert_eq!(notify.time_for(59), Some((Duration::from_mins(1), Duration::from_millis(73_750))));
    assert_eq!(notify.per_hour(), Some((2_880.0, 3_540.0)));
    assert!(flow.states.get(Some(JobState::Pending)).rates().is_still());
}

#[test]
fn a_gap_is_a_gap_and_what_happened_in_it_is_spread_over_it() {
    let mut record = Record::default();
    for second in (0..600).step_by(5) {
        record.sample(sample(7), at(second));
    }
    // Twenty minutes without a connection, in which 120 jobs were completed.
    record.note([DONE; 120], at(1_800));
    record.sample(sample(9), at(1_801));
    let flow = flow(&record);
    assert_eq!(flow.completed_1h.count, 120);
    // The step of 1,800 s covers 121 steps, and 31 of them lie in the last five minutes and the open step.
    assert_eq!(flow.completed_5m, Pace { count: 31, over: Duration::from_secs(301) });

    let history = record.points(at(1_801), Duration::from_mins(40), 40);
    assert_eq!((history.points.len(), history.step), (40, Duration::from_mins(1)));
    assert_eq!(history.from, Some(at(-540)));
    let known: Vec<_> = history.points.iter().map(Option::is_some).collect();
    assert_eq!(known, [vec![false; 9], vec![true; 10], vec![false; 20], vec![true]].concat());
    let point = history.points[9].as_ref().unwrap();
    assert_eq!((point.at, *point.jobs.get(Some(JobState::Pending)), point.faults), (at(0), 7, 7));
    assert_eq!(*point.oldest.get(Some(JobState::Pending)), Some(Duration::from_secs(70)));
    assert_eq!(*point.oldest.get(Some(JobState::Failed)), None);
    let last = history.points[39].as_ref().unwrap();
    assert!((last.completed_per_second - 120.0 / 1_201.0).abs() < 1e-9, "{last:?}");
}

#[test]
fn a_step_without_a_sample_is_a_gap_at_the_end_only_once_it_is_over() {
    let mut record = Record::default();
    let known = |record: &Record, now| {
        let points = record.points(at(now), Duration::from_secs(30), 3).points;
        points.iter().map(Option::is_some).collect::<Vec<_>>()
    };
    record.sample(sample(7), at(8));
    assert_eq!(known(&record, 9), [false, false, true]);
    record.note([DONE], at(11));
    assert_eq!(known(&record, 19), [false, false, true], "a sample is on its way");
    assert_eq!(known(&record, 20), [true, false, false], "none has come");
    record.sample(sample(9), at(21));
    assert_eq!(known(&record, 21), [true, false, true]);
}

#[test]
fn it_keeps_six_hours_and_no_more_whatever_the_clock_does() {
    let mut record = Record::default();
    for second in (0..8 * HOUR).step_by(10) {
        record.sample(sample(1), at(second));
        record.note([DONE], at(second));
    }
    assert_eq!(i64::try_from(record.steps.len()).unwrap(), STEPS);
    let now = at(8 * HOUR - 10);
    let history = record.points(now, Duration::from_hours(24), 360);
    assert_eq!((history.points.len(), history.step), (360, Duration::from_mins(1)));
    assert!(history.points.iter().all(Option::is_some));
    for most in [1, 7, 359, 1_000, 100_000] {
        let history = record.points(now, HISTORY, most);
        assert!(history.points.len() <= most && history.points.len() <= 2_160, "{most}");
        let sum: f64 = history.points.iter().flatten().map(|point| point.completed_per_second).sum();
        assert!(sum / history.points.len() as f64 > 0.09, "{most}");
    }
    // A clock that stands still, one that was set back by an hour, one that leaps to the end of days and back.
    record.note([DONE; 3], now);
    assert_eq!(record.steps.back().unwrap().completed, 4);
    record.note([DONE], at(7 * HOUR));
    assert_eq!(i64::try_from(record.steps.len()).unwrap(), STEPS - 359);
    record.sample(sample(2), Timestamp::MAX);
    assert_eq!(record.steps.len(), 1);
    record.sample(sample(2), Timestamp::MIN);
    assert_eq!(record.steps.len(), 1);
    let _ = (flow(&record), record.points(Timestamp::MAX, HISTORY, 360), record.points(Timestamp::MIN, HISTORY, 360));
}

#[test]
fn a_batch_has_the_rates_of_the_last_minutes_and_of_the_last_hour() {
    let (quick, slow) = (BatchId::new(1), BatchId::new(2));
    let mut record = Record::default();
    let ended = |second: i64, seconds: i64| u32::try_from(second / seconds).unwrap();
    let sample = |second: i64| Sample {
        figures: Figures::default(),
        batches: vec![(quick, ended(second, 6)), (slow, ended(second, 1_200))],
    };
    record.sample(sample(0), at(0));
    assert_eq!(record.batch_rates(quick), None, "seen once, it has no rate");
    for second in (5..=2 * HOUR).step_by(5) {
        record.sample(sample(second), at(second));
    }
    let rates = record.batch_rates(quick).unwrap();
    assert!(rates.recent.over <= RECENT && rates.recent.over > Duration::from_mins(13), "{rates:?}");
    assert!((rates.recent.per_second().unwrap() - 1.0 / 6.0).abs() < 0.01, "{rates:?}");
    let rates = record.batch_rates(slow).unwrap();
    let pace = rates.longer;
    assert!(pace.over > Duration::from_mins(59) && (3..=4).contains(&pace.count), "{rates:?}");
    assert!(!rates.is_still(), "three an hour may leave a quarter of an hour without one");
    // An operator resumes what had failed: fewer have ended than before.
    record.sample(Sample { batches: vec![(quick, 0)], ..sample(0) }, at(2 * HOUR + 5));
    assert_eq!(record.batch_rates(quick).unwrap().time_for(5), None);
    assert_eq!(record.batch_rates(slow), None, "it is not in progress any more");
    assert!(record.batches.ends[&quick].len() <= 62);
}

const RECENT: Duration = Duration::from_mins(15);
