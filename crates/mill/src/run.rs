//! The mill at work: the log is followed, loops are gone through, and workers process what comes of both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{MillProcess, Queue};
use queuekeeper_store::{Store, StoreName};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::account::Account;
use crate::audit::{Auditor, FOLLOWER};
use crate::duplicate::Duplicator;
use crate::policy::{Policies, PolicySource, in_force};
use crate::presence;
use crate::producer::{Producer, Step};
use crate::worker::{Times, Workers};

/// The queues that are worked on, the first one first.
const QUEUES: [Queue; 3] = [Queue::Audit, Queue::DuplicationHigh, Queue::DuplicationLow];

/// How often the log is looked at for what is new.
const FOLLOW: Duration = Duration::from_secs(2);

/// How long workers wait while all queues are empty, at first and at most: a task that a person or another process lets be
/// processed again is not announced.
const EMPTY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How often policies are read again.
const READ_POLICIES: Duration = Duration::from_mins(1);

/// How often deltas of counters are folded.
const FOLD: Duration = Duration::from_secs(1);

/// How long the producer waits for room in the queue, and for anything else.
const WAITS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(1));

/// For how long one process leads the producer from each step on.
const LEAD: Duration = Duration::from_mins(5);

/// How the mill works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MillSettings {
    /// How many tasks are processed at once.
    pub workers: usize,
    /// How long after the beginning of a loop the next one begins.
    pub frequency: Duration,
    /// How many tasks the producer lets wait.
    pub most_waiting: u64,
    /// In one of so many loops, every item is looked at; 0 for never.
    pub thorough_every: u64,
    /// How long after its source was deleted a copy is deleted.
    pub delete_after: Duration,
    /// How much may be destroyed within a day.
    pub limit: BrakeLimit,
}

impl Default for MillSettings {
    /// Twenty workers, a loop a month, 10,000 waiting tasks, each sixth loop thorough, deletions after 30 days.
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            workers: 20,
            frequency: DAY * 30,
            most_waiting: 10_000,
            thorough_every: 6,
            delete_after: DAY * 30,
            limit: BrakeLimit::default(),
        }
    }
}

/// What the mill works with.
#[derive(Clone)]
pub struct Mill {
    /// Where everything is recorded.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// Where their policies are.
    pub source: PolicySource,
    /// The stores, each so that its changes are recorded.
    pub stores: BTreeMap<StoreName, Arc<dyn Store>>,
    /// How it works.
    pub settings: MillSettings,
    /// The name that its workers have in the history of a task.
    pub name: String,
}

impl Mill {
    /// Works until the token is cancelled. What ends in half a minute is ended then, and the rest is given back.
    pub async fn run(self, stop: CancellationToken) {
        let policies = Policies::default();
        self.read_policies(&policies).await;
        let wake = Arc::new(Notify::new());
        let every = async |wait: Duration| stop.run_until_cancelled(sleep(wait)).await.is_some();
        let read = async {
            while every(READ_POLICIES).await {
                self.read_policies(&policies).await;
            }
        };
        // What comes after this look is followed: before the first loop, so that nothing falls between the two.
        let auditor = self.auditor(&policies);
        self.follow(&auditor, &wake).await;
        let follow = async {
            while every(FOLLOW).await {
                self.follow(&auditor, &wake).await;
            }
        };
        let fold = async {
            while every(FOLD).await {
                if let Err(error) = self.catalogue.fold().await {
                    tracing::warn!(%error, "counters are not folded; this is tried again");
                }
            }
        };
        let produce = async {
            let producer = self.producer(&policies);
            loop {
                let wait = Self::produce(&producer, &wake).await;
                if !every(wait).await {
                    break;
                }
            }
        };
        let workers = self.workers(&policies, &wake);
        let process = MillProcess {
            id: Uuid::now_v7(),
            name: self.name.clone(),
            workers: u32::try_from(self.settings.workers).unwrap_or(u32::MAX),
            kinds: workers.processors.iter().map(|processor| processor.kind()).collect(),
        };
        let report = presence::report(&self.catalogue, &process, &stop);
        tokio::join!(workers.run(stop.clone()), read, follow, fold, produce, report);
    }

    async fn read_policies(&self, policies: &Policies) {
        for account in self.accounts.values() {
            match in_force(&self.catalogue, &self.source, account).await {
                Ok(read) => {
                    if let Some(error) = read.error {
                        tracing::warn!(
                            account = account.name,
                            error,
                            "its policy file is not used; the last policy stays"
                        );
                    }
                    if !read.waiting.is_empty() {
                        let changes = read.waiting.len();
                        tracing::warn!(
                            account = account.name,
                            changes,
                            "its policy file takes away copies; that waits for: queuekeeper mill policy apply"
                        );
                    }
                    policies.set(&account.name, read.policy);
                }
                Err(error) => tracing::error!(account = account.name, error, "it has no policy, and is copied nowhere"),
            }
        }
    }

    async fn follow(&self, auditor: &Auditor, wake: &Notify) {
        loop {
            match self.catalogue.follow_audit(FOLLOWER, 1000, |event| auditor.task(event).into_iter().collect()).await {
                Ok(followed) => {
                    if followed.tasks > 0 {
                        wake.notify_one();
                    }
                    if followed.events < 1000 {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the audit log is not followed; this is tried again");
                    return;
                }
            }
        }
    }

    /// One step of the producer, and how long to wait for the next.
    async fn produce(producer: &Producer, wake: &Notify) -> Duration {
        match producer.step().await {
            Ok(Step::Advanced) => {
                wake.notify_one();
                Duration::ZERO
            }
            Ok(Step::Full) => {
                wake.notify_one();
                WAITS.0
            }
            Ok(Step::Follows | Step::Idle) => WAITS.1,
            Ok(Step::Stuck(morsels)) => {
                tracing::warn!(morsels, "spaces cannot be gone through; queuekeeper mill queues says why");
                WAITS.1
            }
            Err(error) => {
                tracing::warn!(error, "the loop does not go on; this is tried again");
                WAITS.1
            }
        }
    }

    fn auditor(&self, policies: &Policies) -> Auditor {
        Auditor { accounts: self.accounts.clone(), policies: policies.clone() }
    }

    fn producer(&self, policies: &Policies) -> Producer {
        let MillSettings { frequency, most_waiting, thorough_every, .. } = self.settings;
        Producer {
            catalogue: self.catalogue.clone(),
            accounts: self.accounts.clone(),
            policies: policies.clone(),
            stores: self.stores.clone(),
            frequency,
            most_waiting,
            part: 1000,
            thorough_every,
            holder: Uuid::now_v7(),
            lease: LEAD,
        }
    }

    fn workers(&self, policies: &Policies, wake: &Arc<Notify>) -> Workers {
        let duplicator = Duplicator {
            catalogue: self.catalogue.clone(),
            accounts: self.accounts.clone(),
            stores: self.stores.clone(),
            limit: self.settings.limit,
            delete_after: self.settings.delete_after,
        };
        Workers {
            catalogue: self.catalogue.clone(),
            processors: vec![Arc::new(self.auditor(policies)), Arc::new(duplicator)],
            queues: QUEUES.to_vec(),
            accounts: self.accounts.keys().cloned().collect(),
            number: self.settings.workers,
            name: self.name.clone(),
            times: Times { shortest_wait: EMPTY.0, longest_wait: EMPTY.1, ..Times::default() },
            wake: Arc::clone(wake),
        }
    }
}
