//! Selecting the items on which a rule acts, and checking whether one of them still qualifies.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::decision::Scope;
use super::evaluation::Stop;
use super::item::DecisionItem;
use super::memory::{Memory, RuleHold};
use super::outcome::AlertOutcome;
use super::rule::{Rule, RuleAction, RuleItems};
use super::time::later;
use crate::actions::{Fault, JobId, JobState, Path, Target};
use crate::mirror::find::{JobOrder, JobQuery, PAGE_LIMIT};
use crate::mirror::{Batch, Job, MirrorStore};
use crate::words::counted;
use queuekeeper_queue::state::BatchState;

/// How many jobs are examined for one alert: more than are ever selected, and few enough to take little time.
const MAX_LOOKED_AT: usize = 200_000;

/// How many jobs are selected at once: more than any rule takes, and few enough for a znode.
const MAX_ITEMS: usize = 500;

/// How many items of a fault are examined.
const MAX_FAULTS: usize = 10_000;

/// How many items that are left to a user are named.
const MAX_LEFT: usize = 100;

/// The queue at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueView<'a> {
    pub(super) store: &'a MirrorStore,
    /// The working storage in bytes that a job may need without having to wait; `None` if it is not measured.
    pub(super) space: Option<i64>,
    pub(super) now: Timestamp,
}

/// The selection of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// The items, the most urgent first; at most as many as the rule takes for one alert.
    pub(super) items: Vec<DecisionItem>,
    /// How many there are in all.
    pub(super) of: usize,
    /// How many jobs are in the rule's states.
    pub(super) present: u64,
    /// Items that reached the limit of attempts, and are left to a user.
    pub(super) left: Vec<String>,
}

