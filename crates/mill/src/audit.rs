//! What a change of content leads to.
//!
//! An event means *look at this item*, never what to do: who processes its task asks the policy which copies there are, and each
//! of them is looked at.

use std::collections::BTreeMap;

use async_trait::async_trait;
use queuekeeper_catalogue::audit::Event;
use queuekeeper_catalogue::tasks::{NewTask, Outcome, Queue, TakenTask, TaskKind, TaskSubject};
use queuekeeper_store::{SpaceName, StoreName};

use crate::account::Account;
use crate::policy::Policies;
use crate::worker::{Lease, Processed, Processor};

/// The user under whose name the mill changes content, and brings policies into force. No person is called so: a login has no
/// colon (RFC 7617), and the command line adds the name of its host.
pub const MILL: &str = "queuekeeper:mill";

/// The name under which the audit log is followed.
pub const FOLLOWER: &str = "mill";

/// Asks for the copies of what was changed.
pub struct Auditor {
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// Their policies.
    pub policies: Policies,
}

impl Auditor {
    /// The task that an event leads to: one for its item, or its space, of the account that it belongs to. What the mill did itself
    /// leads to one only where copies are made of that copy.
    #[must_use]
    pub fn task(&self, event: &Event) -> Option<NewTask> {
        let store = &event.subject.store;
        let (account, space) = self.accounts.values().find_map(|account| {
            let has_store = account.stores.values().any(|known| known == store);
            account.of_store(&event.subject.space).filter(|_| has_store).map(|space| (account, space))
        })?;
        let is_source = || self.copies(account, &space, store).iter().any(|(source, _)| source == store);
        if space.is_reserved() || (event.user == MILL && !is_source()) {
            return None;
        }
        let subject = TaskSubject {
            kind: TaskKind::Audit,
            account: account.name.clone(),
            space,
            key: event.subject.key.clone(),
            destination: Some(store.clone()),
        };
        Some(NewTask { queue: Queue::Audit, subject, source: None })
    }

    /// The copies that a change in a store concerns, each with its source: those that are made from it, and that which it is.
    fn copies(&self, account: &Account, space: &SpaceName, store: &StoreName) -> Vec<(StoreName, StoreName)> {
        let Some(policy) = self.policies.get(&account.name) else { return Vec::new() };
        let name = |id| account.stores.get(id).cloned();
        let pairs = policy.pairs(space).iter().filter_map(|pair| Some((name(&pair.source)?, name(&pair.destination)?)));
        pairs.filter(|(source, destination)| source == store || destination == store).collect()
    }
}

#[async_trait]
impl Processor for Auditor {
    fn kind(&self) -> TaskKind {
        TaskKind::Audit
    }

    async fn process(&self, task: &TakenTask, _lease: &Lease) -> Processed {
        let subject = &task.subject;
        let (Some(account), Some(store)) = (self.accounts.get(&subject.account), &subject.destination) else {
            let why = format!("account {:?} is not in the configuration, or the event names no store", subject.account);
            return Outcome::Failed(why).into();
        };
        let mut copies = self.copies(account, &subject.space, store);
        copies.retain(|(_, destination)| {
            subject.key.as_ref().is_none_or(|key| account.leaves_out(destination, key).is_none())
        });
        let follow_ups = copies.into_iter().map(|(source, destination)| NewTask {
            queue: Queue::DuplicationHigh,
            subject: TaskSubject { kind: TaskKind::Duplicate, destination: Some(destination), ..subject.clone() },
            source: Some(source),
        });
        Processed { outcome: Outcome::Done, follow_ups: follow_ups.collect() }
    }
}
