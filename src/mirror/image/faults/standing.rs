//! What does not come and go: states, folders, and collections.

use hashbrown::HashSet;

use super::Faults;
use super::facts::{JOBS_LOOKED_AT, NODES};
use crate::mirror::image::Image;
use crate::mirror::image::row::{JobRow, UNKNOWN_MS};
use crate::mirror::image::situation::blocks;
use crate::mirror::summary::LockKind;
use crate::mirror::text::TextId;
use queuekeeper_queue::fault::{Fault, FaultFinding, Limits, StateFacts, Stop, detect_folder, detect_state};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{AccessQueue, JobNode, LockFolder, Path, StateFolder};
use queuekeeper_queue::state::{JobState, State};

impl Image {
    /// Evaluates the states, the folders, and the collections that may have changed: a few dozen of them.
    pub(super) fn evaluate_standing(
        &self,
        faults: &mut Faults,
        crossed: &HashSet<TextId>,
        now_ms: i64,
        limits: &Limits,
        at_first_sight: bool,
    ) {
        let stopped = (self.is_paused(), self.is_store_held());
        let was_stopped = std::mem::replace(&mut faults.was_stopped, stopped);
        let (is_released, is_store_released) = (was_stopped.0 && !stopped.0, was_stopped.1 && !stopped.1);
        for state in JobState::ALL.iter().copied() {
            // After what stopped it a state has its time anew to be left.
            let is_left = std::mem::take(faults.left.get_mut(Some(state)));
            let goes_on = is_released && !state.continues_when_paused();
            if is_left || goes_on || is_store_released && state == JobState::Storing {
                *faults.left_ms.get_mut(Some(state)) = Some(now_ms);
            }
        }
        let states = JobState::ALL.iter().map(|state| Path::StateFolder((*state).into()));
        let odd = self.jobs.in_folder.keys().filter(|folder| folder.state().is_none());
        let queues = AccessQueue::ALL.iter().copied().map(Path::AccessQueue);
        let locks = LockFolder::ALL.iter().copied().map(Path::LockFolder);
        let folders = [Path::Jobs, Path::Batches, Path::BatchUuids].into_iter().chain(queues).chain(locks);
        for item in states.chain(odd.cloned().map(Path::StateFolder)).chain(folders) {
            self.evaluate_item(faults, &item, now_ms, limits, at_first_sight);
        }
        let collection = |mnemonic: &str| Path::NamedLock(LockFolder::Collections, mnemonic.into());
        // Jobs that name no collection cannot be held.
        let names = crossed.iter().map(|id| self.jobs.texts.str(*id)).filter(|name| !name.is_empty());
        let mut items: Vec<_> = names.map(|name| collection(&name)).collect();
        items.extend(faults.suspects.suspected(Fault::HeldCollectionBacklog).cloned());
        items.extend(faults.suspects.suspected(Fault::FolderNearLimit).cloned());
        for item in items {
            self.evaluate_item(faults, &item, now_ms, limits, at_first_sight);
        }
    }

    /// Passes all findings about a folder to `sink`.
    pub(super) fn standing_findings(
        &self,
        faults: &Faults,
        item: &Path,
        limits: &Limits,
        sink: &mut dyn FnMut(FaultFinding<'_>),
    ) {
        if let Some(children) = self.children(item) {
            detect_folder(item, children, limits, sink);
        }
        if let Path::StateFolder(StateFolder::Known(state)) = item {
            let [unlocked, locked] = &self.jobs.figures.states.get(Some(*state)).entered;
            let oldest = [unlocked, locked].into_iter().filter_map(crate::mirror::bands::Bands::first).min();
            let facts = StateFacts {
                oldest_ms: oldest.filter(|at| *at != UNKNOWN_MS),
                oldest_due_ms: self.oldest_due(*state, oldest).filter(|at| *at != UNKNOWN_MS),
                left_ms: faults.left_ms.get(Some(*state)).unwrap_or(i64::MIN),
                taken_ms: self.taken_ms(*state).unwrap_or(i64::MIN),
                locked: locked.len() as u64,
                // Where no daemon holds anything at all, it is no head that keeps them away.
                is_head_blocked: locked.len() == 0
                    && self.jobs.figures.locks.len() > 0
                    && self.is_head_blocked(faults, *state),
                stop: match *state {
                    state if self.is_paused() && !state.continues_when_paused() => Some(Stop::Paused),
                    JobState::Storing if self.is_store_held() => Some(Stop::StoreHeld),
                    _ => None,
                },
                is_served: self.own.workers(*state) > 0,
            };
            detect_state(*state, facts, limits, &|| self.oldest_jobs(*state), sink);
        }
    }

    fn is_store_held(&self) -> bool {
        self.own.holds().next().is_some()
    }

    /// When the job longest in a state entered it, those that wait for another attempt left out; `oldest` is the same
    /// of all. Among so many that wait, the others are not searched for any further.
    fn oldest_due(&self, state: JobState, oldest: Option<i64>) -> Option<i64> {
        if !self.own.has_retries() {
            return oldest;
        }
        let sets = self.jobs.figures.states.get(Some(state)).entered.iter();
        let due = sets.filter_map(|set| {
            let mut jobs = set.iter().take(JOBS_LOOKED_AT);
            jobs.find(|(_, job)| self.jobs.get(JobId::new(*job)).is_none_or(|row| self.retry(row).is_none()))
        });
        due.map(|(at, _)| at).min()
    }

    /// Whether each poll of a daemon of a state ends at what it finds first, as far as that is suspected: a name that
    /// cannot be read, or a job that cannot be taken.
    fn is_head_blocked(&self, faults: &Faults, state: JobState) -> bool {
        let folder = format!("{}/", Path::StateFolder(state.into()));
        let misnamed =
            self.unexpected.range(Box::from(&*folder)..).next().is_some_and(|path| path.starts_with(&folder));
        let suspects = |row: JobRow<'_>| {
            let suspicions = faults.suspects.of(&Path::Job(row.id()));
            suspicions.iter().any(|suspicion| blocks(suspicion.fault, row, state))
        };
        misnamed || self.first_to_take(state).is_some_and(suspects)
    }

    /// The jobs longest in a state, those that are locked first.
    fn oldest_jobs(&self, state: JobState) -> Vec<Path> {
        let [unlocked, locked] = &self.jobs.figures.states.get(Some(state)).entered;
        let jobs = locked.iter().take(NODES / 2).chain(unlocked.iter().take(NODES / 2));
        jobs.map(|(_, job)| Path::JobNode(JobId::new(job), JobNode::Status)).take(NODES - 1).collect()
    }

    /// How many children a folder has; `None` for one that does not grow, or that is counted with its batch.
    fn children(&self, folder: &Path) -> Option<u64> {
        let count = match folder {
            Path::StateFolder(folder) => return Some(self.jobs.in_folder.get(folder).copied().unwrap_or(0)),
            Path::Jobs => self.jobs.len(),
            Path::Batches => self.batches.len(),
            Path::BatchUuids => self.uuids.len(),
            Path::AccessQueue(queue) => self.access.queue(*queue).len(),
            Path::LockFolder(folder) => {
                let kind = match folder {
                    LockFolder::Collections => LockKind::Collection,
                    LockFolder::Storage => LockKind::Storage,
                    LockFolder::Inventory => LockKind::Inventory,
                    LockFolder::LocalId => LockKind::LocalId,
                };
                self.locks.kinds[kind as usize].len()
            }
            _ => return None,
        };
        Some(count as u64)
    }
}

#[cfg(test)]
mod tests;
