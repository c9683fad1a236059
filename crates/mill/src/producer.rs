//! The duplication producer: it goes through all that policies want copied, again and again, and asks for what is
//! missing.
//!
//! What listings and the content index agree on needs no task; where they do not tell, the item gets one, and who
//! processes it looks at both sides. So a listing that lies costs a look, and never an item.

mod need;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::index::IndexedItem;
use queuekeeper_catalogue::loops::{Advance, DUPLICATION, Lead, Morsel};
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject};
use queuekeeper_store::{Key, SpaceName, StoreName};
use uuid::Uuid;

use crate::account::Account;
use crate::merge::merge;
use crate::missing::listing;
use crate::policy::Policies;
use crate::stores::AccountStores;
use crate::worker::Lease;

/// The producer's name in the catalogue.
pub const PRODUCER: &str = DUPLICATION;

/// How many keys a morsel looks at before the next one has its turn, for each task that it may put.
const KEYS: usize = 10;

/// The default number of waiting tasks at which a producer waits.
pub(crate) const MOST_WAITING: u64 = 10_000;

/// How many items of the index are read at once.
const PAGE: u32 = 1000;

/// What the producer needs.
pub struct Producer {
    /// Where tasks go, and what is known of content.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// Their policies.
    pub policies: Policies,
    /// The stores.
    pub stores: AccountStores,
    /// How long after the beginning of a loop the next one begins.
    pub frequency: Duration,
    /// How many tasks may wait in the queue before the producer waits.
    pub most_waiting: u64,
    /// How many tasks a morsel puts before the next one has its turn.
    pub part: usize,
    /// In one of so many loops, every item gets a task; 0 for never.
    pub thorough_every: u64,
    /// Who this process is.
    pub holder: Uuid,
    /// For how long it leads from each step on.
    pub lease: Duration,
}

/// Whether the next loop is due: by what was planned at the beginning of the last one, or because loops are to be more
/// frequent now.
pub(crate) fn is_due(lead: &Lead, frequency: Duration) -> bool {
    let age = lead.started.and_then(|started| Duration::try_from(Timestamp::now().duration_since(started)).ok());
    lead.is_due || age.is_some_and(|age| age >= frequency)
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A part of the loop was done: at once more.
    Advanced,
    /// Another process leads.
    Follows,
    /// The queue is full.
    Full,
    /// All that was begun waits for its checks to end.
    Checking,
    /// It was to stop before the loop was done.
    Stopped,
    /// What is left of the loop cannot go on: how many morsels.
    Stuck(usize),
    /// All that is left of the loop is paused: how many morsels.
    Paused(usize),
    /// The loop is done, and the next one is not due.
    Idle,
}

impl Producer {
    /// Does the next part of the loop, or begins the next loop where it is due and the last one is done.
    ///
    /// # Errors
    /// When the catalogue or a store cannot be read; what was done is saved.
    pub async fn step(&self) -> Result<Step, String> {
        let lead = self.catalogue.lead(PRODUCER, self.holder, self.lease).await.map_err(|error| error.to_string())?;
        let Some(lead) = lead else { return Ok(Step::Follows) };
        let morsels = self.catalogue.morsels(PRODUCER).await.map_err(|error| error.to_string())?;
        if morsels.is_empty() {
            return if is_due(&lead, self.frequency) { self.begin(&lead).await } else { Ok(Step::Idle) };
        }
        if self.waiting().await? >= self.most_waiting {
            return Ok(Step::Full);
        }
        let (mut stuck, mut paused) = (0, 0);
        for morsel in &morsels {
            if self.is_paused(&morsel.account, &[&morsel.source, &morsel.destination]).await? {
                paused += 1;
                continue;
            }
            let (to, tasks) = match self.next(&lead, morsel).await {
                Ok(next) => next,
                Err(why) => {
                    stuck += 1;
                    (Advance::Failed(why), Vec::new())
                }
            };
            let is_leading =
                self.catalogue.advance(&lead, morsel, &to, tasks).await.map_err(|error| error.to_string())?;
            if !is_leading {
                return Ok(Step::Follows);
            }
            if self.waiting().await? >= self.most_waiting {
                return Ok(Step::Full);
            }
        }
        Ok(match morsels.len() - paused {
            0 => Step::Paused(paused),
            left if left == stuck => Step::Stuck(stuck),
            _ => Step::Advanced,
        })
    }

    /// Whether a pause stops what uses these stores for an account.
    async fn is_paused(&self, account: &str, stores: &[&StoreName]) -> Result<bool, String> {
        let pauses = self.catalogue.pauses().await.map_err(|error| error.to_string())?;
        Ok(pauses.iter().any(|pause| pause.scope.stops(account, stores.iter().copied())))
    }

    async fn waiting(&self) -> Result<u64, String> {
        let figures = self.catalogue.task_figures().await.map_err(|error| error.to_string())?;
        Ok(figures.iter().find(|of| of.queue == TaskQueue::DuplicationLow).map_or(0, |of| of.waiting))
    }

