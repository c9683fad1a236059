//! What is remembered of how the jobs of a batch end.

use super::*;

const BATCH: BatchId = BatchId::new(1);

/// So many seconds after an instant at which a minute begins.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_795_255_200 + second).unwrap()
}

fn pace(count: u64, seconds: u64) -> Pace {
    Pace { count, over: Duration::from_secs(seconds) }
}

/// One job ends each second, and a sample is taken each five.
fn seen_until(second: i64) -> Batches {
    let mut batches = Batches::default();
    for second in (0..=second).step_by(5) {
        batches.sample(vec![(BATCH, u32::try_from(second).unwrap())], at(second));
    }
    batches
}

#[test]
fn the_last_sample_of_each_minute_of_an_hour_is_kept() {
    let batches = seen_until(7_200);
    let kept: Vec<_> = batches.ends[&BATCH].iter().map(|(at, _)| *at).collect();
    let expected: Vec<_> = (0..61).map(|minute| at(3_595 + minute * 60)).chain([at(7_200)]).collect();
    assert_eq!(kept, expected);
    let rates = batches.rates(BATCH).unwrap();
    assert_eq!((rates.longer, rates.recent, rates.latest), (pace(3_605, 3_605), pace(845, 845), pace(65, 65)));
}

#[test]
fn rates_are_of_what_was_seen_so_far() {
    assert_eq!(seen_until(0).rates(BATCH), None);
    assert_eq!(seen_until(0).rates(BatchId::new(2)), None);
    let rates = seen_until(5).rates(BATCH).unwrap();
    assert_eq!((rates.longer, rates.recent, rates.latest), (pace(5, 5), pace(5, 5), pace(0, 0)));
    // Just as old as the last minute, and as the last quarter of an hour.
    let rates = seen_until(60).rates(BATCH).unwrap();
    assert_eq!((rates.longer, rates.recent, rates.latest), (pace(60, 60), pace(60, 60), pace(60, 60)));
    assert_eq!(seen_until(900).rates(BATCH).unwrap().recent, pace(900, 900));
    assert_eq!(seen_until(905).rates(BATCH).unwrap().recent, pace(850, 850));
}

#[test]
fn what_a_clock_that_was_set_back_has_dated_after_now_is_forgotten() {
    let mut batches = seen_until(600);
    batches.sample(vec![(BATCH, 300)], at(295));
    let kept = &batches.ends[&BATCH];
    assert!(kept.iter().is_sorted() && kept.back() == Some(&(at(295), 300)), "{kept:?}");
    assert_eq!(kept.len(), 6, "those of the minutes before, and the present");
    // Set forward again, everything is as long ago as it was.
    batches.shift(3_600_000);
    let kept = &batches.ends[&BATCH];
    assert_eq!(kept.back(), Some(&(at(3_895), 300)));
    assert_eq!(kept.front(), Some(&(at(3_600), 0)));
    batches.sample(Vec::new(), at(4_000));
    assert!(batches.ends.is_empty(), "it is not in progress any more");
}
