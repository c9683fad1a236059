//! The policies of accounts: the list, and the form that changes one.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::action::{see_other, with_status};
use super::super::frame::Frame;
use super::super::render;
use super::policy::{Change, PolicyWords, changed};
use super::{Fields, frame};
use crate::actions::Source;
use crate::actions::mill::MillActionKind;
use crate::views::mill::{HistoryItem, NewPolicyView, PlanItem, PlanView, PolicyDetail, PolicyText, WaitingView};
use crate::views::show::{Count, Moment, Size, visible};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::params::Sent;
use crate::web::http::problem::Problem;
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_policies.html")]
struct PoliciesPage {
    frame: Frame,
    rows: Vec<PolicyRow>,
    /// Whether accounts are not in a file.
    has_own_accounts: bool,
}

#[derive(Debug)]
struct PolicyRow {
    account: String,
    href: String,
    is_listed: bool,
    in_force: Option<PolicyWords>,
    waiting: usize,
    error: String,
}

#[derive(Debug, Template)]
#[template(path = "mill_policy.html")]
struct PolicyPage {
    frame: Frame,
    account: String,
    is_listed: bool,
    in_force: Option<PolicyWords>,
    /// What forms change: what the file says, or else what is in force.
    edited: PolicyWords,
    waiting: Vec<String>,
    error: String,
    /// The keys of the file that are not read.
    other_keys: String,
    /// Every pair of stores, as a form names it and in words.
    pairs: Vec<(String, String)>,
    /// The spaces that can be chosen.
    spaces: Vec<String>,
    history: Vec<HistoryRow>,
    may_change: bool,
}

#[derive(Debug)]
struct HistoryRow {
    number: u64,
    at: Moment,
    user: String,
    reason: String,
    words: Option<PolicyWords>,
    is_newest: bool,
}

#[derive(Debug, Template)]
#[template(path = "mill_plan.html")]
struct PlanPage {
    frame: Frame,
    account: String,
    /// Why it was not saved; empty before it is requested.
    refused: String,
    is_listed: bool,
    words: PolicyWords,
    problems: Vec<String>,
    begins: Vec<PlanRow>,
    ends: Vec<PlanRow>,
    items: String,
    bytes: Size,
    ended_items: String,
    version: String,
    /// The policy, for the form that saves it.
    policy: String,
    reason: String,
    /// What of the changes of the file that wait for an admin is saved with this, and what is lost by it; in sentences.
    pending: String,
    overwritten: String,
    /// Why the file that this replaces cannot be read; empty where it can.
    broken: String,
    may_save: bool,
}

#[derive(Debug)]
struct PlanRow {
    space: String,
    stores: String,
    items: String,
    size: Size,
    has: String,
}

/// `GET /mill/policies`: the policies of all accounts.
pub(in crate::web::pages) async fn list(FromState(state): FromState<State>) -> Result<Response, Problem> {
    let list = state.mill()?.policies().await?;
    let frame = frame(&state, "../", Timestamp::now());
    let row = |detail: &PolicyDetail| PolicyRow {
        account: detail.account.clone(),
        href: format!("{}mill/policies/{}", frame.root, detail.account),
        is_listed: detail.is_listed,
        in_force: detail.in_force.as_ref().map(|policy| PolicyWords::new(policy, &detail.stores)),
        waiting: detail.waiting.len(),
        error: detail.error.as_deref().map(visible).unwrap_or_default(),
    };
    let has_own_accounts = state.shared.config.mill.is_some();
    let rows = list.items.iter().map(row).collect();
    Ok(render(StatusCode::OK, &PoliciesPage { frame, rows, has_own_accounts }))
}

