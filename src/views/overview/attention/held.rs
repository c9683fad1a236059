//! What is held: collections, with their jobs, and jobs by themselves.

use super::{Attention, Severity, item};
use crate::mirror::Summary;
use crate::views::show::{Count, counted};
use queuekeeper_queue::state::JobState;

/// Held collections, Held jobs that no hold explains, and jobs that an operator holds: each is released in its own way.
pub(super) fn all(summary: &Summary) -> impl Iterator<Item = Attention> {
    let held = summary.jobs.get(Some(JobState::Held));
    let left_over = held.count.saturating_sub(summary.held_with_collection).saturating_sub(held.by_operator);
    [collections(summary), left_over_jobs(left_over), by_operator(held.by_operator)].into_iter().flatten()
}

fn collections(summary: &Summary) -> Option<Attention> {
    let collections = summary.collections_held;
    if collections == 0 {
        return None;
    }
    let (theirs, them) = if collections == 1 { ("its", "it") } else { ("their", "them") };
    let text = match summary.held_with_collection {
        0 => {
            format!("No job is Held with {them} yet. Pending jobs become Held one by one as daemons reach them.")
        }
        1 => format!("1 job is Held with {them}, and stays so until it is released."),
        jobs => format!("{} jobs are Held with {them}, and stay so until they are released.", Count(jobs)),
    };
    let what = if collections == 1 { "the collection" } else { "the collections" };
    Some(Attention {
        remedy: format!("Release {what}, and then {theirs} Held jobs."),
        page: Some("locks".to_owned()),
        link: "Show locks",
        ..item(
            "held",
            Severity::Warn,
            format!("{} held", counted(collections, "collection is", "collections are")),
            text,
        )
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

    fn titles(collections: u64, with: u64, by_operator: u64, all: u64) -> Vec<String> {
        let mut summary = Summary { collections_held: collections, held_with_collection: with, ..Summary::default() };
        let held = summary.jobs.get_mut(Some(JobState::Held));
        (held.count, held.by_operator) = (all, by_operator);
        super::all(&summary).map(|item| format!("{}: {}", item.title, item.remedy)).collect()
    }

    #[test]
    fn collections_left_over_jobs_and_jobs_that_an_operator_holds_are_three_statements() {
        assert!(titles(0, 0, 0, 0).is_empty());
        assert_eq!(titles(1, 0, 0, 0), ["1 collection is held: Release the collection, and then its Held jobs."]);
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
