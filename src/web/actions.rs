//! Between the pages and the API on one side, and the actions on the other.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use jiff::Timestamp;

use super::http::identity::Identity;
use super::http::problem::{Present, Problem};
use super::http::query::refuse;
use super::state::State;
use crate::actions::audit::ActionId;
use crate::actions::{
    Action, ActionKind, ActionParameters, Actions, Actor, ListOf, MAX_ITEMS, Precondition, Reason, Refusal, Role,
    Source, Target, WrongValue,
};
use crate::alerts::Alerts;
use crate::views::actions::ActionView;
use crate::views::error::quoted;
use crate::views::jobs::JobFilter;
use crate::views::query::{self, Pairs};

impl State {
    /// What operators may request.
    ///
    /// # Errors
    /// Where this server has no connection for that.
    pub(super) fn actions(&self) -> Result<&Actions, Problem> {
        let none = || Problem::new(StatusCode::FORBIDDEN, "Actions are not enabled on this server.");
        self.shared.actions.as_ref().ok_or_else(none)
    }

    /// Alerts that act.
    ///
    /// # Errors
    /// Where this server takes none.
    pub(super) fn alerts(&self) -> Result<&Alerts, Problem> {
        self.shared
            .alerts
            .get()
            .ok_or_else(|| Problem::missing("Alerts are not enabled on this server: it has no rules."))
    }

    /// Authorizes a client for what needs a role.
    ///
    /// # Errors
    /// When its role is not enough: a problem that names what is missing and how to get it.
    pub(super) fn authorize(&self, who: &Identity, needed: Role, source: Source) -> Result<Actor, Problem> {
        self.http().authorize(who, needed, source)
    }

    /// The role that decides which actions pages offer. It is checked again when an action is requested.
    pub(super) fn rights(&self, who: &Identity) -> Role {
        let are_taken = self.shared.actions.is_some() && self.http().takes_actions();
        if are_taken { who.role } else { Role::Viewer }
    }

    /// The action of a request, and the actor who may execute it.
    ///
    /// # Errors
    /// When its caller may not, or the target does not support the action: in this order, so that only those who may
    /// act learn what is supported.
    pub(super) fn requested(
        &self,
        who: &Identity,
        request: ActionRequest,
        source: Source,
    ) -> Result<(Actor, Action), Problem> {
        let ActionRequest { kind, target, parameters, precondition } = request;
        let actor = self.authorize(who, target.role(kind).unwrap_or(Role::Operator), source)?;
        Ok((actor, Action::new(kind, target, parameters)?.only_if(precondition)))
    }

    /// The jobs that a query string finds now, all of them, with the versions of their statuses; and what they are, in
    /// words.
    ///
    /// # Errors
    /// When the query string cannot be taken, or there are too many.
    pub(super) fn matching(&self, pairs: &Pairs, now: Timestamp) -> Result<(ListOf, Versions), Problem> {
        if let Some((name, _)) = pairs.iter().find(|(name, _)| name == "limit" || name == "cursor") {
            return Err(Problem::bad(format!("“{name}” selects a page; an action applies to all matching jobs.")));
        }
        let filter: JobFilter = query::read(pairs)?;
        let found = self.source().matching(&filter, MAX_ITEMS, now)?;
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
            | Target::Store(_)
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

/// A request for an action, as it was read.
#[derive(Clone, Debug)]
pub(super) struct ActionRequest {
    pub(super) kind: ActionKind,
    pub(super) target: Target,
    pub(super) parameters: ActionParameters,
    pub(super) precondition: Option<Precondition>,
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
            Refusal::OtherRequest(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::TooMuch { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refusal::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::NoRoom(_) => StatusCode::INSUFFICIENT_STORAGE,
            Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Failed(_) => StatusCode::BAD_GATEWAY,
            Refusal::Unknown(_) => StatusCode::GATEWAY_TIMEOUT,
        };
        let mut problem = Self::new(status, sentence(&refusal.to_string()));
        match refusal {
            Refusal::Conflict { state, version, .. } => problem.present = Some(Box::new(Present { state, version })),
            Refusal::TooMuch { retry_after: Some(after), .. } => {
                // Whole seconds, and never before the time.
                let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                problem = problem.with(RETRY_AFTER, HeaderValue::from(seconds));
            }
            Refusal::TooMuch { retry_after: None, .. }
            | Refusal::TooLarge(_)
            | Refusal::Forbidden { .. }
            | Refusal::Invalid(_)
            | Refusal::Missing(_)
            | Refusal::OtherRequest(_)
            | Refusal::NoRoom(_)
            | Refusal::Unavailable(_)
            | Refusal::Failed(_)
            | Refusal::Unknown(_)
            | Refusal::InPart(_) => {}
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

/// An action by its id, as it is or as it is remembered.
pub(super) fn find_action(state: &State, id: &str) -> Result<ActionView, Problem> {
    let id: ActionId = id.parse().map_err(|_| no_action())?;
    let actions = state.actions()?;
    if let Some(work) = actions.execution(id) {
        return Ok(ActionView::of(&work).with(actions.audit().entry(id)));
    }
    actions.audit().entry(id).map(ActionView::remembered).ok_or_else(no_action)
}

pub(super) fn no_action() -> Problem {
    Problem::missing("There is no such action, or it is so old that it is only in the audit file.")
}

/// The action of that name.
pub(super) fn action_kind(name: &str) -> Result<ActionKind, Problem> {
    name.parse().map_err(|_| {
        let problem = Problem::bad(format!("There is no action “{}”.", quoted(name)));
        problem.allowing(ActionKind::ALL.map(ActionKind::label))
    })
}

/// The target of that text.
pub(super) fn target(text: &str) -> Result<Target, Problem> {
    text.parse().map_err(|error| Problem::bad(format!("No action can be requested on “{}”: {error}.", quoted(text))))
}

impl From<WrongValue> for Problem {
    fn from(wrong: WrongValue) -> Self {
        match wrong {
            WrongValue::Unknown { noun, text, allowed } => {
                Self::bad(format!("There is no {noun} “{}”.", quoted(&text))).allowing(allowed)
            }
            WrongValue::NoNumber { noun, text, .. } => refuse(noun, &text),
            WrongValue::OutOfRange { .. } => Self::bad(sentence(&wrong.to_string())),
        }
    }
}

/// The number of a plan, as a dry run answers it.
pub(super) fn plan(text: &str) -> Result<u64, Problem> {
    u64::from_str_radix(text, 16).map_err(|_| Problem::bad("“plan” must be the value that a dry run returned."))
}

/// The reason of a request.
pub(super) fn reason(text: &str) -> Result<Reason, Problem> {
    Reason::new(text).map_err(|error| Problem::from(Refusal::Invalid(error.to_string())))
}
