//! Actions on access requests, queues, collections, locks and faults.

use super::{ActionPlanner, Prepared, Step, check_precondition, jobs_of};
use crate::actions::action::Action;
use crate::actions::actor::Role;
use crate::actions::refusal::Refusal;
use crate::actions::table::{CollectionAction, QueueAction, RequestAction, StoreAction};
use jiff::Timestamp;

use crate::mirror::MirrorStore;
use crate::mirror::find::JobQuery;
use crate::words::{counted, moment, quoted, until_unpaused};
use queuekeeper_queue::fault::{Fault, RepairKind};
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::{self, AccessQueue, Path};
use queuekeeper_queue::state::{AccessState, JobState, State as _};
use queuekeeper_queue::{Error, ItemChange, Lock, RepairOptions, RequestTarget};
use queuekeeper_store::StoreName;

impl ActionPlanner<'_> {
    pub(super) async fn request(
        &self,
        action: &Action,
        needs: Role,
        (queue, id): (AccessQueue, RequestId),
        requested: RequestAction,
    ) -> Result<Prepared, Refusal> {
        let request = self.queue.load_request(queue, id).await?;
        let (before, version) = (request.state(), request.version());
        check_precondition(action.precondition.as_ref(), &action.target(), before, version)?;
        let target = RequestTarget::from(&request);
        let change = |to| ItemChange::to(to).with_message(self.message()).by_operator();
        let plan = match requested {
            RequestAction::Resume | RequestAction::Delete => {
                let is_resumed = requested == RequestAction::Resume;
                let to = if is_resumed { AccessState::Pending } else { AccessState::Deleted };
                let plan = self.queue.plan_request_change(target, &change(to), None, self.now).await;
                plan.map(|(transaction, _)| (transaction, Some(to)))
            }
            RequestAction::Purge { force } => match self.queue.plan_purge_request(target).await {
                Ok(plan) => Ok((plan.transaction, None)),
                Err(error) => match self.purge_broken(action, needs, (&Path::Request(queue, id), force), &error).await?
                {
                    Some(prepared) => return Ok(prepared),
                    None => Err(error),
                },
            },
        };
        match plan {
            Ok((transaction, after)) => {
                let prepared = Prepared::new(action, needs, vec![Step::One(transaction)]).between(before, after);
                Ok(prepared.with_state(before, version))
            }
            Err(error) => Err(match Refusal::from(error) {
                Refusal::Conflict { why, .. } => {
                    Refusal::Conflict { why, state: before.map(AccessState::label), version }
                }
                other => other,
            }),
        }
    }

    pub(super) async fn queue_lock(
        &self,
        action: &Action,
        needs: Role,
        queue: path::QueueName,
        requested: QueueAction,
    ) -> Result<Prepared, Refusal> {
        let name = queue.name();
        match (requested, self.queue.paused(queue).await?) {
            (QueueAction::Pause, None) => {
                let plan = self.queue.plan_pause(queue, self.who, self.reason, self.now).await?;
                let warning = (queue == path::QueueName::Ingest).then(until_unpaused);
                Ok(Prepared::new(action, needs, vec![Step::One(plan)]).warn(warning))
            }
            (QueueAction::Pause, Some(pause)) => {
                Err(Refusal::conflict(format!("the queue {name} is already paused, since {}", moment(pause.since))))
            }
            (QueueAction::Unpause, Some(pause)) => {
                check_lock(action, &pause.lock)?;
                let plan = self.queue.plan_unpause(queue, Some(&pause.lock)).await?;
                Ok(Prepared::new(action, needs, vec![Step::One(plan)]).with_lock(&pause.lock))
            }
            (QueueAction::Unpause, None) => Err(Refusal::conflict(format!("the queue {name} is not paused"))),
        }
    }

    pub(super) async fn collection(
        &self,
        action: &Action,
        needs: Role,
        mnemonic: &str,
        requested: CollectionAction,
    ) -> Result<Prepared, Refusal> {
        match (requested, self.queue.held_collection(mnemonic).await?) {
            (CollectionAction::Hold, None) => {
                let plan = self.queue.plan_hold_collection(mnemonic, self.who, self.reason, self.now).await?;
                Ok(Prepared::new(action, needs, vec![Step::One(plan)]))
            }
            (CollectionAction::Hold, Some(hold)) => {
                let by = if hold.who.is_empty() { String::new() } else { format!(" by {},", quoted(&hold.who)) };
                Err(Refusal::conflict(format!(
                    "the collection {mnemonic} is already held{by} since {}",
                    moment(hold.since)
                )))
            }
            (CollectionAction::Release { with_jobs }, Some(hold)) => {
                check_lock(action, &hold.lock)?;
                if let Some((who, since)) =
                    action.precondition.as_ref().and_then(|precondition| precondition.hold.as_ref())
                    && (**who != *hold.who || *since != hold.since)
                {
                    let (who, since) = (&hold.who, moment(hold.since));
                    let why = format!(
                        "the collection {mnemonic} is held by another action, by {who:?} at {since}; nothing was done"
                    );
                    return Err(Refusal::conflict(why));
                }
                let plan = self.queue.plan_release_collection(mnemonic, Some(&hold.lock)).await?;
                let known = self.store.and_then(|store| held_jobs(store, mnemonic, self.now));
                let batches = self.store.map_or(0, |store| store.held_batches(mnemonic).len());
                let held = held_items(known.unwrap_or_default(), batches);
                let mut steps = vec![Step::One(plan)];
                let warning = match (with_jobs, known) {
                    (true, None) => {
                        let why = "its held jobs are unknown without a mirror: release them from the list of jobs";
                        return Err(Refusal::Invalid(why.to_owned()));
                    }
                    (true, Some(_)) => {
                        // After it: before, the daemons would hold them again.
                        steps.push(Step::ReleaseHeld(mnemonic.into()));
                        held.map(|(held, is)| format!("{held} {is} released with the collection."))
                    }
                    (false, _) => held.map(|(held, is)| {
                        let stay = if is == "is" { "stays" } else { "stay" };
                        format!("{held} {stay} Held unless released with the collection.")
                    }),
                };
                Ok(Prepared::new(action, needs, steps).with_lock(&hold.lock).warn(warning))
            }
            (CollectionAction::Release { .. }, None) => {
                Err(Refusal::conflict(format!("the collection {mnemonic} is not held")))
            }
        }
    }

    pub(super) async fn store(
        &self,
        action: &Action,
        needs: Role,
        name: &StoreName,
        requested: StoreAction,
    ) -> Result<Prepared, Refusal> {
        let plan = match (requested, self.queue.held_store(name.as_str()).await?) {
            (StoreAction::Hold, None) => {
                let plan = self.queue.plan_hold_store(name.as_str(), self.who, self.reason, self.now).await?;
                // Which stores there are stands in the files of daemons on other hosts.
                let warning = format!("Whether there is a store {name} was not checked.");
                return Ok(Prepared::new(action, needs, vec![Step::One(plan)]).warn([warning]));
            }
            (StoreAction::Hold, Some(hold)) => {
                let by = if hold.who.is_empty() { String::new() } else { format!(" by {},", quoted(&hold.who)) };
                return Err(Refusal::conflict(format!(
                    "the store {name} is already held{by} since {}",
                    moment(hold.since)
                )));
            }
            (StoreAction::Release, None) => {
                return Err(Refusal::conflict(format!("the store {name} is not held")));
            }
            (StoreAction::Release, Some(hold)) => {
                check_lock(action, &hold.lock)?;
                let plan = self.queue.plan_release_store(name.as_str(), Some(&hold.lock)).await?;
                Prepared::new(action, needs, vec![Step::One(plan)]).with_lock(&hold.lock)
            }
        };
        Ok(plan)
    }

    pub(super) async fn break_lock(
        &self,
        action: &Action,
        needs: Role,
        path: &Path,
        force: bool,
    ) -> Result<Prepared, Refusal> {
        let lock = self.queue.find_lock(path).await?;
        let lock = lock.ok_or_else(|| Refusal::Missing(format!("{path} is no longer locked")))?;
        check_lock(action, &lock)?;
        if !force {
            self.server_now().await?;
        }
        if !force && !self.is_leaked(path) {
            let why = format!(
                "{path} is not a fault: a daemon may be working under this lock, and a second one would start on the same item. Break it with force only if no daemon is working under it."
            );
            return Err(Refusal::conflict(why));
        }
        let plan = self.queue.plan_break_lock(&lock).await?;
        let since = moment(lock.since);
        let warning = match lock.session {
            Some(session) => format!(
                "The session {session}, which has held it since {since}, loses it. If its daemon is alive, it continues \
                 working without the lock."
            ),
            None => format!("It is persistent and has existed since {since}: no session loses it."),
        };
        let steps = vec![Step::BreakLock(lock.clone(), plan)];
        Ok(Prepared::new(action, needs, steps).with_lock(&lock).warn([warning]))
    }

    /// The servers' time, from which ages are computed.
    async fn server_now(&self) -> Result<Timestamp, Refusal> {
        self.clock.server_time(self.store, self.now).await
    }

    /// Whether the mirror shows the lock as a fault. False without a mirror.
    fn is_leaked(&self, path: &Path) -> bool {
        let Some(store) = self.store else { return false };
        let mut of_locks = Fault::ALL.into_iter().filter(|fault| fault.repair_kind() == RepairKind::BreaksLock);
        of_locks.any(|fault| {
            let found = store.faults(fault, MAX_LEAKED, self.now, None).unwrap_or_default();
            found.iter().any(|found| found.nodes.contains(path) || found.item == *path)
        })
    }

    pub(super) async fn repair(
        &self,
        action: &Action,
        needs: Role,
        (fault, item): (Fault, &Path),
        force: bool,
    ) -> Result<Prepared, Refusal> {
        let how = RepairOptions { limits: self.limits, now: self.server_now().await?, even_if_locked: force };
        let repair = match self.queue.plan_repair(fault, item, how).await {
            Ok(repair) => repair,
            // One write may repair two faults, so that the other one is already repaired.
            Err(Error::NotShown { .. }) => {
                let why = format!("{item} does not show {fault} now; nothing is written.");
                return Ok(Prepared::new(action, needs, Vec::new()).warn([why]));
            }
            Err(error) => return Err(error.into()),
        };
        let mut prepared = Prepared::new(action, needs, vec![Step::One(repair.transaction)]).warn([repair.summary]);
        prepared.removed = repair.loses.into_iter().map(|(path, data)| (path.to_string(), data)).collect();
        prepared.with_plan()
    }

    /// Purges an unfinished item that cannot be loaded and that no repair helps. `refused` is why it is not purged as a
    /// finished one; `None` if that refusal stays.
    pub(super) async fn purge_broken(
        &self,
        action: &Action,
        needs: Role,
        (item, force): (&Path, bool),
        refused: &Error,
    ) -> Result<Option<Prepared>, Refusal> {
        if !matches!(refused, Error::Invalid { .. } | Error::Missing(_) | Error::Decode { .. }) {
            return Ok(None);
        }
        let server_now = self.server_now().await;
        let now = server_now.as_ref().map_or(self.now, |now| *now);
        let how = RepairOptions { limits: self.limits, now, even_if_locked: force };
        let removal = match self.queue.plan_purge_broken(item, how).await {
            Ok(removal) => removal,
            Err(Error::NotShown { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        server_now?;
        let mut with_it = jobs_of(removal.chunks.iter().flat_map(|chunk| &chunk.jobs));
        let target = action.target();
        with_it.retain(|(job, _)| *job != target);
        let steps = removal.chunks.into_iter().map(|chunk| Step::One(chunk.transaction)).collect();
        let mut prepared = Prepared::new(action, needs, steps).warn([removal.summary]);
        prepared.removed = removal.removes.into_iter().map(|(path, data)| (path.to_string(), data)).collect();
        prepared.with_it = with_it;
        prepared.with_plan().map(Some)
    }
}

/// How many leaked locks are searched.
const MAX_LEAKED: usize = 100_000;

/// Refuses an action on another lock than its caller saw.
fn check_lock(action: &Action, lock: &Lock) -> Result<(), Refusal> {
    match action.precondition.as_ref().and_then(|precondition| precondition.czxid) {
        Some(czxid) if czxid != lock.czxid => {
            let why = format!("{} is another lock now, created at {}; nothing was done", lock.path, moment(lock.since));
            Err(Refusal::conflict(why))
        }
        Some(_) | None => Ok(()),
    }
}

/// How many of its jobs and batches are Held, as the beginning of a sentence, and its verb; `None` where none is.
fn held_items(jobs: usize, batches: usize) -> Option<(String, &'static str)> {
    let is_or_are = if jobs + batches == 1 { "is" } else { "are" };
    let named = [(jobs, "Held job", "Held jobs"), (batches, "Held batch", "Held batches")].into_iter();
    let named = named.filter(|(number, ..)| *number > 0);
    let named: Vec<_> = named.map(|(number, one, more)| counted(number as u64, one, more)).collect();
    (!named.is_empty()).then(|| (named.join(" and "), is_or_are))
}

fn held_jobs(store: &MirrorStore, mnemonic: &str, now: Timestamp) -> Option<usize> {
    store.find_jobs(&held_in(mnemonic), now).map(|page| page.total)
}

/// The query for the held jobs of a collection.
pub(in crate::actions) fn held_in(mnemonic: &str) -> JobQuery {
    JobQuery {
        states: vec![Some(JobState::Held)],
        collection: Some(mnemonic.to_owned()),
        limit: 1,
        ..JobQuery::default()
    }
}
