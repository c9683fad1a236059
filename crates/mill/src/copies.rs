//! Which copies of a part of a space there are, by what the catalogue knows: an object and its copies.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_catalogue::{Catalogue, Error};
use queuekeeper_store::{Key, SpaceName, StoreName};

use crate::account::Account;
use crate::policy::{Policy, read_policy};
use crate::why::CopyTasks;

/// How many items are compared at most; what comes behind them is not known.
const MOST: usize = 10_000;

/// How many items of the index are read at once.
const PAGE: u32 = 1_000;

/// Of how many missing items it is said why.
const NAMED: usize = 3;

/// The copies in one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCopies {
    /// The store.
    pub store: StoreName,
    /// Whether a policy wants them there.
    pub is_wanted: bool,
    /// How many items are there, and are what they are at the source.
    pub there: u64,
    /// How many copies of it there have an open bit error, whatever the content index says of them.
    pub wrong: u64,
    /// How many are to be there: all that the source has, but for what is left out.
    pub of: u64,
    /// How many items of the source are left out there, by the limits of the account.
    pub left_out: u64,
    /// When the last of them came, where all are there and none has an open bit error.
    pub complete_since: Option<Timestamp>,
    /// Some of those that are missing or differ.
    pub missing: Vec<MissingCopy>,
}

/// An item that a store has not, or not as its source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCopy {
    /// Its key.
    pub key: Key,
    /// Why, as the predicate of a sentence about the copy.
    pub why: String,
}

/// What is copied: items below a folder of a space, as their store names it.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// The store to which they were written.
    pub store: &'a StoreName,
    /// The space.
    pub space: &'a SpaceName,
    /// The folder, without a slash at its end.
    pub folder: &'a str,
}

/// What was counted of a store.
#[derive(Default)]
struct Count {
    there: u64,
    left_out: u64,
    last_event: u64,
    missing: Vec<Key>,
}

/// The copies in each other store of the account that wants or has some; none where no account has the original.
///
/// # Errors
/// When the catalogue cannot be read.
pub async fn copies(
    catalogue: &Catalogue,
    accounts: &BTreeMap<String, Account>,
    original: &Original<'_>,
) -> Result<Vec<StoreCopies>, Error> {
    let Some((account, space)) = owner(accounts, original.store, original.space) else { return Ok(Vec::new()) };
    let wanted = wanted(catalogue, account, &space, original.store).await?;
    let mut counts: BTreeMap<&StoreName, Count> =
        account.stores.values().map(|store| (store, Count::default())).collect();
    counts.remove(original.store);
    let all = count(catalogue, account, original, &mut counts).await?;
    let (pauses, mut found) = (catalogue.pauses().await?, Vec::new());
    for (store, Count { there, left_out, last_event, missing }) in counts {
        let (is_wanted, of) = (wanted.contains_key(store), all - left_out);
        if all == 0 || (!is_wanted && there == 0) {
            continue;
        }
        let wrong = wrong_keys(catalogue, store, original.space, original.folder).await?.len() as u64;
        let complete_since = match (there == of && wrong == 0, catalogue.event_age(last_event).await?) {
            (true, Some(age)) => {
                SignedDuration::try_from(age).ok().and_then(|age| Timestamp::now().checked_sub(age).ok())
            }
            _ => None,
        };
        let mut named = Vec::new();
        for key in missing {
            let tasks = catalogue.tasks_of_item(&account.name, &space, &key).await?;
            let (source, destination) = (wanted.get(store).unwrap_or(original.store), store);
            let copy = CopyTasks { account, key: &key, source, destination, tasks: &tasks, pauses: &pauses };
            let nothing =
                if is_wanted { "has no task: the next loop checks it" } else { "is not required by any policy" };
            let paused = || copy.paused().filter(|_| is_wanted);
            let why = copy.why(Timestamp::now()).or_else(paused).unwrap_or_else(|| nothing.to_owned());
            named.push(MissingCopy { key, why });
        }
        found.push(StoreCopies {
            store: store.clone(),
            is_wanted,
            there,
            wrong,
            of,
            left_out,
            complete_since,
            missing: named,
        });
    }
    Ok(found)
}

/// How many objects have all copies that a policy wants, none of them with an open bit error, and how many have not, of
/// some whose folders lie in one space of a store; none where no account has that, or no policy wants copies of it.
///
/// # Errors
/// When the catalogue cannot be read.
pub async fn standing(
    catalogue: &Catalogue,
    accounts: &BTreeMap<String, Account>,
    (store, space): (&StoreName, &SpaceName),
    folders: &[String],
) -> Result<Option<(u64, u64)>, Error> {
    let Some((account, of_account)) = owner(accounts, store, space) else { return Ok(None) };
    let wanted = wanted(catalogue, account, &of_account, store).await?;
    if wanted.is_empty() {
        return Ok(None);
    }
    let (mut complete, mut incomplete) = (0, 0);
    for folder in folders {
        let mut counts = wanted.keys().map(|store| (store, Count::default())).collect();
        let all = count(catalogue, account, &Original { store, space, folder }, &mut counts).await?;
        let mut is_complete = all > 0 && counts.values().all(|of| of.there == all - of.left_out);
        for store in wanted.keys() {
            is_complete = is_complete && wrong_keys(catalogue, store, space, folder).await?.is_empty();
        }
        if is_complete {
            complete += 1;
        } else {
            incomplete += 1;
        }
    }
    Ok(Some((complete, incomplete)))
}

