//! What there is to do at this moment: the items on which a rule acts, and whether one of them still is one.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::decision::Scope;
use super::guard::Stop;
use super::item::Item;
use super::memory::{Hold, Memory};
use super::outcome::Outcome;
use super::rule::{Remedy, Rule};
use super::time::later;
use crate::actions::{Fault, JobId, JobState, Path, Target};
use crate::mirror::find::{JobQuery, PAGE_LIMIT};
use crate::mirror::words::counted;
use crate::mirror::{Job, Store};

/// How many jobs are looked at for one alert: more than are ever done at once, and few enough that it is soon over.
const MOST_LOOKED_AT: usize = 200_000;

/// How many jobs are chosen at once: more than any rule takes, and few enough for a znode.
const MOST_ITEMS: usize = 500;

/// How many items of a fault are looked at.
const MOST_FAULTS: usize = 10_000;

/// How many items that were left to a person are named.
const MOST_LEFT: usize = 100;

/// The queue as a rule sees it at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub(super) store: &'a Store,
    /// How many bytes a job may need and not be kept back; `None` where working storage is not measured.
    pub(super) space: Option<i64>,
    pub(super) now: Timestamp,
}

/// What a rule would act on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// The items, the most urgent first; at most as many as the rule takes for one alert.
    pub(super) items: Vec<Item>,
    /// How many there are in all.
    pub(super) of: usize,
    /// How many jobs are in the rule's states.
    pub(super) present: u64,
    /// Items that were tried often enough, and are left to a person.
    pub(super) left: Vec<String>,
}

