//! Checks on request: what one would take, and how far they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use queuekeeper_catalogue::bit::RequestedCheck;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::coverage::Amount;
use queuekeeper_mill::bit::forecast::Need;
use queuekeeper_mill::bit::policy::ProofPolicy;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Error, ErrorKind, Key, SpaceName, Store, StoreName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::producers::CostItem;
use super::{KeyText, Mill, ViewError, check_content, space, store_of, unavailable};
use crate::views::error::quoted;
use crate::views::page::PageLimit;
use crate::words::counted;

/// How many checks a page has.
type Limit = PageLimit<100>;

/// What to check: an item, a space, or all content of an account in a store.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct CheckScope {
    /// The account.
    #[param(value_type = String, example = "account1")]
    pub(crate) account: String,
    /// The store: its name, or its number in policies.
    #[param(value_type = String, example = "replica")]
    pub(crate) store: String,
    /// The space, as the account names it; without it, all spaces.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "theses")]
    pub(crate) space: String,
    /// The key of the item, percent-encoded: `key_encoded` of a list; without it, all of the space.
    #[param(value_type = Option<String>)]
    pub(crate) key: KeyText,
}

/// Which requested checks.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct CheckFilter {
    /// Those of this account; without it, of the first account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those with a number below this: `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u64>)]
    pub(crate) before: Option<u64>,
    /// How many to show at most, 1 to 500.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// A page of requested checks, the newest first: the last one of each item and space.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CheckList {
    /// The account.
    pub(crate) account: String,
    /// The checks of this page.
    pub(crate) items: Vec<RequestedCheckItem>,
    /// `before` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// A requested check.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RequestedCheckItem {
    /// Its number.
    pub(crate) number: u64,
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// The space, as the account names it.
    pub(crate) space: String,
    /// The key of the item, with escapes for invisible characters; null if all of the space is checked.
    pub(crate) key: Option<String>,
    /// The same, percent-encoded.
    pub(crate) key_encoded: Option<String>,
    /// Who requested it.
    pub(crate) user: String,
    /// Why.
    pub(crate) reason: String,
    /// When.
    pub(crate) requested: Timestamp,
    /// `under_way`, `ended`, or `stopped` where a part of it failed in every attempt and is in the dead letters.
    #[schema(example = "under_way")]
    pub(crate) state: &'static str,
    /// How many items there were according to the content index.
    pub(crate) items: u64,
    /// How many bytes these had.
    pub(crate) bytes: u64,
    /// How many items are checked, regardless of the result.
    pub(crate) checked: u64,
    /// How many items were proven by reading.
    pub(crate) proven: u64,
    /// How many bytes these have.
    pub(crate) proven_bytes: u64,
    /// How many items are wrong: each has a bit error.
    pub(crate) wrong: u64,
    /// How many could not be proven, with nothing wrong: a job writes them, or they are archived and not restored.
    pub(crate) unproven: u64,
    /// How many have neither content nor a record.
    pub(crate) gone: u64,
    /// How many wait to be checked one by one, or failed.
    pub(crate) pending: u64,
    /// When an item of it was last checked.
    pub(crate) changed: Timestamp,
}

/// What a check would take.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CheckPlan {
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// The spaces that would be checked, as the account names them.
    #[schema(value_type = Vec<String>)]
    pub(crate) spaces: Vec<String>,
    /// The key of the item, with escapes for invisible characters; null if it is not an item.
    pub(crate) key: Option<String>,
    /// How many items would be read, according to the content index.
    pub(crate) items: u64,
    /// How many requests that takes.
    pub(crate) requests: u64,
    /// How many bytes would be read.
    pub(crate) bytes: u64,
    /// What that costs; null if the configuration has no prices.
    pub(crate) cost: Option<CostItem>,
    /// What is checked, to ask for it.
    #[serde(skip)]
    pub(crate) scope: Scope,
    /// How much each of the spaces has.
    #[serde(skip)]
    pub(crate) parts: Vec<(SpaceName, Amount)>,
}

