//! The bit producer: it goes through all content, again and again, and asks for checks of it.
//!
//! A loop has a run for each space of each store. Its keys are cut into pages that leave no gap, so that what is
//! written meanwhile is in one of them. A few spaces are gone through at once; when the checks of one have ended, its
//! run ends, and its report is due.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{BitRun, NewPage};
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::loops::{Advance, Lead, Morsel};
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::proofs::CheckRules;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject};
use queuekeeper_store::{Key, StoreName};
use uuid::Uuid;

use super::checker::said;
use super::lists::SpaceLists;
use crate::account::Account;
use crate::missing::listing;
use crate::producer::{MOST_WAITING, Step, is_due};
use crate::stores::AccountStores;
use crate::worker::Lease;

/// The producer's name in the catalogue.
pub const PRODUCER: &str = "bit";

/// How many bytes a page has at most, unless its first item is larger: so that large items are read by several workers.
const MOST_BYTES: u64 = 1 << 30;

/// How many pages a morsel asks for before the next one has its turn.
const PAGES: usize = 10;

/// How content is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitSettings {
    /// Which spaces are checked.
    pub lists: SpaceLists,
    /// How old the last proof of a copy may become.
    pub max_age: Duration,
    /// How many tasks may wait in the queue before the producer waits.
    pub most_waiting: u64,
    /// How many spaces are gone through at once.
    pub at_once: usize,
}

impl BitSettings {
    /// The default number of spaces that are gone through at once.
    pub const AT_ONCE: u16 = 4;
}

impl Default for BitSettings {
    /// All spaces, four of them at once, within 60 days; 10,000 waiting tasks.
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            lists: SpaceLists::default(),
            max_age: DAY * 60,
            most_waiting: MOST_WAITING,
            at_once: Self::AT_ONCE.into(),
        }
    }
}

/// What the producer needs.
pub struct BitProducer {
    /// Where tasks go, and what is known of content.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores.
    pub stores: AccountStores,
    /// Which spaces are checked.
    pub lists: SpaceLists,
    /// How old the last proof of a copy may become. A loop begins at every half of that.
    pub max_age: Duration,
    /// How many tasks may wait in the queue before the producer waits.
    pub most_waiting: u64,
    /// How many keys a page has at most; no more than 1,000.
    pub part: u64,
    /// How many spaces are gone through at once.
    pub at_once: usize,
    /// Whether a report on each space is requested when its checks have ended.
    pub reports: bool,
    /// Who this process is.
    pub holder: Uuid,
    /// For how long it leads from each step on.
    pub lease: Duration,
}

