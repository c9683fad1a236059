//! Bit errors: what is wrong with copies, and what can be done about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::decisions::verdict_of;
use queuekeeper_mill::bit::verdict::{Offer, Remedy};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Mill, ViewError, unavailable};
use crate::views::parameter::Within;

/// How many bit errors a page has.
type Limit = Within<1, 1000, 200>;

/// Which bit errors; without an account, those of the first that has any.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ErrorFilter {
    /// Those of this account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those with a number above this: `next` of the page before.
    #[param(value_type = Option<u64>)]
    pub(crate) after: u64,
    /// How many to show at most, 1 to 1,000.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// Open bit errors.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ErrorList {
    /// The accounts that have any, with how many.
    pub(crate) accounts: BTreeMap<String, u64>,
    /// The account of those that are listed; empty where there are none.
    pub(crate) account: String,
    /// Those of a page, by number: the order in which they were found.
    pub(crate) errors: Vec<BitErrorItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// What is wrong with a copy.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BitErrorItem {
    /// Its number.
    pub(crate) number: u64,
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// The space, as the account names it.
    pub(crate) space: String,
    /// The key, with escapes for what does not show.
    pub(crate) key: String,
    /// The key, percent-encoded.
    pub(crate) key_encoded: String,
    /// The names of what was found; empty where what was seen contradicts itself.
    #[schema(example = json!(["content_damaged"]))]
    pub(crate) findings: Vec<String>,
    /// What was found, in words.
    #[schema(example = "content damaged")]
    pub(crate) detail: String,
    /// What can be done about it, as a sentence.
    pub(crate) remedy: String,
    /// Whether an operator may have it repaired from another copy, and that was not requested yet.
    pub(crate) is_repairable: bool,
    /// When the repair of the copy was requested that has not ended; null where there is none.
    pub(crate) repair_started: Option<Timestamp>,
    /// When it was found first.
    pub(crate) found: Timestamp,
    /// When it was found last.
    pub(crate) seen: Timestamp,
    /// How often it was found.
    pub(crate) times: u64,
}

impl Mill {
    /// Open bit errors.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn errors(&self, filter: &ErrorFilter) -> Result<ErrorList, ViewError> {
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let mut accounts = BTreeMap::new();
        for ((counter, scope), open) in figures {
            let (Some((account, _store)), Ok(open @ 1..)) = (scope.split_once('/'), u64::try_from(open)) else {
                continue;
            };
            if counter == Counter::BitErrors {
                *accounts.entry(account.to_owned()).or_insert(0) += open;
            }
        }
        let name = if filter.account.is_empty() {
            let Some(first) = self.accounts().find(|account| accounts.contains_key(&account.name)) else {
                return Ok(ErrorList { accounts, account: String::new(), errors: Vec::new(), next: None });
            };
            &first.name
        } else {
            &filter.account
        };
        let (account, limit) = (self.account(name)?, filter.limit.get());
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let found = self.catalogue().bit_errors(&account.name, filter.after, most).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let mut errors: Vec<_> = found.into_iter().map(|error| BitErrorItem::new(error, account)).collect();
        let has_more = errors.len() > limit;
        errors.truncate(limit);
        let next = errors.last().filter(|_| has_more).map(|error| error.number);
        Ok(ErrorList { accounts, account: account.name.clone(), errors, next })
    }
}

impl BitErrorItem {
    fn new(error: BitError, account: &Account) -> Self {
        let verdict = verdict_of(&error);
        let (remedy, is_repairable) = match &verdict {
            Ok(verdict) => (advice(&verdict.offers), offers_repair(&verdict.offers)),
            Err(why) => (format!("The item has to be looked at by hand: {why}."), false),
        };
        let BitError { id, store, item, findings, detail, found, seen, times, repair_started, .. } = error;
        Self {
            number: id,
            account: account.name.clone(),
            store: store.to_string(),
            space: account.of_store(&item.space).unwrap_or_else(|| item.space.clone()).to_string(),
            key: item.key.to_string(),
            key_encoded: item.key.encoded(),
            findings,
            detail,
            remedy: match repair_started {
                Some(_) => "A repair was requested and has not ended. One that failed three times is a dead letter; \
                    queuekeeper mill repair requests it again."
                    .to_owned(),
                None => remedy,
            },
            is_repairable: is_repairable && repair_started.is_none(),
            repair_started,
            found,
            seen,
            times,
        }
    }
}

fn offers_repair(offers: &[Offer]) -> bool {
    offers.iter().any(|offer| offer.remedy == Remedy::RepairFromCopy)
}

/// What can be done, of the remedies that are possible.
fn advice(offers: &[Offer]) -> String {
    let sentence = |offer: &Offer| match offer.remedy {
        Remedy::RepairFromCopy => "An operator can have it repaired from another copy.",
        Remedy::RewriteInPlace => "The content is right: store it again, so that the store computes its checksum anew.",
        Remedy::WriteToProvider => "Report it to the provider of the store.",
        Remedy::CorrectIndex => "The content index is corrected from the audit log once the content is read and right.",
        Remedy::AppendEvent if offer.only_by_asking => {
            "Store the content again once it is known to be right: that is recorded."
        }
        Remedy::AppendEvent => "The missing event is appended once the content is read and right.",
        Remedy::Adopt => "Where the content is wanted, set adopt to automatic for this store; else delete it.",
        Remedy::AcceptChange => {
            "If the change was intended, store the content again with queuekeeper, which records it."
        }
    };
    if offers.is_empty() {
        return "Nothing shows which is right: compare the copies, and store the right content again.".to_owned();
    }
    offers.iter().map(sentence).collect::<Vec<_>>().join(" ")
}