impl CheckPlan {
    /// How much it is, in words.
    pub(crate) fn words(&self) -> String {
        let cost = self.cost.as_ref().map(|cost| format!(", {}", cost.words())).unwrap_or_default();
        let size = crate::words::size(self.bytes);
        let requests = counted(self.requests, "request", "requests");
        format!("{} with {size} to be read, {requests}{cost}", counted(self.items, "item", "items"))
    }
}

impl RequestedCheckItem {
    /// Whether all that was checked so far is proven.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven == self.checked
    }

    /// Its progress and findings, in words.
    pub(crate) fn words(&self) -> String {
        let all = self.items.max(self.checked + self.pending);
        let done = if self.key.is_some() {
            if self.checked > 0 { "checked".to_owned() } else { "not checked yet".to_owned() }
        } else {
            format!("{} of {} checked", crate::words::count(self.checked), counted(all, "item", "items"))
        };
        let found = [
            (self.proven, "proven by reading"),
            (self.wrong, "wrong"),
            (self.unproven, "not proven"),
            (self.gone, "neither stored nor recorded"),
        ];
        let found = found.into_iter().filter(|(items, _)| *items > 0);
        let found = found.map(|(items, what)| format!(", {} {what}", crate::words::count(items)));
        format!("{done}{}", found.collect::<String>())
    }
}

impl From<RequestedCheck> for RequestedCheckItem {
    fn from(check: RequestedCheck) -> Self {
        Self {
            number: check.id,
            account: check.account,
            store: check.store.to_string(),
            space: check.space.to_string(),
            key: check.key.as_ref().map(Key::to_string),
            key_encoded: check.key.as_ref().map(Key::encoded),
            user: check.user,
            reason: check.reason,
            requested: check.requested,
            state: check.state.as_str(),
            items: check.items,
            bytes: check.bytes,
            checked: check.proven + check.wrong + check.unproven + check.gone,
            proven: check.proven,
            proven_bytes: check.proven_bytes,
            wrong: check.wrong,
            unproven: check.unproven,
            gone: check.gone,
            pending: check.pending,
            changed: check.changed,
        }
    }
}

