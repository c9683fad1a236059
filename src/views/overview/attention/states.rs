//! States that no job leaves.

use super::{Attention, Severity, item};
use crate::insight::{Cause, CauseKind};
use crate::mirror::Summary;
use crate::views::overview::{Recent, is_without_daemon};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::state::State;

/// How many causes of one state are shown.
const CAUSES: usize = 2;

/// Evidence that is longer, in characters, is on the page of each job alone.
const SHORT: usize = 120;

/// Jobs that no daemon takes, in one item for all states. It comes before any other problem of these states.
pub(super) fn no_daemon(summary: &Summary, recent: &Recent) -> Option<Attention> {
    let idle: Vec<_> = recent.stopped.iter().filter(|stopped| stopped.is_without_daemon()).collect();
    let first = idle.first()?;
    let names: Vec<_> = idle.iter().map(|stopped| stopped.state.name()).collect();
    let is_any_locked = summary.jobs.iter().any(|(_, figures)| figures.locked > 0);
    // Daemons that found nothing to do in their own states may be well, and so may those of batches and requests.
    let rest = if is_any_locked { "" } else { "; no job is being worked on" };
    let title = format!("No daemon takes jobs from {}{rest}", listed(&names));
    let cause = first.diagnosis.causes.iter().find(|cause| is_without_daemon(cause.kind));
    let text = cause.map(|cause| format!("{} {}", cause.sentence, cause.evidence)).unwrap_or_default();
    let others = match idle.len() - 1 {
        0 => "",
        1 => " The same holds for the other state.",
        _ => " The same holds for the other states.",
    };
    Some(Attention {
        since: idle.iter().filter_map(|stopped| stopped.since).min(),
        is_oldest: idle.len() > 1,
        fix: cause.and_then(|cause| cause.fix).unwrap_or(Fault::NoDaemon.fix()).to_owned(),
        page: Some(format!("jobs?state={}", first.state.label())),
        link: "Show jobs",
        ..item(Fault::NoDaemon.label(), Severity::Bad, title, format!("{text}{others}"))
    })
}

/// Names as a sentence has them.
fn listed(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.concat(),
    }
}

/// The states that do not move by themselves, each with why.
pub(super) fn stopped(recent: &Recent) -> Vec<Attention> {
    let states = recent.stopped.iter().filter_map(|stopped| {
        if stopped.is_without_daemon() {
            return None;
        }
        // A pause and a hold are items of their own, and a hold keeps no other collection's jobs back.
        let is_of_its_own = |cause: &Cause| matches!(cause.kind, CauseKind::QueuePaused | CauseKind::HeldBacklog);
        let causes = || stopped.diagnosis.causes.iter().filter(|cause| !is_of_its_own(cause));
        let decisive = causes().next()?;
        let is_paused = stopped.diagnosis.causes.iter().any(|cause| cause.kind == CauseKind::QueuePaused);
        if is_paused && decisive.fix.is_none() {
            return None;
        }
        let mut text: Vec<&str> = causes().take(CAUSES).map(|cause| &*cause.sentence).collect();
        let evidence = Some(&*decisive.evidence).filter(|text| (1..=SHORT).contains(&text.chars().count()));
        text.extend(evidence.filter(|_| text.len() == 1));
        Some(Attention {
            since: stopped.since,
            fix: causes().find_map(|cause| cause.fix).unwrap_or_default().to_owned(),
            page: Some(format!("jobs?state={}", stopped.state.label())),
            link: "Show jobs",
            ..item(
                "stopped",
                Severity::Bad,
                stopped.diagnosis.headline.trim_end_matches('.').to_owned(),
                text.join(" "),
            )
        })
    });
    states.collect()
}
