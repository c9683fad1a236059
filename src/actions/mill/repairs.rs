//! What people decide about bit errors.

use std::sync::Arc;

use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::requested::{RemedyError, RemedyRequest, offers, request_remedy, task_of};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::kind::MillActionKind;
use super::resolution::Resolution;
use super::{Ended, MillActions, MillParts, Requested};
use crate::actions::actor::Actor;
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

/// The state of a copy about which nothing was decided.
const WRONG: &str = "wrong";

/// Of which copy a bit error is to be resolved.
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
    /// Has a bit error resolved. A worker does it, and reads the copy first; only to drop one needs none.
    ///
    /// # Errors
    /// Why it is refused: where nothing is known to be wrong with the copy, this does not resolve what is, something
    /// else that was decided has not ended, or the catalogue cannot be written.
    pub async fn resolve(
        &self,
        copy: &WrongCopy,
        resolution: Resolution,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        let kind = MillActionKind::Resolve(resolution);
        self.check_role(kind, actor)?;
        let found = self.wrong(copy).await.map_err(|refusal| self.refused(kind, actor, refusal))?;
        let (account, error) = found;
        let requested = Requested {
            kind,
            targets: vec![target(&account, &error)],
            before_each: Vec::new(),
            change: (Some(WRONG.to_owned()), Some(resolution.state().to_owned())),
            operations: vec![format!("bit error {}: {}", error.id, error.detail)],
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let (mill, user, reason) = (Arc::clone(&self.mill), actor.name.clone(), reason.clone());
        self.run(requested, async move {
            let whole = if resolution == Resolution::Drop {
                drop_error(&mill, &account, &error, &reason).await
            } else {
                start(&mill, &account, &error, (resolution, &user, &reason)).await
            };
            Ended { items: Vec::new(), whole: whole.map(|()| (DONE, None)) }
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
                let none = || Refusal::Missing(format!("there is no known problem with {}", name()));
                let item = Item::new(account.in_stores(space).ok_or_else(none)?, key.clone());
                let error = catalogue.bit_error(store, &item).await.map_err(unread)?;
                let error = error.filter(|error| error.account == account.name).ok_or_else(none)?;
                Ok((account.clone(), error))
            }
        }
    }
}

async fn start(
    mill: &MillParts,
    account: &Account,
    error: &BitError,
    (resolution, user, reason): (Resolution, &str, &Reason),
) -> Result<(), Refusal> {
    let offers = offers(account, error).map_err(Refusal::conflict)?;
    let remedy = offers.iter().map(|offer| offer.remedy).find(|remedy| Resolution::of(*remedy) == Some(resolution));
    let Some(remedy) = remedy else {
        let (name, detail) = (resolution.as_str(), &error.detail);
        return Err(Refusal::conflict(format!("{name} does not resolve this: {detail}; nothing was done")));
    };
    let request = RemedyRequest { remedy, user, reason: reason.as_str(), source: None };
    match request_remedy(&mill.catalogue, account, error, request).await {
        Ok(RepairStarted::Started) => Ok(()),
        Ok(RepairStarted::Open) => Err(Refusal::conflict("a repair of this copy has not ended; nothing was done")),
        Ok(RepairStarted::TooMany | RepairStarted::Stopped | RepairStarted::Cooling) => {
            Err(Refusal::conflict("repairs in this store are stopped; nothing was done"))
        }
        Err(why @ (RemedyError::Never(..) | RemedyError::Unreadable(_))) => Err(Refusal::conflict(why.to_string())),
        Err(RemedyError::Catalogue(error)) => Err(Refusal::of_catalogue(&error)),
    }
}

async fn drop_error(mill: &MillParts, account: &Account, error: &BitError, reason: &Reason) -> Result<(), Refusal> {
    let task = task_of(account, error);
    let task = task
        .ok_or_else(|| Refusal::conflict(format!("the space {} does not belong to the account", error.item.space)))?;
    match mill.catalogue.drop_bit_error(error, &task, reason.as_str()).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::conflict("it has ended, or a repair of this copy has not ended; nothing was done")),
        Err(error) => Err(Refusal::of_catalogue(&error)),
    }
}

/// A copy as records name it.
fn target(account: &Account, error: &BitError) -> String {
    let BitError { store, item, .. } = error;
    let space = account.of_store(&item.space).unwrap_or_else(|| item.space.clone());
    format!("copy:{}/{store}/{space}/{}", account.name, item.key)
}
