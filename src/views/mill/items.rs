//! The items of a space, and one of them with all that is known of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use queuekeeper_catalogue::asides::Aside;
use queuekeeper_catalogue::audit::{Event, Events};
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_catalogue::tasks::OpenTask;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::Policy;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::causes::Looked;
use super::checks::CheckItem;
use super::comparisons::ComparisonItem;
use super::requested::RequestedCheckItem;
use super::spaces::SpaceCopies;
use super::tasks::{DecisionItem, TaskItem};
use super::wanted::{differs, pairs};
use super::{BitErrorItem, KeyText, Mill, ViewError, missing, space, unavailable};
use crate::views::page::PageLimit;
use crate::views::show::as_sentence;

/// How many items a page has.
type Limit = PageLimit<100>;

/// How many events and decisions of an item are shown.
const HISTORY: u32 = 50;

/// Which items of a space.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ItemFilter {
    /// Those with keys that begin with this.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) prefix: String,
    /// Those after this key, percent-encoded: `next` of the previous page.
    #[param(value_type = Option<String>)]
    pub(crate) after: KeyText,
    /// How many items to show at most, 1 to 500.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// Which item.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ItemName {
    /// Its key, percent-encoded: `key_encoded` of a list.
    #[param(value_type = String, example = "thesis/page-1.tif")]
    pub(crate) key: KeyText,
}

/// A page of the items of a space, in the byte order of their keys.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ItemList {
    /// The space.
    pub(crate) space: SpaceCopies,
    /// Why the account's policy cannot be read; null if it can.
    pub(crate) policy_error: Option<String>,
    /// The last requested checks of the space, one for each store that has any.
    pub(crate) requested_checks: Vec<RequestedCheckItem>,
    /// The last comparisons of its listing with the content index that were kept, one for each store that has any.
    pub(crate) comparisons: Vec<ComparisonItem>,
    /// The items of this page.
    pub(crate) items: Vec<SpaceItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

/// An item with its copies.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SpaceItem {
    /// Its key, with escapes for invisible characters.
    pub(crate) key: String,
    /// The same, percent-encoded.
    pub(crate) key_encoded: String,
    /// What is known of each copy, by the name of its store.
    pub(crate) copies: Vec<CopyItem>,
    /// The stores that should have the content of another one but do not, according to the content index.
    pub(crate) differing: Vec<String>,
    /// The stores to which it is not copied, because the limits of the account leave out its key there.
    pub(crate) left_out: Vec<String>,
}

/// A copy according to the content index.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CopyItem {
    /// Where it is.
    pub(crate) store: String,
    /// Its size; of what is deleted, the last one.
    pub(crate) size_bytes: u64,
    /// Its strongest digest, such as `sha256:0f3a..`; empty if it has none.
    pub(crate) digest: String,
    /// Whether it was deleted.
    pub(crate) is_deleted: bool,
    /// The number of the event that changed it last.
    pub(crate) event: u64,
    /// The number of its open bit error; null where it has none.
    pub(crate) bit_error: Option<u64>,
    /// When its content was last proven to be as recorded; null where it was not, or has an open bit error.
    pub(crate) proven: Option<Timestamp>,
    /// How: `read` or `provider`; likewise.
    #[schema(example = "read")]
    pub(crate) proof: Option<String>,
}

/// An item with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ItemDetail {
    /// The account.
    pub(crate) account: String,
    /// The space.
    pub(crate) space: String,
    /// The item.
    pub(crate) item: SpaceItem,
    /// Whether its copies are as the policies require, according to the content index.
    pub(crate) is_done: bool,
    /// Why they are not, or further information: each a sentence.
    pub(crate) causes: Vec<String>,
    /// Its tasks.
    pub(crate) tasks: Vec<ItemTask>,
    /// What users decided about its tasks, the newest first, at most fifty.
    pub(crate) decisions: Vec<DecisionItem>,
    /// Content that was kept aside before a copy was deleted or overwritten, newest first, at most fifty of each store.
    pub(crate) asides: Vec<AsideItem>,
    /// The last requested checks of it alone, one for each store that has any.
    pub(crate) requested_checks: Vec<RequestedCheckItem>,
    /// The checks of its copies, the newest first, at most fifty of each. Those that found nothing wrong are kept until
    /// the next loop has ended; outside of loops, for as long as a proof may be old.
    pub(crate) checks: Vec<CheckItem>,
    /// What the audit log has of it in the stores of the account, the newest first, at most fifty of each.
    pub(crate) events: Vec<EventItem>,
}

/// A task of an item.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ItemTask {
    /// The task.
    #[serde(flatten)]
    pub(crate) task: TaskItem,
    /// `waiting`, `held`, `dead`, `paused`, or `restore`: until its store can be read.
    pub(crate) state: &'static str,
    /// From when on a worker may take it; of one that is taken, when its lease ends. Null if it waits for a decision.
    pub(crate) visible: Option<Timestamp>,
    /// The worker that has it.
    pub(crate) worker: Option<String>,
    /// How often it was begun.
    pub(crate) attempts: u64,
    /// Why its store cannot be read now; null if it does not wait for that.
    pub(crate) waits_for: Option<String>,
}

