//! What is learnt of the servers' clock, and what becomes of instants when ours is set.

use std::time::Duration;

use super::*;
use crate::mirror::image::{Change, ObservedState};
use queuekeeper_queue::state::JobState;

const HOUR_MS: i64 = 3_600_000;

/// Within what two readings of a clock that lie a little apart agree, in milliseconds.
const SLACK_MS: i64 = 1_000;

fn is_about(ms: i64, expected: i64) -> bool {
    (ms - expected).abs() <= SLACK_MS
}

fn later(at: Timestamp, ms: i64) -> Timestamp {
    shifted(at, ms)
}

/// A write now, by servers whose clock is ahead.
fn measure(store: &MirrorStore, ahead_ms: i64) {
    let before = Moment::now();
    store.measured(later(before.own(), ahead_ms), (before, Moment::now()));
}

#[test]
fn a_measurement_is_what_readers_convert_instants_with() {
    let writer = Writer::new();
    let store = writer.store();
    let mut changes = store.changes();
    assert_eq!(store.freshness().clock, ServerClock::default());
    store.not_measured("refused".to_owned());
    assert_eq!(store.freshness().clock.problem.as_deref(), Some("refused"));
    assert!(!changes.has_changed().unwrap(), "the offset is what it was");
    measure(&store, HOUR_MS);
    assert!(changes.has_changed().unwrap());
    let clock = store.freshness().clock;
    assert!(clock.is_measured && clock.problem.is_none() && is_about(clock.ahead_ms.unwrap(), HOUR_MS), "{clock:?}");
    assert!(is_about(writer.offset().as_ms(), HOUR_MS));
    let now = Timestamp::now();
    let server = store.server_time(now);
    assert!(is_about(server.as_millisecond() - now.as_millisecond(), HOUR_MS));
    assert!(is_about(store.own_time(server).as_millisecond(), now.as_millisecond()));
    changes.mark_unchanged();
    measure(&store, 0);
    assert!(changes.has_changed().unwrap());
    assert_eq!(store.freshness().clock.ahead_ms, Some(0));
}

#[test]
fn changes_show_how_far_the_servers_are_ahead() {
    let writer = Writer::new();
    let seen = Moment::now();
    let made = [HOUR_MS, 2 * HOUR_MS, 0].map(|ahead_ms| seen.own().as_millisecond() + ahead_ms);
    writer.saw(made.into_iter(), seen);
    let clock = writer.store().freshness().clock;
    assert!(!clock.is_measured && is_about(clock.ahead_ms.unwrap(), 2 * HOUR_MS), "{clock:?}");
}

#[test]
fn the_latest_instant_of_the_tree_shows_something_only_where_it_is_still_to_come() {
    let ahead_ms = |measured: Option<i64>, made: Option<i64>| {
        let writer = Writer::new();
        measured.inspect(|ahead_ms| measure(&writer.store(), *ahead_ms));
        let seen = Moment::now();
        writer.saw_latest(made.map(|ahead_ms| seen.own().as_millisecond() + ahead_ms), seen);
        writer.store().freshness().clock.ahead_ms
    };
    assert_eq!([ahead_ms(None, None), ahead_ms(None, Some(0)), ahead_ms(None, Some(-HOUR_MS))], [None; 3]);
    assert!(is_about(ahead_ms(None, Some(HOUR_MS)).unwrap(), HOUR_MS));
    // A measurement is better.
    assert_eq!(ahead_ms(Some(0), Some(HOUR_MS)), Some(0));
}

#[test]
fn when_our_clock_is_set_all_that_is_dated_by_it_is_as_long_ago_as_it_was() {
    for set_by in [HOUR_MS, -HOUR_MS] {
        let writer = Writer::new();
        let store = writer.store();
        assert!(!store.heed_clock() && !store.heed_clock(), "it was not set");
        let now = Moment::now();
        let before = [1, 2, 3, 4].map(|minutes| later(now.own(), -minutes * 60_000));
        writer.with_freshness(|freshness| {
            freshness.stale_since = Some(before[0]);
            freshness.last_event = Some(before[1]);
            freshness.last_walk = Some(before[2]);
        });
        writer.set_behind(Some(before[3]));
        let done = Change::OtherJob { from: ObservedState::Nowhere, to: ObservedState::In(JobState::Completed) };
        store.shared.history.write().note([done], before[0]);
        store.shared.clock.write().dated = Some(now.set_by(-set_by));
        assert!(store.heed_clock());
        assert!(!store.heed_clock(), "once is enough");
        let freshness = store.freshness();
        let behind_since = *store.shared.behind_since.read();
        let after = [freshness.stale_since, freshness.last_event, freshness.last_walk, behind_since];
        let since = store.history(now.own(), Duration::from_mins(5), 5).since;
        for (before, after) in before.into_iter().chain([before[0]]).zip(after.into_iter().chain([since])) {
            assert!(is_about(after.unwrap().as_millisecond() - before.as_millisecond(), set_by), "{set_by}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_time_is_waited_for_as_long_as_it_is_being_requested_but_not_for_ever() {
    let writer = Writer::new();
    let waited = async || {
        let started = tokio::time::Instant::now();
        writer.first_time().await;
        started.elapsed()
    };
    assert_eq!(waited().await, Duration::ZERO, "nothing asks for it");
    writer.expect_time();
    assert_eq!(waited().await, Duration::from_secs(2), "it does not come");
    writer.store().not_measured("refused".to_owned());
    assert_eq!(waited().await, Duration::ZERO, "it is known that it does not come");
    writer.expect_time();
    measure(&writer.store(), 0);
    assert_eq!(waited().await, Duration::ZERO, "it is known");
}