/// The keys below a folder of a space whose copies in a store have an open bit error, in their order.
///
/// # Errors
/// When the catalogue cannot be read.
pub async fn wrong_keys(
    catalogue: &Catalogue,
    store: &StoreName,
    space: &SpaceName,
    folder: &str,
) -> Result<Vec<Key>, Error> {
    let Some((mut behind, last)) = within(folder) else { return Ok(Vec::new()) };
    let mut wrong = Vec::new();
    loop {
        let mut page = catalogue.bit_error_keys(store, space, (Some(&behind), Some(&last)), PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        // The end of the range may be a key beside the folder.
        page.retain(|key| *key < last);
        wrong.append(&mut page);
        match wrong.last() {
            Some(key) if !is_last && wrong.len() < MOST => behind = key.clone(),
            _ => return Ok(wrong),
        }
    }
}

/// The keys between which those below a folder lie: all of these are above the first and below the second. `None` for a
/// folder of which the name is too long for a key.
#[must_use]
pub fn within(folder: &str) -> Option<(Key, Key)> {
    // The character that follows the slash.
    format!("{folder}/").parse().ok().zip(format!("{folder}0").parse().ok())
}

/// The account to which a space of a store belongs, and as which.
#[must_use]
pub fn owner<'a>(
    accounts: &'a BTreeMap<String, Account>,
    store: &StoreName,
    space: &SpaceName,
) -> Option<(&'a Account, SpaceName)> {
    accounts.values().find_map(|account| {
        let is_theirs = account.stores.values().any(|known| known == store);
        account.of_store(space).filter(|_| is_theirs).map(|space| (account, space))
    })
}

/// The stores to which a policy leads from the original, directly or by way of others, each with the one before it.
async fn wanted(
    catalogue: &Catalogue,
    account: &Account,
    space: &SpaceName,
    original: &StoreName,
) -> Result<BTreeMap<StoreName, StoreName>, Error> {
    let last = catalogue.policies(&account.name, None, 1).await?.pop();
    // One that cannot be read is said where policies are.
    let policy = last.and_then(|last| read_policy(last.content.as_bytes()).ok()).unwrap_or_else(Policy::default);
    let name = |id| account.stores.get(id);
    let (mut wanted, mut looked) = (BTreeMap::new(), vec![original]);
    while let Some(from) = looked.pop() {
        for pair in policy.pairs(space).iter().filter(|pair| name(&pair.source) == Some(from)) {
            if let Some(to) = name(&pair.destination)
                && !wanted.contains_key(to)
            {
                wanted.insert(to.clone(), from.clone());
                looked.push(to);
            }
        }
    }
    Ok(wanted)
}

/// Counts what each store has; the answer is how many items the original has.
async fn count(
    catalogue: &Catalogue,
    account: &Account,
    original: &Original<'_>,
    counts: &mut BTreeMap<&StoreName, Count>,
) -> Result<u64, Error> {
    let prefix = format!("{}/", original.folder);
    let Ok(mut after) = prefix.parse::<Key>() else { return Ok(0) };
    let (mut of, mut read) = (0, 0);
    loop {
        let page = catalogue.items_with_prefix(original.space, prefix.as_bytes(), Some(&after), PAGE).await?;
        let Some(last) = page.last() else { return Ok(of) };
        after = last.key.clone();
        let is_last = page.len() < PAGE as usize;
        read += page.len();
        for IndexedItem { key, copies } in page {
            let living = |store: &StoreName| copies.iter().find(|copy| copy.store == *store && !copy.is_deleted);
            let Some(source) = living(original.store) else { continue };
            of += 1;
            for (store, count) in counts.iter_mut() {
                if account.leaves_out(store, &key).is_some() {
                    count.left_out += 1;
                    continue;
                }
                match living(store).filter(|copy| is_same(source, copy)) {
                    Some(copy) => {
                        count.there += 1;
                        count.last_event = count.last_event.max(copy.seq);
                    }
                    None if count.missing.len() < NAMED => count.missing.push(key.clone()),
                    None => {}
                }
            }
        }
        if is_last || read >= MOST {
            return Ok(of);
        }
    }
}

fn is_same(source: &Copy, copy: &Copy) -> bool {
    source.size == copy.size && source.digests.agree(&copy.digests) == Some(true)
}
