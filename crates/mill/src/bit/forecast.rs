//! What a loop of checks still needs, and when it ends at its present rate.
//!
//! Small items take the time of their requests, large ones that of their bytes; a rate of either alone is wrong for a
//! loop that has both. So the rate is of *effort*: bytes, and for each request as many more as could be read in its
//! time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::bit::CheckedAmount;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::loops::Morsel;
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::{Catalogue, Error};
use queuekeeper_store::StoreName;

use super::coverage::Amount;
use super::policy::ProofPolicy;
use super::producer::PRODUCER;
use crate::account::Account;

/// Over how many minutes the present rate is worked out.
const MINUTES: u32 = 10;

/// How many bytes are read in the time that a request takes beside its bytes. Measured for small and large items of a
/// directory and of an S3 server: 100,000 to 250,000.
const REQUEST: f64 = 131_072.0;

/// How many keys a listing has in an answer.
const LISTED: u64 = 1_000;

/// How many times a loop lists a key: the producer cuts pages off a listing, and the worker that checks a page lists it
/// again.
const LISTINGS: u64 = 2;

/// What a loop still needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// What is to be checked.
    pub left: Amount,
    /// What that takes from each store.
    pub needs: BTreeMap<StoreName, Need>,
    /// When the loop ends at its present rate; `None` where nothing was checked lately, or a part of it is paused.
    pub ends: Option<Timestamp>,
}

/// What is asked of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// How many requests.
    pub requests: u64,
    /// How many bytes are read.
    pub bytes: u64,
}

impl Need {
    /// What the checks of so much take, where all of it is right and its keys are listed so many times.
    #[must_use]
    pub fn of(amount: Amount, policy: ProofPolicy, listings: u64) -> Self {
        let (looks, bytes) = match policy {
            ProofPolicy::Read => (amount.items, amount.bytes),
            ProofPolicy::Provider => (amount.items, 0),
            ProofPolicy::Sample(of) => {
                let of = u64::from(of.get());
                (amount.items.div_ceil(of), amount.bytes.div_ceil(of))
            }
        };
        Self { requests: looks + listings * amount.items.div_ceil(LISTED), bytes }
    }

