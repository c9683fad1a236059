//! Checks on request, by workers.

use std::sync::Arc;

use queuekeeper_catalogue::bit::NewRequestedCheck;
use queuekeeper_mill::bit::coverage::Amount;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_store::SpaceName;

use super::kind::MillActionKind;
use super::{Ended, MillActions, MillParts, Requested};
use crate::actions::actor::Actor;
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;
use crate::words::{counted, size};

impl MillActions {
    /// Asks for a check of an item, a space, or of all spaces of a store, with how much each of these has. Workers do
    /// it.
    ///
    /// Each space is requested by itself. What is under way already goes on, which the outcome says.
    ///
    /// # Errors
    /// Why it is refused, or was broken off: the role, the audit file, or the catalogue.
    pub async fn request_check(
        &self,
        scope: &Scope,
        parts: &[(SpaceName, Amount)],
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        let kind = MillActionKind::CheckContent;
        self.check_role(kind, actor)?;
        if parts.is_empty() {
            let why = format!("{} has no space in {}", scope.account, scope.store);
            return Err(self.refused(kind, actor, Refusal::Missing(why)));
        }
        let all: Amount = parts.iter().map(|(_, amount)| *amount).sum();
        let requested = Requested {
            kind,
            targets: vec![target(scope)],
            before_each: Vec::new(),
            change: (None, None),
            operations: vec![format!("read {} with {}", counted(all.items, "item", "items"), size(all.bytes))],
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let (mill, scope, parts) = (Arc::clone(&self.mill), scope.clone(), parts.to_vec());
        let by = (actor.name.clone(), reason.clone());
        self.run(requested, async move {
            let whole = ask_each(&mill, &scope, &parts, by).await;
            Ended { items: Vec::new(), whole: whole.map(|detail| (DONE, detail)) }
        })
        .await
    }
}

async fn ask_each(
    mill: &MillParts,
    scope: &Scope,
    parts: &[(SpaceName, Amount)],
    (user, reason): (String, Reason),
) -> Result<Option<String>, Refusal> {
    let mut before = 0;
    for (at, (space, Amount { items, bytes })) in parts.iter().enumerate() {
        let Scope { account, store, key, .. } = scope;
        let (user, reason, key) = (&*user, reason.as_str(), key.as_ref());
        let new = NewRequestedCheck { account, store, space, key, user, reason, items: *items, bytes: *bytes };
        match mill.catalogue.request_check(&new).await {
            Ok(is_new) => before += usize::from(!is_new),
            Err(error) if at == 0 => return Err(Refusal::of_catalogue(&error)),
            Err(error) => {
                return Err(Refusal::InPart(format!("{at} of {} spaces were requested: the {error}", parts.len())));
            }
        }
    }
    Ok(match (before, parts.len()) {
        (0, _) => None,
        (_, 1) => Some("it was already in progress and continues".to_owned()),
        (before, all) => Some(format!("{before} of {all} were already in progress and continue")),
    })
}

/// What is checked, as records name it.
fn target(scope: &Scope) -> String {
    let Scope { account, store, space, key } = scope;
    let space = space.as_ref().map(|space| format!("/{space}")).unwrap_or_default();
    let key = key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
    format!("check:{account}/{store}{space}{key}")
}
