//! One who checks the store `main`, of which each call is counted and may fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::tasks::{EndedTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, Tasks};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::item::{ItemChecks, ROUND};
use queuekeeper_mill::bit::lists::SpaceLists;
use queuekeeper_mill::bit::page::PageChecks;
use queuekeeper_mill::bit::producer::BitProducer;
use queuekeeper_mill::bit::requested_check::RequestedChecks;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::producer::Step;
use queuekeeper_mill::stores::AccountStores;
use queuekeeper_mill::worker::{Lease, Processed, Processor as _};
use queuekeeper_store::{Store, StoreName};
use queuekeeper_testkit::faulty::{Faults, Faulty};
use uuid::Uuid;

use crate::duplicate::world::{World, main};

pub(super) const LEASE: Duration = Duration::from_mins(5);

pub(super) struct Bit {
    pub(super) checker: Checker,
    /// What was called of the store, and what fails.
    pub(super) faults: Faults,
    pub(super) producer: BitProducer,
}

/// How long a task waits that came to no end: not at all, so that the next round is now.
fn at_once(outcome: TaskOutcome) -> TaskOutcome {
    match outcome {
        TaskOutcome::Later(_) => TaskOutcome::Later(Duration::ZERO),
        TaskOutcome::PutOff(_) => TaskOutcome::PutOff(Duration::ZERO),
        outcome => outcome,
    }
}

impl Bit {
    pub(super) fn new(world: &World, proof: &str) -> Self {
        Self::with_limits(world, &StoreLimits { proof: proof.parse().unwrap(), ..StoreLimits::default() }, None)
    }

    /// With what the account is allowed in the store, and the store that its reports are in where that is another one.
    pub(super) fn with_limits(world: &World, limits: &StoreLimits, reports: Option<&StoreName>) -> Self {
        let (faulty, faults) = Faulty::new(Arc::clone(&world.bare[&main()]));
        let mut accounts = world.duplicator.accounts.clone();
        for account in accounts.values_mut() {
            account.limits.insert(main(), limits.clone());
        }
        let mut stores = BTreeMap::from([(main(), Arc::new(faulty) as Arc<dyn Store>)]);
        stores.extend(reports.map(|store| (store.clone(), Arc::clone(&world.bare[store]))));
        for account in accounts.values_mut() {
            account.stores.retain(|_, store| stores.contains_key(store));
            account.primary = account.stores.keys().last().cloned();
        }
        let catalogue = world.catalogue.clone();
        let stores = AccountStores::new(catalogue.clone(), &accounts, stores, MillMetrics::default());
        let producer = BitProducer {
            catalogue: catalogue.clone(),
            accounts: accounts.clone(),
            stores: stores.clone(),
            lists: SpaceLists::default(),
            max_age: Duration::from_hours(1),
            most_waiting: 10_000,
            part: 1000,
            at_once: 1,
            reports: false,
            holder: Uuid::now_v7(),
            lease: LEASE,
        };
        Self { checker: Checker { catalogue, accounts, stores, round: ROUND, clock: Timestamp::now }, faults, producer }
    }

    /// Takes one task of a kind and processes it; what waits, waits no time. `None` where none is visible.
    pub(super) async fn process(&self, kind: TaskKind) -> Option<Processed> {
        let (task, processed) = self.look(kind).await?;
        let Processed { outcome, follow_ups, checked } = processed.clone();
        let ended = EndedTask { task, outcome: at_once(outcome), follow_ups, checked };
        assert_eq!(self.checker.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        Some(processed)
    }

    /// The same, and nothing of that is written down but how it ended.
    pub(super) async fn process_as(&self, kind: TaskKind, outcome: TaskOutcome) -> Processed {
        let (task, processed) = self.look(kind).await.unwrap();
        let ended = EndedTask { task, outcome, follow_ups: Vec::new(), checked: None };
        assert_eq!(self.checker.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        processed
    }

    async fn look(&self, kind: TaskKind) -> Option<(TakenTask, Processed)> {
        let (catalogue, kinds) = (&self.checker.catalogue, [kind]);
        let queue = if kind == TaskKind::Check { TaskQueue::BitError } else { TaskQueue::BitIntegrity };
        let tasks = Tasks { queue, account: "account1", kinds: &kinds, limit: 1 };
        let task = catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().pop()?;
        let (lease, checker) = (Lease::unlimited(), self.checker.clone());
        let processed = match kind {
            TaskKind::BitPage => PageChecks(checker).process(&task, &lease).await,
            TaskKind::Check => RequestedChecks(checker).process(&task, &lease).await,
            _ => ItemChecks(checker).process(&task, &lease).await,
        };
        Some((task, processed))
    }

    /// Processes what there is until nothing is left; how many pages, and how many looks at single items.
    pub(super) async fn settle(&self) -> (usize, usize) {
        let mut done = (0, 0);
        loop {
            if self.process(TaskKind::BitPage).await.is_some() {
                done.0 += 1;
            } else if self.process(TaskKind::Bit).await.is_some() {
                done.1 += 1;
            } else {
                return done;
            }
        }
    }

    /// Goes through a loop to its end; how many pages, and how many looks at single items.
    pub(super) async fn run_loop(&self) -> (usize, usize) {
        let mut done = (0, 0);
        loop {
            let step = self.producer.step().await.unwrap();
            let more = self.settle().await;
            done = (done.0 + more.0, done.1 + more.1);
            match step {
                Step::Advanced | Step::Checking | Step::Full => {}
                Step::Idle => return done,
                step => panic!("{step:?}"),
            }
        }
    }

    /// What is wrong, by key.
    pub(super) async fn errors(&self) -> BTreeMap<String, BitError> {
        let errors = self.checker.catalogue.bit_errors("account1", 0, 1000).await.unwrap();
        errors.into_iter().map(|error| (error.item.key.to_string(), error)).collect()
    }

    /// How many items of the newest run had each result.
    pub(super) async fn counts(&self) -> BTreeMap<String, u64> {
        let (catalogue, space) = (&self.checker.catalogue, "theses".parse().unwrap());
        let run = catalogue.newest_bit_run("account1", &main(), &space).await.unwrap().unwrap();
        let counts = catalogue.bit_counts(run.id).await.unwrap();
        counts.into_iter().map(|count| (count.result, count.items)).collect()
    }
}