impl Mill {
    /// The checks of an account that were requested.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn requested_checks(&self, filter: &CheckFilter) -> Result<CheckList, ViewError> {
        let account = match &*filter.account {
            "" => self.account_names().into_iter().next().unwrap_or_default(),
            name => self.account(name)?.name.clone(),
        };
        let limit = filter.limit.get();
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let found = self.catalogue().requested_checks(&account, filter.before, most).await;
        let mut found = found.map_err(|error| unavailable(&error))?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|check| check.id);
        Ok(CheckList { account, items: found.into_iter().map(RequestedCheckItem::from).collect(), next })
    }

    /// The last requested checks of a space, or of an item, one for each store that has any.
    pub(super) async fn requested_of(
        &self,
        account: &Account,
        space: &SpaceName,
        key: Option<&Key>,
    ) -> Result<Vec<RequestedCheckItem>, ViewError> {
        let mut found = Vec::new();
        for store in account.stores.values().collect::<BTreeSet<_>>() {
            let check = self.catalogue().requested_check(&account.name, store, space, key).await;
            found.extend(check.map_err(|error| unavailable(&error))?.map(RequestedCheckItem::from));
        }
        Ok(found)
    }

    /// What a check would take. Of a store, the spaces are listed.
    ///
    /// # Errors
    /// For what does not exist or has no content of users, and when catalogue or store cannot be read.
    pub(crate) async fn plan_check(&self, named: &CheckScope) -> Result<CheckPlan, ViewError> {
        let account = self.account(&named.account)?;
        let store = store_of(account, &named.store)?;
        let spaces = match &*named.space {
            "" if named.key.0.is_some() => {
                return Err(ViewError::parameter("A key needs the name of its space.").of("space"));
            }
            "" => None,
            name => Some(space(account, name)?.0),
        };
        spaces.as_ref().map_or(Ok(()), check_content)?;
        let key = named.key.0.clone();
        let parts = self.parts(account, &store, spaces.as_ref(), key.as_ref()).await?;
        let amount: Amount = parts.iter().map(|(_, amount)| *amount).sum();
        // What lists a page checks it, too; one item is not listed.
        let listings = u64::from(key.is_none());
        let Need { requests, bytes } = Need::of(amount, ProofPolicy::Read, listings);
        let prices = self.prices();
        let price = prices.stores.get(&store).copied().unwrap_or_default();
        let cost = CostItem { amount: price.of(requests, bytes), currency: prices.currency.clone() };
        Ok(CheckPlan {
            account: account.name.clone(),
            store: store.to_string(),
            spaces: parts.iter().map(|(space, _)| space.to_string()).collect(),
            key: key.as_ref().map(Key::to_string),
            items: amount.items,
            requests,
            bytes,
            cost: Some(cost).filter(|_| !prices.stores.is_empty()),
            scope: Scope { account: account.name.clone(), store, space: spaces, key },
            parts,
        })
    }

    /// What there is to be checked, by space.
    async fn parts(
        &self,
        account: &Account,
        store: &StoreName,
        space: Option<&SpaceName>,
        key: Option<&Key>,
    ) -> Result<Vec<(SpaceName, Amount)>, ViewError> {
        if let (Some(space), Some(key)) = (space, key) {
            let bytes = self.size_of(account, store, space, key).await?;
            return Ok(vec![(space.clone(), Amount { items: 1, bytes })]);
        }
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let mut spaces = account.spaces_in(&figures, store);
        if space.is_none_or(|space| !spaces.contains(space)) {
            // The store may have what no record knows of.
            let opened = self.open(store).await?;
            let listed = opened.spaces().await.map_err(|error| unread(store, &error.to_string()))?;
            spaces.extend(listed.iter().filter_map(|space| account.of_store(space)));
        }
        spaces.retain(|known| !known.is_reserved() && space.is_none_or(|space| known == space));
        if let Some(space) = space.filter(|_| spaces.is_empty()) {
            return Err(ViewError::not_found(format!("{} has no space “{space}” in {store}.", account.name)));
        }
        let of = |counter, space: &SpaceName| account.figure(&figures, counter, store, space);
        let amount = |space: SpaceName| {
            let amount = Amount { items: of(Counter::SpaceItems, &space), bytes: of(Counter::SpaceBytes, &space) };
            (space, amount)
        };
        Ok(spaces.into_iter().map(amount).collect())
    }

    /// How many bytes an item has: by its record, or where it has none, by the store.
    async fn size_of(
        &self,
        account: &Account,
        store: &StoreName,
        space: &SpaceName,
        key: &Key,
    ) -> Result<u64, ViewError> {
        let in_stores = account.in_stores(space).unwrap_or_else(|| space.clone());
        let (item, error) =
            (Item::new(in_stores, key.clone()), |error: queuekeeper_catalogue::Error| unavailable(&error));
        let records = self.catalogue().records_of_item(store, &item).await.map_err(error)?;
        let (index, audit) = records.map_or((None, None), |records| (records.index, records.audit));
        let index = index.filter(|index| !index.is_deleted).map(|index| index.size);
        let audit = audit.filter(|audit| !audit.is_deleted).map(|audit| audit.size);
        if let Some(bytes) = index.or(audit) {
            return Ok(bytes);
        }
        // No record knows of it, and the store may have it.
        match self.open(store).await?.head(&item).await {
            Ok(Some(properties)) => return Ok(properties.size),
            Ok(None) | Err(Error { kind: ErrorKind::NoSpace | ErrorKind::NotFound, .. }) => {}
            Err(error) => return Err(unread(store, &error.to_string())),
        }
        // A check ends what was found wrong with it before.
        if self.catalogue().bit_error(store, &item).await.map_err(error)?.is_some() {
            return Ok(0);
        }
        Err(ViewError::not_found(format!(
            "{store} has no item “{}” in {space} of {}, and there is no record of one.",
            quoted(&key.to_string()),
            account.name
        )))
    }

    async fn open(&self, store: &StoreName) -> Result<Arc<dyn Store>, ViewError> {
        (self.0.open)(store.clone()).await.map_err(|why| unread(store, &why))
    }
}

/// Why a store cannot be read.
fn unread(store: &StoreName, why: &str) -> ViewError {
    ViewError::Unavailable(format!("{store} cannot be read: {why}."))
}