    #[expect(clippy::cast_precision_loss, reason = "a forecast needs no more than three digits")]
    fn effort(self) -> f64 {
        self.bytes as f64 + self.requests as f64 * REQUEST
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// What the loop of checks that is under way still needs; `None` where none is, or only some items are checked once
/// more.
///
/// # Errors
/// When the catalogue cannot be read.
pub async fn forecast(
    catalogue: &Catalogue,
    accounts: &BTreeMap<String, Account>,
    now: Timestamp,
) -> Result<Option<Forecast>, Error> {
    let Some(state) = catalogue.loop_state(PRODUCER).await? else { return Ok(None) };
    let (morsels, runs) = (catalogue.morsels(PRODUCER).await?, catalogue.open_bit_runs().await?);
    if morsels.is_empty() && runs.is_empty() {
        return Ok(None);
    }
    let (figures, pauses) = (catalogue.counters().await?, catalogue.pauses().await?);
    let is_paused =
        |account: &str, store: &StoreName| pauses.iter().any(|pause: &MillPause| pause.scope.stops(account, [store]));
    let mut parts = Vec::new();
    for run in &runs {
        let (_, items, bytes) = catalogue.bit_pages_left(run.id).await?;
        let policy = run.policy.parse().unwrap_or_default();
        let store = run.store.clone();
        parts.push(Part {
            store,
            policy,
            left: Amount { items, bytes },
            is_paused: is_paused(&run.account, &run.store),
        });
    }
    for morsel in &morsels {
        let account = accounts.get(&morsel.account);
        parts.push(Part {
            store: morsel.source.clone(),
            policy: account.map(|account| account.proof_policy(&morsel.source)).unwrap_or_default(),
            left: account.map(|account| unlisted(account, morsel, &figures)).unwrap_or_default(),
            is_paused: is_paused(&morsel.account, &morsel.source),
        });
    }
    let lately = catalogue.checked_lately(state.number, MINUTES).await?;
    // The first of these minutes began up to a minute later than so many minutes ago.
    let since = now.as_second().div_euclid(60) - i64::from(MINUTES - 1);
    let since = Timestamp::from_second(since * 60).ok().max(state.started);
    let elapsed = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    let forecast = Forecast::new(&parts, &lately, elapsed.unwrap_or_default(), now);
    // What is checked once more by itself waits for minutes, whatever the rate.
    Ok(Some(forecast).filter(|forecast| forecast.left.items > 0))
}

/// What is left of a space in a store.
struct Part {
    store: StoreName,
    policy: ProofPolicy,
    left: Amount,
    is_paused: bool,
}

/// What no page has been cut of yet, by the content index.
fn unlisted(account: &Account, morsel: &Morsel, figures: &Figures) -> Amount {
    let of = |counter| account.figure(figures, counter, &morsel.source, &morsel.space);
    let (all, bytes) = (of(Counter::SpaceItems), of(Counter::SpaceBytes));
    let items = morsel.items.saturating_sub(morsel.scanned);
    let share = u128::from(bytes) * u128::from(items) / u128::from(all.max(1));
    Amount { items, bytes: u64::try_from(share).unwrap_or(u64::MAX) }
}

impl Forecast {
    fn new(parts: &[Part], lately: &[CheckedAmount], elapsed: Duration, now: Timestamp) -> Self {
        let mut forecast = Self::default();
        for part in parts {
            forecast.left = forecast.left + part.left;
            forecast.needs.entry(part.store.clone()).or_default().add(Need::of(part.left, part.policy, LISTINGS));
        }
        let done = lately.iter().map(|of| {
            let amount = Amount { items: of.items, bytes: of.bytes };
            Need::of(amount, of.policy.parse().unwrap_or_default(), LISTINGS).effort()
        });
        let rate = done.sum::<f64>() / elapsed.as_secs_f64();
        let left: f64 = forecast.needs.values().map(|need| need.effort()).sum();
        let is_paused = parts.iter().any(|part| part.is_paused);
        let left = Duration::try_from_secs_f64(left / rate).ok().filter(|_| !is_paused);
        forecast.ends = left.and_then(|left| now.checked_add(left).ok());
        forecast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(store: &str, policy: &str, items: u64, bytes: u64) -> Part {
        let left = Amount { items, bytes };
        Part { store: store.parse().unwrap(), policy: policy.parse().unwrap(), left, is_paused: false }
    }

    fn lately(policy: &str, items: u64, bytes: u64) -> CheckedAmount {
        CheckedAmount { policy: policy.to_owned(), items, bytes }
    }

    #[test]
    fn what_is_left_takes_requests_and_bytes_as_its_policy_asks_for() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let parts = [
            part("main", "read", 5_000, 1 << 30),
            part("main", "provider", 2_000, 1 << 40),
            part("cold", "read 1/12", 1_200, 12_000_000),
        ];
        let forecast = Forecast::new(&parts, &[], Duration::from_mins(1), now);
        assert_eq!(forecast.left, Amount { items: 8_200, bytes: (1 << 30) + (1 << 40) + 12_000_000 });
        let needs: Vec<_> = forecast.needs.iter().map(|(store, need)| (store.as_str(), *need)).collect();
        let of = |requests, bytes| Need { requests, bytes };
        assert_eq!(needs, [("cold", of(100 + 4, 1_000_000)), ("main", of(7_000 + 14, 1 << 30))]);
        // Nothing was checked lately.
        assert_eq!(forecast.ends, None);
    }

    #[test]
    fn a_loop_of_small_and_large_items_ends_by_the_time_that_each_takes() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let minute = Duration::from_mins(1);
        // As much again.
        let large = [part("main", "read", 4, 4 << 30)];
        let ends = Forecast::new(&large, &[lately("read", 4, 4 << 30)], minute, now).ends;
        assert_eq!(ends, Some(now + minute));
        // So many small items take the time of a large one.
        let small = [part("main", "read", 8_192 * 1_000, 0)];
        let ends = Forecast::new(&small, &[lately("read", 0, 1 << 30)], minute, now).ends.unwrap();
        let minutes = ends.duration_since(now).as_secs_f64() / 60.0;
        assert!((1_000.0..1_003.0).contains(&minutes), "{minutes}");
        let paused = [part("main", "read", 4, 4), Part { is_paused: true, ..part("cold", "read", 0, 0) }];
        assert_eq!(Forecast::new(&paused, &[lately("read", 1, 1)], minute, now).ends, None);
    }
}
