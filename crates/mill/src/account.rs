//! Whose content it is, and in which stores.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_store::{Key, SpaceName, StoreName};

use crate::bit::policy::ProofPolicy;
use crate::limits::{KeyPattern, StoreLimits};
use crate::policy::StoreId;

/// The space of an account in which its reports are, where the configuration names no other.
pub const ADMIN_SPACE: &str = "x-duracloud-admin";

/// An account: some stores, and in each of them its spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its stores, by the numbers that policies have.
    pub stores: BTreeMap<StoreId, StoreName>,
    /// What the names of its spaces begin with in each store, before a `.`; `None` where all spaces are its own.
    pub prefix: Option<String>,
    /// The number of the store whose content is its source, in which its reports are; `None` for its first store.
    pub primary: Option<StoreId>,
    /// The space of that store in which they are, as the account names it; `None` for [`ADMIN_SPACE`].
    pub admin_space: Option<SpaceName>,
    /// Whom a mail goes to on each report that is no success: checked addresses.
    pub mail: Vec<String>,
    /// What an operator allows it in its stores; everything in those that are not named.
    pub limits: BTreeMap<StoreName, StoreLimits>,
}

impl Account {
    /// The account that a task or a loop names.
    ///
    /// # Errors
    /// Where the configuration has none of that name, or no longer.
    pub(crate) fn find<'a>(accounts: &'a BTreeMap<String, Self>, name: &str) -> Result<&'a Self, String> {
        accounts.get(name).ok_or_else(|| format!("account {name:?} is not in the configuration"))
    }

    /// The numbers of its stores.
    #[must_use]
    pub fn store_ids(&self) -> BTreeSet<StoreId> {
        self.stores.keys().cloned().collect()
    }

    /// The store whose content is its source, in which its reports are; `None` where it has no store.
    #[must_use]
    pub fn primary(&self) -> Option<&StoreName> {
        let first = || self.stores.values().next();
        self.primary.as_ref().map_or_else(first, |id| self.stores.get(id))
    }

    /// The space with its reports, as its stores name it; `None` where that is too long for a name.
    #[must_use]
    pub fn admin_space(&self) -> Option<SpaceName> {
        match &self.admin_space {
            Some(space) => self.in_stores(space),
            None => self.in_stores(&ADMIN_SPACE.parse().ok()?),
        }
    }

    /// Where its reports are: its primary store, and their space as its stores name it.
    ///
    /// # Errors
    /// Where it has no store, or the name of the space is too long.
    pub(crate) fn report_place(&self) -> Result<(&StoreName, SpaceName), String> {
        let store = self.primary().ok_or_else(|| format!("{} has no primary store", self.name))?;
        let too_long = || format!("the name of the admin space is too long in the stores of {}", self.name);
        Ok((store, self.admin_space().ok_or_else(too_long)?))
    }

    /// A space of the account as its stores name it; `None` where that is too long for a name.
    #[must_use]
    pub fn in_stores(&self, space: &SpaceName) -> Option<SpaceName> {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{space}").parse().ok(),
            None => Some(space.clone()),
        }
    }

    /// The name of a space of the account in its stores, as [`in_stores`](Self::in_stores) has it.
    ///
    /// # Errors
    /// Where it is too long.
    pub(crate) fn require_space(&self, space: &SpaceName) -> Result<SpaceName, String> {
        self.in_stores(space)
            .ok_or_else(|| format!("the name of the space {space} is too long in the stores of {}", self.name))
    }

    /// A space of a store as the account names it; `None` where it is not the account's.
    #[must_use]
    pub fn of_store(&self, space: &SpaceName) -> Option<SpaceName> {
        match &self.prefix {
            Some(prefix) => space.as_str().strip_prefix(prefix.as_str())?.strip_prefix('.')?.parse().ok(),
            None => Some(space.clone()),
        }
    }

    /// The pattern by which a key is not copied to a store.
    #[must_use]
    pub fn leaves_out(&self, store: &StoreName, key: &Key) -> Option<&KeyPattern> {
        self.limits.get(store)?.leaves_out(key)
    }

    /// Which proof of content in a store a check is to bring.
    #[must_use]
    pub fn proof_policy(&self, store: &StoreName) -> ProofPolicy {
        self.limits.get(store).map(|limits| limits.proof).unwrap_or_default()
    }

    /// Whether reading from a store is limited, or takes a restore.
    #[must_use]
    pub fn is_cold(&self, store: &StoreName) -> bool {
        self.limits.get(store).is_some_and(|limits| limits.cold.is_limited())
    }

    /// Whether some keys are not copied to a store.
    #[must_use]
    pub fn leaves_out_any(&self, store: &StoreName) -> bool {
        self.limits.get(store).is_some_and(|limits| !limits.leave_out.is_empty())
    }

    /// Where a task that reads a source, if it has one, and uses another store may not begin now: the store that is
    /// closed for longest, and until when. Of a source that is read from another store, the hours of that count, too.
    #[must_use]
    pub fn closed_until<'a>(
        &'a self,
        source: Option<&'a StoreName>,
        store: &'a StoreName,
        now: Timestamp,
    ) -> Option<(&'a StoreName, Timestamp)> {
        let limits = |store: &StoreName| self.limits.get(store);
        let read = source.and_then(|source| limits(source)?.read_from.as_ref());
        let stores = [source, read, Some(store)].into_iter().flatten();
        let closed = stores.filter_map(|store| Some((store, limits(store)?.hours.as_ref()?.closed_until(now)?)));
        closed.max_by_key(|(_, until)| *until)
    }

    /// How such a task ends, where it may not begin now.
    pub(crate) fn put_off(&self, source: Option<&StoreName>, store: &StoreName, now: Timestamp) -> Option<TaskOutcome> {
        let (_, until) = self.closed_until(source, store, now)?;
        Some(TaskOutcome::PutOff(until.duration_since(now).unsigned_abs()))
    }

    /// The spaces of the account in which its stores have items, by the counters of the catalogue.
    #[must_use]
    pub fn spaces(&self, figures: &Figures) -> BTreeSet<SpaceName> {
        let scopes = figures.iter().filter(|((counter, _), figure)| *counter == Counter::SpaceItems && **figure > 0);
        let scopes = scopes.filter_map(|((_, scope), _)| scope.split_once('/'));
        let ours = scopes.filter(|(store, _)| self.stores.values().any(|name| name.as_str() == *store));
        ours.filter_map(|(_, space)| self.of_store(&space.parse().ok()?)).collect()
    }

    /// Those of them in which one of its stores has items.
    #[must_use]
    pub fn spaces_in(&self, figures: &Figures, store: &StoreName) -> BTreeSet<SpaceName> {
        let has_items = |space: &SpaceName| self.figure(figures, Counter::SpaceItems, store, space) > 0;
        self.spaces(figures).into_iter().filter(has_items).collect()
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
            prefix: prefix.map(str::to_owned),
            ..Account::default()
        };
        let space = |name: &str| name.parse::<SpaceName>().unwrap();
        let ours = account(Some("account1"));
        assert_eq!(ours.in_stores(&space("theses")), Some(space("account1.theses")));
        assert_eq!(ours.of_store(&space("account1.theses")), Some(space("theses")));
        for other in ["account1", "account1.", "account12.theses", "theses", "account1..x"] {
            assert_eq!(other.parse().ok().and_then(|space| ours.of_store(&space)), None, "{other}");
        }
        assert_eq!(ours.in_stores(&space(&"a".repeat(63))), None);
        assert_eq!(ours.admin_space(), Some(space("account1.x-duracloud-admin")));
        let named = Account { admin_space: Some(space("x-reports")), ..account(None) };
        assert_eq!(named.admin_space(), Some(space("x-reports")));
        assert_eq!(account(None).of_store(&space("theses")), Some(space("theses")));
    }
}
