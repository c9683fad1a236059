//! What a change of content leads to.
//!
//! An event means *look at this item*, never what to do: who processes its task asks the policy which copies there are,
//! and each of them is looked at.

pub mod tsv;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::audit::Event;
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::{SpaceName, StoreName};

use crate::account::Account;
use crate::policy::Policies;
use crate::users::{CHECK, MILL};
use crate::worker::{Lease, Processed, Processor};

/// The name under which the audit log is followed.
pub const FOLLOWER: &str = "mill";

/// How long an event waits where the policy of its account is not known: because it was not read yet, or because it
/// cannot be.
const UNKNOWN_POLICY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));

/// Asks for the copies of what was changed.
pub struct Auditor {
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// Their policies.
    pub policies: Policies,
}

impl Auditor {
    /// The task that an event leads to: one for its item, or its space, of the account that it belongs to. What the
    /// mill did itself leads to one only where copies are made of that copy.
    #[must_use]
    pub fn task(&self, event: &Event) -> Option<NewTask> {
        let store = &event.subject.store;
        let (account, space) = self.accounts.values().find_map(|account| {
            let has_store = account.stores.values().any(|known| known == store);
            account.of_store(&event.subject.space).filter(|_| has_store).map(|space| (account, space))
        })?;
        // Where the policy is not known, it may be one.
        let is_source = || {
            let copies = self.copies(account, &space, store);
            copies.is_none_or(|copies| copies.iter().any(|(source, _)| source == store))
        };
        // What a check observed is not a change: it starts no copy before an operator accepts it.
        if space.is_reserved() || event.user == CHECK || (event.user == MILL && !is_source()) {
            return None;
        }
        let subject = TaskSubject {
            kind: TaskKind::Audit,
            account: account.name.clone(),
            space,
            key: event.subject.key.clone(),
            destination: Some(store.clone()),
        };
        Some(NewTask { queue: TaskQueue::Audit, subject, source: None })
    }

    /// The copies that a change in a store concerns, each with its source: those that are made from it, and that which
    /// it is. `None` where the policy is not known.
    fn copies(&self, account: &Account, space: &SpaceName, store: &StoreName) -> Option<Vec<(StoreName, StoreName)>> {
        let policy = self.policies.get(&account.name)?;
        let name = |id| account.stores.get(id).cloned();
        let pairs = policy.pairs(space).iter().filter_map(|pair| Some((name(&pair.source)?, name(&pair.destination)?)));
        Some(pairs.filter(|(source, destination)| source == store || destination == store).collect())
    }
}

#[async_trait]
impl Processor for Auditor {
    fn kind(&self) -> TaskKind {
        TaskKind::Audit
    }

    async fn process(&self, task: &TakenTask, _lease: &Lease) -> Processed {
        let subject = &task.subject;
        let account = Account::find(&self.accounts, &subject.account);
        let (account, store) = match account.and_then(|account| Ok((account, subject.require_destination()?))) {
            Ok(found) => found,
            Err(why) => return TaskOutcome::Failed(why).into(),
        };
        let Some(mut copies) = self.copies(account, &subject.space, store) else {
            let (unread, unreadable) = UNKNOWN_POLICY;
            let wait = if self.policies.is_settled(&account.name) { unreadable } else { unread };
            return TaskOutcome::PutOff(wait).into();
        };
        copies.retain(|(_, destination)| {
            subject.key.as_ref().is_none_or(|key| account.leaves_out(destination, key).is_none())
        });
        let follow_ups = copies.into_iter().map(|(source, destination)| NewTask {
            queue: TaskQueue::DuplicationHigh,
            subject: TaskSubject { kind: TaskKind::Duplicate, destination: Some(destination), ..subject.clone() },
            source: Some(source),
        });
        Processed { outcome: TaskOutcome::Done, follow_ups: follow_ups.collect(), checked: None }
    }
}
