//! What is done by itself, and where that has come to an end.

use super::{Attention, Severity, item};
use crate::alerts::{Foreign, RuleStatus, RulesStatus};
use crate::views::show::{as_sentence, brief, counted};

/// So much is shown of a text that stands in a znode of ours, where anybody may have put it, in characters.
const LONG: usize = 160;

/// How many items are named of those that a rule has given up on.
const NAMED: usize = 3;

/// What automatic action is at, and what it waits for.
pub(super) fn items(overview: &RulesStatus) -> Vec<Attention> {
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
                format!("It carries out no decision: {}.", unended(problem)),
            )
        });
    }
    if overview.is_audit_unwritable {
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
            remedy: format!("Release {} on the page of locks, or put the rule back.", them(held.len())),
            ..of_rules(
                "automation_orphan",
                Severity::Bad,
                format!(
                    "A rule that does not act any more holds {}",
                    counted(held.len() as u64, "collection", "collections")
                ),
                format!(
                    "{} held {}, and nothing releases {} by itself.",
                    brief(rule, LONG),
                    held.join(", "),
                    them(held.len())
                ),
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

/// So many things, as the rest of a sentence refers to them.
fn them(count: usize) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// A text that stands before the full stop of a sentence.
fn unended(text: &str) -> String {
    brief(text, LONG).trim_end_matches('.').to_owned()
}

/// What one rule is at.
fn of_rule(rule: &RuleStatus, is_paused: bool) -> Vec<Attention> {
    let mut items = Vec::new();
    // Where the file of the rules is not known, it is the name of a znode: any text.
    let name = brief(&rule.name, LONG);
    if let Some(breaker) = &rule.breaker {
        items.push(Attention {
            since: Some(breaker.since),
            remedy: "Look why so much of it was wanted; then close the breaker on the page of rules.".to_owned(),
            ..of_rules(
                "breaker_open",
                Severity::Bad,
                format!("The breaker of the rule {name} is open"),
                format!("It does nothing by itself any more: {}.", unended(&breaker.why)),
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
            None => "as often as it may".to_owned(),
        };
        items.push(Attention {
            remedy: format!("A person has to look at {}.", them(named.len())),
            ..of_rules(
                "automation_gave_up",
                Severity::Bad,
                format!("The rule {name} gave up on {left}"),
                format!("It has tried {} {often}: {}.", them(rule.left.len()), named.join(", ")),
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
                as_sentence(&brief(why, LONG)),
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
                format!("It {}.", unended(words)),
            )
        });
    }
    if !rule.holds.is_empty() {
        let held: Vec<_> = rule.holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
        let them = them(held.len());
        let until = match (rule.is_undone, is_paused) {
            (Some(true), true) => {
                format!("It releases {them} when the alert is resolved and automatic action is not paused any more.")
            }
            (Some(true), false) => format!("It releases {them} when the alert is resolved."),
            (Some(false), _) => format!("A person has to release {them}."),
            (None, _) => format!("Unless its file says “on_resolved: release”, a person has to release {them}."),
        };
        items.push(Attention {
            since: rule.holds.iter().map(|hold| hold.since).min(),
            remedy: until,
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
