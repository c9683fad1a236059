//! What is held: collections, with their jobs, and jobs by themselves.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Attention, Severity, item};
use crate::actions::{ActionKind, TargetKind};
use crate::mirror::{PauseSituation, Summary};
use crate::views::overview::Recent;
use crate::views::show::{Count, brief, counted};
use queuekeeper_queue::state::JobState;

/// The collections that operators hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// How many.
    count: u64,
    /// Those held longest, each with who holds it, and why.
    named: Vec<(String, PauseSituation)>,
}

/// What rules hold is read again within this time.
const NEW: SignedDuration = SignedDuration::from_secs(10);

/// The collections that operators hold: the entry of a rule names those that it holds, and when it releases them.
pub(super) fn by_operators(summary: &Summary, recent: &Recent, now: Timestamp) -> Holds {
    let is_of_rule = |(name, pause): &&(String, PauseSituation)| {
        let is_new = pause.since.is_some_and(|since| now.duration_since(since) < NEW);
        recent.automation.as_ref().is_some_and(|rules| rules.hold(name, &pause.who, is_new))
    };
    let (of_rules, named): (Vec<_>, Vec<_>) = recent.held.iter().partition(is_of_rule);
    Holds {
        count: summary.collections_held.saturating_sub(of_rules.len() as u64),
        named: named.into_iter().cloned().collect(),
    }
}

/// Held collections, Held jobs that no hold explains, and jobs that an operator holds: each is released in its own way.
pub(super) fn all(summary: &Summary, holds: &Holds) -> impl Iterator<Item = Attention> + use<> {
    let held = summary.jobs.get(Some(JobState::Held));
    let left_over = held.count.saturating_sub(summary.held_with_collection).saturating_sub(held.by_operator);
    [collections(summary, holds), left_over_jobs(left_over), by_operator(held.by_operator)].into_iter().flatten()
}

/// How many held collections are named.
const NAMED: usize = 3;

/// The maximum length of a shown mnemonic, which is the name of a znode, and of a shown reason, in characters.
const MNEMONIC_CHARS: usize = 64;
const REASON_CHARS: usize = 100;

/// Who holds one collection, and why; the names of several, whose holders the locks and the table of holds show. With a
/// space behind it.
fn holders(holds: &Holds) -> String {
    if let ([(_, pause)], 1) = (&*holds.named, holds.count) {
        return PauseSituation { why: brief(&pause.why, REASON_CHARS).into(), ..pause.clone() }.requested();
    }
    let mut all: Vec<_> = holds.named.iter().take(NAMED).map(|(name, _)| brief(name, MNEMONIC_CHARS)).collect();
    if all.is_empty() {
        return String::new();
    }
    let more = holds.count.saturating_sub(all.len() as u64);
    all.extend((more > 0).then(|| format!("{} more", Count(more))));
    let last = all.pop().unwrap_or_default();
    if all.is_empty() { format!("{last}. ") } else { format!("{} and {last}. ", all.join(", ")) }
}

fn collections(summary: &Summary, holds: &Holds) -> Option<Attention> {
    let (what, theirs, them) = match holds.count {
        0 => return None,
        1 => ("the collection", "its", "it"),
        _ => ("the collections", "their", "them"),
    };
    // Which hold a Held job belongs to is known of its collection alone, and not counted for each.
    let with = if holds.count == summary.collections_held { them } else { "held collections" };
    let text = match summary.held_with_collection {
        0 => "No job is Held yet: a Pending job becomes Held when a daemon reaches it.".to_owned(),
        1 => format!("1 job is Held with {with}."),
        jobs => format!("{} jobs are Held with {with}.", Count(jobs)),
    };
    let fix = match summary.held_with_collection {
        0 => format!("Release {what}."),
        1 => format!("Release {what}, and then {theirs} Held job."),
        _ => format!("Release {what}, and then {theirs} Held jobs."),
    };
    let title = match &*holds.named {
        [(name, _)] if holds.count == 1 => format!("The collection {} is held", brief(name, MNEMONIC_CHARS)),
        _ => format!("{} held", counted(holds.count, "collection is", "collections are")),
    };
    Some(Attention {
        since: holds.named.first().and_then(|(_, pause)| pause.since),
        is_oldest: holds.count > 1,
        fix,
        page: Some("locks?kind=collection".to_owned()),
        link: "Show locks",
        ..item("held", Severity::Warn, title, format!("{}{text}", holders(holds)))
    })
}

/// Each store that is held, as far as they are named.
pub(super) fn stores(held: &[(Arc<str>, PauseSituation)]) -> impl Iterator<Item = Attention> {
    held.iter().take(NAMED).map(|(store, pause)| {
        let pause = PauseSituation { why: brief(&pause.why, REASON_CHARS).into(), ..pause.clone() };
        let effect = TargetKind::Store.effect(ActionKind::Hold);
        Attention {
            since: pause.since,
            fix: "Release the store once the reason for the hold is resolved.".to_owned(),
            page: Some("locks#stores".to_owned()),
            link: "Show held stores",
            ..item(
                "store_held",
                Severity::Warn,
                format!("The store {} is held", brief(store, MNEMONIC_CHARS)),
                format!("{}{effect}", pause.requested()),
            )
        }
    })
}

