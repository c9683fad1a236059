//! The policies of accounts: what is in force, what waits, what a change would do, and what was before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use queuekeeper_catalogue::policies::PolicyRecord;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::{
    self, Editable, NewPolicy, Pair, PairChange, Policy, StoreId, WaitingChange, check, read_policy,
};
use queuekeeper_store::SpaceName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Mill, ViewError, unavailable};

/// How many policies of the past are listed.
const HISTORY: u32 = 50;

/// The policies of all accounts.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PolicyList {
    /// One for each account of the configuration.
    pub(crate) items: Vec<PolicyDetail>,
}

/// The policy of an account.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PolicyDetail {
    /// The account.
    pub(crate) account: String,
    /// Its stores by their numbers.
    pub(crate) stores: BTreeMap<String, String>,
    /// The version that a change refers to; null if it cannot be changed here, because the list of accounts cannot be
    /// read.
    pub(crate) version: Option<String>,
    /// Whether it is in the list of accounts; otherwise, none of its content is copied.
    pub(crate) is_listed: bool,
    /// The policy in its file; null if that cannot be used.
    pub(crate) file: Option<PolicyText>,
    /// What is in force; null if nothing is.
    pub(crate) in_force: Option<PolicyText>,
    /// The changes in the file that wait for an admin.
    pub(crate) waiting: Vec<WaitingView>,
    /// Why a file cannot be used; null if they can.
    pub(crate) error: Option<String>,
    /// The keys of the account's file that do not belong to a policy, and have no effect: another program's, or
    /// misspelt.
    pub(crate) other_keys: Vec<String>,
    /// The policies that were in force, newest first, at most fifty.
    pub(crate) history: Vec<HistoryItem>,
    /// The spaces in which its stores have items.
    pub(crate) spaces: Vec<String>,
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PolicyText {
    /// The pairs of all other spaces.
    pub(crate) defaults: Vec<PairView>,
    /// The pairs of those that are.
    pub(crate) spaces: Vec<SpacePairs>,
    /// The spaces that are not copied.
    pub(crate) ignored: Vec<String>,
}

/// The pairs of a space.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpacePairs {
    /// The space.
    pub(crate) space: String,
    /// Its pairs.
    pub(crate) pairs: Vec<PairView>,
}

/// A store that is copied to another one, by their numbers within the account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairView {
    /// The store to copy from.
    #[schema(example = "1")]
    pub(crate) source: String,
    /// The store to copy to.
    #[schema(example = "2")]
    pub(crate) destination: String,
}

/// A part of a change of a file that waits.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct WaitingView {
    /// The space; null for all that are not named.
    pub(crate) space: Option<String>,
    /// The pairs that would end.
    pub(crate) ends: Vec<PairView>,
    /// The pairs that would begin in their place.
    pub(crate) begins: Vec<PairView>,
}

/// A policy that is, or was, in force.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct HistoryItem {
    /// Its number.
    pub(crate) number: u64,
    /// Since when.
    pub(crate) time: Timestamp,
    /// Who put it into force.
    pub(crate) user: String,
    /// Why.
    pub(crate) reason: String,
    /// The policy; null if the record cannot be read.
    pub(crate) policy: Option<PolicyText>,
}

/// A new policy.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPolicyView {
    /// Whether the list of accounts has the account.
    #[schema(example = true)]
    pub(crate) is_listed: bool,
    /// The policy.
    pub(crate) policy: PolicyText,
}

/// What a change would do.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PlanView {
    /// What cannot be carried out; nothing can be saved while there is any.
    pub(crate) problems: Vec<String>,
    /// Copies that would be made, and kept.
    pub(crate) begins: Vec<PlanItem>,
    /// Copies that would no longer be kept. None of them is deleted.
    pub(crate) ends: Vec<PlanItem>,
    /// About how many items would be copied: those that the sources have more than the destinations.
    pub(crate) items_to_copy: u64,
    /// About how many bytes.
    pub(crate) bytes_to_copy: u64,
    /// How many items would no longer follow their source.
    pub(crate) items_no_longer_kept: u64,
}

/// What a change would do to the copy of a space in a store.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PlanItem {
    /// The space.
    pub(crate) space: String,
    /// The store to copy from.
    pub(crate) source: String,
    /// The store to copy to.
    pub(crate) destination: String,
    /// How many items the source has.
    pub(crate) items: u64,
    /// Their size.
    pub(crate) bytes: u64,
    /// How many items the destination has.
    pub(crate) copied_items: u64,
    /// Their size.
    pub(crate) copied_bytes: u64,
}

