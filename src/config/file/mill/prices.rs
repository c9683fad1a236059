//! What providers charge for reading, in the part `mill` of the file.

use std::collections::BTreeMap;

use queuekeeper_mill::prices::{Price, Prices};
use queuekeeper_store::StoreName;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::limits::Wrong;

/// The keys of prices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    currency: Spanned<String>,
    stores: BTreeMap<String, Spanned<StoreKeys>>,
}

/// The keys of the prices of a store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreKeys {
    #[serde(default)]
    per_thousand_requests: f64,
    #[serde(default)]
    per_gib: f64,
}

/// Checks prices; `known` says of a name which store it is, or why it is none.
pub(super) fn check(keys: Keys, known: impl Fn(&str) -> Result<StoreName, String>) -> Result<Prices, Wrong> {
    let currency = keys.currency.value.trim().to_owned();
    if currency.is_empty() || currency.chars().count() > 8 || currency.chars().any(char::is_control) {
        let why = "prices: currency: expected 1 to 8 characters, such as USD";
        return Err((keys.currency.referenced.line(), why.to_owned()));
    }
    let mut stores = BTreeMap::new();
    for (name, keys) in keys.stores {
        let wrong = |why: &str| (keys.referenced.line(), format!("prices: {name}: {why}"));
        let store = known(&name).map_err(|why| wrong(&why))?;
        let StoreKeys { per_thousand_requests, per_gib } = keys.value;
        if ![per_thousand_requests, per_gib].iter().all(|price| price.is_finite() && *price >= 0.0) {
            return Err(wrong("a price is 0 or more, such as per_gib: 0.09"));
        }
        stores.insert(store, Price { per_thousand_requests, per_gib });
    }
    Ok(Prices { currency, stores })
}
