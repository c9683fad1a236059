//! Adoptions of whole spaces, in the foreground.

use super::kind::MillActionKind;
use super::{Ended, MillActions, Requested, Resolution};
use crate::actions::actor::Actor;
use crate::actions::audit::Entry;
use crate::actions::outcome::DONE;
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

impl MillActions {
    /// Records that a space is adopted, lets that be done, and records what it came to.
    ///
    /// # Errors
    /// Why it is refused, or was not done: the role, the audit file, or the sentence that `work` answers.
    pub async fn adopt(
        &self,
        space: &str,
        actor: &Actor,
        reason: &Reason,
        work: impl Future<Output = Result<String, String>>,
    ) -> Result<Entry, Refusal> {
        let kind = MillActionKind::Resolve(Resolution::Adopt);
        self.check_role(kind, actor)?;
        let requested = Requested {
            kind,
            targets: vec![format!("space:{space}")],
            before_each: Vec::new(),
            change: (None, None),
            operations: vec!["record content that has no record".to_owned()],
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let ended = async {
            let whole = work.await.map(|done| (DONE, Some(done))).map_err(Refusal::Unavailable);
            Ended { items: Vec::new(), whole }
        };
        self.record(requested, ended).await
    }
}
