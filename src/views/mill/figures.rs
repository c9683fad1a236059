//! What is exported of the mill.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::tasks::{Outcome, Queue, TaskKind};
use queuekeeper_mill::policy;
use tokio_util::sync::CancellationToken;

use super::{CopyState, Mill, SpaceFilter, ViewError, unavailable};
use crate::metrics::mill::{LoopFigures, MillFamilies, MillFigures, PolicyFigures, QueueFigures};

/// How often the catalogue is asked.
const PERIOD: Duration = Duration::from_secs(30);

impl Mill {
    /// Reports the figures of the mill, again and again until `shutdown`.
    pub(crate) async fn measure(self, families: MillFamilies, shutdown: CancellationToken) {
        loop {
            match self.figures(Timestamp::now()).await {
                Ok(figures) => families.report(figures),
                Err(error) => tracing::warn!(%error, "the figures of the mill are not known; this is tried again"),
            }
            if shutdown.run_until_cancelled(tokio::time::sleep(PERIOD)).await.is_none() {
                return;
            }
        }
    }

    async fn figures(&self, now: Timestamp) -> Result<MillFigures, ViewError> {
        let overview = self.overview(now).await?;
        let counters = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let figure = |counter, scope: String| {
            counters.get(&(counter, scope)).and_then(|figure| u64::try_from(*figure).ok()).unwrap_or(0)
        };
        let pairs = || self.accounts().flat_map(|account| account.stores.values().map(move |store| (account, store)));
        let ended = Queue::ALL.into_iter().flat_map(|queue| Outcome::NAMES.map(|outcome| (queue.as_str(), outcome)));
        let busy = overview.workers.iter().map(|process| process.busy).sum::<u64>();
        let all = overview.workers.iter().map(|process| process.workers).sum::<u64>();
        Ok(MillFigures {
            ended: ended
                .map(|(queue, outcome)| (queue, outcome, figure(Counter::EndedTasks, format!("{queue}/{outcome}"))))
                .collect(),
            workers: [busy, all.saturating_sub(busy)],
            processes: overview.workers.len() as u64,
            unserved: TaskKind::ALL
                .map(|kind| {
                    let is_unserved = overview.unserved_kinds.contains(&kind.as_str());
                    let waiting = figure(Counter::WaitingTasks, kind.as_str().to_owned());
                    (kind.as_str(), if is_unserved { waiting } else { 0 })
                })
                .to_vec(),
            held: pairs()
                .map(|(account, store)| {
                    let held = figure(Counter::HeldTasks, format!("{}/{store}", account.name));
                    (account.name.clone(), store.to_string(), held)
                })
                .collect(),
            missing: self.missing().await?,
            policies: self.policy_figures().await,
            queues: overview
                .queues
                .iter()
                .map(|of| QueueFigures {
                    queue: of.queue,
                    tasks: [of.waiting.saturating_sub(of.in_work), of.in_work, of.held, of.dead],
                    oldest: of.oldest,
                })
                .collect(),
            loops: overview
                .producers
                .iter()
                .map(|of| LoopFigures {
                    producer: of.producer,
                    started: of.started,
                    ended: of.ended,
                    ends: of.ends,
                    next: of.next_due,
                    left: [of.morsels_left, of.left.iter().filter(|part| part.error.is_some()).count() as u64],
                    items: [of.items, of.looked],
                })
                .collect(),
        })
    }

    /// By account and store, how many items sources have more; 0 where a store is to have none.
    async fn missing(&self) -> Result<Vec<(String, String, u64)>, ViewError> {
        let mut missing: Vec<_> = self
            .accounts()
            .flat_map(|account| account.stores.values().map(move |store| (account.name.clone(), store.to_string(), 0)))
            .collect();
        let mut filter = SpaceFilter::default();
        loop {
            let list = self.spaces(&filter).await?;
            for space in &list.items {
                for copy in space.copies.iter().filter(|copy| copy.state == CopyState::Incomplete) {
                    let row = missing
                        .iter_mut()
                        .find(|(account, store, _)| *account == space.account && *store == copy.store);
                    if let Some((_, _, count)) = row {
                        *count += copy.source_items.saturating_sub(copy.items);
                    }
                }
            }
            let Some(next) = list.next else { return Ok(missing) };
            filter.after = next;
        }
    }

    async fn policy_figures(&self) -> Vec<PolicyFigures> {
        let mut figures = Vec::new();
        for account in self.accounts() {
            let read = policy::read(self.catalogue(), &self.0.source, account).await;
            figures.push(PolicyFigures {
                account: account.name.clone(),
                is_usable: read.as_ref().is_ok_and(|read| read.error.is_none()),
                waiting: read.map_or(0, |read| read.waiting.len() as u64),
            });
        }
        figures
    }
}
