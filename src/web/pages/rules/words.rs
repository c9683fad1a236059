//! A rule in sentences.

use std::time::Duration;

use crate::alerts::{Rule, RuleAction, Selector};
use crate::views::show::{counted, percent, visible};
use queuekeeper_queue::state::State as _;

/// A duration exactly as configured, in the units of the pages: `10 min`, `1 h 30 min`, `1 day`.
fn span(duration: Duration) -> String {
    const UNITS: [([&str; 2], u128); 5] = [
        (["day", "days"], 24 * 60 * 60 * 1000),
        (["h", "h"], 60 * 60 * 1000),
        (["min", "min"], 60 * 1000),
        (["s", "s"], 1000),
        (["ms", "ms"], 1),
    ];
    let mut millis = duration.as_millis();
    let mut parts = Vec::new();
    for ([one, many], unit) in UNITS {
        let count = millis / unit;
        millis %= unit;
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// When it looks at the queue.
pub(super) fn when(rule: &Rule) -> String {
    let labels: Vec<_> =
        rule.labels.iter().map(|(name, value)| format!("{} = {}", visible(name), visible(value))).collect();
    let with = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(", ")) };
    format!("{}{with}", visible(&rule.alert))
}

/// What it does then, and on what.
pub(super) fn does(rule: &Rule) -> String {
    let select = &rule.select;
    let does = rule.action.sentence();
    if rule.action == RuleAction::HoldCollections {
        let states = states(select);
        let undo = if rule.is_undone { "; released with the jobs it held when the alert is resolved" } else { "" };
        return format!("{does} whose jobs in {states} need most working storage, while jobs wait for it{undo}.");
    }
    if !select.faults.is_empty() {
        let faults: Vec<_> = select.faults.iter().map(|fault| fault.title().to_lowercase()).collect();
        return format!("{does}: {}.", faults.join(", "));
    }
    let mut parts = vec![format!("in {}", states(select))];
    if !select.collections.is_empty() {
        let names: Vec<_> = select.collections.iter().map(|name| visible(name)).collect();
        parts.push(format!("of {}", names.join(", ")));
    }
    parts.extend(select.min_age.map(|age| format!("for {} or longer", span(age))));
    parts.extend(select.max_age.map(|age| format!("for at most {}", span(age))));
    parts.extend(select.max_retries.map(|most| format!("resumed at most {}", counted(most.into(), "time", "times"))));
    parts.extend(select.locked.map(|locked| if locked { "locked".to_owned() } else { "not locked".to_owned() }));
    format!("{does} {}.", parts.join(", "))
}

/// What keeps it from doing too much.
pub(super) fn limits(rule: &Rule) -> String {
    let share = rule.max_share.map(|share| format!(", {} of the jobs in their state within an hour", percent(share)));
    let at_once = if rule.action == RuleAction::HoldCollections { "at once" } else { "for one alert" };
    format!(
        "At most {} {at_once}, {} within {}{}; cooldown {}; {} per item, then it is left to an operator.",
        rule.select.limit,
        rule.budget.items,
        span(rule.budget.per),
        share.unwrap_or_default(),
        span(rule.cooldown),
        counted(rule.attempts.into(), "try", "tries"),
    )
}

fn states(select: &Selector) -> String {
    select.states.iter().map(|state| state.name()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_exact_and_in_the_units_of_the_pages() {
        for (seconds, text) in [
            (0, "0 s"),
            (30, "30 s"),
            (600, "10 min"),
            (630, "10 min 30 s"),
            (3_600, "1 h"),
            (5_400, "1 h 30 min"),
            (86_400, "1 day"),
            (14 * 86_400, "14 days"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
        assert_eq!(span(Duration::from_millis(250)), "250 ms");
    }
}
