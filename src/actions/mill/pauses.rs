//! Pauses of the mill's work, and their ends.

use std::sync::Arc;

use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_store::StoreName;

use super::kind::MillActionKind;
use super::{Ended, MillActions, Requested};
use crate::actions::actor::{Actor, Role};
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

/// The states of what is paused, before and after.
const STATES: [&str; 2] = ["running", "paused"];

/// What is paused, by the names that a request has; an empty one is none.
///
/// # Errors
/// For what is no name of a store, and where there is neither.
pub fn pause_scope(account: &str, store: &str) -> Result<PauseScope, Refusal> {
    let account = Some(account.to_owned()).filter(|account| !account.is_empty());
    let parse = |name: &str| {
        name.parse::<StoreName>()
            .map_err(|error| Refusal::Invalid(format!("{name:?} is not a valid name of a store: {error}")))
    };
    let store = Some(store).filter(|store| !store.is_empty()).map(parse).transpose()?;
    PauseScope::new(account, store).ok_or_else(|| Refusal::Invalid("name an account, a store, or both".to_owned()))
}

/// What is paused, as records name it: a store alone is the queue's.
fn target(scope: &PauseScope) -> String {
    let account = scope.account().map(|account| format!("account:{account}"));
    let store = scope.store().map(|store| format!("store:{store}"));
    format!("mill:{}", account.into_iter().chain(store).collect::<Vec<_>>().join("/"))
}

/// A change of the pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseChange {
    /// The work is paused. What is under way ends.
    Pause,
    /// A pause ends: what it stopped goes on, as it was.
    Resume,
}

impl PauseChange {
    /// The role that it requires.
    #[must_use]
    pub fn role(self) -> Role {
        self.kind().role()
    }

    fn kind(self) -> MillActionKind {
        match self {
            Self::Pause => MillActionKind::PauseMill,
            Self::Resume => MillActionKind::ResumeMill,
        }
    }
}

impl MillActions {
    /// Pauses the work of the mill for an account, a store, or an account in a store, or ends such a pause.
    ///
    /// # Errors
    /// Why it is refused: a pause of an account or a store that does not exist, or of what is paused already; an end
    /// where there is no pause of exactly that; and either when the catalogue cannot be written.
    pub async fn change_pause(
        &self,
        change: PauseChange,
        scope: &PauseScope,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        match change {
            PauseChange::Pause => self.pause(scope, actor, reason).await,
            PauseChange::Resume => self.resume(scope, actor, reason).await,
        }
    }

    async fn pause(&self, scope: &PauseScope, actor: &Actor, reason: &Reason) -> Result<Entry, Refusal> {
        let kind = MillActionKind::PauseMill;
        let requested = self.of_pause(kind, scope, actor, reason).await?;
        if let Some(why) = self.unknown(scope) {
            return Err(self.refused(kind, actor, Refusal::Missing(why)));
        }
        let (mill, scope, user, reason) = (Arc::clone(&self.mill), scope.clone(), actor.name.clone(), reason.clone());
        self.run(requested, async move {
            ended(match mill.catalogue.pause(&scope, &user, reason.as_str()).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(Refusal::conflict(format!("{scope} is already paused; nothing was done"))),
                Err(error) => Err(Refusal::of_catalogue(&error)),
            })
        })
        .await
    }

    async fn resume(&self, scope: &PauseScope, actor: &Actor, reason: &Reason) -> Result<Entry, Refusal> {
        let requested = self.of_pause(MillActionKind::ResumeMill, scope, actor, reason).await?;
        let (mill, scope) = (Arc::clone(&self.mill), scope.clone());
        self.run(requested, async move {
            ended(match mill.catalogue.resume(&scope).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err(Refusal::conflict(format!("{scope} is not paused; nothing was done"))),
                Err(error) => Err(Refusal::of_catalogue(&error)),
            })
        })
        .await
    }

    async fn of_pause(
        &self,
        kind: MillActionKind,
        scope: &PauseScope,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Requested, Refusal> {
        self.check_role(kind, actor)?;
        let pauses = self.mill.catalogue.pauses().await;
        let pauses = pauses.map_err(|error| self.refused(kind, actor, Refusal::of_catalogue(&error)))?;
        let is_paused = pauses.iter().any(|pause| pause.scope == *scope);
        let change = match (kind, is_paused) {
            (MillActionKind::PauseMill, false) => (Some(STATES[0]), Some(STATES[1])),
            (MillActionKind::ResumeMill, true) => (Some(STATES[1]), Some(STATES[0])),
            _ => (None, None),
        };
        Ok(Requested {
            kind,
            targets: vec![target(scope)],
            before_each: Vec::new(),
            change: (change.0.map(str::to_owned), change.1.map(str::to_owned)),
            operations: Vec::new(),
            actor: actor.clone(),
            reason: reason.clone(),
        })
    }

    /// What the configuration has not, of what is to be paused.
    fn unknown(&self, scope: &PauseScope) -> Option<String> {
        let mut accounts = self.mill.accounts.values();
        match scope {
            PauseScope::Store(store) => {
                let is_known = accounts.any(|account| account.stores.values().any(|known| known == store));
                (!is_known).then(|| format!("no account has a store {store}"))
            }
            PauseScope::Account(name) | PauseScope::AccountIn(name, _) => {
                let Some(account) = self.mill.accounts.get(name) else {
                    return Some(format!("there is no account {name:?} in the configuration"));
                };
                let store = scope.store().filter(|store| !account.stores.values().any(|known| known == *store));
                store.map(|store| format!("{name} has no store {store}"))
            }
        }
    }
}

fn ended(done: Result<(), Refusal>) -> Ended {
    Ended { items: Vec::new(), whole: done.map(|()| (DONE, None)) }
}