fn left_over_jobs(jobs: u64) -> Option<Attention> {
    let text = match jobs {
        0 => return None,
        1 => "Daemons do not release it.",
        _ => "Daemons do not release them.",
    };
    Some(Attention {
        fix: format!("Release {}.", if jobs == 1 { "it" } else { "them" }),
        page: Some("jobs?state=held".to_owned()),
        link: "Show jobs",
        ..item(
            "held_jobs",
            Severity::Warn,
            format!("{} Held, although the collection is not held", counted(jobs, "job is", "jobs are")),
            text,
        )
    })
}

fn by_operator(jobs: u64) -> Option<Attention> {
    let text = match jobs {
        0 => return None,
        1 => "It stays Held until an operator releases it. Its page shows who holds it, and why.",
        _ => "They stay Held until an operator releases them. The page of each shows who holds it, and why.",
    };
    Some(Attention {
        fix: format!("Release {} when the reason no longer applies.", if jobs == 1 { "it" } else { "them" }),
        page: Some("jobs?state=held".to_owned()),
        link: "Show jobs",
        ..item(
            "held_by_operator",
            Severity::Warn,
            format!("{} held by an operator", counted(jobs, "job is", "jobs are")),
            text,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(who: &str, why: &str) -> PauseSituation {
        PauseSituation { since: None, who: who.into(), why: why.into() }
    }

    fn holds(count: u64, named: &[(&str, &str, &str)]) -> Holds {
        let named = named.iter().map(|(name, who, why)| ((*name).to_owned(), pause(who, why)));
        Holds { count, named: named.collect() }
    }

    #[test]
    fn one_collection_is_shown_with_who_holds_it_and_why_and_several_with_their_names() {
        let text = |holds: &Holds, all: u64, jobs: u64| {
            let summary = Summary { collections_held: all, held_with_collection: jobs, ..Summary::default() };
            let item = super::all(&summary, holds).next().unwrap();
            format!("{}: {}", item.title, item.text)
        };
        assert_eq!(
            text(&holds(1, &[("cdl_a", "anna", "the store is full.")]), 1, 0),
            "The collection cdl_a is held: By “anna”; reason: “the store is full”. No job is Held yet: a Pending job \
             becomes Held when a daemon reaches it."
        );
        let named = [("a", "bo", "x"), ("b", "", ""), ("c", "bo", "y"), ("d", "bo", "")];
        assert_eq!(
            text(&holds(5, &named), 5, 2),
            "5 collections are held: a, b, c and 2 more. 2 jobs are Held with them."
        );
        assert_eq!(text(&holds(2, &named[..2]), 2, 1), "2 collections are held: a and b. 1 job is Held with them.");
        assert_eq!(
            text(&holds(2, &named[..2]), 3, 4),
            "2 collections are held: a and b. 4 jobs are Held with held collections.",
            "a rule holds the third"
        );
        assert_eq!(text(&holds(501, &[]), 501, 1), "501 collections are held: 1 job is Held with them.");
        // What a lock says is hostile: it turns no text around, and does not fill the page.
        let odd = text(&holds(1, &[("x\u{202e}y", "\u{202e}", &"w".repeat(500))]), 1, 0);
        assert!(!odd.contains('\u{202e}') && odd.chars().count() < 300, "{odd}");
    }

    #[test]
    fn a_held_store_is_shown_with_who_holds_it_and_why() {
        let held = [(Arc::from("main"), pause("anna", "its disks are replaced."))];
        let item = super::stores(&held).next().unwrap();
        assert_eq!(item.title, "The store main is held");
        assert!(
            item.text.starts_with("By “anna”; reason: “its disks are replaced”. Daemons of queuekeeper store no"),
            "{}",
            item.text
        );
        assert_eq!(super::stores(&vec![held[0].clone(); 9]).count(), NAMED);
    }

    fn titles(collections: u64, with: u64, by_operator: u64, all: u64) -> Vec<String> {
        let mut summary = Summary { collections_held: collections, held_with_collection: with, ..Summary::default() };
        let held = summary.jobs.get_mut(Some(JobState::Held));
        (held.count, held.by_operator) = (all, by_operator);
        let items = super::all(&summary, &holds(collections, &[]));
        items.map(|item| format!("{}: {}", item.title, item.fix)).collect()
    }

    #[test]
    fn collections_left_over_jobs_and_jobs_that_an_operator_holds_are_three_statements() {
        assert!(titles(0, 0, 0, 0).is_empty());
        assert_eq!(titles(1, 1, 0, 1), ["1 collection is held: Release the collection, and then its Held job."]);
        assert_eq!(titles(1, 0, 0, 0), ["1 collection is held: Release the collection."]);
        assert_eq!(
            titles(2, 4, 1, 8),
            [
                "2 collections are held: Release the collections, and then their Held jobs.",
                "3 jobs are Held, although the collection is not held: Release them.",
                "1 job is held by an operator: Release it when the reason no longer applies.",
            ]
        );
    }
}
