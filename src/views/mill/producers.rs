//! The loops of producers: how far they are, and what they still take.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::loops::{LoopState, Morsel};
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_mill::bit::forecast::{self, Forecast};
use queuekeeper_mill::bit::producer::PRODUCER as BIT;
use queuekeeper_mill::prices::Prices;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Mill, ViewError, unavailable};

/// How many morsels of a loop are listed.
const MORSELS: usize = 200;

/// A producer, which runs loops through all spaces.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ProducerItem {
    /// Its name.
    #[schema(example = "duplication")]
    pub(crate) producer: &'static str,
    /// The number of its loop, from 1; 0 before the first one.
    pub(crate) number: u64,
    /// Whether a process leads it now.
    pub(crate) is_led: bool,
    /// When the loop began.
    pub(crate) started: Option<Timestamp>,
    /// When it ended; null while it is under way.
    pub(crate) ended: Option<Timestamp>,
    /// When the next one is due.
    pub(crate) next_due: Option<Timestamp>,
    /// When this one ends at its present rate; null if unknown.
    pub(crate) ends: Option<Timestamp>,
    /// Whether that is later than the next one is due.
    pub(crate) is_late: bool,
    /// How many parts it began with: a space and two stores, or a space of a store whose content is checked.
    pub(crate) morsels: u64,
    /// How many of them are not done.
    pub(crate) morsels_left: u64,
    /// How many spaces have checks that were requested, and have not all ended.
    pub(crate) checking: u64,
    /// How many items their sources had when it began.
    pub(crate) items: u64,
    /// How many keys were scanned, or requested to be checked.
    pub(crate) scanned: u64,
    /// What the unchecked pages of keys take; null if no page of keys waits for its check, or the producer requests
    /// none.
    pub(crate) forecast: Option<ForecastItem>,
    /// Those that are not done, at most two hundred.
    pub(crate) left: Vec<MorselItem>,
}

/// What the rest of a loop of checks takes.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ForecastItem {
    /// How many items are not checked.
    pub(crate) items: u64,
    /// How many requests that takes.
    pub(crate) requests: u64,
    /// How many bytes are read for that.
    pub(crate) bytes: u64,
    /// What that costs; null if the configuration has no prices.
    pub(crate) cost: Option<CostItem>,
}

/// What something costs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CostItem {
    /// How much.
    pub(crate) amount: f64,
    /// Of which currency.
    #[schema(example = "USD")]
    pub(crate) currency: String,
}

/// A space that is being scanned, with two of its stores; the same store twice if its content is checked.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct MorselItem {
    /// The account.
    pub(crate) account: String,
    /// The space.
    pub(crate) space: String,
    /// The store to copy from.
    pub(crate) source: String,
    /// The store to copy to.
    pub(crate) destination: String,
    /// How many items the source had when the loop began.
    pub(crate) items: u64,
    /// How many keys were scanned.
    pub(crate) scanned: u64,
    /// Why it is stalled; null if it is not.
    pub(crate) error: Option<String>,
    /// Whether a pause stops it.
    pub(crate) is_paused: bool,
}