impl Sight<'_> {
    /// What a rule would act on now.
    pub(super) fn choose(&self, rule: &Rule, scope: &Scope, memory: &Memory) -> Result<Choice, Stop> {
        self.check_collection(scope)?;
        // What is held stays so until it is taken back, and counts for as long.
        let held = if rule.remedy == Remedy::HoldCollections { memory.holds.len() } else { 0 };
        let limit = rule.select.limit.saturating_sub(held);
        let mut choice = Choice { present: self.present(rule, scope), ..Choice::default() };
        let mut add = |item: Item| {
            if memory.attempts_on(&item.on) >= rule.attempts {
                if choice.left.len() < MOST_LEFT {
                    choice.left.push(item.on);
                }
                return;
            }
            choice.of += 1;
            if choice.items.len() < limit {
                choice.items.push(item);
            }
        };
        match rule.remedy {
            Remedy::HoldCollections => self.neediest(rule, scope)?.into_iter().for_each(&mut add),
            Remedy::RepairFaults | Remedy::BreakLocks => self.faulty(rule, scope).into_iter().for_each(&mut add),
            Remedy::ResumeJobs | Remedy::ReleaseJobs | Remedy::DeleteJobs | Remedy::PurgeJobs => {
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
            Stop::new(Outcome::NothingToDo, "it holds as many collections as it may at once")
        } else if left.is_empty() {
            Stop::new(Outcome::NothingToDo, "nothing is as the rule wants it")
        } else {
            let tried = counted(rule.attempts.into(), "time", "times");
            Stop::new(Outcome::GaveUp, format!("all of it was tried {tried}, and is left to a person"))
        };
        Err(Stop { left, ..stop })
    }

    /// Whether one item still is as its rule wants it; if not, why.
    pub(super) fn still(&self, rule: &Rule, scope: &Scope, target: &Target) -> Result<(), String> {
        let changed = || Err(format!("{target} is not as it was any more"));
        let fits = match target {
            Target::Job(id) => self.store.job(*id).is_some_and(|job| self.fits(rule, scope, &job)),
            Target::Collection(mnemonic) => self.is_free(mnemonic) && self.waits(),
            Target::Fault(fault, item) => self.shows(*fault, item),
            Target::Lock(path) => rule.remedy.faults().iter().any(|fault| {
                self.store
                    .faults(*fault, MOST_FAULTS, self.now, self.space)
                    .unwrap_or_default()
                    .iter()
                    .any(|found| found.nodes.contains(path) || found.item == *path)
            }),
            Target::Batch(_) | Target::Request(..) | Target::Queue(_) | Target::Batches => false,
        };
        if fits { Ok(()) } else { changed() }
    }

    /// Since when a collection is held: by the servers' clock, as the jobs' times are that it is compared with. What its
    /// hold's note says, where it is gone already.
    pub(super) fn held_from(&self, hold: &Hold) -> Timestamp {
        let found = Path::hold(&hold.collection).and_then(|path| self.store.locked_by_servers(&path));
        found.unwrap_or(hold.since)
    }

    /// Whether somebody else holds the collection by now.
    pub(super) fn is_free(&self, collection: &str) -> bool {
        Path::hold(collection).is_none_or(|hold| self.store.locked_since(&hold).is_none())
    }

    /// The jobs of a collection that are Held since an instant of the servers' or later: some of them, where there are very
    /// many.
    pub(super) fn held_since(&self, collection: &str, since: Timestamp) -> Vec<Item> {
        let query = JobQuery {
            states: vec![Some(JobState::Held)],
            collection: Some(collection.to_owned()),
            ..JobQuery::default()
        };
        self.pages(query, |job| self.is_held_since(job.id, since))
    }

    /// Whether a job is still Held since then.
    pub(super) fn is_held_since(&self, job: JobId, since: Timestamp) -> bool {
        self.store.job(job).is_some_and(|job| job.state == Some(JobState::Held) && !is_held_by_hand(&job))
            && self.store.entered_by_servers(job).is_some_and(|entered| entered >= since)
    }

    fn check_collection(&self, scope: &Scope) -> Result<(), Stop> {
        let Some(wanted) = &scope.collection else { return Ok(()) };
        let known = self.store.collections().unwrap_or_default();
        if known.iter().any(|figures| *figures.collection == **wanted) {
            return Ok(());
        }
        Err(Stop::new(Outcome::NoMatch, "its label collection names none that there is"))
    }

    /// The collections by the working storage that their jobs need, the neediest first; none while nothing waits for it.
    fn neediest(&self, rule: &Rule, scope: &Scope) -> Result<Vec<Item>, Stop> {
        if !self.waits() {
            let why = if self.space.is_some() {
                "no job waits for working storage"
            } else {
                "working storage is not measured: it takes --storage.path"
            };
            return Err(Stop::new(Outcome::NothingToDo, why));
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
        // What no znode can be named by cannot be held.
        let nameable = needs.into_iter().filter(|(name, _)| Path::hold(name).is_some());
        Ok(nameable.map(|(name, _)| Item::new(&Target::Collection(name.into()), None)).collect())
    }

    fn faulty(&self, rule: &Rule, scope: &Scope) -> Vec<Item> {
        let mut items = Vec::new();
        for fault in rule.select.faults.iter().filter(|fault| scope.has_fault(**fault)) {
            for found in self.store.faults(*fault, MOST_FAULTS, self.now, self.space).unwrap_or_default() {
                if self.is_too_young(rule, Some(found.since)) {
                    continue;
                }
                let targets = if rule.remedy == Remedy::BreakLocks {
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
                    let item = Item::new(&target, None);
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                if items.len() >= MOST_FAULTS {
                    return items;
                }
            }
        }
        items
    }

    /// Whether a job is one that the rule acts on.
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
            && (rule.remedy != Remedy::ReleaseJobs || (self.is_free(&job.collection) && !is_held_by_hand(job)))
    }

    fn is_too_young(&self, rule: &Rule, since: Option<Timestamp>) -> bool {
        rule.select.min_age.is_some_and(|age| since.is_none_or(|since| later(since, age) > self.now))
    }

    fn shows(&self, fault: Fault, item: &Path) -> bool {
        let found = self.store.faults_of(item, self.now, self.space).unwrap_or_default();
        found.iter().any(|found| found.fault == fault)
    }

    /// Whether jobs wait for working storage.
    pub(super) fn waits(&self) -> bool {
        let summary = self.space.and_then(|space| self.store.summary(self.now, Some(space)));
        summary.is_some_and(|summary| summary.waiting_for_space > 0)
    }

    /// How many jobs are in the rule's states, of whatever collection: a share is one of a state.
    fn present(&self, rule: &Rule, scope: &Scope) -> u64 {
        let states = query(rule, scope).states;
        let query = JobQuery { states, limit: 1, ..JobQuery::default() };
        self.store.find_jobs(&query, self.now).map_or(0, |page| page.total as u64)
    }

    fn pages(&self, query: JobQuery, take: impl Fn(&Job) -> bool) -> Vec<Item> {
        let mut items = Vec::new();
        self.each(query, |job| {
            if take(job) {
                items.push(item(job));
            }
            items.len() < MOST_ITEMS
        });
        items
    }

    /// Goes through the jobs of a query, those first that are longest in their state, as long as it is told to.
    fn each(&self, query: JobQuery, mut look: impl FnMut(&Job) -> bool) {
        let mut query = JobQuery { limit: PAGE_LIMIT, ..query };
        for _ in 0..MOST_LOOKED_AT / PAGE_LIMIT {
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

/// The jobs of a rule, as far as the image finds them by itself.
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

/// Whether a person may hold a job: who does says why, in the job's own message. What the daemons do because of a held
/// collection has no words but their own for success. What is in doubt is left to people.
fn is_held_by_hand(job: &Job) -> bool {
    let message = job.message.trim();
    !message.is_empty() && !message.eq_ignore_ascii_case("success")
}

fn item(job: &Job) -> Item {
    Item::new(&Target::Job(job.id), Some(job.status_version))
}
