//! Changes of the policies of accounts.

use std::sync::Arc;

use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::{self, NewPolicy, PolicySource, SaveError, write_policy};

use super::kind::MillActionKind;
use super::{Ended, MillActions, MillParts, Requested};
use crate::actions::actor::Actor;
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

impl MillActions {
    /// Saves a policy and brings it into force, where its version is still the one that the change was made to.
    ///
    /// # Errors
    /// Why it is refused: for an account that does not exist, a policy that cannot be carried out, a change meanwhile,
    /// and when a file or the catalogue cannot be written.
    pub async fn save_policy(
        &self,
        account: &str,
        version: &str,
        new: NewPolicy,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        let kind = MillActionKind::SavePolicy;
        let (account, mut requested) = self.policy_change(kind, account, actor, reason)?;
        // One line, as each operation is one.
        let text = write_policy(&new.policy).split_whitespace().collect::<Vec<_>>().join(" ");
        let listed = if new.is_listed { "in the list of accounts" } else { "not in the list of accounts" };
        requested.operations = vec![format!("policy of {}, {listed}: {text}", account.name)];
        let (mill, user, reason, version) =
            (Arc::clone(&self.mill), actor.name.clone(), reason.clone(), version.to_owned());
        self.run(requested, async move {
            let saved = async {
                let source = open(&mill, &user).await?;
                let by = (user.as_str(), reason.as_str());
                policy::save(&mill.catalogue, &source, &account, &version, &new, by).await.map_err(Refusal::from)
            };
            ended(saved.await)
        })
        .await
    }

    /// Brings what the policy file of an account says into force, with all that it ends.
    ///
    /// # Errors
    /// Why it is refused: for an account that does not exist, a file that cannot be used, and when the catalogue cannot
    /// be written.
    pub async fn apply_policy(&self, account: &str, actor: &Actor, reason: &Reason) -> Result<Entry, Refusal> {
        let (account, requested) = self.policy_change(MillActionKind::ApplyPolicy, account, actor, reason)?;
        let (mill, user, reason) = (Arc::clone(&self.mill), actor.name.clone(), reason.clone());
        self.run(requested, async move {
            let applied = async {
                let source = open(&mill, &user).await?;
                let applied = policy::apply(&mill.catalogue, &source, &account, &user, reason.as_str()).await;
                applied.map(drop).map_err(Refusal::Failed)
            };
            ended(applied.await)
        })
        .await
    }

    fn policy_change(
        &self,
        kind: MillActionKind,
        account: &str,
        actor: &Actor,
        reason: &Reason,
    ) -> Result<(Account, Requested), Refusal> {
        self.check_role(kind, actor)?;
        let missing = || Refusal::Missing(format!("there is no account {account:?} in the configuration"));
        let found = self.mill.accounts.get(account).cloned();
        let account = found.ok_or_else(|| self.refused(kind, actor, missing()))?;
        let requested = Requested {
            kind,
            targets: vec![format!("policy:{}", account.name)],
            before_each: Vec::new(),
            change: (None, None),
            operations: Vec::new(),
            actor: actor.clone(),
            reason: reason.clone(),
        };
        Ok((account, requested))
    }
}

async fn open(mill: &MillParts, user: &str) -> Result<PolicySource, Refusal> {
    let opened = (mill.open)(user.to_owned()).await;
    opened.map_err(|error| Refusal::Unavailable(format!("the policies cannot be written: {error}; nothing was done")))
}

fn ended(done: Result<(), Refusal>) -> Ended {
    Ended { items: Vec::new(), whole: done.map(|()| (DONE, None)) }
}

impl From<SaveError> for Refusal {
    fn from(error: SaveError) -> Self {
        let why = error.to_string();
        match error {
            SaveError::Invalid(_) => Self::Invalid(why),
            SaveError::Conflict(_) => Self::conflict(why),
            SaveError::Failed(_) => Self::Unavailable(why),
        }
    }
}
