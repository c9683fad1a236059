//! The stores as accounts have them: each keeps to the limits of its account, and what is read and written is counted.

mod cold;
mod elsewhere;
mod limited;
mod rate;

use std::collections::BTreeMap;
use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::{Store, StoreName};

use self::cold::Cold;
use self::elsewhere::Elsewhere;
use self::limited::{Limited, Rates};
use crate::account::Account;
use crate::limits::ColdStore;
use crate::metrics::MillMetrics;
use crate::worker::Lease;

/// The stores as the accounts have them. Clones share their rates.
#[derive(Clone)]
pub struct AccountStores(Arc<Parts>);

struct Parts {
    catalogue: Catalogue,
    stores: BTreeMap<StoreName, Arc<dyn Store>>,
    limits: BTreeMap<(String, StoreName), Limits>,
    metrics: MillMetrics,
}

#[derive(Default)]
struct Limits {
    rates: Arc<Rates>,
    read_from: Option<StoreName>,
    cold: ColdStore,
}

impl AccountStores {
    /// The stores with what the accounts say of them.
    #[must_use]
    pub fn new(
        catalogue: Catalogue,
        accounts: &BTreeMap<String, Account>,
        stores: BTreeMap<StoreName, Arc<dyn Store>>,
        metrics: MillMetrics,
    ) -> Self {
        let of = |account: &Account| {
            let limits = account.limits.iter().map(|(store, limits)| {
                let (rates, read_from) = (Arc::new(Rates::new(limits)), limits.read_from.clone());
                let of = Limits { rates, read_from, cold: limits.cold };
                ((account.name.clone(), store.clone()), of)
            });
            limits.collect::<Vec<_>>()
        };
        let limits = accounts.values().flat_map(of).collect();
        Self(Arc::new(Parts { catalogue, stores, limits, metrics }))
    }

    /// A store as an account has it. While it keeps a request or content waiting, the lease has progress.
    ///
    /// # Errors
    /// With a sentence, where there is no such store.
    pub fn get(&self, account: &str, store: &StoreName, lease: &Lease) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.limited(account, store, lease)?))
    }

    /// The same for a store whose content is read to be copied: where its account wants another store read in its
    /// place, that is read, as long as the content index says that it has the same.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn source(&self, account: &str, store: &StoreName, lease: &Lease) -> Result<Arc<dyn Store>, String> {
        let mut limited = self.limited(account, store, lease)?;
        if let Some(other) = self.read_from(account, store) {
            let copy = self.get(account, other, lease)?;
            limited.elsewhere = Some(Elsewhere { catalogue: self.0.catalogue.clone(), copy });
        }
        Ok(Arc::new(limited))
    }

    fn read_from(&self, account: &str, store: &StoreName) -> Option<&StoreName> {
        self.0.limits.get(&(account.to_owned(), store.clone()))?.read_from.as_ref()
    }

    fn limited(&self, account: &str, store: &StoreName, lease: &Lease) -> Result<Limited, String> {
        let bare = self.0.stores.get(store);
        let bare = bare.ok_or_else(|| format!("the store {store} is not in the configuration"))?;
        let limits = self.0.limits.get(&(account.to_owned(), store.clone()));
        let cold = limits.map(|limits| limits.cold).filter(ColdStore::is_limited);
        Ok(Limited {
            store: Arc::clone(bare),
            cold: cold.map(|settings| Cold { catalogue: self.0.catalogue.clone(), settings }),
            rates: limits.map(|limits| Arc::clone(&limits.rates)).unwrap_or_default(),
            elsewhere: None,
            metrics: self.0.metrics.clone(),
            lease: lease.clone(),
        })
    }
}
