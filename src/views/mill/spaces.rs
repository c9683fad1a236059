//! Every space, and how far its copies are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::loops::Morsel;
use queuekeeper_catalogue::space_stats::SpaceStats;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::{self, Policy};
use queuekeeper_mill::producer::PRODUCER;
use queuekeeper_store::{SpaceName, StoreName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::proofs::{CopyProofs, Proofs};
use super::{Mill, ViewError, unavailable};
use crate::views::page::PageLimit;

/// Of how many spaces of an account it is known what a listing had.
const MOST_COUNTED: u32 = 1_000;

/// How many spaces a page has.
type Limit = PageLimit<100>;

/// Which spaces; without any of these, all of them.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct SpaceFilter {
    /// Those of this account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those with names that begin with this.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) prefix: String,
    /// Those after this account and space: `next` of the previous page.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "account1/theses")]
    pub(crate) after: String,
    /// How many spaces to show at most, 1 to 500.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// A page of spaces, by account and name.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SpaceList {
    /// The spaces of this page.
    pub(crate) items: Vec<SpaceCopies>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The accounts whose policy cannot be read, with why: their spaces are shown as if no policy applied.
    pub(crate) unread: BTreeMap<String, String>,
}

/// A space with what each store of its account has of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SpaceCopies {
    /// The account.
    pub(crate) account: String,
    /// The space.
    pub(crate) space: String,
    /// One for each store of the account, in the order of their numbers.
    pub(crate) copies: Vec<SpaceCopy>,
}

/// What a store has of a space.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SpaceCopy {
    /// The number of the store within the account.
    pub(crate) store_id: String,
    /// The store.
    pub(crate) store: String,
    /// How many items it has, according to the content index.
    pub(crate) items: u64,
    /// Their size.
    pub(crate) bytes: u64,
    /// How far it is.
    pub(crate) state: CopyState,
    /// How many copies of items there have an open bit error.
    pub(crate) bit_errors: u64,
    /// The store that it is copied from; null where it is copied from none.
    pub(crate) source: Option<String>,
    /// How many items that one has.
    pub(crate) source_items: u64,
    /// The last count of a listing of the store, if there is one.
    pub(crate) counted: Option<SpaceCount>,
    /// The proofs of its items.
    pub(crate) proofs: CopyProofs,
    /// Why a loop cannot scan it; null if it can.
    pub(crate) error: Option<String>,
}

/// What a listing of a space had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SpaceCount {
    /// How many items.
    pub(crate) items: u64,
    /// Their size.
    pub(crate) bytes: u64,
    /// When.
    pub(crate) time: Timestamp,
}

/// The state of a copy of a space, by the number of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CopyState {
    /// It is copied from here, and no policy copies anything to it.
    Source,
    /// It has as many items as the store that it is copied from, or more, and where it has as many, as many bytes; no
    /// copy there has an open bit error.
    Complete,
    /// The same, and copies there have open bit errors.
    BitErrors,
    /// It has as many items, and not as many bytes.
    Differing,
    /// It has fewer items.
    Incomplete,
    /// It has fewer items, and some keys are left out there by the limits of the account; how many is not counted.
    LeftOut,
    /// It has items, and no policy copies anything to it or from it.
    NoPolicy,
    /// It has none, and is to have none.
    None,
}

impl CopyState {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Complete => "complete",
            Self::BitErrors => "has bit errors",
            Self::Differing => "differs",
            Self::Incomplete => "incomplete",
            Self::LeftOut => "fewer, as keys are left out",
            Self::NoPolicy => "no policy",
            Self::None => "no copy",
        }
    }
}

/// What there is of policies and loops, to look at spaces with.
pub(super) struct Standing {
    figures: Figures,
    morsels: Vec<Morsel>,
    /// When the next loop is due.
    pub(super) next_loop: Option<Timestamp>,
    counts: BTreeMap<(String, StoreName, SpaceName), SpaceCount>,
    proofs: Proofs,
}

