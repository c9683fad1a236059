//! Between the pages and the API on one side, and the actions on the other.

use axum::http::StatusCode;
use jiff::Timestamp;

use super::State;
use super::http::identity::Identity;
use super::http::problem::{Present, Problem};
use super::http::query::{self, Pairs};
use crate::actions::{ActionKind, Actions, Actor, ListOf, MOST_ITEMS, Refusal, Role, Source, Target};
use crate::alerts::Alerts;

impl State {
    /// What operators may request.
    ///
    /// # Errors
    /// Where this server has no connection for that.
    pub(super) fn actions(&self) -> Result<&Actions, Problem> {
        let none = || Problem::new(StatusCode::FORBIDDEN, "This server takes no actions.");
        self.shared.actions.as_ref().ok_or_else(none)
    }

    /// Alerts that act.
    ///
    /// # Errors
    /// Where this server takes none.
    pub(super) fn alerts(&self) -> Result<&Alerts, Problem> {
        self.shared.alerts.get().ok_or_else(|| Problem::missing("This server takes no alerts, and has no rules."))
    }

    /// The role by which pages offer what may be requested. Whether he may is decided again when he requests it.
    pub(super) fn rights(&self, who: &Identity) -> Role {
        let are_taken = self.shared.actions.is_some() && self.takes_actions();
        if are_taken { who.role } else { Role::Viewer }
    }

    /// Lets somebody request an action on a target.
    ///
    /// # Errors
    /// When he may not.
    pub(super) fn operator(
        &self,
        who: &Identity,
        action: ActionKind,
        target: &Target,
        source: Source,
    ) -> Result<Actor, Problem> {
        // What a target does not know is told only to whoever may request something.
        self.authorize(who, target.role(action).unwrap_or(Role::Operator), source)
    }

    /// The jobs that a query string finds now, all of them, with the versions of their statuses; and what they are, in
    /// words.
    ///
    /// # Errors
    /// When the query string cannot be taken, or there are too many.
    pub(super) fn matching(&self, pairs: &Pairs, now: Timestamp) -> Result<(ListOf, Versions), Problem> {
        if let Some((name, _)) = pairs.iter().find(|(name, _)| name == "limit" || name == "cursor") {
            return Err(Problem::bad(format!("“{name}” is of a page; an action takes all jobs that match.")));
        }
        let query = query::parse(pairs)?;
        // For what it says of collections and groups that are not there.
        let first = self.jobs(&query, now)?;
        if first.total > MOST_ITEMS {
            let total = first.total;
            return Err(Problem::bad(format!("{total} jobs match, and one order takes {MOST_ITEMS} at most.")));
        }
        let found = self.shared.store.matching(&query, now).ok_or_else(Problem::no_image)?;
        let items = found.into_iter().map(|(id, version)| (Target::Job(id), Some(version))).collect();
        Ok((ListOf::Jobs, items))
    }

    /// Targets with the versions that the image has of them.
    pub(super) fn seen_now(&self, targets: Vec<Target>) -> Versions {
        let store = &self.shared.store;
        let version = |target: &Target| match target {
            Target::Job(id) => store.job(*id).map(|job| job.status_version),
            Target::Batch(id) => store.batch(*id).map(|detail| detail.batch.status_version),
            Target::Request(..)
            | Target::Queue(_)
            | Target::Collection(_)
            | Target::Lock(_)
            | Target::Fault(..)
            | Target::Batches => None,
        };
        targets
            .into_iter()
            .map(|target| (version(&target), target))
            .map(|(version, target)| (target, version))
            .collect()
    }
}

/// Targets, and the version of each one's status.
pub(crate) type Versions = Vec<(Target, Option<i32>)>;

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Forbidden { .. } => StatusCode::FORBIDDEN,
            Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
            Refusal::Missing(_) => StatusCode::NOT_FOUND,
            Refusal::Conflict { .. } | Refusal::InPart(_) => StatusCode::CONFLICT,
            Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Failed(_) => StatusCode::BAD_GATEWAY,
            Refusal::Unknown(_) => StatusCode::GATEWAY_TIMEOUT,
        };
        let mut problem = Self::new(status, sentence(&refusal.to_string()));
        if let Refusal::Conflict { state, version, .. } = refusal {
            problem.present = Some(Box::new(Present { state, version }));
        }
        problem
    }
}

/// A sentence, as all that is said to people; a name at its beginning, such as a job's id, stays as it is.
pub(super) fn sentence(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let is_word = word.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.get(..1) {
        Some(first) if is_word => format!("{}{}.", first.to_ascii_uppercase(), &text[1..]),
        Some(_) | None => format!("{text}."),
    }
}
