//! Random histories of a rule: whatever comes, whenever, and however often the process restarts, its limits hold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::alerts::rule::{Mode, Remedy, Selector};

/// What may happen.
#[derive(Clone, Debug)]
enum Step {
    /// Time goes by, in seconds; a clock that is put right goes back.
    Wait(i64),
    /// An alert comes on one of three scopes, of which the queue then has so many jobs as the rule wants.
    Alert { scope: u8, fingerprint: u8, starts: u8, present: u64, wanted: usize },
    /// Somebody closes the breaker.
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_i64..2_000).prop_map(Step::Wait),
        1 => (-300_i64..0).prop_map(Step::Wait),
        8 => (0_u8..3, 0_u8..3, 0_u8..2, 0_u64..60, 0_usize..30).prop_map(|(scope, fingerprint, starts, present, wanted)| {
            Step::Alert { scope, fingerprint, starts, present, wanted }
        }),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..120)
}

fn rule(items: u32, span: u64, share: Option<f64>, cooldown: u64, attempts: u32) -> Rule {
    Rule {
        name: "again".to_owned(),
        alert: "A".to_owned(),
        labels: BTreeMap::new(),
        mode: Mode::Enforce,
        remedy: Remedy::ResumeJobs,
        select: Selector { limit: 500, ..Selector::default() },
        narrow_by: Vec::new(),
        budget: Budget { items, per: Duration::from_secs(span) },
        max_share: share,
        cooldown: Duration::from_secs(cooldown),
        attempts,
        is_undone: false,
    }
}

/// What was done, by the clock of whoever did it.
#[derive(Debug, Default)]
struct History {
    done: Vec<(i64, String)>,
    /// When each scope was acted upon.
    acted: Vec<(i64, String)>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn budgets_shares_cooldowns_and_attempts_are_never_exceeded(
        steps in steps(),
        items in 1_u32..25,
        span in 60_u64..4_000,
        share in proptest::option::of(0.05_f64..1.0),
        cooldown in 1_u64..4_000,
        attempts in 1_u32..4,
        all in 1_u32..40,
    ) {
        let rule = rule(items, span, share, cooldown, attempts);
        let all = Budget { items: all, per: Duration::from_mins(30) };
        let (mut memory, mut together) = (Memory::default(), Together::default());
        let mut history = History::default();
        let mut now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for step in steps {
            // As after a restart, or with another leader: all there is stands in the znodes.
            memory = Memory::read(&memory.data()).unwrap();
            together = Together::read(&together.data()).unwrap();
            match step {
                Step::Wait(seconds) => now += jiff::SignedDuration::from_secs(seconds),
                Step::Reset => memory.breaker = None,
                Step::Alert { scope, fingerprint, starts, present, wanted } => {
                    let cause = Cause {
                        alert: "A".to_owned(),
                        fingerprint: fingerprint.to_string(),
                        starts_at: "2026-11-21T09:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_secs(starts.into()),
                    };
                    let scope = scope.to_string();
                    let is_open = memory.breaker.is_some();
                    if admit(&rule, &memory, &cause, &scope, now).is_err() {
                        continue;
                    }
                    prop_assert!(!is_open, "an open breaker lets nothing through");
                    let names = (0..wanted).map(|number| format!("jid{number:010}"));
                    let open: Vec<_> = names.filter(|name| memory.attempts_on(name) < attempts).collect();
                    let (room, bound) = room(&rule, &memory, (&together, all), present, now);
                    if open.is_empty() {
                        continue;
                    }
                    if room == 0 {
                        if bound.trips() {
                            memory.trip(bound.why(), now);
                        }
                        continue;
                    }
                    let touched = memory.spent.within(SHARE_SPAN, now);
                    let mut done = 0;
                    for name in open.iter().take(usize::try_from(room).unwrap()) {
                        take(&rule, &mut memory, &mut together, all, name, now);
                        history.done.push((now.as_millisecond(), name.clone()));
                        done += 1;
                    }
                    if let Some(share) = share {
                        let most = (share * (present + touched) as f64).max(1.0);
                        prop_assert!((touched + done) as f64 <= most.max(touched as f64), "{touched} + {done} of {present}");
                    }
                    memory.see(&scope, &cause.fingerprint, cause.starts_at, rule.cooldown, now);
                    history.acted.push((now.as_millisecond(), scope));
                }
            }
        }
        for (budget, what) in [(rule.budget, "the rule's"), (all, "all rules'")] {
            let span = i64::try_from(budget.per.as_millis()).unwrap();
            for (end, _) in &history.done {
                let within = history.done.iter().filter(|(at, _)| *at > end - span && at <= end).count();
                prop_assert!(within <= budget.items as usize, "{what}: {within} within {:?}", budget.per);
            }
        }
        let cooldown = i64::try_from(rule.cooldown.as_millis()).unwrap();
        for (number, (at, scope)) in history.acted.iter().enumerate() {
            for (other, same) in &history.acted[number + 1..] {
                // Where the clock was put back in between, the later one is dated earlier, and waited all the longer.
                prop_assert!(scope != same || *other >= at + cooldown, "{scope} at {at} and at {other}");
            }
        }
        let mut tried: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, name) in &history.done {
            *tried.entry(name).or_default() += 1;
        }
        prop_assert!(tried.values().all(|times| *times <= attempts), "{tried:?}");
    }
}

#[test]
fn after_a_failure_it_is_waited_longer_and_longer_and_never_longer_than_ten_minutes() {
    let minutes: Vec<_> = (1..=8).map(|failures| pause_after(failures).as_secs() / 60).collect();
    assert_eq!(minutes, [1, 2, 4, 8, 10, 10, 10, 10]);
}

#[test]
fn a_share_is_of_what_there_was_before_the_rule_touched_it() {
    let rule = rule(100, 3_600, Some(0.25), 1, 3);
    let (mut memory, mut together) = (Memory::default(), Together::default());
    let all = Budget { items: 1_000, per: Duration::from_hours(1) };
    let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    assert_eq!(room(&rule, &memory, (&together, all), 40, now).0, 10);
    for number in 0..10 {
        take(&rule, &mut memory, &mut together, all, &number.to_string(), now);
    }
    assert_eq!(room(&rule, &memory, (&together, all), 30, now), (0, Bound::Share));
    assert_eq!(room(&rule, &memory, (&together, all), 30, now + Duration::from_hours(1)).0, 7);
    // One of few is always left to be tried.
    assert_eq!(room(&rule, &Memory::default(), (&together, all), 2, now).0, 1);
    assert_eq!(room(&rule, &Memory::default(), (&together, all), 0, now).0, 0);
}
