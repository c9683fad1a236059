//! Bulk actions: a list is frozen, shown, and executed as it was shown.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;

use super::action::{see_other, state_name, target_in_words, tell};
use super::frame::{Frame, Section};
use super::render;
use crate::actions::audit::ActionId;
use crate::actions::{
    ActionKind, ActionParameters, Actor, BulkAction, Frozen, ListOf, Reason, Refusal, Role, Source, Target,
};
use crate::views::show::{Count, Moment, visible};
use crate::web::actions::{action_kind, job_state, priority, target};
use crate::web::http::identity::Identity;
use crate::web::http::params::{Sent, pairs_of};
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, number, quoted};
use crate::web::state::State;
use queuekeeper_queue::state::JobState;

/// The maximum number of items of a list that are shown.
const SAMPLE: usize = 10;

/// `POST /lists`: freezes the selected items, or all that match a filter, and redirects to the list.
pub(super) async fn freeze(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(sent): Sent<Pairs>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let sent = FreezeForm::read(sent)?;
    let (of, items) = if sent.is_all {
        state.matching(&pairs_of(&sent.jobs)?, now)?
    } else {
        let targets = sent.items.iter().map(|item| target(item)).collect::<Result<Vec<_>, _>>()?;
        (ListOf::ChosenJobs, state.seen_now(targets))
    };
    let frozen = state.actions()?.freeze(sent.bulk, of, items, &actor, now)?;
    Ok(see_other(format!("lists/{}", frozen.id)))
}

/// The form for a list.
#[derive(Debug)]
struct FreezeForm {
    bulk: BulkAction,
    is_all: bool,
    items: Vec<String>,
    /// The query string of those that match.
    jobs: String,
}

impl FreezeForm {
    fn read(sent: Pairs) -> Result<Self, Problem> {
        let (mut requested, mut items, mut jobs, mut is_all) = (String::new(), Vec::new(), String::new(), false);
        let (mut to, mut urgency) = (None, None);
        for (name, value) in sent {
            match &*name {
                "action" => requested = value,
                "item" => items.push(value),
                "jobs" => jobs = value,
                "to" => to = job_state(Some(&value))?,
                "priority" if !value.is_empty() => urgency = u8::try_from(number(&name, &value, 0, 99)?).ok(),
                "priority" => {}
                "which" => is_all = value == "all",
                _ => return Err(Problem::bad(format!("Unknown field “{}”.", quoted(&name)))),
            }
        }
        let kind = action_kind(&requested)?;
        // Fields of the form that belong to other actions are ignored.
        let urgency = urgency.filter(|_| kind == ActionKind::SetPriority);
        let to = to.filter(|_| kind == ActionKind::Resume);
        let parameters = ActionParameters { to, priority: priority(urgency)?, ..ActionParameters::default() };
        Ok(Self { bulk: BulkAction { kind, parameters }, is_all, items, jobs })
    }
}

/// The form of a frozen list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteForm {
    reason: Option<String>,
}

/// `GET /lists/{id}`: a frozen list, with a button that executes it.
pub(super) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id = id.parse().map_err(|_| gone())?;
    if state.actions()?.execution(id).is_some_and(|work| work.actor == actor.name) {
        return Ok(see_other(format!("../actions/{id}")));
    }
    let page = ListPage::new(&state, id, &actor, None, now).await?;
    Ok(render(StatusCode::OK, &page))
}

/// `POST /lists/{id}`: starts the action of a frozen list, and redirects to its progress.
pub(super) async fn execute(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
    Sent(sent): Sent<ExecuteForm>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id = id.parse().map_err(|_| gone())?;
    let reason = sent.reason.unwrap_or_default();
    let refusal = match Reason::new(&reason) {
        Err(none) => Refusal::Invalid(none.to_string()),
        Ok(given) => match state.actions()?.execute_frozen(id, actor.clone(), given, now) {
            Ok(work) => return Ok(see_other(format!("../actions/{}", work.id))),
            Err(refusal) => refusal,
        },
    };
    let problem = Problem::from(refusal);
    let status = problem.status();
    let page = ListPage::new(&state, id, &actor, Some((reason, problem.clone())), now).await.map_err(|_| problem)?;
    Ok(tell(status, &page))
}

