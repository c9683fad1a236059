//! What fails, and whether it is one cause or many.

use super::{Attention, Severity, item};
use crate::mirror::failures::FailureGroup;
use crate::mirror::{Batch, Summary};
use crate::views::overview::Recent;
use crate::views::show::{Count, counted, visible};
use queuekeeper_queue::state::{JobState, State};

/// The maximum length of a shown message, in characters.
const MESSAGE_CHARS: usize = 160;

/// The largest groups of failed jobs, and the others together.
pub(super) fn groups(summary: &Summary, recent: &Recent) -> Vec<Attention> {
    let mut items: Vec<_> = recent.failures.iter().map(group).collect();
    let failed = summary.jobs.get(Some(JobState::Failed));
    let listed: u64 = recent.failures.iter().map(|group| group.count).sum();
    let rest = failed.count.saturating_sub(failed.by_operator).saturating_sub(listed);
    if rest > 0 {
        let title = if listed == 0 {
            format!("{} failed", counted(rest, "job", "jobs"))
        } else {
            let reasons = if rest == 1 { "another reason" } else { "other reasons" };
            format!("{} failed for {reasons}", counted(rest, "more job", "more jobs"))
        };
        let groups = recent.failure_groups.saturating_sub(recent.failures.len() as u64);
        let text = match (rest, groups) {
            (1, _) => "It needs an operator.".to_owned(),
            (_, 0) => "They need an operator.".to_owned(),
            (_, 1) => "All of them have the same message.".to_owned(),
            (_, groups) => format!("They have {} different messages.", Count(groups)),
        };
        items.push(Attention {
            since: failed.oldest().filter(|_| listed == 0),
            is_oldest: true,
            page: Some("failures".to_owned()),
            link: "Show failures",
            ..item("failed", Severity::Bad, title, text)
        });
    }
    items.extend(by_operator(failed.by_operator));
    items
}

/// Batches that failed before they had jobs: no failed job stands for them.
pub(super) fn without_jobs((count, oldest): &(u64, Option<Batch>)) -> Option<Attention> {
    let oldest = oldest.as_ref()?;
    let why = match &*oldest.message {
        "" => "It has no message.".to_owned(),
        message => format!("“{}”.", cut(&visible(message))),
    };
    let (text, page, link) = match count {
        1 => (why, format!("batches/{}", oldest.id), "Show the batch"),
        _ => (format!("The first of them, {}: {why}", oldest.id), "batches?state=failed".to_owned(), "Show batches"),
    };
    Some(Attention {
        since: oldest.entered,
        is_oldest: *count > 1,
        fix: match count {
            1 => "Ask the depositor to correct what the message names and to deposit again; then delete the batch.",
            _ => "Ask the depositors to correct what the messages name and to deposit again; then delete the batches.",
        }
        .to_owned(),
        page: Some(page),
        link,
        ..item(
            "failed_without_jobs",
            Severity::Warn,
            format!("{} failed before a job was created", counted(*count, "batch", "batches")),
            text,
        )
    })
}

/// Jobs that an operator has set Failed. They are not failures, but must not be forgotten.
fn by_operator(jobs: u64) -> Option<Attention> {
    let text = match jobs {
        0 => return None,
        1 => "It stays Failed until an operator resumes or deletes it. Its page shows who set it Failed, and why.",
        _ => {
            "They stay Failed until an operator resumes or deletes them. The page of each shows who set it Failed, and why."
        }
    };
    Some(Attention {
        fix: "Nothing needs to be fixed: resume or delete them when the reason no longer applies.".to_owned(),
        page: Some("jobs?state=failed".to_owned()),
        link: "Show jobs",
        ..item(
            "failed_by_operator",
            Severity::Warn,
            format!("{} moved to Failed by an operator", counted(jobs, "job was", "jobs were")),
            text,
        )
    })
}

fn group(group: &FailureGroup) -> Attention {
    let state = JobState::failed_in(group.last_successful);
    let them = if group.count == 1 { "it" } else { "them" };
    let cause = if group.count == 1 { "" } else { " for one reason" };
    let message = match &*group.pattern {
        "" if group.count == 1 => "It has no message".to_owned(),
        "" => "They have no message".to_owned(),
        pattern => format!("“{}”", cut(&visible(pattern))),
    };
    let place = match (group.batches.first(), group.batch_count) {
        (None, _) => String::new(),
        (Some((batch, _)), 1) => format!(" in batch {batch}"),
        (Some(_), batches) => format!(" in {} batches", Count(batches)),
    };
    let resumed = match (group.resumed, group.count) {
        (0, _) => String::new(),
        (1, 1) => " It was resumed before, and failed again.".to_owned(),
        (1, _) => " 1 was resumed before, and failed again.".to_owned(),
        (resumed, _) => format!(" {} were resumed before, and failed again.", Count(resumed)),
    };
    Attention {
        since: group.oldest,
        is_oldest: group.count > 1,
        fix: format!("Resolve the problem named in the message, then resume {them}; or delete {them}."),
        page: Some(format!("jobs?group={}", group.key)),
        link: "Show jobs",
        ..item(
            "failed",
            Severity::Bad,
            format!("{} failed in {}{cause}", counted(group.count, "job", "jobs"), state.name()),
            format!("{message}{place}.{resumed}"),
        )
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
