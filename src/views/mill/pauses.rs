//! What people paused.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::pauses::MillPause;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Mill, ViewError, unavailable};

/// After this time a pause may have been forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);

/// A pause of the mill's work.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PauseItem {
    /// The account; null if it is all of them.
    #[schema(example = "account1")]
    pub(crate) account: Option<String>,
    /// The store; null if it is all of them.
    #[schema(example = "replica")]
    pub(crate) store: Option<String>,
    /// Both in words.
    #[schema(example = "account1 in replica")]
    pub(crate) what: String,
    /// Who paused it.
    pub(crate) user: String,
    /// Why.
    pub(crate) reason: String,
    /// Since when.
    pub(crate) since: Timestamp,
    /// How many tasks it has kept from workers: those that would have been begun since.
    pub(crate) tasks: u64,
}

impl Mill {
    /// The pauses in force.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub(super) async fn pauses(&self, figures: &Figures) -> Result<Vec<PauseItem>, ViewError> {
        let pauses = self.catalogue().pauses().await.map_err(|error| unavailable(&error))?;
        Ok(pauses.into_iter().map(|pause| PauseItem::new(pause, figures)).collect())
    }

    /// The stores of all accounts, each once.
    pub(crate) fn store_names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.accounts().flat_map(|account| account.stores.values().map(ToString::to_string)).collect();
        names.sort();
        names.dedup();
        names
    }
}

impl PauseItem {
    fn new(pause: MillPause, figures: &Figures) -> Self {
        let MillPause { id, scope, user, reason, since } = pause;
        let tasks = figures.get(&(Counter::PausedTasks, id.to_string())).copied().unwrap_or(0);
        Self {
            account: scope.account().map(str::to_owned),
            store: scope.store().map(ToString::to_string),
            what: scope.to_string(),
            user,
            reason,
            since,
            tasks: u64::try_from(tasks).unwrap_or(0),
        }
    }

    /// Where it may have been forgotten, that in a sentence.
    pub(super) fn problem(&self, now: Timestamp) -> Option<String> {
        let Self { what, user, reason, .. } = self;
        let is_old = now.duration_since(self.since) > FORGOTTEN_AFTER.try_into().ok()?;
        is_old.then(|| format!("The work for {what} has been paused for more than a day, by {user}: {reason}."))
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_catalogue::pauses::PauseScope;

    use super::*;

    #[test]
    fn a_pause_is_a_problem_once_it_is_older_than_a_day() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let of = |hours| {
            let scope = PauseScope::Store("replica".parse().unwrap());
            let since = now - Duration::from_hours(hours);
            let pause = MillPause { id: 7, scope, user: "ada".to_owned(), reason: "it moves".to_owned(), since };
            PauseItem::new(pause, &Figures::from([((Counter::PausedTasks, "7".to_owned()), 3)]))
        };
        assert_eq!((of(23).problem(now), of(23).tasks), (None, 3));
        let expected = "The work for store replica has been paused for more than a day, by ada: it moves.";
        assert_eq!(of(25).problem(now).as_deref(), Some(expected));
    }
}
