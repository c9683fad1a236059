//! Repairs of copies from other copies.

use std::sync::Arc;

use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::repairs::RepairStarted;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::asked::{AskError, AskedRepair, ask};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::kind::MillActionKind;
use super::{Ended, MillActions, Requested};
use crate::actions::actor::{Actor, Role};
use crate::actions::audit::Entry;
use crate::actions::metrics::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

/// The states of a copy, before and after.
const STATES: [&str; 2] = ["wrong", "being repaired"];

/// Which copy is to be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongCopy {
    /// The one of an open bit error, by its number.
    Error(u64),
    /// The copy of an item of an account in a store.
    Copy {
        /// The account.
        account: String,
        /// The store.
        store: StoreName,
        /// The space, as the account names it.
        space: SpaceName,
        /// The key.
        key: Key,
    },
}

impl MillActions {
    /// Requests the repair of a copy of which something is known to be wrong, from another one. A worker finds the copy to repair it
    /// from.
    ///
    /// # Errors
    /// Why it is refused: where nothing is known to be wrong with the copy, another copy does not repair what is, a repair of it has
    /// not ended, or the catalogue cannot be written.
    pub async fn repair(&self, copy: &WrongCopy, actor: &Actor, reason: &Reason) -> Result<Entry, Refusal> {
        let kind = MillActionKind::RepairCopy;
        self.check_role(kind, actor, Role::Operator)?;
        let found = self.wrong(copy).await.map_err(|refusal| self.refused(kind, actor, refusal))?;
        let (account, error) = found;
        let is_open = error.repair_started.is_some();
        let change = if is_open { [None; 2] } else { STATES.map(Some) }.map(|state| state.map(str::to_owned));
        let requested = Requested {
            kind,
            targets: vec![target(&account, &error)],
            before_each: Vec::new(),
            change: change.into(),
            operations: vec![format!("bit error {}: {}", error.id, error.detail)],
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let (mill, user, reason) = (Arc::clone(&self.mill), actor.name.clone(), reason.clone());
        self.run(requested, async move {
            let asked = AskedRepair { user: &user, reason: reason.as_str(), source: None };
            let whole = match ask(&mill.catalogue, &account, &error, asked).await {
                Ok(RepairStarted::Started) => Ok((DONE, None)),
                Ok(RepairStarted::Open) => {
                    Err(Refusal::conflict("a repair of this copy has not ended; nothing was done"))
                }
                Ok(RepairStarted::TooMany) => {
                    Err(Refusal::conflict("too many repairs were started in this store; nothing was done"))
                }
                Err(why @ (AskError::Never(_) | AskError::Unreadable(_))) => Err(Refusal::conflict(why.to_string())),
                Err(AskError::Catalogue(error)) => Err(Refusal::of_catalogue(&error)),
            };
            Ended { items: Vec::new(), whole }
        })
        .await
    }

    async fn wrong(&self, copy: &WrongCopy) -> Result<(Account, BitError), Refusal> {
        let catalogue = &self.mill.catalogue;
        let of_account = |name: &str| {
            let none = || Refusal::Missing(format!("there is no account {name:?} in the configuration"));
            self.mill.accounts.get(name).ok_or_else(none)
        };
        let unread = |error: queuekeeper_catalogue::Error| Refusal::of_catalogue(&error);
        match copy {
            WrongCopy::Error(number) => {
                let error = catalogue.bit_error_numbered(*number).await.map_err(unread)?;
                let error = error.ok_or_else(|| Refusal::Missing(format!("there is no open bit error {number}")))?;
                Ok((of_account(&error.account)?.clone(), error))
            }
            WrongCopy::Copy { account, store, space, key } => {
                let account = of_account(account)?;
                let name = || format!("{}/{store}/{space}/{key}", account.name);
                let none = || Refusal::Missing(format!("nothing is known to be wrong with {}", name()));
                let item = Item::new(account.in_stores(space).ok_or_else(none)?, key.clone());
                let error = catalogue.bit_error(store, &item).await.map_err(unread)?;
                let error = error.filter(|error| error.account == account.name).ok_or_else(none)?;
                Ok((account.clone(), error))
            }
        }
    }
}

/// A copy as records name it.
fn target(account: &Account, error: &BitError) -> String {
    let BitError { store, item, .. } = error;
    let space = account.of_store(&item.space).unwrap_or_else(|| item.space.clone());
    format!("copy:{}/{store}/{space}/{}", account.name, item.key)
}
