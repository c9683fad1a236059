use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const RULES: Rules = Rules { threshold: 0.8, unknown: 30, large: 1_000, wait_limit: Duration::from_mins(1) };

fn volume(used: u64, grants: Vec<Grant<u32>>) -> Volume<u32> {
    Volume { total: 100, free: 100 - used, grants }
}

fn grant(job: u32, bytes: u64, written: u64, age: u64, extension: Option<u64>) -> Grant<u32> {
    Grant { job, bytes, written, age: Duration::from_secs(age), extension }
}

fn job(job: u32, bytes: impl Into<Option<u64>>, priority: u8, age: u64) -> Waiting<u32> {
    Waiting { job, bytes: bytes.into(), priority, age: Duration::from_secs(age) }
}

#[test]
fn jobs_pass_by_priority_and_age_as_far_as_there_is_room() {
    let volume = volume(25, vec![grant(9, 20, 5, 0, None)]);
    assert_eq!(RULES.room(&volume), 40);
    let round = decide(&RULES, &volume, &[job(1, 25, 5, 3), job(2, 10, 5, 9), job(3, 12, 0, 1), job(4, 90, 0, 0)]);
    // Job 1 does not fit behind jobs 3 and 2, and no other job passes it.
    assert_eq!(round.passed, [(3, 12), (2, 10)]);
    assert_eq!(round.waiting, [(1, Wait::Room { needed: 25, room: 18 })]);
    assert_eq!(round.failed, [(4, Failure::NeverFits { needed: 90, capacity: 80 })]);
    assert_eq!(round.room, 18);
    // A job of unknown size counts with what is set, and with no more than there can be.
    let unknown = [job(1, None, 5, 0), job(2, None, 5, 0), job(3, 5, 5, 0)];
    assert_eq!(decide(&RULES, &volume, &unknown).passed, [(1, 30), (3, 5)]);
    let large = Rules { unknown: 1_000, ..RULES };
    assert_eq!(
        decide(&large, &super::Volume { total: 100, free: 100, grants: vec![] }, &unknown[..1]).passed,
        [(1, 80)]
    );
    assert_eq!(decide(&large, &volume, &unknown[..1]).failed, []);
}

#[test]
fn a_large_job_is_passed_for_its_patience_and_then_reserves_what_becomes_free() {
    let jobs = |age| [job(1, 70, 9, age), job(2, 10, 0, 0)];
    assert_eq!(decide(&RULES, &volume(30, vec![]), &jobs(59)).passed, [(2, 10)]);
    let round = decide(&RULES, &volume(30, vec![]), &jobs(60));
    assert_eq!(round.passed, []);
    assert_eq!(round.waiting, [(1, Wait::Reserving { needed: 70, room: 50 }), (2, Wait::Reserved { by: 1 })]);
    let round = decide(&RULES, &volume(0, vec![]), &jobs(60));
    assert_eq!(round.passed, [(1, 70), (2, 10)]);
}

#[test]
fn grants_are_extended_first_and_the_youngest_fails_where_all_wait() {
    let waits = |needed, room| Wait::Extension { needed, room };
    let both = vec![grant(1, 30, 30, 9, Some(30)), grant(2, 30, 30, 5, Some(30))];
    let round = decide(&RULES, &volume(60, both.clone()), &[job(3, 1, 0, 1_000)]);
    assert_eq!(round.failed, [(2, Failure::Deadlock { needed: 30 })]);
    // What is left goes to the next one at once.
    assert_eq!((round.waiting, round.passed), (vec![(1, waits(30, 20))], vec![(3, 1)]));
    // While a third one goes on, they wait for it.
    let three = [&both[..], &[grant(4, 5, 0, 0, None)]].concat();
    let round = decide(&RULES, &volume(60, three), &[]);
    assert_eq!((round.failed, round.waiting), (vec![], vec![(1, waits(30, 15)), (2, waits(30, 15))]));
    let round = decide(&RULES, &volume(50, both), &[job(3, 1, 0, 1_000)]);
    assert_eq!(round.extended, [(1, 30)]);
    assert_eq!(round.waiting, [(2, waits(30, 0)), (3, Wait::Reserving { needed: 1, room: 0 })]);
    let never = volume(30, vec![grant(1, 30, 30, 9, Some(51))]);
    assert_eq!(decide(&RULES, &never, &[]).failed, [(1, Failure::NeverFits { needed: 81, capacity: 80 })]);
    assert_eq!(RULES.room(&Volume { total: 100, free: 0, grants: [grant(1, u64::MAX, 0, 0, None); 2].to_vec() }), 0);
}

#[test]
fn only_so_many_jobs_have_a_grant_at_a_time_and_the_others_wait() {
    let most = u32::try_from(MOST_GRANTS).unwrap();
    let grants: Vec<_> = (1..most).map(|job| grant(job, 0, 0, 0, None)).collect();
    let (one, other) = (u32::MAX - 1, u32::MAX);
    let round = decide(&RULES, &volume(0, grants), &[job(one, 1, 0, 1_000), job(other, 1, 0, 900)]);
    assert_eq!((round.passed, round.waiting, round.failed), (vec![(one, 1)], vec![(other, Wait::Many)], vec![]));
}

