use axum::extract::{Path as FromPath, State as FromState};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::insight;
use crate::insight::Forecast;
use crate::mirror::lists::{self, BatchOrder, Part};
use crate::mirror::{ByState, Summary};
use crate::views::batches::{BatchList, BatchStanding, Outlook};
use crate::views::diagnosis::Diagnosis;
use crate::views::faults::FaultItem;
use crate::views::show::visible;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{NONE, shown};
use crate::web::lists::{choose, given, part, state, text};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{BatchNode, Path};
use queuekeeper_queue::state::BatchState;

/// How many collections an error names, and a form offers.
const COLLECTIONS: usize = 100;

/// The filter of a list of batches. All that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct BatchFilter {
    /// In this state; `other` for a status that nobody knows.
    pub(in crate::web) state: Option<String>,
    /// Of the collection of this mnemonic; `(none)` for batches that name none.
    pub(in crate::web) collection: Option<String>,
    /// With this text in id, UUID, file name, title or submitter, whatever the case of its letters.
    #[param(max_length = 200)]
    pub(in crate::web) text: Option<String>,
    /// The order: the last or first created first, those longest in their state, the last changed, those with the most
    /// jobs, those with the most failed jobs. `newest`, unless it is given.
    pub(in crate::web) sort: Option<String>,
    /// How many batches the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    pub(in crate::web) limit: Option<String>,
    /// Where the page begins, as an earlier page of the same list said.
    pub(in crate::web) cursor: Option<String>,
}

impl BatchFilter {
    /// The order that is asked for.
    pub(in crate::web) fn order(&self) -> Result<BatchOrder, Problem> {
        Ok(choose("sort", self.sort.as_ref(), BatchOrder::ALL, BatchOrder::label)?.unwrap_or_default())
    }

    fn filter(&self) -> Result<lists::BatchFilter, Problem> {
        let collection = given(self.collection.as_ref()).map(|name| if name == NONE { "" } else { name });
        Ok(lists::BatchFilter {
            state: state(self.state.as_ref())?,
            collection: collection.map(ToOwned::to_owned),
            text: text(self.text.as_ref())?,
        })
    }

    /// How many batches of each state there are by all filters but that of the state; `None` where there is no image.
    /// Each state is looked at by itself, so that together it takes as long as a list of all states.
    pub(in crate::web) fn counts(&self, of: &State, summary: Option<&Summary>) -> Option<ByState<BatchState, u64>> {
        let (filter, summary) = (self.filter().ok()?, summary?);
        let mut counts = ByState::default();
        for (state, figures) in summary.batches.iter() {
            *counts.get_mut(state) = if filter.collection.is_none() && filter.text.is_none() {
                figures.count
            } else {
                let filter = lists::BatchFilter { state: Some(state), ..filter.clone() };
                let part = Part { after: None, size: 1 };
                of.shared.store.batch_list(&filter, BatchOrder::default(), &part).ok()?.total
            };
        }
        Some(counts)
    }

    /// The page that is asked for.
    pub(in crate::web) fn list(&self, of: &State) -> Result<BatchList, Problem> {
        let store = &of.shared.store;
        let filter = self.filter()?;
        let collection = filter.collection.as_deref();
        let part = part(self.limit.as_ref(), self.cursor.as_ref())?;
        let order = self.order()?;
        if let Some(wanted) = collection {
            let all = store.batch_collections().ok_or_else(Problem::no_image)?;
            if !all.iter().any(|(name, _)| **name == *wanted) {
                let name = if wanted.is_empty() { NONE.to_owned() } else { shown(wanted) };
                let problem = Problem::missing(format!("There is no batch of the collection “{name}” now."));
                return Err(problem.allowing(Self::collections(of)));
            }
        }
        Ok(BatchList::new(store.batch_list(&filter, order, &part)?))
    }

    /// The collections that batches have, the first of them.
    pub(in crate::web) fn collections(of: &State) -> Vec<String> {
        let all = of.shared.store.batch_collections().unwrap_or_default();
        let name = |name: &str| if name.is_empty() { NONE.to_owned() } else { visible(name) };
        all.iter().take(COLLECTIONS).map(|(collection, _)| name(collection)).collect()
    }
}

/// `GET /api/v1/batches`: which batches, filtered, sorted and paged.
#[utoipa::path(
    get,
    path = "/batches",
    params(BatchFilter),
    responses(
        (status = 200, body = BatchList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "No such collection"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn batches(
    FromState(state): FromState<State>,
    Params(filter): Params<BatchFilter>,
) -> Answer<BatchList> {
    Ok(Json(filter.list(&state)?))
}

/// The id of a batch that is named by it, or by its UUID.
pub(in crate::web) fn id(state: &State, name: &str) -> Result<BatchId, Problem> {
    let store = &state.shared.store;
    if store.batch_collections().is_none() {
        return Err(Problem::no_image());
    }
    let by_id = name.parse().ok().filter(|id| store.batch(*id).is_some());
    by_id.or_else(|| store.batch_of_uuid(name)).ok_or_else(|| {
        let detail = format!("There is no batch of the id or UUID “{}” now.", shown(name));
        Problem::missing(detail).allowing(["bid and ten digits, such as bid0000000042", "the UUID of its submission"])
    })
}

/// One batch with all that is known of it.
pub(in crate::web) fn detail(state: &State, name: &str, now: Timestamp) -> Result<BatchStanding, Problem> {
    let (store, id) = (&state.shared.store, id(state, name)?);
    let gone = || Problem::missing(format!("The batch “{id}” has just been purged."));
    let found = store.batch(id).ok_or_else(gone)?;
    let lock = Path::BatchNode(id, BatchNode::Lock);
    let locked_since = store.locked_since(&lock);
    let faults = store.faults_of(&Path::Batch(id), now, state.space_left()).unwrap_or_default();
    let faults = faults.iter().map(FaultItem::new).collect();
    let known = insight::why_batch(store, id, state.volume(), now);
    let diagnosis = known.as_ref().map(|(diagnosis, _)| Diagnosis::from(diagnosis));
    let forecast = known.map_or(Forecast::Unknown, |(_, forecast)| forecast);
    let outlook = Outlook::new(forecast, store.batch_rates(id), now);
    Ok(BatchStanding::new(found, locked_since, outlook, faults, diagnosis))
}

/// `GET /api/v1/batches/{batch}`: how far a batch is.
#[utoipa::path(
    get,
    path = "/batches/{batch}",
    params(("batch" = String, Path, description = "Its id, or the UUID of its submission", example = "bid0000000042")),
    responses(
        (status = 200, body = BatchStanding),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "The address is no text"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "No such batch"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn batch(
    FromState(state): FromState<State>,
    FromPath(name): FromPath<String>,
) -> Answer<BatchStanding> {
    Ok(Json(detail(&state, &name, Timestamp::now())?))
}
