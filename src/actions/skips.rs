//! What a bulk action would do to each item of its list, as far as the mirror shows it: reading and planning each of
//! 250,000 items, only to show how many would be changed, would take ZooKeeper minutes.

use super::accept::Actions;
use super::kind::ActionKind;
use super::lists::Frozen;
use super::spec::ActionSpec;
use super::target::{Target, TargetKind};
use crate::mirror::JobStanding;
use queuekeeper_queue::state::{BatchState, JobState};

/// Why an item of a list would be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The action is not offered in its state.
    State(JobState),
    /// It has changed since the list was made.
    Changed,
    /// It is locked.
    Locked,
    /// Its batch is not reported yet, and only then it may be purged.
    Unreported,
    /// Its status does not show its state.
    Unreadable,
    /// It does not exist.
    Gone,
}

impl Actions {
    /// Why each item of a list would be skipped if the action were executed now; `None` for an item that would be
    /// changed. Of items other than jobs, and without a mirror, that is not known before they are read.
    #[must_use]
    pub fn skips(&self, frozen: &Frozen) -> Vec<Option<Skip>> {
        let unknown = || vec![None; frozen.items.len()];
        let Some(store) = &self.shared.store else { return unknown() };
        let Some(spec) = TargetKind::Job.actions().iter().find(|spec| spec.kind == frozen.bulk.kind) else {
            return unknown();
        };
        let job = |target: &Target| if let Target::Job(id) = target { Some(*id) } else { None };
        let ids: Vec<_> = frozen.items.iter().filter_map(|(target, _)| job(target)).collect();
        let Some(standings) = store.job_standings(&ids) else { return unknown() };
        let mut standings = standings.into_iter();
        let of = |(target, version): &(Target, Option<i32>)| {
            job(target)?;
            standings.next().and_then(|standing| skip(spec, standing, *version))
        };
        frozen.items.iter().map(of).collect()
    }
}

fn skip(spec: &ActionSpec, standing: Option<JobStanding>, version: Option<i32>) -> Option<Skip> {
    let Some(JobStanding { state, is_locked, status_version, batch_state }) = standing else { return Some(Skip::Gone) };
    let is_reported =
        matches!(batch_state, None | Some(Some(BatchState::Completed | BatchState::Failed | BatchState::Deleted)));
    match state {
        None => Some(Skip::Unreadable),
        Some(_) if is_locked => Some(Skip::Locked),
        Some(_) if version.is_some_and(|version| version != status_version) => Some(Skip::Changed),
        Some(state) if !spec.fits_job(state) => Some(Skip::State(state)),
        Some(_) if spec.kind == ActionKind::Purge && !is_reported => Some(Skip::Unreported),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_skipped_for_the_reason_for_which_its_action_would_be_refused() {
        let job = |state| JobStanding { state, is_locked: false, status_version: 3, batch_state: None };
        let failed = job(Some(JobState::Failed));
        let locked = JobStanding { is_locked: true, ..failed };
        let completed = job(Some(JobState::Completed));
        let in_batch = |state| JobStanding { batch_state: Some(state), ..completed };
        for (kind, standing, version, expected) in [
            (ActionKind::Resume, Some(failed), Some(3), None),
            (ActionKind::Resume, Some(failed), None, None),
            (ActionKind::Resume, Some(failed), Some(2), Some(Skip::Changed)),
            (ActionKind::Resume, Some(locked), Some(3), Some(Skip::Locked)),
            (ActionKind::Resume, Some(completed), Some(3), Some(Skip::State(JobState::Completed))),
            (ActionKind::Resume, Some(job(None)), Some(3), Some(Skip::Unreadable)),
            (ActionKind::Resume, None, Some(3), Some(Skip::Gone)),
            (ActionKind::Hold, Some(failed), Some(3), Some(Skip::State(JobState::Failed))),
            (ActionKind::Purge, Some(completed), Some(3), None),
            (ActionKind::Purge, Some(in_batch(Some(BatchState::Failed))), Some(3), None),
            (ActionKind::Purge, Some(in_batch(Some(BatchState::Reporting))), Some(3), Some(Skip::Unreported)),
            (ActionKind::Purge, Some(in_batch(None)), Some(3), Some(Skip::Unreported)),
        ] {
            let spec = TargetKind::Job.actions().iter().find(|spec| spec.kind == kind).unwrap();
            assert_eq!(skip(spec, standing, version), expected, "{kind} {standing:?}");
        }
    }
}
