//! Which batches.

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::BatchList;
use crate::mirror::lists::{self, BatchOrder, PageRequest};
use crate::mirror::{ByState, Summary};
use crate::views::ViewSource;
use crate::views::error::ViewError;
use crate::views::jobs::{collection_key, collection_name};
use crate::views::page::PageQuery;
use crate::views::parameter::{OneOf, SearchFor};
use queuekeeper_queue::state::BatchState;

/// How many collections an error names, and a form offers.
const COLLECTIONS: usize = 100;

// The derived parameter descriptions resolve aliases, but not type arguments.
type State = OneOf<Option<BatchState>>;
type Sort = OneOf<BatchOrder>;

/// Which batches, and in which order; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
#[command(next_help_heading = "Which batches")]
pub(crate) struct BatchFilter {
    /// In this state; `other` for an unknown status.
    #[arg(long, value_name = "STATE")]
    #[param(inline)]
    pub(crate) state: Option<State>,

    /// In the collection with this mnemonic; `(none)` for batches without a collection.
    #[arg(long, value_name = "MNEMONIC")]
    pub(crate) collection: Option<String>,

    /// With this text in id, UUID, file name, title or submitter, case-insensitive.
    #[arg(long, value_name = "TEXT")]
    #[param(inline)]
    pub(crate) text: Option<SearchFor>,

    /// The sort order; `waiting` lists unfinished ones first, the longest in their state on top.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,
}

impl BatchFilter {
    fn wanted(&self) -> lists::BatchQuery {
        let Self { state, collection, text, sort: _ } = self;
        lists::BatchQuery {
            state: state.map(|state| state.0),
            collection: collection_key(collection.as_deref()),
            text: text.as_ref().and_then(SearchFor::owned),
        }
    }
}

impl ViewSource<'_> {
    /// A page of the batches that match.
    ///
    /// # Errors
    /// For a cursor of another list, and for a collection that has no batch.
    pub(crate) fn batches(&self, filter: &BatchFilter, page: &PageQuery) -> Result<BatchList, ViewError> {
        let wanted = filter.wanted();
        if let Some(mnemonic) = &wanted.collection {
            let known = self.store.batch_collections().ok_or(ViewError::NoMirror)?;
            if !known.iter().any(|(name, _)| **name == **mnemonic) {
                let detail = format!("There is no batch of the collection “{}” now.", collection_name(mnemonic));
                return Err(ViewError::not_found(detail).allowing(self.batch_collections()));
            }
        }
        Ok(BatchList::new(self.store.batch_list(&wanted, filter.sort.0, &page.part()?)?))
    }

    /// The collections that batches have, the first of them.
    pub(crate) fn batch_collections(&self) -> Vec<String> {
        let known = self.store.batch_collections().unwrap_or_default();
        known.iter().take(COLLECTIONS).map(|(name, _)| collection_name(name)).collect()
    }

    /// How many batches of each state there are by all filters but that of the state; `None` before the first walk.
    /// Each state is counted by itself, so that together it takes as long as a list of all states.
    pub(crate) fn batches_by_state(
        &self,
        filter: &BatchFilter,
        summary: Option<&Summary>,
    ) -> Option<ByState<BatchState, u64>> {
        let (wanted, summary) = (filter.wanted(), summary?);
        let mut counts = ByState::default();
        for (state, figures) in summary.batches.iter() {
            *counts.get_mut(state) = if wanted.collection.is_none() && wanted.text.is_none() {
                figures.count
            } else {
                let wanted = lists::BatchQuery { state: Some(state), ..wanted.clone() };
                let part = PageRequest { after: None, size: 1 };
                self.store.batch_list(&wanted, BatchOrder::default(), &part).ok()?.total
            };
        }
        Some(counts)
    }
}
