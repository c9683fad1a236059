//! States that nothing leaves.

use super::{Attention, Severity, item};
use crate::mirror::CauseKind;
use crate::queue::state::State;
use crate::web::views::overview::Recent;

/// How many causes are told of one state.
const CAUSES: usize = 3;

/// The states that do not move by themselves, each with why.
pub(super) fn stopped(recent: &Recent) -> Vec<Attention> {
    let states = recent.stopped.iter().filter_map(|stopped| {
        let causes = || stopped.diagnosis.causes.iter();
        // A pause is told of by itself.
        let decisive = causes().find(|cause| cause.kind != CauseKind::QueuePaused)?;
        if causes().any(|cause| cause.kind == CauseKind::QueuePaused) && decisive.remedy.is_none() {
            return None;
        }
        let told = causes().filter(|cause| cause.kind != CauseKind::QueuePaused).take(CAUSES);
        let text: Vec<String> = told
            .map(|cause| match &*cause.evidence {
                "" => cause.sentence.clone(),
                evidence => format!("{} {evidence}", cause.sentence),
            })
            .collect();
        Some(Attention {
            since: stopped.since,
            remedy: causes().find_map(|cause| cause.remedy).unwrap_or_default().to_owned(),
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
