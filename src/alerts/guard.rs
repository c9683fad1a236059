//! What stands between an alert and an action: breaker, cooldown, budgets. Pure, so that it can be tried at length.

use std::time::Duration;

use jiff::Timestamp;

use super::decision::Cause;
use super::memory::{Before, MOST_ATTEMPTED, Memory, Together};
use super::outcome::Outcome;
use super::rule::{Budget, Rule};

/// The span over which a share of a state is reckoned.
const SHARE_SPAN: Duration = Duration::from_hours(1);

/// Why a rule does nothing now, and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) outcome: Outcome,
    pub(super) why: String,
    /// The items that are left to a person.
    pub(super) left: Vec<String>,
}

impl Stop {
    pub(super) fn new(outcome: Outcome, why: impl Into<String>) -> Self {
        Self { outcome, why: why.into(), left: Vec::new() }
    }
}

/// Whether a rule may act on an alert at all, by what it has done before.
pub(super) fn admit(rule: &Rule, memory: &Memory, cause: &Cause, scope: &str, now: Timestamp) -> Result<(), Stop> {
    if let Some(breaker) = &memory.breaker {
        let why = format!("its breaker is open since {:.0}: {}", breaker.since, breaker.why);
        return Err(Stop::new(Outcome::BreakerOpen, why));
    }
    match memory.before(scope, &cause.fingerprint, cause.starts_at, rule.cooldown, now) {
        Before::Nothing if !memory.has_room(rule.cooldown, now) => {
            Err(Stop::new(Outcome::Cooldown, "the rule has acted on as many alerts just now as it can remember"))
        }
        Before::Nothing => Ok(()),
        Before::This => Err(Stop::new(Outcome::Duplicate, "this alert was acted upon just now")),
        Before::Another => Err(Stop::new(Outcome::Cooldown, "the rule has acted on the same just now")),
    }
}

/// What keeps a rule from touching more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Its own budget. Past that its breaker opens: it wants more than it was thought to.
    Budget,
    /// What all rules may do together, which others may have used up.
    Together,
    /// The share of the jobs, which has a new hour.
    Share,
    /// How much it can remember.
    Memory,
}

impl Bound {
    /// In words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Budget => "the rule's budget is spent",
            Self::Together => "the budget of all rules is spent",
            Self::Share => "the share of its jobs is used up for this hour",
            Self::Memory => "it has touched more than it can remember",
        }
    }

    /// Whether somebody has to look before the rule does anything more.
    pub(super) fn trips(self) -> bool {
        match self {
            Self::Budget => true,
            Self::Together | Self::Share | Self::Memory => false,
        }
    }
}

/// How many items a rule may touch now, of `present` jobs in its states; and what keeps it from more.
pub(super) fn room(
    rule: &Rule,
    memory: &Memory,
    (together, all): (&Together, Budget),
    present: u64,
    now: Timestamp,
) -> (u64, Bound) {
    let left = |spent: u64, budget: Budget| u64::from(budget.items).saturating_sub(spent);
    let mut room = (left(memory.spent.within(rule.budget.per, now), rule.budget), Bound::Budget);
    let mut narrow = |to: u64, bound| {
        if to < room.0 {
            room = (to, bound);
        }
    };
    narrow(left(together.spent.within(all.per, now), all), Bound::Together);
    if let Some(share) = rule.max_share {
        let touched = memory.spent.within(SHARE_SPAN, now);
        narrow(share_of(share, present + touched).saturating_sub(touched), Bound::Share);
    }
    let remembered = MOST_ATTEMPTED.saturating_sub(memory.attempted(now)) as u64;
    narrow(remembered, Bound::Memory);
    room
}

/// A share of so many, one at the least.
fn share_of(share: f64, of: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is one")]
    let part = (share * of as f64).floor() as u64;
    part.max(1).min(of)
}

/// Takes a token for an item that is about to be done, from the rule and from all.
pub(super) fn take(rule: &Rule, memory: &mut Memory, together: &mut Together, all: Budget, item: &str, now: Timestamp) {
    memory.spent.take(1, rule.budget.per.max(SHARE_SPAN), now);
    together.spent.take(1, all.per, now);
    memory.attempt(item, now);
    memory.last_action = Some(now);
}

/// How long is waited after the failure of that number, from 1.
pub(super) fn pause_after(failures: u32) -> Duration {
    const MINUTES: [u64; 5] = [1, 2, 4, 8, 10];
    let at = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX).min(MINUTES.len() - 1);
    Duration::from_mins(MINUTES[at])
}

#[cfg(test)]
mod tests;
