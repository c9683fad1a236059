//! What is exported of the mill.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::bit::NOTHING;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::repair_stops::RepairStop;
use queuekeeper_catalogue::tasks::{TaskKind, TaskOutcome, TaskQueue};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::verdict::CheckResult;
use queuekeeper_mill::policy;
use queuekeeper_mill::users::MILL;
use queuekeeper_store::StoreName;
use tokio_util::sync::CancellationToken;

use super::{BudgetItem, CopyState, Mill, SpaceFilter, ViewError, WorkerItem, unavailable};
use crate::metrics::mill::{LoopFigures, MillFamilies, MillFigures, PolicyFigures, QueueFigures};

/// What is reported, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measured {
    /// All figures, twice a minute.
    All,
    /// Those of the workers, once a minute: a mill without work asks nothing of the catalogue more often.
    Workers,
}

impl Measured {
    fn period(self) -> Duration {
        match self {
            Self::All => Duration::from_secs(30),
            Self::Workers => Duration::from_mins(1),
        }
    }
}

impl Mill {
    /// Reports figures of the mill, again and again until `shutdown`.
    pub(crate) async fn measure(self, families: MillFamilies, what: Measured, shutdown: CancellationToken) {
        loop {
            let figures = match what {
                Measured::All => self.figures(Timestamp::now()).await,
                Measured::Workers => self.workers().await.map(|workers| of_workers(&workers)),
            };
            match figures {
                Ok(figures) => families.report(figures),
                Err(error) => tracing::warn!(%error, "cannot read the figures of the mill; retrying"),
            }
            if shutdown.run_until_cancelled(tokio::time::sleep(what.period())).await.is_none() {
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
        let of_pairs = |counter| {
            let pairs = self.accounts().flat_map(|account| account.stores.values().map(move |store| (account, store)));
            let of = |(account, store): (&Account, &StoreName)| {
                let scope = format!("{}/{store}", account.name);
                (account.name.clone(), store.to_string(), figure(counter, scope))
            };
            pairs.map(of).collect()
        };
        let proofs = self.proofs(now).await?;
        let pairs = self.accounts().flat_map(|account| account.stores.iter().map(move |store| (account, store)));
        let proofs = pairs.map(|(account, store)| proofs.of_store(account, store)).collect();
        let ended =
            TaskQueue::ALL.into_iter().flat_map(|queue| TaskOutcome::NAMES.map(|outcome| (queue.as_str(), outcome)));
        Ok(MillFigures {
            ended: ended
                .map(|(queue, outcome)| (queue, outcome, figure(Counter::EndedTasks, format!("{queue}/{outcome}"))))
                .collect(),
            unserved: TaskKind::ALL
                .map(|kind| {
                    let is_unserved = overview.unserved_kinds.contains(&kind.as_str());
                    let waiting = figure(Counter::WaitingTasks, kind.as_str().to_owned());
                    (kind.as_str(), if is_unserved { waiting } else { 0 })
                })
                .to_vec(),
            bit_results: CheckResult::NAMES
                .into_iter()
                .filter(|result| *result != NOTHING)
                .map(|result| (result, figure(Counter::BitResults, result.to_owned())))
                .collect(),
            bit_errors: of_pairs(Counter::BitErrors),
            incomplete_reports: self.incomplete_reports().await?,
            proofs,
            held: of_pairs(Counter::HeldTasks),
            budgets: budgets(&overview.budgets),
            repair_stops: self.repair_stops().await?,
            pauses: overview
                .pauses
                .iter()
                .map(|of| (of.account.clone().unwrap_or_default(), of.store.clone().unwrap_or_default(), of.since))
                .collect(),
            missing: self.missing().await?,
            policies: self.policy_figures().await,
            queues: overview
                .queues
                .iter()
                .map(|of| QueueFigures {
                    queue: of.queue,
                    tasks: [of.waiting, of.in_progress, of.held, of.dead, of.paused, of.restore],
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
                    items: [of.items, of.scanned],
                })
                .collect(),
            ..of_workers(&overview.workers)
        })
    }

    /// By account and store, of how many spaces the newest report does not cover every item; 0 where there is none.
    async fn incomplete_reports(&self) -> Result<Vec<(String, String, u64)>, ViewError> {
        let unsuccessful = self.unsuccessful_reports().await?;
        let pairs = self.accounts().flat_map(|account| account.stores.values().map(move |store| (account, store)));
        let of = |(account, store): (&Account, &StoreName)| {
            let found = unsuccessful.iter().find(|of| of.account == account.name && of.store == *store);
            (account.name.clone(), store.to_string(), found.map_or(0, |of| of.incomplete))
        };
        Ok(pairs.map(of).collect())
    }

    /// By account and store, how many items sources have more; 0 where a store is to have none. Of a store at which
    /// keys are left out, that is not known.
    async fn missing(&self) -> Result<Vec<(String, String, u64)>, ViewError> {
        let mut missing: Vec<_> = self
            .accounts()
            .flat_map(|account| account.stores.values().map(move |store| (account, store)))
            .filter(|(account, store)| !account.leaves_out_any(store))
            .map(|(account, store)| (account.name.clone(), store.to_string(), 0))
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

    /// By store, what stopped automatic repairs there, and when.
    async fn repair_stops(&self) -> Result<Vec<(String, &'static str, Timestamp)>, ViewError> {
        let stops = self.catalogue().repair_stops().await.map_err(|error| unavailable(&error))?;
        let figure = |stop: RepairStop| {
            let cause = if stop.user == MILL { "limit" } else { "operator" };
            (stop.store.map(|store| store.to_string()).unwrap_or_default(), cause, stop.since)
        };
        Ok(stops.into_iter().map(figure).collect())
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

/// By store and budget, which part of it was used.
fn budgets(budgets: &[BudgetItem]) -> Vec<(String, &'static str, f64)> {
    let parts = budgets.iter().flat_map(|of| of.parts().map(move |part| (of.store.clone(), part)));
    parts.map(|(store, part)| (store, part.budget, part.used as f64 / part.most.max(1) as f64)).collect()
}

/// The figures of the workers of all processes, and no others.
fn of_workers(workers: &[WorkerItem]) -> MillFigures {
    let busy = workers.iter().map(|process| process.busy).sum::<u64>();
    let all = workers.iter().map(|process| process.workers).sum::<u64>();
    let workers_by_state = [busy, all.saturating_sub(busy)];
    MillFigures { workers: workers_by_state, processes: workers.len() as u64, ..MillFigures::default() }
}
