//! What the mill does: its queues and workers, and what stands still.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::tasks::{MillProcess, SeenProcess, TaskKind, TaskQueue};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::audit::FOLLOWER;
use queuekeeper_mill::bit::producer::PRODUCER as BIT;
use queuekeeper_mill::limits::ByteAmount;
use queuekeeper_mill::policy::{self, PolicyError};
use queuekeeper_mill::presence::SEEN_WITHIN;
use queuekeeper_mill::producer::PRODUCER;
use serde::Serialize;
use utoipa::ToSchema;

use super::producers::{MorselItem, ProducerItem};
use super::{DecisionItem, Mill, PauseItem, ViewError, unavailable};
use crate::actions::mill::MillActionKind;
use crate::views::show::Count;
use crate::words::{length, size};

/// Over how many minutes rates are worked out.
pub(crate) const RATE_MINUTES: u32 = 10;

/// How many decisions.
const DECISIONS: u32 = 20;

/// What the mill does.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct MillOverview {
    /// What is stalled and needs a user, each in a sentence.
    pub(crate) problems: Vec<String>,
    /// The queues, in the order in which they are worked on.
    pub(crate) queues: Vec<QueueItem>,
    /// The producers of loops.
    pub(crate) producers: Vec<ProducerItem>,
    /// The processes with workers that have reported themselves recently.
    pub(crate) workers: Vec<WorkerItem>,
    /// The kinds of tasks that wait though no process has workers for them.
    #[schema(value_type = Vec<String>)]
    pub(crate) unserved_kinds: Vec<&'static str>,
    /// The pauses by operators.
    pub(crate) pauses: Vec<PauseItem>,
    /// The limits set by operators.
    pub(crate) limits: Vec<LimitItem>,
    /// The used budgets of stores where reading costs money.
    pub(crate) budgets: Vec<BudgetItem>,
    /// What users decided about tasks that waited for them, the newest first, at most twenty.
    pub(crate) decisions: Vec<DecisionItem>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct QueueItem {
    /// Its name.
    #[schema(example = "duplication-high")]
    pub(crate) queue: &'static str,
    /// Tasks that a worker may take now or later, without those that one has.
    pub(crate) waiting: u64,
    /// Tasks that a worker has.
    pub(crate) in_progress: u64,
    /// When the task was requested that has been ready for longest; of the dead letters, the oldest one. Null where
    /// none is ready.
    pub(crate) oldest: Option<Timestamp>,
    /// How many are done per minute, averaged over the last few minutes.
    pub(crate) done_per_minute: f64,
    /// When it is empty at that rate; null if nothing is done, or nothing waits.
    pub(crate) empty_at: Option<Timestamp>,
    /// Tasks that the brake holds.
    pub(crate) held: u64,
    /// Tasks that failed in every attempt.
    pub(crate) dead: u64,
    /// Tasks that a pause keeps from workers.
    pub(crate) paused: u64,
    /// Tasks that wait for a restore from an archive, or for the budget of their store.
    pub(crate) restore: u64,
}

impl QueueItem {
    /// Whether tasks of bit errors are among those that wait.
    pub(crate) fn has_bit_errors(&self) -> bool {
        self.queue == TaskQueue::BitError.as_str() && self.waiting > 0
    }
}

/// A process with workers.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct WorkerItem {
    /// Its host and process id.
    #[schema(example = "mill1:4711")]
    pub(crate) process: String,
    /// How many workers it has.
    pub(crate) workers: u64,
    /// How many of them have a task.
    pub(crate) busy: u64,
    /// The kinds of tasks that they process.
    #[schema(value_type = Vec<String>)]
    pub(crate) kinds: Vec<&'static str>,
    /// Since when it runs.
    pub(crate) started: Timestamp,
    /// When it reported itself last.
    pub(crate) seen: Timestamp,
}

/// The limits of an account in a store.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LimitItem {
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// What is limited, in words.
    #[schema(example = "begins tasks Mon-Fri 20:00-06:00 (America/Los_Angeles); at most 20 MiB a second")]
    pub(crate) limits: String,
    /// When tasks start there again; null if they do now.
    pub(crate) closed_until: Option<Timestamp>,
}

/// What was used of the budgets of a store in the last 24 hours.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BudgetItem {
    /// The store.
    #[schema(example = "cold")]
    pub(crate) store: String,
    /// How many restores were requested.
    pub(crate) restores: u64,
    /// How many may be; null if none is configured.
    pub(crate) restores_per_day: Option<u64>,
    /// How many bytes were read.
    pub(crate) bytes_out: u64,
    /// How many may be; null if that has no limit, and what is read is not counted.
    pub(crate) bytes_out_per_day: Option<u64>,
}

/// How much of a budget was used.
pub(crate) struct BudgetPart {
    /// Its name in metrics.
    pub(crate) budget: &'static str,
    /// How much was used.
    pub(crate) used: u64,
    /// How much there is.
    pub(crate) most: u64,
    /// Both in words.
    pub(crate) words: String,
}