    async fn begin(&self, lead: &Lead) -> Result<Step, String> {
        let figures = self.catalogue.counters().await.map_err(|error| error.to_string())?;
        let mut morsels = Vec::new();
        for account in self.accounts.values() {
            // A loop that passes an account by comes back to it much later.
            if !self.policies.is_settled(&account.name) {
                return Err(format!("the policy of {} is not known yet", account.name));
            }
            let Some(policy) = self.policies.get(&account.name) else { continue };
            let known = self.spaces(account, &figures).await?;
            for space in &known {
                for pair in policy.pairs(space) {
                    let stores = account.stores.get(&pair.source).zip(account.stores.get(&pair.destination));
                    let Some((source, destination)) = stores else { continue };
                    morsels.push(Morsel {
                        account: account.name.clone(),
                        space: space.clone(),
                        source: source.clone(),
                        destination: destination.clone(),
                        marker: None,
                        error: None,
                        items: account.figure(&figures, Counter::SpaceItems, source, space),
                        scanned: 0,
                    });
                }
            }
        }
        let begun =
            self.catalogue.begin_loop(lead, &morsels, self.frequency).await.map_err(|error| error.to_string())?;
        Ok(match (begun, morsels.is_empty()) {
            (false, _) => Step::Follows,
            (true, true) => Step::Idle,
            (true, false) => Step::Advanced,
        })
    }

    /// The spaces of an account: those that its stores have, and those that the index knows items of. A store that is
    /// paused is not asked.
    async fn spaces(&self, account: &Account, figures: &Figures) -> Result<BTreeSet<SpaceName>, String> {
        let mut spaces = BTreeSet::new();
        for name in account.stores.values() {
            if self.is_paused(&account.name, &[name]).await? {
                continue;
            }
            let store = self.stores.get(&account.name, name, &Lease::unlimited())?;
            let listed = store.spaces().await.map_err(|error| error.to_string())?;
            spaces.extend(listed.iter().filter_map(|space| account.of_store(space)));
        }
        spaces.extend(account.spaces(figures));
        Ok(spaces)
    }

    /// The tasks of the next part of a morsel, and how far it is with them.
    async fn next(&self, lead: &Lead, morsel: &Morsel) -> Result<(Advance, Vec<NewTask>), String> {
        let account = Account::find(&self.accounts, &morsel.account)?;
        let space = account.require_space(&morsel.space)?;
        let store = |name: &StoreName| self.stores.get(&account.name, name, &Lease::unlimited());
        let (source, destination) = (store(&morsel.source)?, store(&morsel.destination)?);
        let is_thorough = self.thorough_every > 0 && lead.number.is_multiple_of(self.thorough_every);
        let mut tasks = Vec::new();
        if morsel.marker.is_none() {
            tasks.push(Self::task(morsel, None));
        }
        let after = morsel.marker.as_ref();
        let (here, there) =
            (listing(&source, &space, b"", after).await?, listing(&destination, &space, b"", after).await?);
        let mut both = merge(here, there);
        let mut index = Index::new(&self.catalogue, &space, after);
        let mut keys = 0;
        while let Some(both) = both.next().await {
            let both = both.map_err(|error| error.to_string())?;
            let Some(key) = both.key().cloned() else { continue };
            let known = index.find(&key).await?;
            let is_left_out = account.leaves_out(&morsel.destination, &key).is_some();
            let needs_task = is_thorough || need::needs_task(&both, known, &morsel.source, &morsel.destination);
            if needs_task && !is_left_out {
                tasks.push(Self::task(morsel, Some(key.clone())));
            }
            keys += 1;
            if tasks.len() >= self.part || keys >= KEYS * self.part {
                return Ok((Advance::To(key, keys as u64), tasks));
            }
        }
        Ok((Advance::Done(keys as u64), tasks))
    }

    fn task(morsel: &Morsel, key: Option<Key>) -> NewTask {
        let subject = TaskSubject {
            kind: TaskKind::Duplicate,
            account: morsel.account.clone(),
            space: morsel.space.clone(),
            key,
            destination: Some(morsel.destination.clone()),
        };
        NewTask { queue: TaskQueue::DuplicationLow, subject, source: Some(morsel.source.clone()) }
    }
}

/// The content index, read in the order of keys beside a listing.
struct Index<'a> {
    catalogue: &'a Catalogue,
    space: &'a SpaceName,
    after: Option<Key>,
    page: std::vec::IntoIter<IndexedItem>,
    head: Option<IndexedItem>,
    has_ended: bool,
}

impl<'a> Index<'a> {
    fn new(catalogue: &'a Catalogue, space: &'a SpaceName, after: Option<&Key>) -> Self {
        let page = Vec::new().into_iter();
        Self { catalogue, space, after: after.cloned(), page, head: None, has_ended: false }
    }

    /// What the index knows of a key that is above all keys looked up before.
    async fn find(&mut self, key: &Key) -> Result<Option<&IndexedItem>, String> {
        while self.head.as_ref().is_none_or(|head| head.key < *key) && !self.has_ended {
            self.head = self.page.next();
            if self.head.is_none() {
                let read = self.catalogue.items(self.space, self.after.as_ref(), PAGE).await;
                let page = read.map_err(|error| error.to_string())?;
                self.has_ended = page.is_empty();
                self.after = page.last().map(|item| item.key.clone());
                self.page = page.into_iter();
            }
        }
        Ok(self.head.as_ref().filter(|head| head.key == *key))
    }
}
