use axum::extract::State as FromState;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::views::faults::FaultList;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::lists::{choose, part};
use queuekeeper_queue::fault::Fault;

/// Which faults.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct FaultFilter {
    /// Of this kind.
    pub(in crate::web) fault: Option<String>,
    /// How many faults the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    pub(in crate::web) limit: Option<String>,
    /// Where the page begins, as an earlier page of the same list said.
    pub(in crate::web) cursor: Option<String>,
}

impl FaultFilter {
    /// The kind that is asked for; `None` for all of them.
    pub(in crate::web) fn fault(&self) -> Result<Option<Fault>, Problem> {
        choose("fault", self.fault.as_ref(), &Fault::ALL, Fault::label)
    }

    /// The page that is asked for.
    pub(in crate::web) fn list(&self, of: &State, now: Timestamp) -> Result<FaultList, Problem> {
        let (store, space) = (&of.shared.store, of.space_left());
        let part = part(self.limit.as_ref(), self.cursor.as_ref())?;
        let page = store.fault_list(self.fault()?, &part, now, space)?;
        let summary = store.summary(now, space).ok_or_else(Problem::no_image)?;
        let asked = self.fault()?;
        let unconfirmed = store.unconfirmed(now).unwrap_or_default().into_iter();
        let unconfirmed = unconfirmed.filter(|(fault, ..)| asked.is_none_or(|asked| asked == *fault));
        Ok(FaultList::new(&summary, page, &store.unreadable().unwrap_or_default()).with(unconfirmed))
    }
}

/// `GET /api/v1/faults`: what is broken in the tree, since when, what it does and what repairs it.
#[utoipa::path(
    get,
    path = "/faults",
    params(FaultFilter),
    responses(
        (status = 200, body = FaultList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn faults(
    FromState(state): FromState<State>,
    Params(filter): Params<FaultFilter>,
) -> Answer<FaultList> {
    Ok(Json(filter.list(&state, Timestamp::now())?))
}
