//! What waits for an operator: held tasks and dead letters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::tasks::{DecisionRecord, KnownTask, TaskError};
use queuekeeper_store::{Key, StoreName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Mill, ViewError, unavailable};
use crate::mirror::failures::pattern;
use crate::views::parameter::Within;

/// How many held tasks a page has.
type Limit = Within<1, 1000, 200>;

/// How many dead letters are grouped at once.
const GROUPED: u32 = 1000;

/// How many tasks of a group are shown.
const EXAMPLES: usize = 5;

/// Which held tasks; without an account, those of the first account and destination that have any.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct HeldFilter {
    /// Those of this account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those that would change something in this store.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) destination: String,
    /// Those with a number above this: `next` of the previous page.
    #[param(value_type = Option<u64>)]
    pub(crate) after: u64,
    /// How many to show at most, 1 to 1,000.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// Which dead letters.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct DeadFilter {
    /// Those of this account; without it, of the first account that has any.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those with a number above this: `next` of the previous page.
    #[param(value_type = Option<u64>)]
    pub(crate) after: u64,
}

/// What the brake holds.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct HeldList {
    /// How much is held, by account and destination.
    pub(crate) groups: Vec<HeldGroup>,
    /// The account of the tasks that are listed; empty if nothing is held.
    pub(crate) account: String,
    /// Their destination.
    pub(crate) destination: String,
    /// The tasks, by number; they stay the same until an admin decides, because held tasks have no effect.
    pub(crate) tasks: Vec<TaskItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// How much is held of an account at a destination.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct HeldGroup {
    /// The account.
    pub(crate) account: String,
    /// The store that would be changed.
    pub(crate) destination: String,
    /// How many tasks.
    pub(crate) held: u64,
}

/// Dead letters, in groups of one error.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DeadList {
    /// The accounts that have any, with how many.
    pub(crate) accounts: BTreeMap<String, u64>,
    /// The account of those that are listed; empty if there are none.
    pub(crate) account: String,
    /// Those of a page of a thousand, the largest group first.
    pub(crate) groups: Vec<DeadGroup>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// Dead letters with the same last error, ignoring keys, numbers and ids in it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DeadGroup {
    /// The error, with `KEY` for the key and `#` for numbers and ids.
    pub(crate) error: String,
    /// What the tasks would do.
    #[schema(example = "DUP")]
    pub(crate) kind: &'static str,
    /// The numbers of the tasks.
    pub(crate) tasks: Vec<u64>,
    /// The first of them, at most five.
    pub(crate) examples: Vec<TaskItem>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct TaskItem {
    /// Its number.
    pub(crate) number: u64,
    /// The queue that it belongs to; of a dead letter, the one that it was in.
    pub(crate) queue: &'static str,
    /// What it does.
    #[schema(example = "DUP")]
    pub(crate) kind: &'static str,
    /// The account.
    pub(crate) account: String,
    /// The space.
    pub(crate) space: String,
    /// The key, with escapes for invisible characters; null if it is about the space.
    pub(crate) key: Option<String>,
    /// The key, percent-encoded.
    pub(crate) key_encoded: Option<String>,
    /// The store to copy from.
    pub(crate) source: Option<String>,
    /// The store that it changes.
    pub(crate) destination: Option<String>,
    /// When it was requested first.
    pub(crate) created: Timestamp,
    /// Its failures, or why it is held, the newest last.
    pub(crate) errors: Vec<ErrorItem>,
}

/// A failed attempt at a task.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ErrorItem {
    /// When.
    pub(crate) time: Timestamp,
    /// Which worker.
    pub(crate) worker: String,
    /// Why.
    pub(crate) error: String,
}

/// What a user decided about a task.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DecisionItem {
    /// When.
    pub(crate) time: Timestamp,
    /// Who.
    pub(crate) user: String,
    /// `retry` or `drop`.
    pub(crate) decision: String,
    /// Why.
    pub(crate) reason: String,
    /// The number of the task.
    pub(crate) task: u64,
    /// What it did.
    pub(crate) kind: &'static str,
    /// The account.
    pub(crate) account: String,
    /// The space.
    pub(crate) space: String,
    /// The key; null if it was about the space.
    pub(crate) key: Option<String>,
    /// The store that it changes.
    pub(crate) destination: Option<String>,
}

