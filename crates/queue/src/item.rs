//! Changes of the state of a batch or an access request, which both are made in the same way.

use std::future::Future;

use jiff::Timestamp;

use super::error::Error;
use super::handle::Queue;
use super::lock::{ChangeAttempt, Lock, PendingChange};
use super::path::Path;
use super::state::{Authority, State};
use super::transaction::Transaction;

/// A change of a batch's or an access request's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange<S> {
    /// `None` for the next state on the success path.
    pub(crate) to: Option<S>,
    pub(crate) message: String,
    pub(crate) by: Authority,
}

impl<S: State> ItemChange<S> {
    /// To the next state on the success path.
    #[must_use]
    pub fn success() -> Self {
        Self { to: None, message: String::new(), by: Authority::Daemon }
    }

    /// To a named state.
    #[must_use]
    pub fn to(state: S) -> Self {
        Self { to: Some(state), message: String::new(), by: Authority::Daemon }
    }

    /// Says so in the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Allows what only an operator may request.
    #[must_use]
    pub fn by_operator(mut self) -> Self {
        self.by = Authority::Operator;
        self
    }

    /// Allows what the withdrawal of the deposit makes.
    #[must_use]
    pub fn withdrawn(mut self) -> Self {
        self.by = Authority::Withdrawal;
        self
    }

    pub(crate) fn target(&self, item: &Path, from: S) -> Result<S, Error> {
        let to = self.to.or(from.success());
        let operator_may = to.is_some_and(|to| from.is_admin(to));
        match to {
            Some(to) if from.allows(to, self.by) => Ok(to),
            to => {
                let to = to.map_or_else(|| "the next state".to_owned(), |to| to.to_string());
                Err(Error::Transition { item: item.clone(), from: from.to_string(), to, operator_may })
            }
        }
    }
}

/// A change of a batch's or an access request's state that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChanged<S> {
    /// The state that it left.
    pub from: S,
    /// The state that it entered.
    pub to: S,
    /// The version of its status.
    pub version: i32,
}

/// A change of an item that is held and what is written beside its status, for comparison: the same change with other
/// data is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemUpdate<S, W> {
    pub(super) change: ItemChange<S>,
    pub(super) written: Option<W>,
}

/// The last change of an item that is held, as long as its outcome is not known.
pub(super) type PendingUpdate<S, W> = PendingChange<ItemUpdate<S, W>, ItemChanged<S>>;

/// A batch or an access request that we hold.
pub(super) trait LockedItem: Sync {
    /// Its states.
    type State: State;

    /// What may be written beside its status.
    type Written: Clone + PartialEq + Send + Sync;

    /// The last change, as long as its outcome is not known.
    fn pending(&self) -> &PendingUpdate<Self::State, Self::Written>;

    /// Its lock.
    fn lock(&self) -> &Lock;

    /// The path of its status.
    fn status(&self) -> Path;

    /// Plans a change under its lock, without the end of the lock.
    fn plan(
        &self,
        queue: &Queue,
        update: &ItemUpdate<Self::State, Self::Written>,
        now: Timestamp,
    ) -> impl Future<Output = Result<(Transaction, ItemChanged<Self::State>), Error>> + Send;

    /// Plans the same without a look, from what is known of the item while we hold it; `None` where more would have to
    /// be known. What another changed since makes the transaction be refused.
    fn plan_unseen(
        &self,
        _update: &ItemUpdate<Self::State, Self::Written>,
        _now: Timestamp,
    ) -> Option<(Transaction, ItemChanged<Self::State>)> {
        None
    }

    /// Takes over the state that it has now, and its status: the version, and the data where a change of ours wrote it.
    fn entered(&mut self, changed: ItemChanged<Self::State>, status: Option<Vec<u8>>);
}

impl Queue {
    /// Changes the state of an item that we hold, and keeps the lock.
    pub(super) async fn step_item<I: LockedItem>(
        &self,
        item: &mut I,
        change: &ItemChange<I::State>,
        now: Timestamp,
    ) -> Result<ItemChanged<I::State>, Error> {
        let update = ItemUpdate { change: change.clone(), written: None };
        let (changed, written) = self.change_item(&*item, update, now, false).await?;
        let status = written.and_then(|written| written.set_of(&item.status()).map(|(data, _)| data.to_vec()));
        item.pending().clear();
        item.entered(changed, status);
        Ok(changed)
    }

    /// Changes the state of an item that we hold, writes what belongs to it, and releases the lock.
    pub(super) async fn finish_item<I: LockedItem>(
        &self,
        item: &I,
        change: ItemChange<I::State>,
        written: Option<I::Written>,
        now: Timestamp,
    ) -> Result<ItemChanged<I::State>, Error> {
        self.change_item(item, ItemUpdate { change, written }, now, true).await.map(|(changed, _)| changed)
    }

    /// Changes an item that we hold: in one round trip where all is known of it, else in two. The answer has what was
    /// committed, unless an earlier call had done it.
    async fn change_item<I: LockedItem>(
        &self,
        item: &I,
        update: ItemUpdate<I::State, I::Written>,
        now: Timestamp,
        releases: bool,
    ) -> Result<(ItemChanged<I::State>, Option<Transaction>), Error> {
        if let Some((changed, _)) = self.outcome_of(item.pending(), &update, releases).await? {
            return Ok((changed, None));
        }
        let under = (item.pending(), item.lock());
        // An attempt at another change is not forgotten for one that is refused.
        let unseen = if item.pending().is_unconfirmed() { None } else { item.plan_unseen(&update, now) };
        if let Some((transaction, done)) = unseen {
            let attempt = ChangeAttempt { change: update.clone(), releases, done };
            match self.commit_attempt(under, attempt, &item.status(), &transaction).await {
                Err(Error::Conflict(_) | Error::Missing(_)) => {}
                committed => return committed.map(|_| (done, Some(transaction))),
            }
        }
        let (transaction, done) = item.plan(self, &update, now).await?;
        let attempt = ChangeAttempt { change: update, releases, done };
        let committed = self.commit_attempt(under, attempt, &item.status(), &transaction).await;
        committed.map(|_| (done, Some(transaction)))
    }
}
