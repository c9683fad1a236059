//! What rates say.

use super::*;

fn pace(count: u64, seconds: u64) -> Pace {
    Pace { count, over: Duration::from_secs(seconds) }
}

fn rates(recent: Pace, longer: Pace, latest: Pace) -> Rates {
    Rates { recent, longer, latest }
}

const NONE: Pace = Pace { count: 0, over: Duration::ZERO };

#[test]
fn a_pace_says_something_once_it_was_seen_for_half_a_minute() {
    assert_eq!([pace(60, 30).per_second(), pace(60, 29).per_second()], [Some(2.0), None]);
    assert_eq!([pace(60, 30).per_hour(), pace(60, 29).per_hour()], [Some(7_200.0), None]);
    assert_eq!(pace(60, 30).time_for(7), Some(Duration::from_millis(3_500)));
    assert_eq!([pace(0, 30).time_for(7), pace(60, 29).time_for(7)], [None, None]);
    let thousand_days = 1_000 * 24 * 3_600;
    let times = [thousand_days, thousand_days + 1, u64::MAX].map(|more| pace(30, 30).time_for(more));
    assert_eq!(times, [Some(Duration::from_secs(thousand_days)), None, None]);
}

#[test]
fn nothing_goes_where_some_would_have_gone_at_the_usual_rate() {
    for (recent, longer, is_still) in [
        (pace(0, 300), pace(0, 3_600), true),
        (pace(1, 300), pace(0, 3_600), false),
        (pace(1, 300), pace(100, 3_600), false),
        // Five in five minutes are no chance any more.
        (pace(0, 300), pace(60, 3_600), true),
        (pace(0, 300), pace(59, 3_600), false),
        (pace(0, 30), pace(600, 3_600), true),
        (pace(0, 30), pace(599, 3_600), false),
        (pace(0, 300), pace(100, 29), false),
    ] {
        assert_eq!(rates(recent, longer, NONE).is_still(), is_still, "{recent:?} {longer:?}");
    }
}

#[test]
fn the_present_pace_is_that_of_the_last_minutes_where_enough_went() {
    let longer = pace(100, 3_600);
    for (recent, is_recent) in
        [(pace(5, 300), true), (pace(4, 300), false), (pace(0, 300), true), (pace(5, 30), true), (pace(5, 29), false)]
    {
        assert_eq!(rates(recent, longer, NONE).present(), if is_recent { recent } else { longer }, "{recent:?}");
    }
    assert_eq!(rates(pace(0, 300), pace(59, 3_600), NONE).present(), pace(59, 3_600), "that may be chance");
}

#[test]
fn a_forecast_lies_between_the_rates_that_say_something() {
    let longer = pace(120, 3_600);
    for (recent, latest, per_hour, minutes) in [
        (pace(5, 300), NONE, Some((60.0, 120.0)), Some((30, 60))),
        (pace(20, 300), NONE, Some((120.0, 240.0)), Some((15, 30))),
        (pace(20, 300), pace(5, 60), Some((120.0, 300.0)), Some((12, 30))),
        (pace(5, 300), pace(5, 60), Some((60.0, 300.0)), Some((12, 60))),
        // Too few, and in too short a time.
        (pace(20, 300), pace(4, 60), Some((120.0, 240.0)), Some((15, 30))),
        (pace(20, 29), pace(50, 29), Some((120.0, 120.0)), Some((30, 30))),
        // Nothing goes now.
        (pace(0, 300), NONE, Some((0.0, 120.0)), None),
    ] {
        let rates = rates(recent, longer, latest);
        assert_eq!(rates.per_hour(), per_hour, "{rates:?}");
        let expected = minutes.map(|(least, most)| (Duration::from_mins(least), Duration::from_mins(most)));
        assert_eq!(rates.time_for(60), expected, "{rates:?}");
    }
    // None in the last minutes may be chance where few go.
    assert_eq!(rates(pace(0, 300), pace(30, 3_600), NONE).per_hour(), Some((30.0, 30.0)));
    let nothing_known = rates(pace(5, 29), pace(5, 29), NONE);
    assert_eq!((nothing_known.per_hour(), nothing_known.time_for(1)), (None, None));
}

#[test]
fn the_flow_of_a_state_and_of_the_queue_are_rates_of_the_last_minutes_and_of_the_hour() {
    let (short, long) = (pace(5, 300), pace(50, 3_600));
    let state = StateFlow { left_5m: short, left_1h: long, ..StateFlow::default() };
    let queue = Flow { completed_5m: short, completed_1h: long, ..Flow::default() };
    assert_eq!([state.rates(), queue.completed()], [rates(short, long, NONE); 2]);
}

#[test]
fn what_the_tree_says_of_instants_is_by_our_clock_and_never_later_than_now() {
    let mut record = Record::default();
    let mut left = ByState::default();
    *left.get_mut(Some(JobState::Storing)) = Some(100_000);
    record.infer_left(&left);
    let at = |ms| Timestamp::from_millisecond(ms).unwrap();
    for (ahead_ms, now_ms, expected) in [(0, 500_000, 100_000), (30_000, 500_000, 70_000), (-30_000, 110_000, 110_000)]
    {
        let flow = record.flow(Offset::of_ms(ahead_ms), at(now_ms));
        let state = flow.states.get(Some(JobState::Storing));
        assert_eq!((state.last_left, state.seen_left), (Some(at(expected)), None));
    }
}
