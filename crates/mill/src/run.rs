//! The mill at work: the log is followed, loops are gone through, and workers process what comes of both.

mod once;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{MillProcess, TaskQueue};
use queuekeeper_store::{Store, StoreName};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::account::Account;
use crate::asides;
use crate::audit::{Auditor, FOLLOWER};
use crate::bit;
use crate::bit::item::ROUND;
use crate::bit::mail::ReportMail;
use crate::bit::producer::BitSettings;
use crate::metrics::MillMetrics;
use crate::policy::{Policies, PolicyError, PolicySource, in_force};
use crate::presence;
use crate::producer::{MOST_WAITING, PRODUCER, Step};
use crate::stats;

/// The queues that are worked on, the first one first.
const QUEUES: [TaskQueue; 6] = [
    TaskQueue::Audit,
    TaskQueue::DuplicationHigh,
    TaskQueue::BitError,
    TaskQueue::DuplicationLow,
    TaskQueue::BitIntegrity,
    TaskQueue::BitReport,
];

/// How long to wait where nothing is notified, at first and at most: for tasks, and for events.
const EMPTY: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(8));

/// How often policies are read again, and how often while one is not known because the catalogue was away.
const READ_POLICIES: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(5));

/// How often deltas of counters are folded, while there are some.
const FOLD: Duration = Duration::from_secs(1);

/// How long the log is left alone after a look: what comes in the meantime is read together.
const GATHER: Duration = Duration::from_millis(100);

/// How long a producer waits for room in its queue, for anything else, and for the end of checks.
const WAITS: (Duration, Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(1), Duration::from_secs(1));

/// How long it takes at most until a process that leads a loop sees that the next one is due, while the last one is
/// done.
pub const SEES_DUE: Duration = WAITS.1;

/// How often it is seen whether spaces are to be counted, and whether anything aside is to be removed.
const STATS: Duration = Duration::from_mins(10);

/// How long mails are kept that were delivered or given up.
const KEEP_MAILS: Duration = Duration::from_hours(24 * 30);

/// How often it is seen whether processes that died have left changes of content. What is to be done to such an item
/// waits until then.
const RESOLVE: Duration = Duration::from_mins(1);

/// For how long one process leads the producer from each step on.
const LEAD: Duration = Duration::from_mins(5);

/// How the mill works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MillSettings {
    /// How many tasks are processed at once.
    pub workers: usize,
    /// The queues that they take tasks from, the first one first.
    pub queues: Vec<TaskQueue>,
    /// Whether this process goes through all that policies want copied.
    pub is_duplicating: bool,
    /// Whether it asks for counts of spaces.
    pub is_counting: bool,
    /// How it goes through all content to have it checked; `None` where it does not.
    pub bit: Option<BitSettings>,
    /// How long a check of what may be a change that is not recorded yet waits for the next round.
    pub round: Duration,
    /// How long after the beginning of a loop the next one begins.
    pub frequency: Duration,
    /// How many tasks the producer lets wait.
    pub most_waiting: u64,
    /// In one of so many loops, every item is looked at; 0 for never.
    pub thorough_every: u64,
    /// How long after its source was deleted a copy is deleted, and how long what was deleted or written over is kept
    /// aside.
    pub delete_after: Duration,
    /// How much may be destroyed within a day.
    pub limit: BrakeLimit,
}

impl MillSettings {
    /// The default number of tasks that are processed at once.
    pub const WORKERS: u16 = 20;
}

impl Default for MillSettings {
    /// Twenty workers of all queues, no loop of checks, one of copies a month, 10,000 waiting tasks, each sixth loop
    /// thorough, deletions after 30 days.
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            workers: Self::WORKERS.into(),
            queues: QUEUES.to_vec(),
            is_duplicating: true,
            is_counting: true,
            bit: None,
            round: ROUND,
            frequency: DAY * 30,
            most_waiting: MOST_WAITING,
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
    /// What it counts.
    pub metrics: MillMetrics,
    /// How mails on reports are made.
    pub mail: ReportMail,
}

