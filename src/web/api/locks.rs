use axum::extract::State as FromState;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::mirror::{LockKind, lists};
use crate::views::locks::LockList;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::lists::{age, choose, part, session};

/// How many sessions are told.
const SESSIONS: usize = 20;

/// The filter of a list of locks. All that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct LockFilter {
    /// Of this kind.
    pub(in crate::web) kind: Option<String>,
    /// So old: a band, named by its end, as in the metrics.
    pub(in crate::web) age: Option<String>,
    /// Held by this session, as ZooKeeper's own log writes it; `none` for persistent locks, which no session holds.
    #[param(pattern = "^(none|0x[0-9a-f]{1,16})?$", example = "0x100005a3c2e0001")]
    pub(in crate::web) session: Option<String>,
    /// How many locks the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    pub(in crate::web) limit: Option<String>,
    /// Where the page begins, as an earlier page of the same list said.
    pub(in crate::web) cursor: Option<String>,
}

impl LockFilter {
    /// The page that is asked for.
    pub(in crate::web) fn list(&self, of: &State, now: Timestamp) -> Result<LockList, Problem> {
        let filter = lists::LockFilter {
            kind: choose("kind", self.kind.as_ref(), &LockKind::ALL, LockKind::label)?,
            age: age(self.age.as_ref())?,
            session: session(self.session.as_ref())?,
        };
        let store = &of.shared.store;
        let page = store.lock_list(filter, &part(self.limit.as_ref(), self.cursor.as_ref())?, now)?;
        let summary = store.summary(now, of.space_left()).ok_or_else(Problem::no_image)?;
        Ok(LockList::new(&summary, store.sessions(SESSIONS).ok_or_else(Problem::no_image)?, page))
    }
}

/// `GET /api/v1/locks`: who holds what, oldest first, filtered and paged.
#[utoipa::path(
    get,
    path = "/locks",
    params(LockFilter),
    responses(
        (status = 200, body = LockList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn locks(FromState(state): FromState<State>, Params(filter): Params<LockFilter>) -> Answer<LockList> {
    Ok(Json(filter.list(&state, Timestamp::now())?))
}