fn gone() -> Problem {
    Problem::missing(
        "There is no such list: it belongs to another user or is older than half an hour. Select the items again.",
    )
}

/// A frozen list, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "list.html")]
struct ListPage {
    frame: Frame,
    id: String,
    title: String,
    button: String,
    is_destructive: bool,
    at: Moment,
    /// What else is done to each item; may be empty.
    with: String,
    count: String,
    sample: Vec<Item>,
    more: String,
    refused: Option<String>,
    reason: String,
    actor: String,
    role: &'static str,
}

/// An item of the list, and what would be done to it now.
#[derive(Debug)]
struct Item {
    name: String,
    href: String,
    before: String,
    after: String,
    /// Why it would be refused; empty if it would not be.
    against: String,
    warnings: Vec<String>,
}

impl ListPage {
    async fn new(
        state: &State,
        id: ActionId,
        actor: &Actor,
        refused: Option<(String, Problem)>,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let actions = state.actions()?;
        let frozen = actions.frozen(id, now).filter(|frozen| frozen.actor == actor.name).ok_or_else(gone)?;
        let Frozen { bulk, items, of, at, .. } = &*frozen;
        let frame = Frame::new(&state.view(now), "../".to_owned(), Section::Audit);
        let mut sample = Vec::new();
        for (target, version) in items.iter().take(SAMPLE) {
            let planned = match bulk.on(target, *version) {
                Ok(action) => actions.plan(&action, actor, "", now).await,
                Err(refusal) => Err(refusal),
            };
            sample.push(Item::new(target, planned, &frame.root));
        }
        let many = items.len() as u64;
        let left_out = items.len() - sample.len();
        let (reason, refused) = match refused {
            Some((reason, problem)) => (reason, Some(visible(&problem.detail))),
            None => (String::new(), None),
        };
        let count = format!("{} {}", Count(many), of.words(items.len()));
        Ok(Self {
            id: id.to_string(),
            title: format!("{} {count}?", bulk.kind.title()),
            button: format!("{} {count}", bulk.kind.title()),
            is_destructive: bulk.kind.is_destructive(),
            at: Moment::new(*at, now),
            with: match (bulk.parameters.to, bulk.parameters.priority) {
                (Some(to), _) => format!("Each is resumed in {}.", name(to)),
                (None, Some(priority)) => format!("The priority of each becomes {}.", priority.number()),
                (None, None) => String::new(),
            },
            count,
            sample,
            more: if left_out > 0 { format!("and {} more", Count(left_out as u64)) } else { String::new() },
            refused,
            reason,
            actor: visible(&actor.name),
            role: actor.role.label(),
            frame,
        })
    }
}

fn name(state: JobState) -> &'static str {
    use queuekeeper_queue::state::State as _;
    state.name()
}

impl Item {
    fn new(target: &Target, planned: Result<crate::actions::Prepared, Refusal>, root: &str) -> Self {
        let name = target_in_words(target);
        let href = target.page().map(|page| format!("{root}{page}")).unwrap_or_default();
        let label = |label: Option<&str>| label.map(state_name).unwrap_or_default();
        match planned {
            Ok(prepared) => Self {
                before: label(prepared.before),
                after: label(prepared.after),
                against: String::new(),
                warnings: prepared.warnings.iter().map(|warning| visible(warning)).collect(),
                name,
                href,
            },
            Err(refusal) => {
                let (before, after) = (String::new(), String::new());
                let against = visible(&Problem::from(refusal).detail);
                Self { before, after, against, warnings: Vec::new(), name, href }
            }
        }
    }
}
