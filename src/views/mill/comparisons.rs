//! Comparisons of what stores list with the content index, as they were kept last.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_catalogue::comparisons::KeptComparison;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::compare::DifferenceKind;
use queuekeeper_store::SpaceName;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Mill, ViewError, unavailable};
use crate::views::page::PageLimit;
use crate::words::{count, counted};

/// How many comparisons a page has.
type Limit = PageLimit<100>;

/// Which comparisons.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ComparisonFilter {
    /// Those of this account; without it, of the first account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those of spaces after this one: `next` of the previous page.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "theses")]
    pub(crate) after: String,
    /// How many to show at most, 1 to 500, and the others of the last space.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// A page of comparisons, by space and store.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ComparisonList {
    /// The account.
    pub(crate) account: String,
    /// The comparisons of this page: the last one of each space of a store that was kept.
    pub(crate) items: Vec<ComparisonItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

/// A comparison that was kept.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ComparisonItem {
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// The space, as the account names it.
    pub(crate) space: String,
    /// When it began.
    pub(crate) started: Timestamp,
    /// When it had ended.
    pub(crate) ended: Timestamp,
    /// The items that are stored as recorded.
    pub(crate) agreeing: ComparedAmount,
    /// What differs, by kind: `missing`, `not_recorded`, `observed`, `deleted`, `size`, `checksum` and `entity_tag`.
    pub(crate) differences: BTreeMap<String, ComparedAmount>,
    /// How many items differ.
    pub(crate) differing: u64,
    /// How many items were being changed, so that their state is unknown.
    pub(crate) changing: u64,
    /// Where its table is stored: store, space and key.
    pub(crate) place: String,
}

/// How much of a space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ComparedAmount {
    /// How many items.
    pub(crate) items: u64,
    /// How many bytes these have.
    pub(crate) bytes: u64,
}

/// What a comparison came to, as the catalogue keeps it.
#[derive(Debug, Deserialize)]
struct Kept {
    agreeing: ComparedAmount,
    differences: BTreeMap<String, ComparedAmount>,
    changing: u64,
}

impl ComparisonItem {
    /// What differs, in words.
    pub(crate) fn words(&self) -> String {
        let words = |(name, amount): (&String, &ComparedAmount)| {
            let what = match DifferenceKind::named(name) {
                Some(kind) => kind.words(),
                None => name.as_str(),
            };
            format!("{} {what}", count(amount.items))
        };
        let mut parts: Vec<_> = self.differences.iter().map(words).collect();
        parts.extend((self.changing > 0).then(|| format!("{} being changed", count(self.changing))));
        if parts.is_empty() { "no differences".to_owned() } else { parts.join(", ") }
    }

    /// How much is as it is recorded, in words.
    pub(crate) fn agreeing_words(&self) -> String {
        counted(self.agreeing.items, "item", "items")
    }

    fn new(kept: KeptComparison) -> Result<Self, ViewError> {
        let KeptComparison { account, store, space, started, ended, differing, result, place } = kept;
        let unreadable = |error| ViewError::Unavailable(format!("A comparison of {space} is not readable: {error}."));
        let Kept { agreeing, differences, changing } = serde_json::from_str(&result).map_err(unreadable)?;
        let (store, space) = (store.to_string(), space.to_string());
        Ok(Self { account, store, space, started, ended, agreeing, differences, differing, changing, place })
    }
}

impl Mill {
    /// The comparisons of an account that were kept.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn comparisons(&self, filter: &ComparisonFilter) -> Result<ComparisonList, ViewError> {
        let account = match &*filter.account {
            "" => self.account_names().into_iter().next().unwrap_or_default(),
            name => self.account(name)?.name.clone(),
        };
        let limit = filter.limit.get();
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let found = self.catalogue().comparisons(&account, &filter.after, most).await;
        let mut found = found.map_err(|error| unavailable(&error))?;
        let mut next = None;
        if found.len() > limit {
            // A page ends with all stores of a space, as the next one begins behind it.
            let last = found[limit - 1].space.clone();
            found.retain(|kept| kept.space < last);
            found.extend(self.of_space(&account, &last).await?);
            next = Some(last.to_string());
        }
        let items = found.into_iter().map(ComparisonItem::new).collect::<Result<_, _>>()?;
        Ok(ComparisonList { account, items, next })
    }

    /// Those of a space.
    pub(super) async fn comparisons_of(
        &self,
        account: &Account,
        space: &SpaceName,
    ) -> Result<Vec<ComparisonItem>, ViewError> {
        let kept = self.of_space(&account.name, space).await?;
        kept.into_iter().map(ComparisonItem::new).collect()
    }

    async fn of_space(&self, account: &str, space: &SpaceName) -> Result<Vec<KeptComparison>, ViewError> {
        self.catalogue().comparisons_of(account, space).await.map_err(|error| unavailable(&error))
    }
}
