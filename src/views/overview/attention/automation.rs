//! Rules that act on alerts: what they are executing, and what stops them.

use jiff::{SignedDuration, Timestamp};

use super::{Attention, Severity, item};
use crate::alerts::{Foreign, RuleStatus, RulesStatus};
use crate::views::show::{as_sentence, brief, counted};

/// The maximum length of a shown text from a znode below /queuekeeper, which other clients may have written, in
/// characters.
const LONG: usize = 160;

/// A decision that is executed within this time needs no attention.
const BRIEF: SignedDuration = SignedDuration::from_secs(10);

/// How many items are named of those that a rule has given up on.
const NAMED: usize = 3;

/// The state of automatic actions, and what they wait for.
pub(super) fn items(overview: &RulesStatus, now: Timestamp) -> Vec<Attention> {
    let mut items = Vec::new();
    if let Some(pause) = &overview.paused {
        let by = if pause.who.is_empty() {
            String::new()
        } else {
            let why = if pause.why.is_empty() { String::new() } else { format!(": {}", brief(&pause.why, LONG)) };
            format!(" {}", as_sentence(&format!("It was paused by {}{why}", brief(&pause.who, LONG))))
        };
        items.push(Attention {
            since: Some(pause.since),
            fix: "Unpause it on the rules page.".to_owned(),
            ..of_rules(
                "automation_paused",
                Severity::Warn,
                "All automatic action is paused".to_owned(),
                format!("Alerts are received, but no action is executed.{by}"),
            )
        });
    }
    if let Some(problem) = &overview.problem {
        items.push(Attention {
            fix: "Grant queuekeeper the right to create znodes there, or delete the znode that is in the way."
                .to_owned(),
            ..of_rules(
                "automation_blocked",
                Severity::Bad,
                "This process cannot take part in the leader election".to_owned(),
                format!("It executes no decisions: {}.", unended(problem)),
            )
        });
    }
    if overview.is_audit_unwritable {
        items.push(Attention {
            fix: "Make FILE.alerts next to the file of --audit.file writable; the server's log has the reason. No \
                     restart is needed."
                .to_owned(),
            ..of_rules(
                "automation_unwritten",
                Severity::Bad,
                "The audit file of alerts cannot be written".to_owned(),
                "This process executes no decisions, and answers Alertmanager with 503 if a rule matches the alert."
                    .to_owned(),
            )
        });
    }
    let is_paused = overview.paused.is_some();
    overview.rules.iter().for_each(|rule| items.extend(of_rule(rule, is_paused, now)));
    for (rule, holds) in &overview.orphans {
        let held: Vec<_> = holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
        items.push(Attention {
            since: holds.iter().map(|hold| hold.since).min(),
            fix: format!("Release {} on the locks page, or restore the rule.", them(held.len())),
            ..of_rules(
                "automation_orphan",
                Severity::Bad,
                format!("An inactive rule still holds {}", counted(held.len() as u64, "collection", "collections")),
                format!(
                    "The rule {} held {}, and does not release {} automatically.",
                    brief(rule, LONG),
                    held.join(", "),
                    them(held.len())
                ),
            )
        });
    }
    items
}

/// The maximum number of unexpected znodes that are shown one by one.
const SHOWN: usize = 10;

/// Unexpected znodes below /queuekeeper.
pub(super) fn foreign((found, more): &(Vec<Foreign>, usize)) -> Vec<Attention> {
    let shown = found.iter().take(SHOWN).map(|found| Attention {
        fix: brief(&found.fix, LONG * 2),
        ..item(
            "automation_foreign",
            if found.stops { Severity::Bad } else { Severity::Warn },
            format!("{} {}", brief(&found.path, LONG), brief(&found.what, LONG)),
            found.effect,
        )
    });
    let mut items: Vec<_> = shown.collect();
    let more = more + found.len().saturating_sub(SHOWN);
    if more > 0 {
        items.push(Attention {
            fix: "Inspect them in the tree, and delete those that do not belong there.".to_owned(),
            page: Some("tree/queuekeeper".to_owned()),
            link: "Show znodes",
            ..item(
                "automation_foreign",
                Severity::Warn,
                format!(
                    "{} below /queuekeeper",
                    counted(more as u64, "more unexpected znode", "more unexpected znodes")
                ),
                "queuekeeper did not write them, or cannot read or delete them.",
            )
        });
    }
    items
}