impl BitProducer {
    /// Does the next part of the loop, or begins the next loop where it is due and the last one is done.
    ///
    /// # Errors
    /// When the catalogue or a store cannot be read; what was done is saved.
    pub async fn step(&self) -> Result<Step, String> {
        let lead = self.catalogue.lead(PRODUCER, self.holder, self.lease).await.map_err(said)?;
        let Some(lead) = lead else { return Ok(Step::Follows) };
        let SpaceLists { include, exclude } = &self.lists;
        let rules = CheckRules { max_age: self.max_age, include: include.to_string(), exclude: exclude.to_string() };
        self.catalogue.keep_check_rules(&lead, &rules).await.map_err(said)?;
        while self.catalogue.forget_checks().await.map_err(said)?.is_some() {}
        let pauses = self.catalogue.pauses().await.map_err(said)?;
        let (ended, open) = self.end_runs(&lead, &pauses).await?;
        let morsels = self.catalogue.morsels(PRODUCER).await.map_err(said)?;
        if morsels.is_empty() {
            return match (open.is_empty(), is_due(&lead, self.max_age / 2)) {
                (true, true) => self.begin(&lead, &pauses).await,
                (true, false) => Ok(Step::Idle),
                (false, _) => Ok(if ended > 0 { Step::Advanced } else { Step::Checking }),
            };
        }
        let is_paused = |morsel: &&Morsel| is_paused(&pauses, &morsel.account, &morsel.source);
        let paused = morsels.iter().filter(is_paused).count();
        if paused == morsels.len() {
            return Ok(Step::Paused(paused));
        }
        let is_begun = |morsel: &Morsel| open.iter().any(|run| is_of(run, morsel));
        // What waits for its store keeps no other space waiting.
        let busy = open.iter().filter(|run| !run.waits_for_store).count();
        let mut room = self.at_once.max(1).saturating_sub(busy);
        let (mut turns, mut stuck) = (0, 0);
        for morsel in morsels.iter().filter(|morsel| !is_paused(morsel)) {
            if !is_begun(morsel) {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            if self.waiting().await? >= self.most_waiting {
                return Ok(Step::Full);
            }
            turns += 1;
            let (to, pages) = match self.next(morsel).await {
                Ok(next) => next,
                Err(why) => {
                    stuck += 1;
                    // Another one may begin in its place.
                    room += usize::from(!is_begun(morsel));
                    (Advance::Failed(why), Vec::new())
                }
            };
            let requested = self.accounts.get(&morsel.account).map(|account| account.proof_policy(&morsel.source));
            let requested = requested.unwrap_or_default().to_string();
            let advanced = self.catalogue.advance_bit(&lead, morsel, (&to, &requested), &pages).await;
            if !advanced.map_err(said)? {
                return Ok(Step::Follows);
            }
        }
        Ok(match turns {
            // All that is begun waits for its checks.
            0 if ended == 0 => Step::Checking,
            _ if turns == stuck && turns > 0 => Step::Stuck(stuck),
            _ => Step::Advanced,
        })
    }

    /// Ends runs of which all checks have ended: how many, and those that have not, without those that are paused.
    async fn end_runs(&self, lead: &Lead, pauses: &[MillPause]) -> Result<(usize, Vec<BitRun>), String> {
        let (mut ended, mut open) = (0, Vec::new());
        for run in self.catalogue.open_bit_runs().await.map_err(said)? {
            let wait_limit = self.wait_limit(&run);
            let waits_too_long =
                |listed| run.waits_for_store && Timestamp::now().duration_since(listed).unsigned_abs() >= wait_limit;
            let is_done = run.listed.is_some_and(|listed| !run.has_open_checks || waits_too_long(listed));
            let report = self.reports.then(|| report(&run)).into_iter().collect();
            if is_done && self.catalogue.end_bit_run(lead, run.id, wait_limit, report).await.map_err(said)? {
                ended += 1;
            } else if !is_paused(pauses, &run.account, &run.store) {
                open.push(run);
            }
        }
        Ok((ended, open))
    }

    /// For how long the report on a run waits for checks whose store cannot be read.
    fn wait_limit(&self, run: &BitRun) -> Duration {
        let limits = self.accounts.get(&run.account).and_then(|account| account.limits.get(&run.store));
        limits.map(|limits| limits.cold).unwrap_or_default().wait_limit()
    }

    async fn waiting(&self) -> Result<u64, String> {
        let figures = self.catalogue.task_figures().await.map_err(said)?;
        Ok(figures.iter().find(|of| of.queue == TaskQueue::BitIntegrity).map_or(0, |of| of.waiting))
    }

    async fn begin(&self, lead: &Lead, pauses: &[MillPause]) -> Result<Step, String> {
        let figures = self.catalogue.counters().await.map_err(said)?;
        let mut morsels = Vec::new();
        for account in self.accounts.values() {
            for (id, name) in account.stores.iter().filter(|(_, name)| !is_paused(pauses, &account.name, name)) {
                let store = self.stores.get(&account.name, name, &Lease::unlimited())?;
                let listed = store.spaces().await.map_err(|error| error.to_string())?;
                let mut spaces = account.spaces_in(&figures, name);
                // In one that is gone, what was found may have ended.
                let wrong = self.catalogue.bit_error_spaces(&account.name, name).await.map_err(said)?;
                spaces.extend(listed.iter().chain(&wrong).filter_map(|space| account.of_store(space)));
                spaces.retain(|space| !space.is_reserved() && self.lists.wants(account, (id, name.as_str()), space));
                morsels.extend(spaces.into_iter().map(|space| Morsel {
                    account: account.name.clone(),
                    items: account.figure(&figures, Counter::SpaceItems, name, &space),
                    space,
                    source: name.clone(),
                    destination: name.clone(),
                    marker: None,
                    error: None,
                    scanned: 0,
                }));
            }
        }
        // A store has one name in an account, and may have two numbers.
        morsels.sort_by(|one, other| {
            (&one.account, &one.source, &one.space).cmp(&(&other.account, &other.source, &other.space))
        });
        morsels.dedup();
        let begun = self.catalogue.begin_loop(lead, &morsels, self.max_age / 2).await.map_err(said)?;
        Ok(match (begun, morsels.is_empty()) {
            (false, _) => Step::Follows,
            (true, true) => Step::Idle,
            (true, false) => Step::Advanced,
        })
    }

    /// The next pages of a morsel, and how far it is with them. The last one is open: it has what is written meanwhile.
    async fn next(&self, morsel: &Morsel) -> Result<(Advance, Vec<NewPage>), String> {
        let account = Account::find(&self.accounts, &morsel.account)?;
        let space = account.require_space(&morsel.space)?;
        let store = self.stores.get(&account.name, &morsel.source, &Lease::unlimited())?;
        let mut listed = listing(&store, &space, b"", morsel.marker.as_ref()).await?;
        let (mut pages, mut keys) = (Vec::new(), 0);
        let mut page = Cut::new(morsel.marker.clone());
        while let Some(item) = listed.next().await {
            let item = item.map_err(|error| error.to_string())?;
            let is_large = page.items > 0 && page.bytes.saturating_add(item.size) > MOST_BYTES;
            if is_large || page.items >= self.part {
                pages.push(page.end());
            }
            if pages.len() >= PAGES {
                let last = pages.last().and_then(|page| page.last.clone());
                return Ok((last.map_or(Advance::Done(keys), |last| Advance::To(last, keys)), pages));
            }
            keys += 1;
            page.add(item.key, item.size);
        }
        pages.push(NewPage { behind: page.behind, last: None, items: page.items, bytes: page.bytes });
        Ok((Advance::Done(keys), pages))
    }
}

/// A page that is being cut off a listing.
struct Cut {
    behind: Option<Key>,
    last: Option<Key>,
    items: u64,
    bytes: u64,
}

impl Cut {
    fn new(behind: Option<Key>) -> Self {
        Self { behind, last: None, items: 0, bytes: 0 }
    }

    fn add(&mut self, key: Key, size: u64) {
        self.last = Some(key);
        self.items += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    /// What it has so far; it goes on behind that.
    fn end(&mut self) -> NewPage {
        let next = Self::new(self.last.clone());
        let Self { behind, last, items, bytes } = std::mem::replace(self, next);
        NewPage { behind, last, items, bytes }
    }
}

fn is_of(run: &BitRun, morsel: &Morsel) -> bool {
    (&run.account, &run.store, &run.space) == (&morsel.account, &morsel.source, &morsel.space)
}

fn is_paused(pauses: &[MillPause], account: &str, store: &StoreName) -> bool {
    pauses.iter().any(|pause| pause.scope.stops(account, [store]))
}

/// The report on a run.
fn report(run: &BitRun) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::BitReport,
        account: run.account.clone(),
        space: run.space.clone(),
        key: None,
        destination: Some(run.store.clone()),
    };
    NewTask { queue: TaskQueue::BitReport, subject, source: None }
}