impl QueueView<'_> {
    /// Selects the items on which a rule would act now.
    pub(super) fn choose(&self, rule: &Rule, scope: &Scope, memory: &Memory) -> Result<Choice, Stop> {
        self.check_collection(scope)?;
        // Collections that it holds already count towards the limit.
        let held = if rule.action == RuleAction::HoldCollections { memory.holds.len() } else { 0 };
        let limit = rule.select.limit.saturating_sub(held);
        let mut choice = Choice { present: self.present(rule, scope), ..Choice::default() };
        let mut add = |item: DecisionItem| {
            if memory.attempts_on(&item.on) >= rule.attempts {
                if choice.left.len() < MAX_LEFT {
                    choice.left.push(item.on);
                }
                return;
            }
            choice.of += 1;
            if choice.items.len() < limit {
                choice.items.push(item);
            }
        };
        match rule.action.items() {
            RuleItems::Collections(_) => self.neediest(rule, scope)?.into_iter().for_each(&mut add),
            RuleItems::Faults(_) | RuleItems::Locks(_) => self.faulty(rule, scope).into_iter().for_each(&mut add),
            RuleItems::Jobs(_) => {
                self.each(query(rule, scope), |job| {
                    if self.fits(rule, scope, job) {
                        add(item(job));
                    }
                    true
                });
            }
        }
        if !choice.items.is_empty() {
            return Ok(choice);
        }
        let Choice { left, of, .. } = choice;
        let stop = if of > 0 {
            Stop::new(AlertOutcome::NothingToDo, "the rule holds the maximum number of collections already")
        } else if left.is_empty() {
            Stop::new(AlertOutcome::NothingToDo, "no item matches the rule's selector")
        } else {
            let tried = counted(rule.attempts.into(), "attempt", "attempts");
            Stop::new(AlertOutcome::GaveUp, format!("gave up on all items after {tried}; an operator has to act"))
        };
        Err(Stop { left, ..stop })
    }

    /// Whether an item still qualifies; if not, why.
    pub(super) fn still(&self, rule: &Rule, scope: &Scope, target: &Target) -> Result<(), String> {
        let changed = || Err(format!("{target} has changed"));
        let fits = match target {
            Target::Job(id) => self.store.job(*id).is_some_and(|job| self.fits(rule, scope, &job)),
            Target::Collection(mnemonic) => self.is_free(mnemonic) && self.waits(),
            Target::Fault(fault, item) => self.shows(*fault, item),
            Target::Lock(path) => rule.action.faults().iter().any(|fault| {
                self.store
                    .faults(*fault, MAX_FAULTS, self.now, self.space)
                    .unwrap_or_default()
                    .iter()
                    .any(|found| found.nodes.contains(path) || found.item == *path)
            }),
            Target::Batch(_) | Target::Request(..) | Target::Queue(_) | Target::Store(_) | Target::Batches => false,
        };
        if fits { Ok(()) } else { changed() }
    }

    /// Since when a collection is held, by the servers' clock, as the times of jobs are. If the hold does not exist any
    /// longer, the time in its data.
    pub(super) fn held_from(&self, hold: &RuleHold) -> Timestamp {
        let found = Path::hold(&hold.collection).and_then(|path| self.store.locked_by_servers(&path));
        found.unwrap_or(hold.since)
    }

    /// Whether no other actor holds the collection now.
    pub(super) fn is_free(&self, collection: &str) -> bool {
        Path::hold(collection).is_none_or(|hold| self.store.locked_since(&hold).is_none())
    }

    /// The batches and jobs of a collection that are Held since an instant of the servers' clock or later; not all, if
    /// there are very many.
    pub(super) fn held_since(&self, collection: &str, since: Timestamp) -> Vec<DecisionItem> {
        let query = JobQuery {
            states: vec![Some(JobState::Held)],
            collection: Some(collection.to_owned()),
            ..JobQuery::default()
        };
        let batches = self.store.held_batches(collection).into_iter();
        let batches = batches.filter(|batch| self.is_batch_held_since(batch, since)).take(MAX_ITEMS);
        let batches = batches.map(|batch| DecisionItem::new(&Target::Batch(batch.id), Some(batch.status_version)));
        batches.chain(self.pages(query, |job| self.is_held_since(job.id, since))).collect()
    }

    /// Whether an item that was selected is still Held since then; true for what cannot be.
    pub(super) fn is_still_held(&self, target: &Target, since: Timestamp) -> bool {
        match target {
            Target::Job(job) => self.is_held_since(*job, since),
            Target::Batch(batch) => {
                self.store.batch(*batch).is_some_and(|found| self.is_batch_held_since(&found.batch, since))
            }
            Target::Collection(_)
            | Target::Request(..)
            | Target::Queue(_)
            | Target::Lock(_)
            | Target::Fault(..)
            | Target::Store(_)
            | Target::Batches => true,
        }
    }

    fn is_batch_held_since(&self, batch: &Batch, since: Timestamp) -> bool {
        batch.state == Some(BatchState::Held)
            && !is_reason(&batch.message)
            && batch.entered.is_some_and(|entered| self.store.server_time(entered) >= since)
    }

    /// Whether a job is still Held since then.
    fn is_held_since(&self, job: JobId, since: Timestamp) -> bool {
        self.store.job(job).is_some_and(|job| job.state == Some(JobState::Held) && !is_held_by_hand(&job))
            && self.store.entered_by_servers(job).is_some_and(|entered| entered >= since)
    }

    fn check_collection(&self, scope: &Scope) -> Result<(), Stop> {
        let Some(wanted) = &scope.collection else { return Ok(()) };
        let known = self.store.collections().unwrap_or_default();
        if known.iter().any(|figures| *figures.collection == **wanted) {
            return Ok(());
        }
        Err(Stop::new(AlertOutcome::NoMatch, "its label collection names an unknown collection"))
    }

    /// The collections by the working storage that their jobs need, largest first; none if no job waits for storage.
    fn neediest(&self, rule: &Rule, scope: &Scope) -> Result<Vec<DecisionItem>, Stop> {
        if !self.waits() {
            let why = if self.space.is_some() {
                "no job waits for working storage"
            } else {
                "working storage is not measured: set --storage.path"
            };
            return Err(Stop::new(AlertOutcome::NothingToDo, why));
        }
        let mut needs: BTreeMap<String, u64> = BTreeMap::new();
        self.each(query(rule, scope), |job| {
            if self.fits(rule, scope, job) && !job.collection.is_empty() {
                let need = needs.entry(job.collection.to_string()).or_default();
                *need = need.saturating_add(job.space_needed_bytes);
            }
            true
        });
        let mut needs: Vec<_> = needs.into_iter().filter(|(name, bytes)| *bytes > 0 && self.is_free(name)).collect();
        needs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        // A collection whose name is not a valid znode name cannot be held.
        let nameable = needs.into_iter().filter(|(name, _)| Path::hold(name).is_some());
        Ok(nameable.map(|(name, _)| DecisionItem::new(&Target::Collection(name.into()), None)).collect())
    }

    fn faulty(&self, rule: &Rule, scope: &Scope) -> Vec<DecisionItem> {
        let mut items = Vec::new();
        for fault in rule.select.faults.iter().filter(|fault| scope.has_fault(**fault)) {
            for found in self.store.faults(*fault, MAX_FAULTS, self.now, self.space).unwrap_or_default() {
                if self.is_too_young(rule, Some(found.since)) {
                    continue;
                }
                let targets = if rule.action == RuleAction::BreakLocks {
                    found
                        .nodes
                        .iter()
                        .chain([&found.item])
                        .filter(|path| path.is_lock())
                        .map(|path| Target::Lock(path.clone()))
                        .collect()
                } else {
                    vec![Target::Fault(*fault, found.item.clone())]
                };
                for target in targets {
                    let item = DecisionItem::new(&target, None);
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                if items.len() >= MAX_FAULTS {
                    return items;
                }
            }
        }
        items
    }

    /// Whether the rule selects a job.
    fn fits(&self, rule: &Rule, scope: &Scope, job: &Job) -> bool {
        let select = &rule.select;
        let is_old = |limit| job.entered.is_some_and(|entered| later(entered, limit) < self.now);
        job.state.is_some_and(|state| select.states.contains(&state) && scope.has_state(state))
            && scope.collection.as_deref().is_none_or(|only| *job.collection == *only)
            && (select.collections.is_empty() || select.collections.iter().any(|only| *job.collection == **only))
            && !self.is_too_young(rule, job.entered)
            && select.max_age.is_none_or(|age| job.entered.is_some() && !is_old(age))
            && select.locked.is_none_or(|locked| job.lock.is_some() == locked)
            && select.max_retries.is_none_or(|most| job.retry_count.unwrap_or(0) <= most)
            && (rule.action != RuleAction::ReleaseJobs || (self.is_free(&job.collection) && !is_held_by_hand(job)))
    }

    fn is_too_young(&self, rule: &Rule, since: Option<Timestamp>) -> bool {
        rule.select.min_age.is_some_and(|age| since.is_none_or(|since| later(since, age) > self.now))
    }

    fn shows(&self, fault: Fault, item: &Path) -> bool {
        let found = self.store.faults_of(item, self.now, self.space).unwrap_or_default();
        found.iter().any(|found| found.fault == fault)
    }

    /// Whether jobs wait for working storage: by how full it is, or since nothing of it is granted to them.
    pub(super) fn waits(&self) -> bool {
        self.waits_for_space() || self.waits_for_grants()
    }

    fn waits_for_grants(&self) -> bool {
        let provisioning = self.store.state_situation(JobState::Provisioning, self.space, self.now);
        provisioning.is_some_and(|state| state.may_wait_for_grants())
    }

    fn waits_for_space(&self) -> bool {
        let summary = self.space.and_then(|space| self.store.summary(self.now, Some(space)));
        summary.is_some_and(|summary| summary.waiting_for_space > 0)
    }

    /// How many jobs are in the rule's states, in all collections: a share is one of a state.
    fn present(&self, rule: &Rule, scope: &Scope) -> u64 {
        let states = query(rule, scope).states;
        let query = JobQuery { states, limit: 1, ..JobQuery::default() };
        self.store.find_jobs(&query, self.now).map_or(0, |page| page.total as u64)
    }

    fn pages(&self, query: JobQuery, take: impl Fn(&Job) -> bool) -> Vec<DecisionItem> {
        let mut items = Vec::new();
        self.each(query, |job| {
            if take(job) {
                items.push(item(job));
            }
            items.len() < MAX_ITEMS
        });
        items
    }

    /// Visits the jobs of a query, those longest in their state first, until the callback returns false.
    fn each(&self, query: JobQuery, mut look: impl FnMut(&Job) -> bool) {
        let mut query = JobQuery { limit: PAGE_LIMIT, sort: JobOrder::Entered, ..query };
        for _ in 0..MAX_LOOKED_AT / PAGE_LIMIT {
            let Some(page) = self.store.find_jobs(&query, self.now) else { return };
            if !page.items.iter().all(&mut look) {
                return;
            }
            query.cursor = page.next.and_then(|next| next.parse().ok());
            if query.cursor.is_none() {
                return;
            }
        }
    }
}

/// The query for the jobs of a rule, with the conditions that the mirror supports.
fn query(rule: &Rule, scope: &Scope) -> JobQuery {
    let states = rule.select.states.iter().copied().filter(|state| scope.has_state(*state));
    JobQuery {
        states: states.map(Some).collect(),
        collection: scope.collection.clone(),
        min_age: rule.select.min_age,
        locked: rule.select.locked,
        ..JobQuery::default()
    }
}

/// Whether a user may have held a job, whose reason is then in the job's message. A daemon that holds a job of a held
/// collection writes no message but its own for success. In doubt, the job is left to users.
fn is_held_by_hand(job: &Job) -> bool {
    is_reason(&job.message)
}

/// Whether a message is not that of a daemon.
fn is_reason(message: &str) -> bool {
    let message = message.trim();
    !message.is_empty() && !message.eq_ignore_ascii_case("success")
}

fn item(job: &Job) -> DecisionItem {
    DecisionItem::new(&Target::Job(job.id), Some(job.status_version))
}