/// The pronoun for so many items.
fn them(count: usize) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// A text without its full stop.
fn unended(text: &str) -> String {
    brief(text, LONG).trim_end_matches('.').to_owned()
}

/// The state of one rule.
fn of_rule(rule: &RuleStatus, is_paused: bool, now: Timestamp) -> Vec<Attention> {
    let mut items = Vec::new();
    // Without the configuration it is the name of a znode, which may be any text.
    let name = brief(&rule.name, LONG);
    if let Some(breaker) = &rule.breaker {
        items.push(Attention {
            since: Some(breaker.since),
            fix: "Find out why so many actions were triggered, then reset the breaker on the rules page.".to_owned(),
            ..of_rules(
                "breaker_open",
                Severity::Bad,
                format!("The breaker of the rule {name} is open"),
                format!("It executes no actions: {}.", unended(&breaker.why)),
            )
        });
    }
    if !rule.left.is_empty() {
        let left = counted(rule.left.len() as u64, "item", "items");
        let mut named: Vec<_> = rule.left.iter().take(NAMED).map(|on| brief(on, LONG)).collect();
        if rule.left.len() > NAMED {
            named.push(format!("and {} more", rule.left.len() - NAMED));
        }
        let often = match rule.attempts {
            Some(attempts) => counted(attempts.into(), "time", "times"),
            None => "the maximum number of times".to_owned(),
        };
        items.push(Attention {
            fix: format!("An operator has to take care of {}.", them(named.len())),
            ..of_rules(
                "automation_gave_up",
                Severity::Bad,
                format!("The rule {name} gave up on {left}"),
                format!("It tried {} {often}: {}.", them(rule.left.len()), named.join(", ")),
            )
        });
    }
    if let Some(why) = &rule.unreadable {
        items.push(Attention {
            fix: "Find out what wrote to that znode before you delete it.".to_owned(),
            ..of_rules(
                "automation_failing",
                Severity::Bad,
                format!("The rule {name} cannot act"),
                format!("It executes no actions: {}.", unended(why)),
            )
        });
    }
    let lasts = |since: Timestamp| is_paused || now.duration_since(since) >= BRIEF;
    if let Some((words, since)) = rule.waiting.iter().find(|(_, since)| lasts(*since)) {
        items.push(Attention {
            since: Some(*since),
            fix: if is_paused {
                "Unpause all automatic action on the rules page."
            } else {
                "Nothing needs to be done; it can be paused on the rules page."
            }
            .to_owned(),
            ..of_rules(
                "automation_at_work",
                Severity::Warn,
                format!(
                    "The rule {name} {}",
                    if is_paused { "is paused with unfinished decisions" } else { "is executing a decision" }
                ),
                format!("It is {}.", unended(words)),
            )
        });
    }
    if !rule.holds.is_empty() {
        let held: Vec<_> = rule.holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
        let them = them(held.len());
        let until = match (rule.is_undone, is_paused) {
            (Some(true), true) => {
                format!("It releases {them} once the alert is resolved and automatic action is unpaused.")
            }
            (Some(true), false) => format!("It releases {them} when the alert is resolved."),
            (Some(false), _) => format!("An operator has to release {them}."),
            (None, _) => {
                format!("Unless it is configured with “on_resolved: release”, an operator has to release {them}.")
            }
        };
        items.push(Attention {
            since: rule.holds.iter().map(|hold| hold.since).min(),
            fix: until,
            ..of_rules(
                "automation_holds",
                Severity::Warn,
                format!("The rule {name} holds {}", counted(held.len() as u64, "collection", "collections")),
                format!("New jobs of {} are held back until jobs in progress have finished.", held.join(", ")),
            )
        });
    }
    items
}

fn of_rules(kind: &'static str, severity: Severity, title: String, text: String) -> Attention {
    Attention { page: Some("rules".to_owned()), link: "Show rules", ..item(kind, severity, title, text) }
}