impl Mill {
    /// What the brake holds.
    ///
    /// # Errors
    /// For an account or a destination that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn held(&self, filter: &HeldFilter) -> Result<HeldList, ViewError> {
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let held = figures.into_iter().filter(|((counter, _), held)| *counter == Counter::HeldTasks && *held > 0);
        let groups: Vec<_> = held
            .filter_map(|((_, scope), held)| {
                let (account, destination) = scope.split_once('/')?;
                let (account, destination) = (account.to_owned(), destination.to_owned());
                Some(HeldGroup { account, destination, held: held.try_into().ok()? })
            })
            .collect();
        if !filter.account.is_empty() && groups.iter().all(|group| group.account != filter.account) {
            self.account(&filter.account)?;
        }
        let is_known =
            |name: &str| self.accounts().any(|account| account.stores.values().any(|of| of.as_str() == name));
        let destination = &filter.destination;
        if !destination.is_empty()
            && groups.iter().all(|group| group.destination != *destination)
            && !is_known(destination)
        {
            return Err(ViewError::not_found(format!("No account has a store “{}”.", super::quoted(destination))));
        }
        let matches = |group: &&HeldGroup| {
            [(&filter.account, &group.account), (&filter.destination, &group.destination)]
                .iter()
                .all(|(wanted, is)| wanted.is_empty() || wanted == is)
        };
        let group = groups.iter().find(matches);
        let (account, destination) = match group {
            Some(group) => (group.account.clone(), group.destination.clone()),
            None => (filter.account.clone(), filter.destination.clone()),
        };
        let mut tasks = Vec::new();
        let limit = filter.limit.get();
        if group.is_some() {
            let store: StoreName =
                destination.parse().map_err(|error| ViewError::value_because("destination", &destination, error))?;
            let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
            let found = self.catalogue().held_tasks(&account, &store, filter.after, most).await;
            tasks = found.map_err(|error| unavailable(&error))?.into_iter().map(TaskItem::from).collect();
        }
        let has_more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| has_more).map(|task| task.number);
        Ok(HeldList { groups, account, destination, tasks, next })
    }

    /// Dead letters, grouped.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn dead_letters(&self, filter: &DeadFilter) -> Result<DeadList, ViewError> {
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let dead = figures.into_iter().filter(|((counter, _), dead)| *counter == Counter::DeadTasks && *dead > 0);
        let accounts: BTreeMap<_, _> =
            dead.filter_map(|((_, account), dead)| Some((account, u64::try_from(dead).ok()?))).collect();
        let account = if filter.account.is_empty() {
            accounts.keys().next().cloned().unwrap_or_default()
        } else {
            // One that is no longer in the configuration may have some.
            if !accounts.contains_key(&filter.account) {
                self.account(&filter.account)?;
            }
            filter.account.clone()
        };
        let found = self.catalogue().dead_letters(&account, filter.after, GROUPED).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let next = (found.len() >= GROUPED as usize).then(|| found.last().map(|task| task.id)).flatten();
        let mut groups = BTreeMap::<(&'static str, String), (Vec<u64>, Vec<TaskItem>)>::new();
        for task in found {
            let (numbers, examples) = groups.entry((task.subject.kind.as_str(), cause(&task))).or_default();
            numbers.push(task.id);
            if examples.len() < EXAMPLES {
                examples.push(TaskItem::from(task));
            }
        }
        let group = |((kind, error), (tasks, examples))| DeadGroup { error, kind, tasks, examples };
        let mut groups: Vec<_> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.tasks.len()));
        Ok(DeadList { accounts, account, groups, next })
    }
}

/// The last error of a task, without what is its own.
fn cause(task: &KnownTask) -> String {
    let error = task.errors.last().map_or("", |error| error.error.as_str());
    let key = task.subject.key.as_ref().map(Key::to_string).unwrap_or_default();
    // A short one is a part of other words.
    let error = if key.len() > 2 { error.replace(&key, "KEY") } else { error.to_owned() };
    pattern(&error)
}

impl From<KnownTask> for TaskItem {
    fn from(task: KnownTask) -> Self {
        let KnownTask { id, home, subject, source, errors, created } = task;
        let error = |TaskError { time, worker, error }| ErrorItem { time, worker, error };
        Self {
            number: id,
            queue: home.as_str(),
            kind: subject.kind.as_str(),
            account: subject.account,
            space: subject.space.to_string(),
            key: subject.key.as_ref().map(ToString::to_string),
            key_encoded: subject.key.as_ref().map(Key::encoded),
            source: source.map(|store| store.to_string()),
            destination: subject.destination.map(|store| store.to_string()),
            created,
            errors: errors.into_iter().map(error).collect(),
        }
    }
}

impl From<DecisionRecord> for DecisionItem {
    fn from(record: DecisionRecord) -> Self {
        let DecisionRecord { time, user, decision, reason, task, subject, .. } = record;
        Self {
            time,
            user,
            decision,
            reason,
            task,
            kind: subject.kind.as_str(),
            account: subject.account,
            space: subject.space.to_string(),
            key: subject.key.map(|key| key.to_string()),
            destination: subject.destination.map(|store| store.to_string()),
        }
    }
}