impl Mill {
    /// A page of spaces.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn spaces(&self, filter: &SpaceFilter) -> Result<SpaceList, ViewError> {
        if !filter.account.is_empty() {
            self.account(&filter.account)?;
        }
        let standing = self.standing().await?;
        let limit = filter.limit.get();
        let after = filter.after.split_once('/').unwrap_or_default();
        let (mut items, mut next, mut unread) = (Vec::<SpaceCopies>::new(), None, BTreeMap::new());
        for account in self.accounts().filter(|account| filter.account.is_empty() || account.name == filter.account) {
            if next.is_some() || account.name.as_str() < after.0 {
                continue;
            }
            let policy = match self.policy_of(account).await {
                Ok(policy) => policy,
                Err(why) => {
                    unread.insert(account.name.clone(), why);
                    Policy::default()
                }
            };
            let mut spaces = account.spaces(&standing.figures);
            spaces.extend(policy.spaces.keys().cloned());
            let is_behind = |space: &SpaceName| account.name.as_str() > after.0 || space.as_str() > after.1;
            let matching = spaces.iter().filter(|space| space.as_str().starts_with(&filter.prefix) && is_behind(space));
            for space in matching.filter(|space| !space.is_reserved()) {
                if items.len() == limit {
                    next = items.last().map(|last| format!("{}/{}", last.account, last.space));
                    break;
                }
                items.push(standing.copies(account, &policy, space));
            }
        }
        Ok(SpaceList { items, next, unread })
    }

    pub(super) async fn standing(&self) -> Result<Standing, ViewError> {
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let figures = self.catalogue().counters().await.map_err(error)?;
        let mut counts = BTreeMap::new();
        for account in self.accounts() {
            for of in self.catalogue().space_stats(&account.name, MOST_COUNTED).await.map_err(error)? {
                let SpaceStats { account, store, space, time, items, bytes } = of;
                counts.insert((account, store, space), SpaceCount { items, bytes, time });
            }
        }
        let morsels = self.catalogue().morsels(PRODUCER).await.map_err(error)?;
        let next_loop = self.catalogue().loop_state(PRODUCER).await.map_err(error)?.and_then(|state| state.next);
        let proofs = self.proofs(Timestamp::now()).await?;
        Ok(Standing { figures, morsels, next_loop, counts, proofs })
    }

    /// The policy of an account that is in force.
    pub(super) async fn policy_of(&self, account: &Account) -> Result<Policy, String> {
        let read = policy::read(self.catalogue(), &self.0.source, account).await;
        read.map(|read| read.policy).map_err(|error| error.to_string())
    }
}

impl Standing {
    /// Whether any item of a space is recorded.
    pub(super) fn has(&self, account: &Account, space: &SpaceName) -> bool {
        account.spaces(&self.figures).contains(space)
    }

    pub(super) fn copies(&self, account: &Account, policy: &Policy, space: &SpaceName) -> SpaceCopies {
        let pairs = policy.pairs(space);
        let items = |store| account.figure(&self.figures, Counter::SpaceItems, store, space);
        let bytes = |store| account.figure(&self.figures, Counter::SpaceBytes, store, space);
        let copies = account.stores.iter().map(|(id, store)| {
            let source = pairs.iter().find(|pair| pair.destination == *id);
            let source = source.and_then(|pair| account.stores.get(&pair.source));
            let (has, of_source) = (items(store), source.map_or(0, items));
            let is_source = pairs.iter().any(|pair| pair.source == *id);
            let wrong = account.figure(&self.figures, Counter::SpaceBitErrors, store, space);
            let state = match (source, is_source, has) {
                (Some(source), _, has) if has == of_source && bytes(store) != bytes(source) => CopyState::Differing,
                (Some(_), _, has) if has >= of_source && wrong > 0 => CopyState::BitErrors,
                (Some(_), _, has) if has >= of_source => CopyState::Complete,
                (Some(_), _, _) if account.leaves_out_any(store) => CopyState::LeftOut,
                (Some(_), _, _) => CopyState::Incomplete,
                (None, true, _) => CopyState::Source,
                (None, false, 0) => CopyState::None,
                (None, false, _) => CopyState::NoPolicy,
            };
            let morsel = source.and_then(|source| self.morsel(&account.name, space, source.as_str(), store.as_str()));
            SpaceCopy {
                store_id: id.to_string(),
                store: store.to_string(),
                items: has,
                bytes: bytes(store),
                state,
                bit_errors: wrong,
                source: source.map(ToString::to_string),
                source_items: of_source,
                counted: self.counts.get(&(account.name.clone(), store.clone(), space.clone())).copied(),
                proofs: self.proofs.of_copy(account, (id, store), space),
                error: morsel.and_then(|morsel| morsel.error.clone()),
            }
        });
        SpaceCopies { account: account.name.clone(), space: space.to_string(), copies: copies.collect() }
    }

    /// What is left of the loop for a space and two stores.
    pub(super) fn morsel(&self, account: &str, space: &SpaceName, source: &str, destination: &str) -> Option<&Morsel> {
        self.morsels.iter().find(|morsel| {
            morsel.account == account
                && morsel.space == *space
                && morsel.source.as_str() == source
                && morsel.destination.as_str() == destination
        })
    }
}
