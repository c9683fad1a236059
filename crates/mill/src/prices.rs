//! What providers charge for what is read from their stores.

use std::collections::BTreeMap;

use queuekeeper_store::StoreName;

/// The prices of stores; without any, nothing costs anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// In which currency, as people write it.
    pub currency: String,
    /// Those that charge for something.
    pub stores: BTreeMap<StoreName, Price>,
}

/// What a provider charges for reading from a store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// For a thousand requests.
    pub per_thousand_requests: f64,
    /// For 2^30 bytes that leave the store.
    pub per_gib: f64,
}

impl Price {
    /// What so many requests and bytes cost.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a forecast is no invoice")]
    pub fn of(self, requests: u64, bytes: u64) -> f64 {
        self.per_thousand_requests * requests as f64 / 1000.0 + self.per_gib * bytes as f64 / (1_u64 << 30) as f64
    }
}