impl Mill {
    /// The policies of all accounts.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub(crate) async fn policies(&self) -> Result<PolicyList, ViewError> {
        let mut items = Vec::new();
        for name in self.account_names() {
            items.push(self.policy(&name).await?);
        }
        Ok(PolicyList { items })
    }

    /// The policy of an account.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn policy(&self, account: &str) -> Result<PolicyDetail, ViewError> {
        let account = self.account(account)?;
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let history = self.catalogue().policies(&account.name, None, HISTORY).await.map_err(error)?;
        let figures = self.catalogue().counters().await.map_err(error)?;
        let mut detail = PolicyDetail {
            account: account.name.clone(),
            stores: account.stores.iter().map(|(id, store)| (id.to_string(), store.to_string())).collect(),
            version: None,
            is_listed: false,
            file: None,
            in_force: None,
            waiting: Vec::new(),
            error: None,
            other_keys: Vec::new(),
            history: history.into_iter().map(HistoryItem::from).collect(),
            spaces: account
                .spaces(&figures)
                .iter()
                .filter(|space| !space.is_reserved())
                .map(ToString::to_string)
                .collect(),
        };
        match policy::open(self.catalogue(), &self.0.source, account).await {
            Ok(Editable { version, is_listed, file, other_keys, now }) => {
                detail.version = Some(version);
                detail.is_listed = is_listed;
                detail.other_keys = other_keys;
                match now {
                    Ok(now) => {
                        detail.in_force = Some(PolicyText::from(&now.policy));
                        detail.waiting = now.waiting.into_iter().map(WaitingView::from).collect();
                        detail.error = now.error;
                    }
                    Err(why) => detail.error = Some(why),
                }
                match file {
                    Ok(policy) => detail.file = Some(PolicyText::from(&policy)),
                    Err(why) => detail.error = Some(why),
                }
            }
            Err(why) => {
                detail.error = Some(why);
                detail.in_force = self.policy_of(account).await.ok().as_ref().map(PolicyText::from);
            }
        }
        Ok(detail)
    }

    /// What a policy would do in place of the one in force.
    ///
    /// # Errors
    /// For an account that does not exist, a policy with names that are none, and when the catalogue cannot be read.
    pub(crate) async fn plan(&self, account: &str, new: &NewPolicyView) -> Result<PlanView, ViewError> {
        let account = self.account(account)?;
        let new = new.parse()?;
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let before = self.policy_of(account).await.unwrap_or_default();
        let plan = policy::plan(account, &before, &new.effect(), &figures);
        let left = |has: u64, wanted: u64| wanted.saturating_sub(has);
        Ok(PlanView {
            problems: problems(account, &new.policy),
            items_to_copy: plan.begins.iter().map(|change| left(change.copied_items, change.items)).sum(),
            bytes_to_copy: plan.begins.iter().map(|change| left(change.copied_bytes, change.bytes)).sum(),
            items_no_longer_kept: plan.ends.iter().map(|change| change.copied_items).sum(),
            begins: plan.begins.into_iter().map(PlanItem::from).collect(),
            ends: plan.ends.into_iter().map(PlanItem::from).collect(),
        })
    }
}

fn problems(account: &Account, policy: &Policy) -> Vec<String> {
    check(policy, &account.store_ids()).iter().map(ToString::to_string).collect()
}

impl NewPolicyView {
    /// The policy that it names.
    ///
    /// # Errors
    /// For a name of a space that is none.
    pub(crate) fn parse(&self) -> Result<NewPolicy, ViewError> {
        let space = |name: &String| {
            let wrong = |error| {
                ViewError::parameter(format!("“{}” is not a valid name of a space: {error}.", super::quoted(name)))
            };
            name.parse::<SpaceName>().map_err(wrong)
        };
        let pairs = |pairs: &[PairView]| pairs.iter().map(Pair::from).collect::<BTreeSet<_>>();
        let PolicyText { defaults, spaces, ignored } = &self.policy;
        let spaces = spaces.iter().map(|own| Ok((space(&own.space)?, pairs(&own.pairs))));
        let policy = Policy {
            defaults: pairs(defaults),
            spaces: spaces.collect::<Result<_, ViewError>>()?,
            ignored: ignored.iter().map(space).collect::<Result<_, _>>()?,
        };
        Ok(NewPolicy { is_listed: self.is_listed, policy })
    }
}

impl PolicyText {
    /// The pairs of a space, sorted; without a name, of all that are not named.
    pub(crate) fn pairs(&self, space: Option<&str>) -> Vec<&PairView> {
        let is_ignored = space.is_some_and(|space| self.ignored.iter().any(|ignored| ignored == space));
        let own = self.spaces.iter().find(|own| Some(own.space.as_str()) == space);
        let pairs = if is_ignored { None } else { Some(own.map_or(&self.defaults, |own| &own.pairs)) };
        let mut pairs: Vec<_> = pairs.into_iter().flatten().collect();
        pairs.sort();
        pairs
    }
}

impl From<&PairView> for Pair {
    fn from(pair: &PairView) -> Self {
        Self { source: StoreId(pair.source.clone()), destination: StoreId(pair.destination.clone()) }
    }
}

impl From<&Pair> for PairView {
    fn from(pair: &Pair) -> Self {
        Self { source: pair.source.to_string(), destination: pair.destination.to_string() }
    }
}

impl From<&Policy> for PolicyText {
    fn from(policy: &Policy) -> Self {
        let pairs = |pairs: &BTreeSet<Pair>| pairs.iter().map(PairView::from).collect();
        let own = |(space, own): (&SpaceName, _)| SpacePairs { space: space.to_string(), pairs: pairs(own) };
        Self {
            defaults: pairs(&policy.defaults),
            spaces: policy.spaces.iter().map(own).collect(),
            ignored: policy.ignored.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<WaitingChange> for WaitingView {
    fn from(waiting: WaitingChange) -> Self {
        let WaitingChange { space, ends, begins } = waiting;
        let pairs = |pairs: BTreeSet<Pair>| pairs.iter().map(PairView::from).collect();
        Self { space: space.map(|space| space.to_string()), ends: pairs(ends), begins: pairs(begins) }
    }
}

impl From<PolicyRecord> for HistoryItem {
    fn from(record: PolicyRecord) -> Self {
        let PolicyRecord { id, time, user, reason, content, .. } = record;
        let policy = read_policy(content.as_bytes()).ok().as_ref().map(PolicyText::from);
        Self { number: id, time, user, reason, policy }
    }
}

impl From<PairChange> for PlanItem {
    fn from(change: PairChange) -> Self {
        let PairChange { space, source, destination, items, bytes, copied_items, copied_bytes } = change;
        let [source, destination] = [source, destination].map(|store| store.to_string());
        Self { space: space.to_string(), source, destination, items, bytes, copied_items, copied_bytes }
    }
}
