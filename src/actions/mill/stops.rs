//! Stops of automatic repairs, and their ends.

use std::sync::Arc;

use queuekeeper_store::StoreName;

use super::kind::MillActionKind;
use super::{Ended, MillActions, Requested};
use crate::actions::actor::{Actor, Role};
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

/// A change of the stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopChange {
    /// No repair starts by itself any more. What is under way ends.
    Stop,
    /// A stop ends, whether an operator or the mill made it.
    Resume,
}

impl StopChange {
    /// The role that it requires.
    #[must_use]
    pub fn role(self) -> Role {
        self.kind().role()
    }

    fn kind(self) -> MillActionKind {
        match self {
            Self::Stop => MillActionKind::StopRepairs,
            Self::Resume => MillActionKind::ResumeRepairs,
        }
    }
}

impl MillActions {
    /// Stops automatic repairs in a store, or in all of them where the name is empty, or ends such a stop.
    ///
    /// # Errors
    /// Why it is refused: where no account has such a store, they are stopped already, or they are not; and when the
    /// catalogue cannot be written.
    pub async fn change_stop(
        &self,
        change: StopChange,
        store: &str,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        let kind = change.kind();
        self.check_role(kind, actor)?;
        let store = self.stopped(store).map_err(|refusal| self.refused(kind, actor, refusal))?;
        let name = store.as_ref().map_or("all stores".to_owned(), ToString::to_string);
        let requested = Requested {
            kind,
            targets: vec![store.as_ref().map_or("repairs:all".to_owned(), |store| format!("repairs:{store}"))],
            before_each: Vec::new(),
            change: (None, None),
            operations: Vec::new(),
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let (mill, user, reason) = (Arc::clone(&self.mill), actor.name.clone(), reason.clone());
        self.run(requested, async move {
            let done = match change {
                StopChange::Stop => mill.catalogue.stop_repairs(store.as_ref(), &user, reason.as_str()).await,
                StopChange::Resume => mill.catalogue.resume_repairs(store.as_ref()).await,
            };
            let whole = match (done, change) {
                (Ok(true), _) => Ok((DONE, None)),
                (Ok(false), StopChange::Stop) => {
                    Err(Refusal::conflict(format!("automatic repairs in {name} are already stopped; nothing was done")))
                }
                (Ok(false), StopChange::Resume) => {
                    Err(Refusal::conflict(format!("automatic repairs in {name} are not stopped; nothing was done")))
                }
                (Err(error), _) => Err(Refusal::of_catalogue(&error)),
            };
            Ended { items: Vec::new(), whole }
        })
        .await
    }

    /// The store of that name; `None` for all of them.
    fn stopped(&self, name: &str) -> Result<Option<StoreName>, Refusal> {
        if name.is_empty() {
            return Ok(None);
        }
        let mut stores = self.mill.accounts.values().flat_map(|account| account.stores.values());
        let found = stores.find(|store| store.as_str() == name).cloned();
        found.map(Some).ok_or_else(|| Refusal::Missing(format!("no account has a store {name:?}")))
    }
}
