//! The caller, as the server sees it.

use axum::extract::State as FromState;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::{Role, Source};
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::state::State;

/// `GET /api/v1/identity`: the caller, and what they may request.
#[utoipa::path(get, path = "/identity", responses((status = 200, body = IdentityView)))]
pub(super) async fn identity(FromState(state): FromState<State>, who: Identity) -> Json<IdentityView> {
    Json(IdentityView::new(&state, &who))
}

/// The caller, and what they may request.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct IdentityView {
    /// The name of the user or the token; `null` for a caller that is not logged in.
    pub(crate) name: Option<String>,
    /// How the server identified the caller: `anonymous` (not at all), `password`, `token`, or `loopback` (any caller
    /// on the server's machine).
    pub(crate) auth_method: &'static str,
    /// The caller's role: `viewer`, `operator` or `admin`.
    pub(crate) role: &'static str,
    /// Whether they may request what can be undone.
    pub(crate) may_operate: bool,
    /// Whether they may request what cannot be undone.
    pub(crate) may_destroy: bool,
    /// Why they may not request every action, and how to get the right to do so.
    pub(crate) refusal: Option<String>,
}

impl IdentityView {
    pub(crate) fn new(state: &State, who: &Identity) -> Self {
        let refusal =
            |needed| state.authorize(who, needed, Source::Api).err().map(|problem| problem.detail.into_owned());
        let (operate, destroy) = (refusal(Role::Operator), refusal(Role::Admin));
        Self {
            name: Some(who.name.clone()).filter(|name| !name.is_empty()),
            auth_method: who.method.label(),
            role: who.role.label(),
            may_operate: operate.is_none(),
            may_destroy: destroy.is_none(),
            refusal: operate.or(destroy),
        }
    }
}