impl BudgetItem {
    /// Each budget that it has.
    pub(crate) fn parts(&self) -> impl Iterator<Item = BudgetPart> + use<> {
        let Self { restores, restores_per_day, bytes_out, bytes_out_per_day, .. } = *self;
        let restores = restores_per_day.map(|most| {
            let words = format!("{} of {} restores", Count(restores), Count(most));
            BudgetPart { budget: "restores", used: restores, most, words }
        });
        let bytes = bytes_out_per_day.map(|most| {
            let words = format!("{} of {} read", size(bytes_out), size(most));
            BudgetPart { budget: "bytes_out", used: bytes_out, most, words }
        });
        restores.into_iter().chain(bytes)
    }
}

impl Mill {
    /// What the mill does now.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub(crate) async fn overview(&self, now: Timestamp) -> Result<MillOverview, ViewError> {
        let catalogue = self.catalogue();
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let figures = catalogue.task_figures().await.map_err(error)?;
        let done = catalogue.done_tasks(RATE_MINUTES).await.map_err(error)?;
        let counters = catalogue.counters().await.map_err(error)?;
        let (mut queues, names) = (Vec::new(), self.account_names());
        for of in figures {
            let oldest = if of.queue == TaskQueue::DeadLetter {
                self.oldest_dead_letter().await?
            } else {
                catalogue.oldest_task(of.queue, &names).await.map_err(error)?
            };
            let rate = done.get(&of.queue).copied().unwrap_or(0) as f64 / f64::from(RATE_MINUTES);
            let left = Duration::try_from_secs_f64(of.waiting as f64 / rate * 60.0).ok().filter(|_| of.waiting > 0);
            queues.push(QueueItem {
                queue: of.queue.as_str(),
                waiting: of.waiting.saturating_sub(of.taken),
                in_progress: of.taken,
                oldest,
                done_per_minute: rate,
                empty_at: left.and_then(|left| now.checked_add(left).ok()),
                held: of.held,
                dead: of.dead,
                paused: of.paused,
                restore: of.restore,
            });
        }
        let workers = self.workers().await?;
        let served: BTreeSet<_> = workers.iter().flat_map(|process| process.kinds.iter().copied()).collect();
        // A finding waits for an operator, who sees it as a bit error.
        let waits = |kind: &TaskKind| {
            *kind != TaskKind::BitError
                && counters.get(&(Counter::WaitingTasks, kind.as_str().to_owned())).is_some_and(|count| *count > 0)
        };
        let open = counters.iter().filter(|((counter, _), _)| *counter == Counter::BitErrors);
        let bit_errors = open.map(|(_, open)| u64::try_from(*open).unwrap_or(0)).sum();
        let unserved = TaskKind::ALL.into_iter().filter(waits).map(TaskKind::as_str);
        let unserved_kinds: Vec<_> = unserved.filter(|kind| !served.contains(kind)).collect();
        let producers = vec![self.producer(PRODUCER, now).await?, self.producer(BIT, now).await?];
        let pauses = self.pauses(&counters).await?;
        let decisions = catalogue.decisions(None, DECISIONS).await.map_err(error)?;
        let mut problems = self.policy_problems().await;
        problems.extend(problems_of(&queues, &producers, &unserved_kinds, bit_errors));
        problems.extend(self.report_problems(&counters).await?);
        problems.extend(pauses.iter().filter_map(|pause| pause.problem(now)));
        if workers.is_empty() {
            problems.extend(unseen(catalogue.unfollowed(FOLLOWER).await.map_err(error)?));
        }
        let decisions = decisions.into_iter().map(DecisionItem::from).collect();
        let (limits, budgets) = (self.limits(now), self.budgets().await?);
        Ok(MillOverview { problems, queues, producers, workers, unserved_kinds, pauses, limits, budgets, decisions })
    }

    /// What was used of the budgets of stores that have some.
    async fn budgets(&self) -> Result<Vec<BudgetItem>, ViewError> {
        let limits = self.accounts().flat_map(|account| &account.limits);
        let cold: BTreeMap<_, _> = limits.map(|(store, limits)| (store, limits.cold)).collect();
        let mut budgets = Vec::new();
        for (store, cold) in cold.into_iter().filter(|(_, cold)| cold.is_limited()) {
            let used = self.catalogue().budget_use(store).await.map_err(|error| unavailable(&error))?;
            budgets.push(BudgetItem {
                store: store.to_string(),
                restores: used.restores,
                restores_per_day: cold.restore.map(|_| cold.restores_per_day),
                bytes_out: used.bytes,
                bytes_out_per_day: cold.bytes_out_per_day.map(ByteAmount::bytes),
            });
        }
        Ok(budgets)
    }

    fn limits(&self, now: Timestamp) -> Vec<LimitItem> {
        let of = |account: &Account| {
            let items = account.limits.iter().map(|(store, limits)| LimitItem {
                account: account.name.clone(),
                store: store.to_string(),
                limits: limits.to_string(),
                closed_until: limits.hours.as_ref().and_then(|hours| hours.closed_until(now)),
            });
            items.collect::<Vec<_>>()
        };
        self.accounts().flat_map(of).collect()
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, ViewError> {
        let mut oldest = None;
        for account in self.accounts() {
            let first =
                self.catalogue().dead_letters(&account.name, 0, 1).await.map_err(|error| unavailable(&error))?;
            oldest = oldest.into_iter().chain(first.first().map(|task| task.created)).min();
        }
        Ok(oldest)
    }

    pub(super) async fn workers(&self) -> Result<Vec<WorkerItem>, ViewError> {
        let catalogue = self.catalogue();
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let held = catalogue.tasks_in_progress().await.map_err(error)?;
        let processes = catalogue.mill_processes(SEEN_WITHIN).await.map_err(error)?;
        // A process has some more: the next ones of its workers, and those of which the end is being written.
        let busy = |process: &MillProcess| held.get(&process.name).copied().unwrap_or(0).min(process.workers.into());
        let item = |seen: SeenProcess| WorkerItem {
            workers: seen.process.workers.into(),
            busy: busy(&seen.process),
            kinds: seen.process.kinds.iter().map(|kind| kind.as_str()).collect(),
            started: seen.started,
            seen: seen.seen,
            process: seen.process.name,
        };
        Ok(processes.into_iter().map(item).collect())
    }

    /// What is wrong with policies, and what of them waits for a decision.
    async fn policy_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let strays = policy::stray_accounts(&self.0.source, &self.0.accounts).await;
        problems.extend(strays.map(|why| format!("{why}.")));
        for account in self.accounts() {
            let name = &account.name;
            match policy::read(self.catalogue(), &self.0.source, account).await {
                Ok(read) => {
                    if let Some(error) = read.error {
                        problems.push(format!(
                            "The policy file of {name} cannot be used, and the last policy stays in force: {error}."
                        ));
                    }
                    if !read.waiting.is_empty() {
                        let decider = MillActionKind::ApplyPolicy.role().with_article();
                        problems.push(format!(
                            "The policy file of {name} would stop maintaining copies; this waits for {decider}."
                        ));
                    }
                }
                Err(PolicyError::File(error)) => {
                    problems.push(format!("Account {name} has no policy, so none of its content is copied: {error}."));
                }
                Err(PolicyError::Catalogue(error)) => {
                    problems.push(format!("The policy of {name} cannot be read: {error}."));
                }
            }
        }
        problems
    }
}