/// Content that is, or was, kept aside.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AsideItem {
    /// In which store.
    pub(crate) store: String,
    /// Its key in the space for what is kept.
    pub(crate) kept_as: String,
    /// What was done to the copy: `delete` or `overwrite`.
    #[schema(example = "overwrite")]
    pub(crate) before: String,
    /// Since when it is kept.
    pub(crate) since: Timestamp,
    /// Until when it is kept: it is removed within a day after that.
    pub(crate) until: Timestamp,
    /// When it was removed; null while it is kept.
    pub(crate) ended: Option<Timestamp>,
    /// How that ended: `removed`, or `absent` if the content no longer existed; null while it is kept.
    #[schema(example = "removed")]
    pub(crate) outcome: Option<&'static str>,
}

/// An event of an item.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct EventItem {
    /// Its number in the audit log.
    pub(crate) number: u64,
    /// When it was recorded.
    pub(crate) time: Timestamp,
    /// In which store.
    pub(crate) store: String,
    /// What was done.
    #[schema(example = "add")]
    pub(crate) change: &'static str,
    /// Who did it.
    pub(crate) user: String,
    /// The size afterwards.
    pub(crate) size_bytes: Option<u64>,
    /// Why it is unclear what happened; null if it is clear.
    pub(crate) why: Option<String>,
}

impl Mill {
    /// A page of the items of a space.
    ///
    /// # Errors
    /// For an account or a space that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn items(&self, account: &str, name: &str, filter: &ItemFilter) -> Result<ItemList, ViewError> {
        let account = self.account(account)?;
        let (space, in_stores) = space(account, name)?;
        let (policy, policy_error) = match self.policy_of(account).await {
            Ok(policy) => (policy, None),
            Err(why) => (Policy::default(), Some(why)),
        };
        let limit = filter.limit.get();
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let (prefix, after) = (filter.prefix.as_bytes(), filter.after.0.as_ref());
        let found = self.catalogue().items_with_prefix(&in_stores, prefix, after, most).await;
        let mut found = found.map_err(|error| unavailable(&error))?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|item| item.key.encoded());
        let keys: Vec<_> = found.iter().map(|item| item.key.clone()).collect();
        let stores: BTreeSet<_> = account.stores.values().collect();
        let wrong = self.catalogue().bit_errors_of_keys(stores, &in_stores, &keys).await;
        let wrong = wrong.map_err(|error| unavailable(&error))?;
        let items = found.iter().map(|item| SpaceItem::new(account, &policy, (&space, item), &wrong)).collect();
        let standing = self.standing().await?;
        if found.is_empty() && !policy.spaces.contains_key(&space) && !standing.has(account, &space) {
            return Err(ViewError::not_found(format!(
                "{} has no space “{space}”: no item of it is recorded, and no policy names it.",
                account.name
            )));
        }
        let requested_checks = self.requested_of(account, &space, None).await?;
        let comparisons = self.comparisons_of(account, &space).await?;
        let space = standing.copies(account, &policy, &space);
        Ok(ItemList { space, policy_error, requested_checks, comparisons, items, next })
    }

    /// An item of a space.
    ///
    /// # Errors
    /// For an item of which nothing is recorded or was found, and when the catalogue cannot be read.
    pub(crate) async fn item(&self, account: &str, name: &str, item: &ItemName) -> Result<ItemDetail, ViewError> {
        let account = self.account(account)?;
        let (space, in_stores) = space(account, name)?;
        let key = item.key.0.clone().ok_or_else(|| missing("key"))?;
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let (mut copies, mut events, mut asides) = (Vec::new(), Vec::new(), Vec::new());
        let (mut checks, mut wrong) = (Vec::new(), Vec::<BitError>::new());
        for store in account.stores.values() {
            let of = Item::new(in_stores.clone(), key.clone());
            wrong.extend(self.catalogue().bit_error(store, &of).await.map_err(error)?);
            copies.extend(self.catalogue().copy(store, &of).await.map_err(error)?);
            let kept = self.catalogue().asides(store, &of, None, HISTORY).await.map_err(error)?;
            asides.extend(kept.into_iter().map(AsideItem::from));
            let checked = self.catalogue().checks_of_item(store, &of, None, HISTORY).await.map_err(error)?;
            checks.extend(checked.into_iter().map(CheckItem::from));
            let of_store = self.catalogue().events(&Events::Item(store.clone(), of), None, HISTORY).await;
            events.extend(of_store.map_err(error)?.into_iter().map(EventItem::from));
        }
        let tasks = self.catalogue().tasks_of_item(&account.name, &space, &key).await.map_err(error)?;
        if copies.is_empty() && tasks.is_empty() && checks.is_empty() && wrong.is_empty() {
            return Err(ViewError::not_found(format!(
                "No store of {} is known to have {key} in {space}.",
                account.name
            )));
        }
        events.sort_by_key(|event| std::cmp::Reverse(event.number));
        checks.sort_by_key(|check| std::cmp::Reverse(check.number));
        asides.sort_by_key(|aside| std::cmp::Reverse(aside.since));
        let decisions =
            self.catalogue().decisions_of_item(&account.name, &space, &key, HISTORY).await.map_err(error)?;
        let indexed = IndexedItem { key: key.clone(), copies };
        let now = Timestamp::now();
        let (mut causes, policy) = match self.policy_of(account).await {
            Ok(policy) => (Vec::new(), policy),
            Err(why) => (
                vec![format!("The policy of {} cannot be read: {}", account.name, as_sentence(&why))],
                Policy::default(),
            ),
        };
        let numbers = wrong.iter().map(|error| ((error.store.clone(), error.item.key.clone()), error.id)).collect();
        let item = SpaceItem::new(account, &policy, (&space, &indexed), &numbers);
        let standing = self.standing().await?;
        let pauses = self.catalogue().pauses().await.map_err(error)?;
        let of = Looked {
            account,
            policy: &policy,
            space: &space,
            item: &indexed,
            tasks: &tasks,
            pauses: &pauses,
            standing: &standing,
        };
        let bit_errors = BitErrorItem::of_account(self.catalogue(), account, wrong).await?;
        causes.extend(bit_errors.iter().map(|error| {
            let BitErrorItem { number, store, detail, why, fix, .. } = error;
            let what = as_sentence(&format!("the copy in {store} has bit error {number}: {detail}"));
            format!("{what} {why} {fix}").trim_end().to_owned()
        }));
        causes.extend(of.causes(now));
        let is_done = item.differing.is_empty() && tasks.is_empty() && causes.is_empty();
        causes.extend(of.left_out());
        Ok(ItemDetail {
            requested_checks: self.requested_of(account, &space, Some(&key)).await?,
            account: account.name.clone(),
            space: space.to_string(),
            is_done,
            item,
            causes,
            tasks: tasks.into_iter().map(ItemTask::from).collect(),
            decisions: decisions.into_iter().map(DecisionItem::from).collect(),
            asides,
            checks,
            events,
        })
    }
}

