//! Random histories of a rule: its limits hold whatever happens, at any time and with any number of restarts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::alerts::rule::{Mode, RuleAction, Selector};

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes, in seconds; backwards when a clock is corrected.
    Wait(i64),
    /// An alert on one of three scopes, with this many jobs selected by the rule.
    Alert { scope: u8, fingerprint: u8, starts: u8, present: u64, wanted: usize },
    /// A user resets the breaker.
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
        action: RuleAction::ResumeJobs,
        select: Selector { limit: 500, ..Selector::default() },
        narrow_by: Vec::new(),
        budget: Budget { items, per: Duration::from_secs(span) },
        max_share: share,
        cooldown: Duration::from_secs(cooldown),
        attempts,
        is_undone: false,
    }
}

/// What was done, by the clock of the process that did it.
#[derive(Debug, Default)]
struct History {
    done: Vec<(i64, String)>,
    /// When the rule acted on each scope.
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
        let (mut memory, mut shared_budget) = (Memory::default(), SharedBudget::default());
        let mut history = History::default();
        let mut now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for step in steps {
            // As after a restart or a change of the leader: all state is in the znodes.
            memory = Memory::read(&memory.data()).unwrap();
            shared_budget = SharedBudget::read(&shared_budget.data()).unwrap();
            match step {
                Step::Wait(seconds) => now += jiff::SignedDuration::from_secs(seconds),
                Step::Reset => memory.breaker = None,
                Step::Alert { scope, fingerprint, starts, present, wanted } => {
                    let cause = Trigger {
                        alert: "A".to_owned(),
                        fingerprint: fingerprint.to_string(),
                        starts_at: "2026-11-21T09:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_secs(starts.into()),
                    };
                    let scope = scope.to_string();
                    let is_open = memory.breaker.is_some();
                    if admit(&rule, &memory, &cause, &scope, now).is_err() {
                        continue;
                    }
                    prop_assert!(!is_open, "no action while the breaker is open");
                    let names = (0..wanted).map(|number| format!("jid{number:010}"));
                    let open: Vec<_> = names.filter(|name| memory.attempts_on(name) < attempts).collect();
                    let (room, bound) = room(&rule, &memory, (&shared_budget, all), present, now);
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
                        take(&rule, &mut memory, &mut shared_budget, all, name, now);
                        history.done.push((now.as_millisecond(), name.clone()));
                        done += 1;
                    }
                    if let Some(share) = share {
                        let most = (share * (present + touched) as f64).max(1.0);
                        prop_assert!((touched + done) as f64 <= most.max(touched as f64), "{touched} + {done} of {present}");
                    }
                    memory.record_alert(&scope, &cause.fingerprint, cause.starts_at, rule.cooldown, now);
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
                // If the clock was set back in between, the later one has an earlier date, and waited longer.
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
fn the_pause_after_failures_grows_up_to_ten_minutes() {
    let minutes: Vec<_> = (1..=8).map(|failures| pause_after(failures).as_secs() / 60).collect();
    assert_eq!(minutes, [1, 2, 4, 8, 10, 10, 10, 10]);
}

#[test]
fn a_share_is_of_the_jobs_that_were_there_before_the_rule_touched_them() {
    let rule = rule(100, 3_600, Some(0.25), 1, 3);
    let (mut memory, mut shared_budget) = (Memory::default(), SharedBudget::default());
    let all = Budget { items: 1_000, per: Duration::from_hours(1) };
    let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    assert_eq!(room(&rule, &memory, (&shared_budget, all), 40, now).0, 10);
    for number in 0..10 {
        take(&rule, &mut memory, &mut shared_budget, all, &number.to_string(), now);
    }
    assert_eq!(room(&rule, &memory, (&shared_budget, all), 30, now), (0, Bound::Share));
    assert_eq!(room(&rule, &memory, (&shared_budget, all), 30, now + Duration::from_hours(1)).0, 7);
    // At least one may always be tried.
    assert_eq!(room(&rule, &Memory::default(), (&shared_budget, all), 2, now).0, 1);
    assert_eq!(room(&rule, &Memory::default(), (&shared_budget, all), 0, now).0, 0);
}