/// That no process of the mill is known to run, as a sentence without a capital and a full stop.
pub(crate) fn no_process() -> String {
    format!("no worker process has reported in the last {}", length(SEEN_WITHIN))
}

/// That changes of content wait for any process of the mill.
fn unseen(events: u64) -> Option<String> {
    let waiting = match events {
        0 => return None,
        1 => "a change of content waits".to_owned(),
        events => format!("{events} changes of content wait"),
    };
    Some(format!("No process of the mill is running, and {waiting} for one: start queuekeeper mill run."))
}

fn problems_of(queues: &[QueueItem], producers: &[ProducerItem], unserved: &[&str], bit_errors: u64) -> Vec<String> {
    let mut problems = Vec::new();
    let sum = |of: fn(&QueueItem) -> u64| queues.iter().map(of).sum::<u64>();
    let decider = MillActionKind::ReleaseTask.role().with_article();
    match sum(|of| of.held) {
        0 => {}
        1 => problems.push(format!("The brake holds a task, which {decider} releases or drops.")),
        held => problems.push(format!("The brake holds {held} tasks, which {decider} releases or drops.")),
    }
    match sum(|of| of.dead) {
        0 => {}
        1 => problems.push("A task failed in every attempt and is a dead letter.".to_owned()),
        dead => problems.push(format!("{dead} tasks failed in every attempt and are dead letters.")),
    }
    match bit_errors {
        0 => {}
        1 => problems.push("A copy differs from its records: it has a bit error.".to_owned()),
        open => problems.push(format!("{open} copies differ from their records: they have bit errors.")),
    }
    if !unserved.is_empty() {
        problems.push(format!("Tasks are waiting for which no process has workers: {}.", unserved.join(", ")));
    }
    for producer in producers {
        if producer.is_late {
            problems.push(format!(
                "At its present rate, the loop of {} ends after the next one is due.",
                producer.producer
            ));
        }
        for part in &producer.left {
            if let Some(error) = &part.error {
                let MorselItem { account, space, .. } = part;
                problems.push(format!("{account}/{space} {} cannot be scanned: {error}.", part.stores()));
            }
        }
    }
    problems
}