/// What happens to a job in the simulation: it comes, writes, and ends.
#[derive(Clone, Debug)]
struct Life {
    arrives: u64,
    /// What it says it needs, and what it writes in the end.
    said: Option<u64>,
    real: u64,
    priority: u8,
    seconds: u64,
}

fn life() -> impl Strategy<Value = Life> {
    (0u64..200, proptest::option::of(1u64..70), 1u64..40, 0u8..3, 1u64..30).prop_map(
        |(arrives, said, more, priority, seconds)| Life {
            arrives,
            said,
            real: said.map_or(more, |said| (said + more / 8).min(80)),
            priority,
            seconds,
        },
    )
}

proptest! {
    #[test]
    fn nothing_goes_over_the_threshold_and_no_job_starves(lives in proptest::collection::vec(life(), 1..25)) {
        // By job: the bytes granted, the seconds that it has worked.
        let mut running: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut waiting: Vec<u32> = Vec::new();
        let mut ended = 0;
        let life = |job: u32| &lives[usize::try_from(job).unwrap()];
        for now in 0..20_000 {
            waiting.extend((0u32..).zip(&lives).filter(|(_, life)| life.arrives == now).map(|(job, _)| job));
            let written = |job: u32, (granted, worked): (u64, u64)| {
                let Life { real, seconds, .. } = life(job);
                (real * worked.min(*seconds) / seconds).min(granted)
            };
            // It cannot go on where its grant is used up.
            let extension = |job: u32, state: (u64, u64)| {
                let Life { real, .. } = life(job);
                (written(job, state) == state.0 && *real > state.0).then(|| real - state.0)
            };
            let age = |job: u32| Duration::from_secs(now - life(job).arrives);
            let grants: Vec<_> = running.iter().map(|(&job, &state)| {
                Grant { job, bytes: state.0, written: written(job, state), age: age(job), extension: extension(job, state) }
            }).collect();
            let used = grants.iter().map(|grant| grant.written).sum::<u64>();
            prop_assert!(used <= 80, "{} bytes are used at {}", used, now);
            let state = Volume { total: 100, free: 100 - used, grants };
            let queue: Vec<_> = waiting.iter().map(|&job| Waiting {
                job, bytes: life(job).said, priority: life(job).priority, age: age(job),
            }).collect();
            let round = decide(&RULES, &state, &queue);

            let promised: u64 = state.grants.iter().map(|grant| grant.bytes - grant.written).sum();
            let new: u64 = round.passed.iter().chain(&round.extended).map(|(_, bytes)| bytes).sum();
            prop_assert!(used + promised + new <= 80, "{:?}", round);
            let first: u64 = round.passed.iter().map(|(_, bytes)| bytes).sum();
            for (job, wait) in &round.waiting {
                match wait {
                    // A freed byte goes on at once: nothing that waits would fit.
                    Wait::Room { needed, .. } => prop_assert!(*needed > round.room),
                    Wait::Reserved { by } => {
                        let is_waiting = round.waiting.iter().any(|(other, wait)| {
                            other == by && matches!(wait, Wait::Reserving { .. } | Wait::Extension { .. })
                        });
                        prop_assert!(age(*by) >= RULES.wait_limit && is_waiting);
                    }
                    Wait::Reserving { .. } => {
                        // Only jobs that have waited for longer pass it.
                        prop_assert!(round.passed.iter().all(|(passed, _)| age(*passed) >= age(*job)));
                    }
                    // Nothing goes to new jobs that would have been enough.
                    Wait::Extension { needed, .. } => prop_assert!(*needed > round.room + first),
                    Wait::Many => prop_assert!(state.grants.len() + round.passed.len() >= MOST_GRANTS),
                }
            }
            let all = round.passed.len() + round.failed.len() + round.waiting.len() + round.extended.len();
            let extending = state.grants.iter().filter(|grant| grant.extension.is_some()).count();
            prop_assert_eq!(all, queue.len() + extending, "each job is decided once");

            for (job, bytes) in &round.extended {
                running.get_mut(job).unwrap().0 += bytes;
            }
            for (job, bytes) in &round.passed {
                waiting.retain(|other| other != job);
                running.insert(*job, (*bytes, 0));
            }
            for (job, _) in &round.failed {
                waiting.retain(|other| other != job);
                running.remove(job);
                ended += 1;
            }
            let before = running.len();
            running.retain(|&job, (granted, worked)| {
                *worked += 1;
                *worked <= life(job).seconds || life(job).real > *granted
            });
            ended += before - running.len();
            if ended == lives.len() {
                break;
            }
        }
        prop_assert_eq!(ended, lives.len(), "all jobs end");
    }
}