impl Mill {
    pub(super) async fn producer(&self, producer: &'static str, now: Timestamp) -> Result<ProducerItem, ViewError> {
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let state = self.catalogue().loop_state(producer).await.map_err(error)?;
        let left = self.catalogue().morsels(producer).await.map_err(error)?;
        let runs = if producer == BIT { self.catalogue().open_bit_runs().await.map_err(error)? } else { Vec::new() };
        let checking = runs.iter().filter(|run| run.listed.is_some()).count() as u64;
        let pauses = self.catalogue().pauses().await.map_err(error)?;
        let forecast = if producer == BIT { self.forecast(now).await? } else { None };
        let ends = match &forecast {
            Some(forecast) => forecast.ends,
            None => state.as_ref().filter(|_| !left.is_empty()).and_then(|state| ends(state, now)),
        };
        let is_late = ends.zip(state.as_ref().and_then(|state| state.next)).is_some_and(|(ends, due)| ends > due);
        Ok(ProducerItem {
            producer,
            number: state.as_ref().map_or(0, |state| state.number),
            is_led: state.as_ref().is_some_and(|state| state.is_led),
            started: state.as_ref().and_then(|state| state.started),
            ended: state.as_ref().and_then(|state| state.ended).filter(|_| left.is_empty() && checking == 0),
            next_due: state.as_ref().and_then(|state| state.next),
            ends,
            is_late,
            morsels: state.as_ref().map_or(0, |state| state.morsels),
            morsels_left: left.len() as u64,
            checking,
            items: state.as_ref().map_or(0, |state| state.items),
            scanned: state.as_ref().map_or(0, |state| state.scanned),
            forecast: forecast.map(|forecast| ForecastItem::new(&forecast, self.prices())),
            left: left.into_iter().take(MORSELS).map(|morsel| MorselItem::new(morsel, &pauses)).collect(),
        })
    }

    async fn forecast(&self, now: Timestamp) -> Result<Option<Forecast>, ViewError> {
        forecast::forecast(self.catalogue(), &self.0.accounts, now).await.map_err(|error| unavailable(&error))
    }
}

impl CostItem {
    /// In words: two digits behind the point, and more where it is less than that.
    pub(crate) fn words(&self) -> String {
        let Self { amount, currency } = self;
        if *amount > 0.0 && *amount < 0.01 {
            format!("less than 0.01 {currency}")
        } else {
            format!("about {amount:.2} {currency}")
        }
    }
}

impl ForecastItem {
    fn new(forecast: &Forecast, prices: &Prices) -> Self {
        let costs = forecast.needs.iter().filter_map(|(store, need)| {
            let price = prices.stores.get(store)?;
            Some(price.of(need.requests, need.bytes))
        });
        let currency = Some(&prices.currency).filter(|_| !prices.stores.is_empty());
        Self {
            items: forecast.left.items,
            requests: forecast.needs.values().map(|need| need.requests).sum(),
            bytes: forecast.needs.values().map(|need| need.bytes).sum(),
            cost: currency.map(|currency| CostItem { amount: costs.sum(), currency: currency.clone() }),
        }
    }
}

/// When a loop ends, by how much of it was looked at since its beginning.
fn ends(state: &LoopState, now: Timestamp) -> Option<Timestamp> {
    let elapsed = Duration::try_from(now.duration_since(state.started?)).ok()?;
    let left = state.items.saturating_sub(state.scanned) as f64 / state.scanned as f64;
    now.checked_add(Duration::try_from_secs_f64(elapsed.as_secs_f64() * left).ok()?).ok()
}

impl MorselItem {
    fn new(morsel: Morsel, pauses: &[MillPause]) -> Self {
        let Morsel { account, space, source, destination, items, scanned, error, .. } = morsel;
        let is_paused = pauses.iter().any(|pause| pause.scope.stops(&account, [&source, &destination]));
        let [source, destination] = [source, destination].map(|store| store.to_string());
        Self { account, space: space.to_string(), source, destination, items, scanned, error, is_paused }
    }

    /// Between which stores it is, or in which one.
    pub(crate) fn stores(&self) -> String {
        let Self { source, destination, .. } = self;
        if source == destination { format!("in {source}") } else { format!("from {source} to {destination}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_ends_when_the_rest_is_looked_at_at_the_same_rate() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let state = |items, scanned| LoopState {
            number: 1,
            is_led: true,
            started: Some(now - Duration::from_secs(100)),
            ended: None,
            next: None,
            morsels: 1,
            items,
            scanned,
        };
        assert_eq!(ends(&state(100, 25), now), Some(now + Duration::from_mins(5)));
        assert_eq!(ends(&state(100, 200), now), Some(now));
        assert_eq!(ends(&state(100, 0), now), None);
    }
}