impl SpaceItem {
    /// `wrong` has the numbers of open bit errors.
    fn new(
        account: &Account,
        policy: &Policy,
        (space, item): (&SpaceName, &IndexedItem),
        wrong: &BTreeMap<(StoreName, Key), u64>,
    ) -> Self {
        let destinations = |is: fn(&Account, &IndexedItem, &StoreName, &StoreName) -> bool| {
            let pairs = pairs(account, policy, space);
            let found = pairs.filter(|(source, destination)| is(account, item, source, destination));
            found.map(|(_, destination)| destination.to_string()).collect()
        };
        let ours = |copy: &&Copy| account.stores.values().any(|store| *store == copy.store);
        let known = |copy: &Copy| {
            let bit_error = wrong.get(&(copy.store.clone(), item.key.clone())).copied();
            CopyItem::new(copy, bit_error)
        };
        Self {
            key: item.key.to_string(),
            key_encoded: item.key.encoded(),
            copies: item.copies.iter().filter(ours).map(known).collect(),
            differing: destinations(differs),
            left_out: destinations(|account, item, _, destination| {
                account.leaves_out(destination, &item.key).is_some()
            }),
        }
    }
}

impl CopyItem {
    fn new(copy: &Copy, bit_error: Option<u64>) -> Self {
        let digest = copy.digests.strongest();
        let (proven, proof) = copy.proven.clone().filter(|_| bit_error.is_none()).unzip();
        Self {
            store: copy.store.to_string(),
            size_bytes: copy.size,
            digest: digest.map(|digest| format!("{}:{}", digest.algorithm(), digest.hex())).unwrap_or_default(),
            is_deleted: copy.is_deleted,
            event: copy.seq,
            bit_error,
            proven,
            proof,
        }
    }
}

impl From<OpenTask> for ItemTask {
    fn from(open: OpenTask) -> Self {
        let OpenTask { task, state, visible, worker, attempts, waits_for } = open;
        Self { task: TaskItem::from(task), state: state.as_str(), visible, worker, attempts, waits_for }
    }
}

impl From<Aside> for AsideItem {
    fn from(aside: Aside) -> Self {
        let Aside { store, kept_as, reason, time, until, ended, .. } = aside;
        let (ended, outcome) = ended.map(|(time, end)| (time, end.as_str())).unzip();
        Self { store: store.to_string(), kept_as, before: reason, since: time, until, ended, outcome }
    }
}

impl From<Event> for EventItem {
    fn from(event: Event) -> Self {
        Self {
            number: event.seq,
            time: event.time,
            store: event.subject.store.to_string(),
            change: event.kind.as_str(),
            user: event.user,
            size_bytes: event.size,
            why: event.why,
        }
    }
}
