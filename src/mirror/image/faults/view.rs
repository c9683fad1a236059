//! The faults of the image as readers get them.

use std::time::Duration;

use super::facts::NODES;
use crate::mirror::clock::Offset;
use crate::mirror::faults::{FaultFigures, FoundFault, Suspicion};
use crate::mirror::image::Image;
use queuekeeper_queue::fault::{Fault, Limits, Provisioning};
use queuekeeper_queue::path::{Path, StateFolder};
use queuekeeper_queue::state::JobState;

/// What a reader asks with: when, by whose clock, from when on something counts, and how much space there is.
#[derive(Clone, Copy, Debug)]
pub(in crate::mirror) struct FaultQuery<'a> {
    /// By the servers' clock, in milliseconds.
    pub(in crate::mirror) now_ms: i64,
    pub(in crate::mirror) offset: Offset,
    pub(in crate::mirror) limits: &'a Limits,
    /// How many bytes a job may need and not be kept back; `None` where the volume cannot be seen.
    pub(in crate::mirror) space: Option<i64>,
}

impl Image {
    /// How many items show each fault at an instant by the servers' clock.
    pub(in crate::mirror) fn fault_figures(&self, now_ms: i64, offset: Offset) -> [FaultFigures; Fault::ALL.len()] {
        Fault::ALL.map(|fault| {
            let (count, since_ms) = self.faults.suspects.count(fault, now_ms);
            FaultFigures { count: count as u64, since: since_ms.map(|since_ms| offset.to_own(since_ms)) }
        })
    }

    /// The faults that items show and that do not count at an instant only because they have not been seen for long
    /// enough: of each kind how many items, and for how long they must be seen.
    pub(in crate::mirror) fn unconfirmed(&self, now_ms: i64) -> Vec<(Fault, u64, Duration)> {
        let of = |fault| {
            let (count, lasting_ms) = self.faults.suspects.unconfirmed(fault, now_ms);
            (fault, count as u64, Duration::from_millis(u64::try_from(lasting_ms).unwrap_or(0)))
        };
        Fault::ALL.into_iter().map(of).filter(|(_, count, _)| *count > 0).collect()
    }

    /// The items that show a fault, those first that count for the longest time, at most `limit` of them.
    pub(in crate::mirror) fn faults(&self, fault: Fault, limit: usize, fault_query: FaultQuery<'_>) -> Vec<FoundFault> {
        let items = self.faults.suspects.items(fault, fault_query.now_ms);
        items.filter_map(|(item, suspicion)| self.found(item, suspicion, fault_query)).take(limit).collect()
    }

    /// The faults that one item shows.
    pub(in crate::mirror) fn faults_of(&self, item: &Path, fault_query: FaultQuery<'_>) -> Vec<FoundFault> {
        let mut suspicions = self.faults.suspects.of(item).to_vec();
        suspicions.retain(|suspicion| suspicion.due_ms <= fault_query.now_ms);
        suspicions.dedup_by_key(|suspicion| suspicion.fault);
        suspicions.iter().filter_map(|suspicion| self.found(item, suspicion, fault_query)).collect()
    }

    /// A fault that an item shows.
    pub(in crate::mirror::image) fn fault_of(
        &self,
        item: &Path,
        fault: Fault,
        fault_query: FaultQuery<'_>,
    ) -> Option<FoundFault> {
        let suspicion = self.faults.suspects.of(item).iter().find(|suspicion| suspicion.fault == fault)?;
        self.found(item, suspicion, fault_query)
    }

    /// The fault as the item shows it now; `None` if it has just been repaired and the item is not evaluated again yet.
    fn found(&self, item: &Path, suspicion: &Suspicion, fault_query: FaultQuery<'_>) -> Option<FoundFault> {
        let (mut how, mut fix) = (None, None);
        let mut nodes: Vec<Path> = Vec::new();
        let own = self.faults.suspects.of(item);
        self.findings(&self.faults, item, fault_query.limits, &mut |finding| {
            let is_due = |own: &Suspicion| own.is_of(&finding) && own.counts(&finding, fault_query.now_ms);
            if finding.fault == suspicion.fault && own.iter().any(is_due) {
                if how.is_none() {
                    (how, fix) = (Some(finding.how), finding.fix);
                }
                let more: Vec<_> = (finding.nodes)().into_iter().filter(|path| !nodes.contains(path)).collect();
                nodes.extend(more);
            }
        });
        nodes.truncate(NODES);
        let (mut how, mut fix) = (how?, fix.unwrap_or_else(|| suspicion.fault.fix_of(item)));
        let is_provisioning = *item == Path::StateFolder(StateFolder::Known(JobState::Provisioning));
        if is_provisioning && suspicion.fault == Fault::StuckState {
            let is_served = self.own.workers(JobState::Provisioning) > 0;
            let cause = Provisioning::cause(self.locked_in_provisioning(), fault_query.space, is_served);
            (how, fix) = (cause.how(), cause.fix());
        }
        let since = fault_query.offset.to_own(suspicion.since_ms);
        let effect = suspicion.fault.effect();
        Some(FoundFault { fault: suspicion.fault, item: item.clone(), since, how, effect, fix, nodes })
    }

    /// What each locked job in Provisioning needs. As many daemons as there are hold them.
    fn locked_in_provisioning(&self) -> impl Iterator<Item = u64> {
        let locked = self.jobs.figures.states.get(Some(JobState::Provisioning)).locked.iter();
        locked.map(|(_, row)| self.jobs.at(*row).standing.space_needed_bytes)
    }
}
