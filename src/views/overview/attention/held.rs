//! What is held: collections, with their jobs, and jobs by themselves.

use super::{Attention, Severity, item};
use crate::mirror::{Pause, Summary};
use crate::views::show::{Count, brief, counted};
use queuekeeper_queue::state::JobState;

/// Held collections, Held jobs that no hold explains, and jobs that an operator holds: each is released in its own way.
///
/// `named` are the collections held longest, each with who holds it, and why.
pub(super) fn all(summary: &Summary, named: &[(String, Pause)]) -> impl Iterator<Item = Attention> {
    let held = summary.jobs.get(Some(JobState::Held));
    let left_over = held.count.saturating_sub(summary.held_with_collection).saturating_sub(held.by_operator);
    [collections(summary, named), left_over_jobs(left_over), by_operator(held.by_operator)].into_iter().flatten()
}

/// How many held collections are named.
const NAMED: usize = 3;

/// The maximum length of a shown mnemonic, which is the name of a znode, in characters.
const MNEMONIC_CHARS: usize = 64;

/// Who holds the collections, and why, where their locks say so; with a space behind it.
fn holders(collections: u64, named: &[(String, Pause)]) -> String {
    if let ([(_, pause)], 1) = (named, collections) {
        return pause.requested();
    }
    let mut all: Vec<_> = named
        .iter()
        .take(NAMED)
        .map(|(name, pause)| {
            let requested = pause.requested();
            let mut by = requested.trim_end_matches(['.', ' ']).chars();
            // It begins a sentence there.
            let by: String = by.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(by).collect();
            let name = brief(name, MNEMONIC_CHARS);
            if by.is_empty() { name } else { format!("{name} {by}") }
        })
        .collect();
    let more = collections.saturating_sub(all.len() as u64);
    if all.is_empty() {
        return String::new();
    }
    if more > 0 {
        all.push(format!("and {} more", Count(more)));
    }
    format!("{}. ", all.join("; "))
}

fn collections(summary: &Summary, named: &[(String, Pause)]) -> Option<Attention> {
    let collections = summary.collections_held;
    if collections == 0 {
        return None;
    }
    let (what, theirs, them) =
        if collections == 1 { ("the collection", "its", "it") } else { ("the collections", "their", "them") };
    let text = match summary.held_with_collection {
        0 => {
            format!("No job is Held with {them} yet. Pending jobs become Held one by one as daemons reach them.")
        }
        1 => format!("1 job is Held with {them}, and stays so until it is released."),
        jobs => format!("{} jobs are Held with {them}, and stay so until they are released.", Count(jobs)),
    };
    let remedy = match summary.held_with_collection {
        0 => format!("Release {what}."),
        1 => format!("Release {what}, and then {theirs} Held job."),
        _ => format!("Release {what}, and then {theirs} Held jobs."),
    };
    let title = match named {
        [(name, _)] if collections == 1 => format!("The collection {} is held", brief(name, MNEMONIC_CHARS)),
        _ => format!("{} held", counted(collections, "collection is", "collections are")),
    };
    Some(Attention {
        since: named.first().and_then(|(_, pause)| pause.since),
        is_oldest: collections > 1,
        remedy,
        page: Some("locks".to_owned()),
        link: "Show locks",
        ..item("held", Severity::Warn, title, format!("{}{text}", holders(collections, named)))
    })
}

fn left_over_jobs(jobs: u64) -> Option<Attention> {
    let text = match jobs {
        0 => return None,
        1 => "It is not released automatically.",
        _ => "They are not released automatically.",
    };
    Some(Attention {
        remedy: format!("Release {}.", if jobs == 1 { "it" } else { "them" }),
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
        remedy: format!("Release {} when the reason no longer applies.", if jobs == 1 { "it" } else { "them" }),
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

    fn pause(who: &str, why: &str) -> Pause {
        Pause { since: None, who: who.into(), why: why.into() }
    }

    #[test]
    fn held_collections_are_named_with_who_holds_them_and_why() {
        let text = |collections, named: &[(String, Pause)]| {
            let summary = Summary { collections_held: collections, ..Summary::default() };
            let item = super::all(&summary, named).next().unwrap();
            format!("{}: {}", item.title, item.text)
        };
        let one = [("cdl_a".to_owned(), pause("anna", "the store is full."))];
        assert_eq!(
            text(1, &one),
            "The collection cdl_a is held: By “anna”, because of “the store is full”. No job is Held with it yet. \
             Pending jobs become Held one by one as daemons reach them."
        );
        let named = ["a", "b", "c", "d"].map(|name| (name.to_owned(), pause(if name == "b" { "" } else { "bo" }, "")));
        let many = text(5, &named);
        assert!(many.starts_with("5 collections are held: a by “bo”; b; c by “bo”; and 2 more. No job"), "{many}");
        // What its lock says is hostile: it turns no text around.
        let odd = text(1, &[("x\u{202e}y".to_owned(), pause("\u{202e}", ""))]);
        assert!(!odd.contains('\u{202e}'), "{odd}");
    }

    fn titles(collections: u64, with: u64, by_operator: u64, all: u64) -> Vec<String> {
        let mut summary = Summary { collections_held: collections, held_with_collection: with, ..Summary::default() };
        let held = summary.jobs.get_mut(Some(JobState::Held));
        (held.count, held.by_operator) = (all, by_operator);
        super::all(&summary, &[]).map(|item| format!("{}: {}", item.title, item.remedy)).collect()
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
