//! The limits between an alert and an action: breaker, cooldown, budgets. Pure functions, for extensive tests.

use std::time::Duration;

use jiff::Timestamp;

use super::decision::Trigger;
use super::evaluation::Stop;
use super::memory::{MAX_ATTEMPTED, Memory, PreviousAction, SharedBudget};
use super::outcome::AlertOutcome;
use super::rule::{Budget, Rule};
use crate::words::{counted, moment};

/// The period to which a share of a state applies.
const SHARE_SPAN: Duration = Duration::from_hours(1);

/// Whether a rule may act on an alert, considering its previous actions.
pub(super) fn admit(rule: &Rule, memory: &Memory, cause: &Trigger, scope: &str, now: Timestamp) -> Result<(), Stop> {
    if let Some(breaker) = &memory.breaker {
        let why = format!("its breaker has been open since {}: {}", moment(breaker.since), breaker.why);
        return Err(Stop::new(AlertOutcome::BreakerOpen, why));
    }
    match memory.previous_action(scope, &cause.fingerprint, cause.starts_at, rule.cooldown, now) {
        PreviousAction::None if !memory.has_room(rule.cooldown, now) => Err(Stop::new(
            AlertOutcome::Cooldown,
            "the rule has acted on the maximum number of alerts within its cooldown",
        )),
        PreviousAction::None => Ok(()),
        PreviousAction::SameAlert => {
            Err(Stop::new(AlertOutcome::Duplicate, "the rule has acted on this alert within its cooldown"))
        }
        PreviousAction::OtherAlert => {
            Err(Stop::new(AlertOutcome::Cooldown, "the rule has acted on the same scope within its cooldown"))
        }
    }
}

/// What limits the number of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The rule's budget. Exceeding it opens the breaker: the rule selects more than intended.
    Budget,
    /// The shared budget of all rules, which other rules may have used up.
    SharedBudget,
    /// The share of the jobs, which is available again after an hour.
    Share,
    /// The size of the rule's state.
    Memory,
}

impl Bound {
    /// In words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Budget => "the rule's budget is used up",
            Self::SharedBudget => "the shared budget of all rules is used up",
            Self::Share => "its share of the jobs is used up for this hour",
            Self::Memory => "the rule has touched the maximum number of items that its state can hold",
        }
    }

    /// Why none of so many selected items can be touched.
    pub(super) fn refusal(self, selected: usize) -> String {
        let selected = counted(selected as u64, "item is", "items are");
        format!("{}, and {selected} selected", self.why())
    }

    /// Whether a user has to reset the rule.
    pub(super) fn trips(self) -> bool {
        match self {
            Self::Budget => true,
            Self::SharedBudget | Self::Share | Self::Memory => false,
        }
    }
}

/// How many items a rule may touch now, with `present` jobs in its states, and what limits them.
pub(super) fn room(
    rule: &Rule,
    memory: &Memory,
    (shared_budget, all): (&SharedBudget, Budget),
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
    narrow(left(shared_budget.spent.within(all.per, now), all), Bound::SharedBudget);
    if let Some(share) = rule.max_share {
        let touched = memory.spent.within(SHARE_SPAN, now);
        narrow(share_of(share, present + touched).saturating_sub(touched), Bound::Share);
    }
    let remembered = MAX_ATTEMPTED.saturating_sub(memory.attempted(now)) as u64;
    narrow(remembered, Bound::Memory);
    room
}

/// A share of a number, at least one.
fn share_of(share: f64, of: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is one")]
    let part = (share * of as f64).floor() as u64;
    part.max(1).min(of)
}

/// Takes a token for an item from the rule's budget and from the shared one.
pub(super) fn take(
    rule: &Rule,
    memory: &mut Memory,
    shared_budget: &mut SharedBudget,
    all: Budget,
    item: &str,
    now: Timestamp,
) {
    memory.spent.take(1, rule.budget.per.max(SHARE_SPAN), now);
    shared_budget.spent.take(1, all.per, now);
    memory.record_attempt(item, now);
    memory.last_action = Some(now);
}

/// The pause after a failure with this number, from 1.
pub(super) fn pause_after(failures: u32) -> Duration {
    const MINUTES: [u64; 5] = [1, 2, 4, 8, 10];
    let at = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX).min(MINUTES.len() - 1);
    Duration::from_mins(MINUTES[at])
}

#[cfg(test)]
mod tests;
