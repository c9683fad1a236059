//! One action: its preview and confirmation.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::about::About;
use super::frame::{Frame, Section};
use super::inputs::{Control, InputOf, ParameterInput};
use super::render;
use crate::actions::audit::ActionId;
use crate::actions::{
    AcceptedParameter, Action, ActionKind, ActionParameters, Actor, Parameter, Precondition, Prepared, Reason, Refusal,
    Source, Target, action_parameters,
};
use crate::mirror::state_label;
use crate::views::actions::plan_text;
use crate::views::show::{Count, Shown, counted, shown, visible};
use crate::web::actions::{ActionRequest, action_kind, plan, target};
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::{HasMessage, Problem};
use crate::web::http::query::{Pairs, address, given, refuse};
use crate::web::state::State;
use queuekeeper_queue::state::JobState;

mod names;

pub(super) use names::{state_name, target_in_words};

/// The maximum size, in bytes of HTML, of the data that would be lost, of all znodes and of one.
const LOST_LIMITS: (usize, usize) = (40 << 10, 6 << 10);

/// The maximum length of the key of an action, in characters.
const LONGEST_KEY: usize = 100;

macro_rules! form {
    (
        { $(#[$meta:meta])* struct $name:ident { $($first:tt)* } { $($last:tt)* } }
        $( $(#[$doc:meta])* $parameter:ident $field:ident: $type:ty as $written:ty { $($spec:tt)* } )+
    ) => {
        $(#[$meta])*
        pub(super) struct $name {
            $($first)*
            $($field: Option<String>,)+
            $($last)*
        }

        impl $name {
            /// The parameter as it was sent; `None` where it was left empty.
            fn text(&self, parameter: Parameter) -> Option<&str> {
                match parameter { $(Parameter::$parameter => given(self.$field.as_ref()),)+ }
            }
        }
    };
}

action_parameters! { form! {
    /// An action on a page: the fields of the link to its confirmation, and of the form there.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ActionForm {
        action: String,
        on: Option<String>,
        /// A collection's mnemonic, in the place of `on`.
        collection: Option<String>,
        /// A store's name, likewise.
        store: Option<String>,
    } {
        /// The precondition: the state of the target that was shown.
        state: Option<String>,
        version: Option<String>,
        czxid: Option<String>,
        plan: Option<String>,
        reason: Option<String>,
        key: Option<String>,
    }
} }

impl ActionForm {
    /// The requested action; the default of a priority is the present one.
    fn read(&self, state: &State) -> Result<ActionRequest, Problem> {
        let on = match (given(self.on.as_ref()), given(self.collection.as_ref()), given(self.store.as_ref())) {
            (Some(on), None, None) => on.to_owned(),
            (None, Some(collection), None) => format!("collection:{}", collection.trim()),
            (None, None, Some(store)) => format!("store:{}", store.trim()),
            _ => {
                let why = "An action has one target, named by “on”, “collection” or “store”.";
                return Err(Problem::bad(why));
            }
        };
        let (kind, target) = (action_kind(&self.action)?, target(&on)?);
        let seen = given(self.state.as_ref()).map(Into::into);
        let (version, czxid) = (number("version", self.version.as_ref())?, number("czxid", self.czxid.as_ref())?);
        let plan = given(self.plan.as_ref()).map(plan).transpose()?;
        let is_seen = seen.is_some() || version.is_some() || czxid.is_some() || plan.is_some();
        let mut parameters = ActionParameters::default();
        for parameter in Parameter::ALL {
            parameters.set(parameter, self.text(parameter).unwrap_or_default())?;
        }
        parameters.priority = parameters.priority.or_else(|| names::present_priority(state, kind, &target));
        let precondition = is_seen.then_some(Precondition { state: seen, version, czxid, plan, hold: None });
        Ok(ActionRequest { kind, target, parameters, precondition })
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    fn key(&self) -> Result<Option<&str>, Problem> {
        let key = given(self.key.as_ref());
        if key.is_some_and(|key| key.len() > LONGEST_KEY) {
            return Err(Problem::bad("The key of the action is too long. Reload the page."));
        }
        Ok(key)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: Option<&String>) -> Result<Option<T>, Problem> {
    given(value).map(|value| value.parse().map_err(|_| refuse(name, value))).transpose()
}

/// `GET /action`: the preview of an action, with a button that executes it.
pub(super) async fn ask(
    FromState(state): FromState<State>,
    who: Identity,
    Params(form): Params<ActionForm>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let (actor, action) = state.requested(&who, form.read(&state)?, Source::Web)?;
    let planned = state.actions()?.plan(&action, &actor, form.reason(), now).await;
    let status = match &planned {
        // The page shows why, which is the requested preview.
        Ok(_) | Err(Refusal::Conflict { .. }) => StatusCode::OK,
        Err(refusal) => Problem::from(refusal.clone()).status(),
    };
    Ok(with_status(status, &ActionPage::new(&state, &form, &action, &actor, planned, None, now)))
}

/// `POST /action`: executes an action, and redirects to its outcome.
pub(super) async fn give(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(form): Sent<ActionForm>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let (actor, mut action) = state.requested(&who, form.read(&state)?, Source::Web)?;
    let actions = state.actions()?;
    let refusal = match Reason::new(form.reason()) {
        Err(none) => Refusal::Invalid(none.to_string()),
        Ok(reason) => match actions.execute(action.clone(), actor.clone(), reason, form.key()?, now).await {
            Ok(taken) => return Ok(see_other(format!("actions/{}", taken.execution.id))),
            Err(refusal) => refusal,
        },
    };
    // As it is now, whatever was seen before: to be looked at, and requested again if that is still right.
    action.precondition = None;
    let planned = actions.plan(&action, &actor, form.reason(), now).await;
    let status = Problem::from(refusal.clone()).status();
    Ok(with_status(status, &ActionPage::new(&state, &form, &action, &actor, planned, Some(refusal), now)))
}

/// Redirects a browser after a form, to an address relative to that of the form: a proxy may serve us below any prefix.
pub(super) fn see_other(location: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// A page with an error status, which shows the reason itself.
pub(super) fn with_status(status: StatusCode, page: &impl Template) -> Response {
    let mut response = render(status, page);
    if response.status() == status {
        response.extensions_mut().insert(HasMessage);
    }
    response
}

/// The preview of an action, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "action.html")]
struct ActionPage {
    frame: Frame,
    title: String,
    target: String,
    target_href: String,
    about: About,
    on: String,
    action: ActionKind,
    /// What it does to its target, in the imperative.
    button: String,
    effect: String,
    is_destructive: bool,
    refused: Option<RefusalNotice>,
    plan: Option<Plan>,
    inputs: Vec<ParameterInput>,
    /// Whether the plan depends on what is entered.
    has_preview: bool,
    /// The same action by force, where only that helps; empty otherwise.
    by_force: String,
    actor: String,
    role: &'static str,
    reason: String,
    key: String,
}

/// What stands against it.
#[derive(Debug)]
struct RefusalNotice {
    title: &'static str,
    text: String,
    /// The state that the item is in now; empty where that is not known, or is in the text.
    state: String,
}

/// What it would do.
#[derive(Debug)]
struct Plan {
    before: String,
    after: String,
    precondition: Precondition,
    /// Of that, what was planned; empty where its target has a version.
    shown: String,
    warnings: Vec<String>,
    lost: Vec<Lost>,
    operations: Vec<String>,
}

/// A znode whose data is gone then.
#[derive(Debug)]
struct Lost {
    path: String,
    data: Shown,
}

impl ActionPage {
    fn new(
        state: &State,
        form: &ActionForm,
        action: &Action,
        actor: &Actor,
        planned: Result<Prepared, Refusal>,
        refused: Option<Refusal>,
        now: Timestamp,
    ) -> Self {
        let (kind, target) = (action.kind(), &action.target());
        let frame = Frame::new(&state.view(now), "./".to_owned(), section(target));
        let (spec, parameters) = (action.requested.spec(), action.requested.parameters());
        let (plan, against) = match planned {
            Ok(prepared) => (Some(prepared), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let is_conflict = matches!(against, Some(Refusal::Conflict { .. }));
        let by_force = if is_conflict && !parameters.force && spec.has(Parameter::Force) {
            let on = target.to_string();
            let again = [("action", kind.label()), ("on", &on), ("force", "true"), ("reason", form.reason())];
            let again: Pairs = again.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            address(&format!("{}action", frame.root), again.iter().filter(|(_, value)| !value.is_empty()))
        } else {
            String::new()
        };
        let was_requested = refused.is_some();
        let refused = refused.or(against).map(|refusal| RefusalNotice::new(refusal, was_requested));
        // Which operations there are depends on what is chosen first.
        let is_missing = |parameter: Parameter| parameter.spec().input.is_required() && form.text(parameter).is_none();
        let is_open = spec.offers().any(|takes| is_missing(takes.parameter));
        let input =
            |takes: &AcceptedParameter| ParameterInput::new(takes, InputOf::Page, parameters.text(takes.parameter));
        let question = kind.question(&target_in_words(target));
        let jobs = plan.as_ref().map_or(0, Prepared::jobs) as u64;
        let batches = plan.as_ref().map_or(0, Prepared::batches) as u64;
        let with = match (jobs, batches) {
            (2.., _) => format!(" with {} jobs", Count(jobs)),
            (_, 1..) => format!(": {}", counted(batches, "batch", "batches")),
            (_, 0) => String::new(),
        };
        Self {
            about: About::new(state, target, &frame.root),
            button: format!("{}{with}", question.trim_end_matches('?')),
            title: question,
            target: target_in_words(target),
            target_href: target.page().map(|page| format!("{}{page}", frame.root)).unwrap_or_default(),
            on: target.to_string(),
            effect: spec.effect(),
            is_destructive: kind.is_destructive() || plan.as_ref().is_some_and(|prepared| !prepared.removed.is_empty()),
            refused,
            plan: plan.map(|prepared| Plan::new(prepared, is_open)),
            inputs: spec.offers().map(input).collect(),
            has_preview: spec.offers().any(|takes| takes.parameter != Parameter::Force),
            by_force,
            actor: if actor.name.is_empty() { "anonymous".to_owned() } else { visible(&actor.name) },
            role: actor.role.label(),
            reason: form.reason().to_owned(),
            key: ActionId::new(now).to_string(),
            action: kind,
            frame,
        }
    }
}

/// The part of the page that leads to a target.
fn section(target: &Target) -> Section {
    match target {
        Target::Job(_) => Section::Jobs,
        Target::Batch(_) | Target::Batches => Section::Batches,
        Target::Request(..) => Section::Access,
        Target::Queue(_) | Target::Collection(_) | Target::Store(_) | Target::Lock(_) => Section::Locks,
        Target::Fault(..) => Section::Faults,
    }
}

impl RefusalNotice {
    fn new(refusal: Refusal, was_requested: bool) -> Self {
        let state = match &refusal {
            Refusal::Conflict { state: Some(state), .. } if *state != state_label::<JobState>(None) => {
                state_name(state)
            }
            _ => String::new(),
        };
        let title = match (&refusal, was_requested) {
            (Refusal::Unknown(_), _) => "It is unknown whether all of this was executed",
            (Refusal::InPart(_), _) => "This was executed in part",
            (_, true) => "Nothing was done",
            (_, false) => "This cannot be done now",
        };
        let text = visible(&Problem::from(refusal).detail);
        let state = if text.contains(&format!(" is {state}")) { String::new() } else { state };
        Self { title, text, state }
    }
}

impl Plan {
    fn new(prepared: Prepared, is_open: bool) -> Self {
        let (mut left, most) = LOST_LIMITS;
        let lost = prepared.removed.iter().map(|(path, data)| {
            let data = shown(data, data.len() as u64, left.min(most));
            left = left.saturating_sub(data.text.len());
            Lost { path: visible(path), data }
        });
        let name = |label: Option<String>| label.as_deref().map(state_name).unwrap_or_default();
        let (before, after) = prepared.values();
        let operations = if is_open { Vec::new() } else { prepared.operations() };
        Self {
            before: name(before),
            after: name(after),
            lost: lost.collect(),
            operations: operations.iter().map(|line| visible(line)).collect(),
            shown: prepared.precondition.plan.map(plan_text).unwrap_or_default(),
            precondition: prepared.precondition,
            warnings: prepared.warnings.iter().map(|warning| visible(warning)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_the_state_that_its_text_does_not_name() {
        let shown = |why: &str, state| {
            let refusal = Refusal::Conflict { why: why.to_owned(), state, version: None };
            RefusalNotice::new(refusal, false).state
        };
        assert_eq!(
            shown("jid0000000001 is locked by session 0x1f; nothing was done", Some("downloading")),
            "Downloading"
        );
        assert_eq!(shown("a job has left Pending; nothing was done", Some("pending")), "Pending");
        assert_eq!(shown("jid0000000001 is Failed: it cannot be released; nothing was done", Some("failed")), "");
        assert_eq!(shown("jid0000000001 is in an unknown state now; nothing was done", Some("other")), "");
        assert_eq!(shown("the queue ingest is not paused; nothing was done", None), "");
    }
}
