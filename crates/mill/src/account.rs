//! Whose content it is, and in which stores.

use std::collections::{BTreeMap, BTreeSet};

use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_store::{SpaceName, StoreName};

use crate::policy::StoreId;

/// An account: some stores, and in each of them its spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its stores, by the numbers that policies have.
    pub stores: BTreeMap<StoreId, StoreName>,
    /// What the names of its spaces begin with in each store, before a `.`; `None` where all spaces are its own.
    pub prefix: Option<String>,
}

impl Account {
    /// The numbers of its stores.
    #[must_use]
    pub fn store_ids(&self) -> BTreeSet<StoreId> {
        self.stores.keys().cloned().collect()
    }

    /// A space of the account as its stores name it; `None` where that is too long for a name.
    #[must_use]
    pub fn in_stores(&self, space: &SpaceName) -> Option<SpaceName> {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{space}").parse().ok(),
            None => Some(space.clone()),
        }
    }

    /// A space of a store as the account names it; `None` where it is not the account's.
    #[must_use]
    pub fn of_store(&self, space: &SpaceName) -> Option<SpaceName> {
        match &self.prefix {
            Some(prefix) => space.as_str().strip_prefix(prefix.as_str())?.strip_prefix('.')?.parse().ok(),
            None => Some(space.clone()),
        }
    }

    /// The spaces of the account in which its stores have items, by the counters of the catalogue.
    #[must_use]
    pub fn spaces(&self, figures: &Figures) -> BTreeSet<SpaceName> {
        let scopes = figures.iter().filter(|((counter, _), figure)| *counter == Counter::SpaceItems && **figure > 0);
        let scopes = scopes.filter_map(|((_, scope), _)| scope.split_once('/'));
        let ours = scopes.filter(|(store, _)| self.stores.values().any(|name| name.as_str() == *store));
        ours.filter_map(|(_, space)| self.of_store(&space.parse().ok()?)).collect()
    }

    /// The figure of a counter of a space in one of the stores.
    #[must_use]
    pub fn figure(&self, figures: &Figures, counter: Counter, store: &StoreName, space: &SpaceName) -> u64 {
        let scope = self.in_stores(space).map(|space| format!("{store}/{space}"));
        let figure = scope.and_then(|scope| figures.get(&(counter, scope)).copied());
        figure.and_then(|figure| u64::try_from(figure).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spaces_of_an_account_are_those_with_its_prefix() {
        let account = |prefix: Option<&str>| Account {
            name: "account1".to_owned(),
            stores: BTreeMap::new(),
            prefix: prefix.map(str::to_owned),
        };
        let space = |name: &str| name.parse::<SpaceName>().unwrap();
        let ours = account(Some("account1"));
        assert_eq!(ours.in_stores(&space("theses")), Some(space("account1.theses")));
        assert_eq!(ours.of_store(&space("account1.theses")), Some(space("theses")));
        for other in ["account1", "account1.", "account12.theses", "theses", "account1..x"] {
            assert_eq!(other.parse().ok().and_then(|space| ours.of_store(&space)), None, "{other}");
        }
        assert_eq!(ours.in_stores(&space(&"a".repeat(63))), None);
        assert_eq!(account(None).of_store(&space("theses")), Some(space("theses")));
    }
}