/// `GET /mill/policies/{account}`: the policy of an account, and forms to change it.
pub(in crate::web::pages) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(account): Path<String>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let detail = state.mill()?.policy(&account).await?;
    let frame = frame(&state, "../../", now);
    let words = |policy: &PolicyText| PolicyWords::new(policy, &detail.stores);
    let edited = detail.file.as_ref().or(detail.in_force.as_ref()).cloned().unwrap_or_default();
    let ids: Vec<_> = detail.stores.keys().collect();
    let each = ids.iter().flat_map(|from| ids.iter().map(move |to| (from, to))).filter(|(from, to)| from != to);
    let pairs =
        each.map(|(from, to)| (format!("{from}>{to}"), format!("{} to {}", detail.stores[*from], detail.stores[*to])));
    let row = |(at, item): (usize, &HistoryItem)| HistoryRow {
        number: item.number,
        at: Moment::new(item.time, now),
        user: visible(&item.user),
        reason: visible(&item.reason),
        words: item.policy.as_ref().map(words),
        is_newest: at == 0,
    };
    let page = PolicyPage {
        is_listed: detail.is_listed,
        in_force: detail.in_force.as_ref().map(words),
        edited: words(&edited),
        waiting: waiting(&detail),
        error: detail.error.as_deref().map(visible).unwrap_or_default(),
        other_keys: detail.other_keys.iter().map(|key| visible(key)).collect::<Vec<_>>().join(", "),
        pairs: pairs.collect(),
        spaces: detail.spaces.clone(),
        history: detail.history.iter().enumerate().map(row).collect(),
        may_change: detail.version.is_some() && state.rights(&who) >= MillActionKind::SavePolicy.role(),
        account,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

/// `POST /mill/policies/{account}/plan`: what a change would do.
pub(in crate::web::pages) async fn plan(
    FromState(state): FromState<State>,
    who: Identity,
    Path(account): Path<String>,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    state.authorize(&who, MillActionKind::SavePolicy.role(), Source::Web)?;
    let detail = state.mill()?.policy(&account).await?;
    let version = detail.version.clone();
    let version = version.ok_or_else(|| Problem::new(StatusCode::CONFLICT, "The list of accounts cannot be read."))?;
    let new = changed(&detail, &Change::read(&Fields(fields))?)?;
    let page = PlanPage::new(&state, &who, &detail, new, version, "../../../", String::new(), String::new()).await?;
    Ok(render(StatusCode::OK, &page))
}

/// `POST /mill/policies/{account}`: saves a change that was shown before.
pub(in crate::web::pages) async fn save(
    FromState(state): FromState<State>,
    who: Identity,
    Path(account): Path<String>,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&who, MillActionKind::SavePolicy.role(), Source::Web)?;
    let fields = Fields(fields);
    let (version, text) = (fields.one("version")?.to_owned(), fields.one("reason")?.to_owned());
    let new: NewPolicyView = serde_json::from_str(fields.one("policy")?)
        .map_err(|error| Problem::bad(format!("The field policy is not valid: {}.", visible(&error.to_string()))))?;
    let saved = async {
        let (reason, policy) = (reason(&text)?, new.parse()?);
        let saved = state.mill_actions()?.save_policy(&account, &version, policy, &actor, &reason).await;
        saved.map_err(Problem::from)
    };
    match saved.await {
        // Relative, because a proxy may serve us below any prefix.
        Ok(_recorded) => Ok(see_other(account)),
        Err(problem) => {
            let detail = state.mill()?.policy(&account).await?;
            let said = problem.detail.to_string();
            let page = PlanPage::new(&state, &who, &detail, new, version, "../../", said, text).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

/// What waits for an admin and is, or is not, in a new policy as the file has it; each part in a sentence.
fn pending(detail: &PolicyDetail, new: &NewPolicyView, is_kept: bool) -> String {
    let Some(file) = detail.file.as_ref().filter(|file| **file != new.policy) else { return String::new() };
    let is_same = |of: &&WaitingView| {
        let space = of.space.as_deref();
        new.is_listed == detail.is_listed && file.pairs(space) == new.policy.pairs(space)
    };
    let of = detail.waiting.iter().filter(|of| is_same(of) == is_kept);
    of.map(|waiting| PolicyWords::waiting(waiting, &detail.stores)).collect::<Vec<_>>().join(" ")
}

/// What waits for an admin, each part in a sentence.
fn waiting(detail: &PolicyDetail) -> Vec<String> {
    detail.waiting.iter().map(|waiting| PolicyWords::waiting(waiting, &detail.stores)).collect()
}

impl PlanPage {
    #[expect(clippy::too_many_arguments, reason = "two handlers that show the same page differ in them")]
    async fn new(
        state: &State,
        who: &Identity,
        detail: &PolicyDetail,
        new: NewPolicyView,
        version: String,
        root: &str,
        refused: String,
        reason: String,
    ) -> Result<Self, Problem> {
        let plan = state.mill()?.plan(&detail.account, &new).await?;
        let PlanView { problems, begins, ends, items_to_copy, bytes_to_copy, items_no_longer_kept } = plan;
        let row = |item: &PlanItem| PlanRow {
            space: item.space.clone(),
            stores: format!("{} to {}", item.source, item.destination),
            items: Count(item.items).to_string(),
            size: Size::new(item.bytes),
            has: Count(item.copied_items).to_string(),
        };
        Ok(Self {
            frame: frame(state, root, Timestamp::now()),
            account: detail.account.clone(),
            is_listed: new.is_listed,
            words: PolicyWords::new(&new.policy, &detail.stores),
            // What was shown is of another version of the files: it has to be looked at anew.
            may_save: problems.is_empty()
                && state.rights(who) >= MillActionKind::SavePolicy.role()
                && detail.version.as_ref() == Some(&version),
            pending: pending(detail, &new, true),
            overwritten: pending(detail, &new, false),
            broken: match (&detail.file, &detail.error) {
                (None, Some(error)) => visible(error),
                _ => String::new(),
            },
            problems: problems.iter().map(|problem| visible(problem)).collect(),
            begins: begins.iter().map(row).collect(),
            ends: ends.iter().map(row).collect(),
            items: Count(items_to_copy).to_string(),
            bytes: Size::new(bytes_to_copy),
            ended_items: Count(items_no_longer_kept).to_string(),
            policy: serde_json::to_string(&new).unwrap_or_default(),
            version,
            refused,
            reason,
        })
    }
}
