//! Checks on request: how far they are, and one that is to be requested.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::action::{see_other, with_status};
use super::super::frame::Frame;
use super::super::render;
use super::{Fields, frame};
use crate::actions::mill::MillActionKind;
use crate::actions::{Role, Source};
use crate::views::mill::{CheckFilter, CheckPlan, CheckScope, RequestedCheckItem};
use crate::views::query::Parameters as _;
use crate::views::show::{Moment, visible};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_checks.html")]
struct ChecksPage {
    frame: Frame,
    account: String,
    accounts: Vec<String>,
    /// Each account with its checks.
    pills: Vec<(String, String)>,
    stores: Vec<String>,
    may_check: bool,
    requested: Vec<RequestedRow>,
    /// The same as JSON.
    json: String,
    next: String,
}

#[derive(Debug, Template)]
#[template(path = "mill_check.html")]
struct CheckPage {
    frame: Frame,
    /// Why nothing was requested; empty where it was not tried.
    refused: String,
    may_check: bool,
    /// The role that a check requires.
    needed: Role,
    /// What is to be checked.
    name: String,
    takes: String,
    /// How many spaces that is of, in words; empty for one.
    spaces: String,
    /// The same as fields of the form.
    fields: Vec<(String, String)>,
    /// The same as JSON.
    json: String,
}

