//! What checks need, whether they are of a page or of one item.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::{Key, SpaceName, Store};

use super::policy::ProofPolicy;
use crate::account::Account;
use crate::stores::AccountStores;
use crate::worker::Lease;

/// What checks need.
#[derive(Clone)]
pub struct Checker {
    /// What is recorded of content, and where the outcome is written.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores.
    pub stores: AccountStores,
    /// How long a check of what may be a change that is not recorded yet waits for the next round.
    pub round: Duration,
    /// The present instant.
    pub clock: fn() -> Timestamp,
}

/// Where a task checks.
pub(super) struct CheckedSpace {
    pub(super) store: Arc<dyn Store>,
    /// The space as the store names it.
    pub(super) space: SpaceName,
    /// Which proof the policy of the store asks for.
    pub(super) policy: ProofPolicy,
}

impl Checker {
    /// Where a task checks; how it ends, where it may not begin now.
    pub(super) fn place(
        &self,
        subject: &TaskSubject,
        lease: &Lease,
    ) -> Result<Result<CheckedSpace, TaskOutcome>, String> {
        let account = Account::find(&self.accounts, &subject.account)?;
        let name = subject.require_destination()?;
        if let Some(wait) = account.put_off(None, name, (self.clock)()) {
            return Ok(Err(wait));
        }
        let space = account.require_space(&subject.space)?;
        let store = self.stores.get(&account.name, name, lease)?;
        Ok(Ok(CheckedSpace { store, space, policy: account.proof_policy(name) }))
    }
}

/// The check of one item of the space of a task.
pub(super) fn item_task(of: &TaskSubject, key: Key) -> NewTask {
    let subject = TaskSubject { kind: TaskKind::Bit, key: Some(key), ..of.clone() };
    NewTask { queue: TaskQueue::BitIntegrity, subject, source: None }
}

/// Errors of the catalogue, as sentences.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn said(error: queuekeeper_catalogue::Error) -> String {
    error.to_string()
}
