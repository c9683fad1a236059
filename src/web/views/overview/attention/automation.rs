//! What is done by itself, and where that has come to an end.

use super::{Attention, Severity, item};
use crate::alerts::{Foreign, Mode, Overview, RuleOverview};
use crate::web::show::{brief, counted};

/// So much is shown of a text that stands in a znode of ours, where anybody may have put it, in characters.
const LONG: usize = 160;

/// What automatic action is at, and what it waits for.
pub(super) fn items(overview: &Overview) -> Vec<Attention> {
    let mut items = Vec::new();
    if let Some(pause) = &overview.paused {
        let by = if pause.who.is_empty() {
            String::new()
        } else {
            format!(" It was paused by {}.", brief(&pause.who, LONG))
        };
        items.push(Attention {
            since: Some(pause.since),
            remedy: "It goes on when somebody unpauses it on the page of rules.".to_owned(),
            ..of_rules(
                "automation_paused",
                Severity::Warn,
                "All automatic action is paused".to_owned(),
                format!("Alerts are taken and nothing is done about them.{by}"),
            )
        });
    }
    if let Some(problem) = &overview.problem {
        items.push(Attention {
            remedy: "Give queuekeeper the right to create znodes there, or delete what is in the way.".to_owned(),
            ..of_rules(
                "automation_blocked",
                Severity::Bad,
                "This process cannot stand for election".to_owned(),
                format!("It carries out no decision: {}.", brief(problem, LONG)),
            )
        });
    }
    if overview.is_trail_lost {
        items.push(Attention {
            remedy:
                "Make FILE.alerts beside the file of --audit.file writable; the server's log has the reason. It goes \
                     on by itself."
                    .to_owned(),
            ..of_rules(
                "automation_unwritten",
                Severity::Bad,
                "The audit file of alerts cannot be written".to_owned(),
                "This process carries out no decision, and answers Alertmanager with 503 where a rule names the alert."
                    .to_owned(),
            )
        });
    }
    let is_paused = overview.paused.is_some();
    overview.rules.iter().for_each(|rule| items.extend(of_rule(rule, is_paused)));
    for (rule, holds) in &overview.orphans {
        let held: Vec<_> = holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
        items.push(Attention {
            since: holds.iter().map(|hold| hold.since).min(),
            remedy: "Release them on the page of locks, or put the rule back.".to_owned(),
            ..of_rules(
                "automation_orphan",
                Severity::Bad,
                format!(
                    "A rule that does not act any more holds {}",
                    counted(held.len() as u64, "collection", "collections")
                ),
                format!("{} held {}, and nothing releases them by itself.", brief(rule, LONG), held.join(", ")),
            )
        });
    }
    items
}

/// How many znodes are shown one by one.
const SHOWN: usize = 10;

/// What stands among our own znodes and a person should look at.
pub(super) fn foreign((found, more): &(Vec<Foreign>, usize)) -> Vec<Attention> {
    let shown = found.iter().take(SHOWN).map(|found| Attention {
        remedy: brief(&found.remedy, LONG * 2),
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
            remedy: "Look at them in the tree, and delete what does not belong there.".to_owned(),
            page: Some("tree/queuekeeper".to_owned()),
            link: "Show znodes",
            ..item(
                "automation_foreign",
                Severity::Warn,
                format!(
                    "{} below /queuekeeper",
                    counted(more as u64, "more unexpected znode", "more unexpected znodes")
                ),
                "They are not as queuekeeper writes them.",
            )
        });
    }
    items
}

/// What one rule is at.
fn of_rule(rule: &RuleOverview, is_paused: bool) -> Vec<Attention> {
    let mut items = Vec::new();
    let name = &rule.rule.name;
    if let Some(breaker) = &rule.breaker {
        items.push(Attention {
            since: Some(breaker.since),
            remedy: "Look why so much of it was wanted; then close the breaker on the page of rules.".to_owned(),
            ..of_rules(
                "breaker_open",
                Severity::Bad,
                format!("The breaker of the rule {name} is open"),
                format!("It does nothing by itself any more: {}.", brief(&breaker.why, LONG)),
            )
        });
    }
    if !rule.left.is_empty() {
        let left = counted(rule.left.len() as u64, "item", "items");
        let named: Vec<_> = rule.left.iter().take(3).map(|on| brief(on, LONG)).collect();
        items.push(Attention {
            remedy: "A person has to look at them.".to_owned(),
            ..of_rules(
                "automation_gave_up",
                Severity::Bad,
                format!("The rule {name} gave up on {left}"),
                format!("It has tried them {} times: {}.", rule.rule.attempts, named.join(", ")),
            )
        });
    }
    if let Some(why) = &rule.unreadable {
        items.push(Attention {
            remedy: "Until then it does nothing.".to_owned(),
            ..of_rules(
                "automation_failing",
                Severity::Bad,
                format!("The rule {name} cannot act"),
                format!("{}.", brief(why, LONG)),
            )
        });
    }
    if let Some((words, since)) = rule.waiting.first() {
        items.push(Attention {
            since: Some(*since),
            remedy: if is_paused {
                "It goes on when somebody unpauses all automatic action on the page of rules."
            } else {
                "Nothing needs to be done; it can be paused on the page of rules."
            }
            .to_owned(),
            ..of_rules(
                "automation_at_work",
                Severity::Warn,
                format!(
                    "The rule {name} {}",
                    if is_paused { "is paused in the middle of its work" } else { "is at work" }
                ),
                format!("It {}.", brief(words, LONG)),
            )
        });
    }
    if rule.rule.mode == Mode::Enforce && !rule.holds.is_empty() {
        let held: Vec<_> = rule.holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
        let until = if rule.rule.is_undone && is_paused {
            "It releases them when the alert is resolved and automatic action is not paused any more."
        } else if rule.rule.is_undone {
            "It releases them when the alert is resolved."
        } else {
            "A person has to release them."
        };
        items.push(Attention {
            since: rule.holds.iter().map(|hold| hold.since).min(),
            remedy: until.to_owned(),
            ..of_rules(
                "automation_holds",
                Severity::Warn,
                format!("The rule {name} holds {}", counted(held.len() as u64, "collection", "collections")),
                format!("New jobs of {} are held back, so that work under way can end.", held.join(", ")),
            )
        });
    }
    items
}

fn of_rules(kind: &'static str, severity: Severity, title: String, text: String) -> Attention {
    Attention { page: Some("rules".to_owned()), link: "Show rules", ..item(kind, severity, title, text) }
}