impl Mill {
    /// Works until the token is cancelled. What ends in half a minute is ended then, and the rest is given back.
    pub async fn run(self, stop: CancellationToken) {
        let (policies, stores) = (Policies::default(), self.account_stores());
        self.read_policies(&policies).await;
        self.release_paused().await;
        let wake = Arc::new(Notify::new());
        let every = async |wait: Duration| stop.run_until_cancelled(sleep(wait)).await.is_some();
        let read = async {
            loop {
                let is_settled = self.accounts.keys().all(|account| policies.is_settled(account));
                if !every(if is_settled { READ_POLICIES.0 } else { READ_POLICIES.1 }).await {
                    break;
                }
                self.read_policies(&policies).await;
                self.release_paused().await;
            }
        };
        // What comes after this look is followed: before the first loop, so that nothing falls between the two.
        let auditor = self.auditor(&policies);
        self.follow(&auditor, &wake).await;
        let mut notifications = self.catalogue.notifications();
        let follow = async {
            let mut wait = EMPTY.0;
            while every(GATHER).await {
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = notifications.next() => wait = EMPTY.0,
                    () = sleep(wait) => wait = (wait * 2).min(EMPTY.1),
                }
                wake.notify_one();
                self.follow(&auditor, &wake).await;
            }
        };
        let fold = self.fold(&stop);
        let listen = stop.run_until_cancelled(self.catalogue.listen());
        let produce = async {
            if !self.settings.is_duplicating {
                return;
            }
            let producer = self.producer(&policies, &stores);
            loop {
                let wait = Self::stepped(producer.step().await, &wake);
                if !every(wait).await {
                    break;
                }
            }
            self.resign(PRODUCER, producer.holder).await;
        };
        let check = async {
            let Some(settings) = &self.settings.bit else { return };
            let producer = self.bit_producer(settings, &stores);
            loop {
                // A loop that is due sooner does not wait for the next look.
                let wait = Self::stepped(producer.step().await, &wake).min(settings.max_age / 8);
                if !every(wait).await {
                    break;
                }
            }
            self.resign(bit::producer::PRODUCER, producer.holder).await;
        };
        let count = async {
            let (holder, stats) = (Uuid::now_v7(), self.stats(&stores));
            loop {
                if self.settings.is_counting
                    && let Err(error) = stats.produce(holder, LEAD).await
                {
                    tracing::warn!(error, "cannot count spaces; retrying");
                }
                if let Err(error) = self.asides().remove(holder, LEAD).await {
                    tracing::warn!(error, "cannot remove content that was kept aside; retrying");
                }
                if let Err(error) = self.catalogue.remove_messages_of_no_batch(KEEP_MAILS).await {
                    tracing::warn!(%error, "cannot remove old mails; retrying");
                }
                if !every(STATS).await {
                    break;
                }
            }
            self.resign(stats::PRODUCER, holder).await;
            self.resign(asides::PRODUCER, holder).await;
        };
        let workers = self.workers(&policies, &stores, &wake);
        let process = MillProcess {
            id: Uuid::now_v7(),
            name: self.name.clone(),
            workers: u32::try_from(self.settings.workers).unwrap_or(u32::MAX),
            kinds: workers.processors.iter().map(|processor| processor.kind()).collect(),
        };
        let report = presence::report(&self.catalogue, &process, &stop);
        let resolve = async {
            while every(RESOLVE).await {
                self.resolve_changes().await;
            }
        };
        tokio::join!(workers.run(stop.clone()), read, follow, fold, listen, produce, check, count, report, resolve);
    }

    /// Lets another process lead at once.
    async fn resign(&self, producer: &str, holder: Uuid) {
        if let Err(error) = self.catalogue.resign(producer, holder).await {
            tracing::warn!(%error, producer, "another process leads it when the lease ends");
        }
    }

    /// Folds the deltas of counters, as long as there are some.
    async fn fold(&self, stop: &CancellationToken) {
        let mut notifications = self.catalogue.notifications();
        loop {
            let wait = match self.catalogue.fold().await {
                Ok(0) => EMPTY.0,
                Ok(_) => FOLD,
                Err(error) => {
                    tracing::warn!(%error, "cannot merge counters; retrying");
                    FOLD * 10
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = notifications.next(), if wait > FOLD => {
                    if stop.run_until_cancelled(sleep(FOLD)).await.is_none() {
                        return;
                    }
                }
                () = sleep(wait) => {}
            }
        }
    }

    async fn read_policies(&self, policies: &Policies) {
        for account in self.accounts.values() {
            match in_force(&self.catalogue, &self.source, account).await {
                Ok(read) => {
                    if let Some(error) = read.error {
                        tracing::warn!(
                            account = account.name,
                            error,
                            "cannot use its policy file; the last policy stays in force"
                        );
                    }
                    if !read.waiting.is_empty() {
                        let changes = read.waiting.len();
                        tracing::warn!(
                            account = account.name,
                            changes,
                            "its policy file would stop maintaining copies; this waits for: queuekeeper mill policy apply"
                        );
                    }
                    policies.set(&account.name, read.policy);
                }
                Err(PolicyError::File(error)) => {
                    policies.set_unreadable(&account.name);
                    tracing::error!(
                        account = account.name,
                        error,
                        "it has no policy: nothing is copied until it has one"
                    );
                }
                Err(PolicyError::Catalogue(error)) => {
                    tracing::warn!(account = account.name, error, "cannot read its policy; retrying");
                }
            }
        }
    }

    /// Lets tasks go on that a process left paused which died while it ended their pause.
    async fn release_paused(&self) {
        loop {
            match self.catalogue.release_paused().await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => return tracing::warn!(%error, "cannot resume tasks whose pause has ended; retrying"),
            }
        }
    }

    /// Resolves the changes that processes left which died.
    async fn resolve_changes(&self) {
        for (store, of) in &self.stores {
            match of.resolve_changes().await {
                Ok(0) => {}
                Ok(left) => {
                    tracing::warn!(%store, left, "cannot resolve interrupted changes; retrying");
                }
                Err(why) => tracing::warn!(%store, why, "cannot read the interrupted changes; retrying"),
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
                    tracing::warn!(%error, "cannot follow the audit log; retrying");
                    return;
                }
            }
        }
    }

    /// How long to wait for the next step of a producer.
    fn stepped(step: Result<Step, String>, wake: &Notify) -> Duration {
        match step {
            Ok(Step::Advanced) => {
                wake.notify_one();
                Duration::ZERO
            }
            Ok(Step::Full) => {
                wake.notify_one();
                WAITS.0
            }
            Ok(Step::Checking) => WAITS.2,
            Ok(Step::Follows | Step::Idle | Step::Paused(_) | Step::Stopped) => WAITS.1,
            Ok(Step::Stuck(morsels)) => {
                tracing::warn!(morsels, "cannot scan some spaces; queuekeeper mill queues shows why");
                WAITS.1
            }
            Err(error) => {
                tracing::warn!(error, "cannot continue the loop; retrying");
                WAITS.1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_queues_are_worked_on_but_that_of_dead_letters() {
        let mut worked_on = QUEUES.to_vec();
        worked_on.sort_unstable();
        let others: Vec<_> = TaskQueue::ALL.into_iter().filter(|queue| *queue != TaskQueue::DeadLetter).collect();
        assert_eq!(worked_on, others);
    }
}