/// A check that was requested.
#[derive(Debug)]
pub(super) struct RequestedRow {
    /// What is checked: a space, or an item with its space.
    pub(super) name: String,
    pub(super) href: String,
    pub(super) store: String,
    pub(super) state: &'static str,
    pub(super) tag: &'static str,
    pub(super) words: String,
    pub(super) user: String,
    pub(super) reason: String,
    pub(super) requested: Moment,
    pub(super) changed: Moment,
    /// Where what is wrong is listed, with what that is called; empty where nothing is.
    pub(super) wrong: (String, &'static str),
}

/// `GET /mill/checks`: checks that were requested, and how far they are.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<CheckFilter>,
) -> Result<Response, Problem> {
    let (mill, now) = (state.mill()?, Timestamp::now());
    let list = mill.requested_checks(&filter).await?;
    let frame = frame(&state, "../", now);
    let base = format!("{}mill/checks", frame.root);
    let of = CheckFilter { account: list.account.clone(), ..filter };
    let of_account = |account: &String| (account.clone(), address(&base, &[pair("account", &**account)]));
    let json = address(&format!("{}api/v1/mill/checks", frame.root), &of.pairs());
    let next = list.next.map(|before| address(&base, &CheckFilter { before: Some(before), ..of }.pairs()));
    let page = ChecksPage {
        pills: mill.account_names().iter().map(of_account).collect(),
        accounts: mill.account_names(),
        json,
        stores: mill.store_names(),
        may_check: state.rights(&who) >= MillActionKind::CheckContent.role(),
        requested: list.items.iter().map(|check| RequestedRow::new(check, &frame.root, now)).collect(),
        account: list.account,
        next: next.unwrap_or_default(),
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

/// `GET /mill/checks/new`: what a check would take, to ask for it.
pub(in crate::web::pages) async fn new(
    FromState(state): FromState<State>,
    who: Identity,
    Params(scope): Params<CheckScope>,
) -> Result<Response, Problem> {
    let plan = state.mill()?.plan_check(&scope).await?;
    Ok(render(StatusCode::OK, &CheckPage::new(&state, &who, &scope, &plan, String::new())))
}

/// `POST /mill/checks/new`: asks for a check.
pub(in crate::web::pages) async fn ask(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let fields = Fields(fields);
    let text = |name: &str| fields.all(name).next().unwrap_or_default().to_owned();
    let key = text("key").parse().map_err(|error| Problem::bad(format!("The key is not valid: {error}.")))?;
    let scope = CheckScope { account: text("account"), store: text("store"), space: text("space"), key };
    let actor = state.authorize(&who, MillActionKind::CheckContent.role(), Source::Web)?;
    let plan = state.mill()?.plan_check(&scope).await?;
    let requested = async {
        let reason = reason(fields.one("reason")?)?;
        let entry = state.mill_actions()?.request_check(&plan.scope, &plan.parts, &actor, &reason).await;
        entry.map(drop).map_err(Problem::from)
    };
    match requested.await {
        Ok(()) => Ok(see_other(format!("../{}", shown_at(&plan.account, &scope.space, &scope.key.to_string())))),
        Err(problem) => {
            let page = CheckPage::new(&state, &who, &scope, &plan, problem.detail.to_string());
            Ok(with_status(problem.status(), &page))
        }
    }
}

/// Where a check is shown, below the pages of the mill: with the space or the item.
fn shown_at(account: &str, space: &str, key: &str) -> String {
    match (space, key) {
        ("", _) => address("checks", &[pair("account", account)]),
        (space, "") => format!("spaces/{account}/{space}"),
        (space, key) => address(&format!("spaces/{account}/{space}/item"), &[pair("key", key)]),
    }
}

/// The page where a check is requested.
pub(super) fn request_at(root: &str, account: &str, store: &str, space: &str, key: &str) -> String {
    let pairs = [("account", account), ("store", store), ("space", space), ("key", key)];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> = pairs.map(|(name, value)| pair(name, value)).collect();
    address(&format!("{root}mill/checks/new"), &pairs)
}

impl CheckPage {
    fn new(state: &State, who: &Identity, scope: &CheckScope, plan: &CheckPlan, refused: String) -> Self {
        let frame = frame(state, "../../", Timestamp::now());
        let of = match (&*scope.space, &plan.key) {
            ("", _) => format!("all content of {}", plan.account),
            (space, None) => format!("{}/{space}", plan.account),
            (space, Some(key)) => format!("{}/{space}/{key}", plan.account),
        };
        let spaces = crate::words::counted(plan.spaces.len() as u64, "space", "spaces");
        let needed = MillActionKind::CheckContent.role();
        Self {
            may_check: state.rights(who) >= needed,
            needed,
            name: format!("{of} in {}", plan.store),
            takes: plan.words(),
            spaces: if scope.space.is_empty() { spaces } else { String::new() },
            fields: scope.pairs(),
            json: address(&format!("{}api/v1/mill/checks/plan", frame.root), &scope.pairs()),
            refused,
            frame,
        }
    }
}

impl RequestedRow {
    pub(super) fn new(check: &RequestedCheckItem, root: &str, now: Timestamp) -> Self {
        let RequestedCheckItem { account, store, space, key, key_encoded, .. } = check;
        let (state, tag) = match (check.state, check.wrong) {
            ("under_way", 0) => ("under way", "done"),
            ("under_way", _) => ("under way", "bad"),
            ("stopped", _) => ("failed", "bad"),
            (_, 0) if check.is_proven() => ("ended", "good"),
            (_, 0) => ("ended", "warn"),
            (_, _) => ("ended", "bad"),
        };
        let wrong = match (check.state, check.wrong) {
            ("stopped", _) => (format!("{root}mill/dead-letters"), "Dead letters"),
            (_, 0) => (String::new(), ""),
            (_, _) => (address(&format!("{root}mill/errors"), &[pair("account", &**account)]), "Bit errors"),
        };
        let key = key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        let at = shown_at(account, space, key_encoded.as_deref().unwrap_or_default());
        Self {
            name: format!("{account}/{space}{key}"),
            href: format!("{root}mill/{at}"),
            store: store.clone(),
            state,
            tag,
            words: check.words(),
            user: visible(&check.user),
            reason: visible(&check.reason),
            requested: Moment::new(check.requested, now),
            changed: Moment::new(check.changed, now),
            wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_proven_is_good() {
        let tag = |state, wrong, unproven, gone| {
            let check = RequestedCheckItem {
                number: 1,
                account: "one".to_owned(),
                store: "main".to_owned(),
                space: "theses".to_owned(),
                key: None,
                key_encoded: None,
                user: "ada".to_owned(),
                reason: "odd".to_owned(),
                requested: Timestamp::UNIX_EPOCH,
                state,
                items: 9,
                bytes: 9,
                checked: 1 + wrong + unproven + gone,
                proven: 1,
                proven_bytes: 1,
                wrong,
                unproven,
                gone,
                pending: 0,
                changed: Timestamp::UNIX_EPOCH,
            };
            RequestedRow::new(&check, "../", Timestamp::UNIX_EPOCH).tag
        };
        assert_eq!(tag("ended", 0, 0, 0), "good");
        assert_eq!((tag("ended", 0, 1, 0), tag("ended", 0, 0, 1)), ("warn", "warn"));
        assert_eq!((tag("ended", 1, 1, 0), tag("under_way", 1, 0, 0), tag("stopped", 0, 0, 0)), ("bad", "bad", "bad"));
        assert_eq!(tag("under_way", 0, 1, 0), "done");
    }
}
