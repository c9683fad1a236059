//! What is kept aside of content that was deleted or written over: under which key, and its removal when its time is
//! over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::asides::{Aside, AsideEnd};
use queuekeeper_catalogue::brake::{BrakeAnswer, Braked};
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::tasks::TakenTask;
use queuekeeper_store::store::{EntityTag, Item};
use queuekeeper_store::{Algorithm, Error, ErrorKind, Hashers, Key, SpaceName, Store, StoreName};
use uuid::{Builder, Uuid};

use crate::account::Account;
use crate::duplicate::ASIDE;
use crate::missing::listing;

/// The producer's name in the catalogue.
pub const PRODUCER: &str = "asides";

/// How often it is looked for what need not be kept any longer.
const EVERY: Duration = Duration::from_hours(24);

/// How many keys of a listing are compared with the catalogue at once.
const PAGE: usize = 1000;

/// The namespace of the keys.
const KEYS: Uuid = Uuid::from_u128(0x01a6_b2f7_93d4_4c0e_8f15_6e2a_7b90_c3d8);

/// Where a task keeps the content of an item aside: at the same place whenever the task is tried again, and at another
/// one for other content, or for another task. Numbers of tasks are given again in `SQLite`, so that it counts when the
/// task was made.
pub(crate) fn place(task: &TakenTask, store: &StoreName, item: &Item, etag: &EntityTag) -> Result<Item, String> {
    let mut hashers = Hashers::new([Algorithm::Sha1]);
    hashers.update(KEYS.as_bytes());
    hashers.update(&task.id.to_be_bytes());
    hashers.update(&task.created.as_millisecond().to_be_bytes());
    for part in [store.as_str().as_bytes(), item.space.as_str().as_bytes(), item.key.as_bytes(), etag.0.as_bytes()] {
        hashers.update(&part.len().to_be_bytes());
        hashers.update(part);
    }
    let digests = hashers.finish();
    let digest = digests.get(Algorithm::Sha1).and_then(|digest| digest.as_bytes().first_chunk());
    let key = Builder::from_sha1_bytes(*digest.ok_or_else(|| "SHA-1 has 20 bytes".to_owned())?).into_uuid();
    in_aside(&key.to_string())
}

/// Why the brake holds what would destroy content.
pub(crate) fn too_many(of: &Braked<'_>, answer: &BrakeAnswer) -> String {
    let (space, store, BrakeAnswer { number, limit, .. }) = (of.space, of.store, answer);
    let items = if *number == 1 { "1 item".to_owned() } else { format!("{number} items") };
    let were = if *number == 1 { "was" } else { "were" };
    format!(
        "{items} of {space} in {store} {were} deleted or overwritten within a day, the limit being {limit}: release or drop this task"
    )
}

/// What is kept under a key.
fn in_aside(key: &str) -> Result<Item, String> {
    let space = ASIDE.parse::<SpaceName>().map_err(|error| error.to_string())?;
    Ok(Item::new(space, key.parse::<Key>().map_err(|error| error.to_string())?))
}

/// What removes what need not be kept any longer.
#[derive(Clone)]
pub struct Asides {
    /// What is recorded of content that is kept.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores, each so that its changes are recorded.
    pub stores: BTreeMap<StoreName, Arc<dyn Store>>,
}

/// What was done with what is kept aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many items were removed.
    pub removed: u64,
    /// How many records had no content.
    pub absent: u64,
    /// How many items could not be removed, and are tried again a day later.
    pub failed: u64,
    /// How many items of these spaces are not put aside: they stay.
    pub foreign: u64,
}

impl fmt::Display for Removed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { removed, absent, failed, foreign } = self;
        write!(to, "{removed} removed, {absent} without content, {failed} not removed, {foreign} foreign")
    }
}

/// How it ended with one item.
enum Step {
    Ended(AsideEnd),
    /// It is kept again.
    Kept,
}

impl Asides {
    /// Removes what need not be kept any longer, where the last time is a day ago; `None` where it is not due or
    /// another process leads. Each item is removed by itself, if it is what was put there. A process that dies begins
    /// again with what is left. What is paused is left to a later day.
    ///
    /// # Errors
    /// When the catalogue cannot be read or written, or another process leads meanwhile.
    pub async fn remove(&self, holder: Uuid, lease: Duration) -> Result<Option<Removed>, String> {
        let said = |error: queuekeeper_catalogue::Error| error.to_string();
        let lead = self.catalogue.lead(PRODUCER, holder, lease).await.map_err(said)?;
        let Some(lead) = lead.filter(|lead| lead.is_due) else { return Ok(None) };
        let pauses = self.catalogue.pauses().await.map_err(said)?;
        let (mut removed, mut last, mut extended) = (Removed::default(), None, Instant::now());
        loop {
            let page = self.catalogue.overdue_asides(last.as_ref()).await.map_err(said)?;
            for aside in page.iter().filter(|aside| !self.is_paused(&pauses, aside)) {
                if extended.elapsed() > lease / 4 {
                    let still = self.catalogue.lead(PRODUCER, holder, lease).await.map_err(said)?;
                    still.ok_or_else(|| "another process is removing content that was kept aside".to_owned())?;
                    extended = Instant::now();
                }
                match self.remove_one(aside).await {
                    Ok(Step::Ended(AsideEnd::Removed)) => removed.removed += 1,
                    Ok(Step::Ended(AsideEnd::Absent)) => removed.absent += 1,
                    Ok(Step::Kept) => {}
                    Err(why) => {
                        let Aside { store, item, kept_as, .. } = aside;
                        tracing::warn!(%store, %item, kept_as, why, "cannot remove content that was kept aside");
                        removed.failed += 1;
                    }
                }
            }
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
        }
        let is_paused = |store: &StoreName| {
            pauses.iter().any(|pause| pause.scope.account().is_none() && pause.scope.store() == Some(store))
        };
        for store in self.stores.values().filter(|store| !is_paused(store.name())) {
            match self.foreign(store).await {
                Ok(foreign) => removed.foreign += foreign,
                Err(why) => tracing::warn!(store = %store.name(), why, "cannot scan the space {ASIDE}"),
            }
        }
        self.catalogue.begin_loop(&lead, &[], EVERY).await.map_err(said)?;
        Ok(Some(removed))
    }

    /// Whether a pause stops what uses the store, for the account whose item it is of.
    fn is_paused(&self, pauses: &[MillPause], aside: &Aside) -> bool {
        let owner = self.accounts.values().find(|account| account.of_store(&aside.item.space).is_some());
        let owner = owner.map_or("", |account| &account.name);
        pauses.iter().any(|pause| pause.scope.stops(owner, [&aside.store]))
    }

    async fn remove_one(&self, aside: &Aside) -> Result<Step, String> {
        let store = self.stores.get(&aside.store);
        let store = store.ok_or_else(|| format!("the store {} is not in the configuration", aside.store))?;
        let kept = in_aside(&aside.kept_as)?;
        if !self.catalogue.leave_aside(aside.id).await.map_err(|error| error.to_string())? {
            return Ok(Step::Kept);
        }
        let end = match Self::content(store, &kept).await? {
            None => AsideEnd::Absent,
            Some(etag) => {
                let known = self.catalogue.copy(store.name(), &kept).await.map_err(|error| error.to_string())?;
                if !known.is_some_and(|known| !known.is_deleted && known.etag.as_ref() == Some(&etag)) {
                    return Err("it is not the content that was put there".to_owned());
                }
                match store.delete(&kept, Some(&etag)).await {
                    Ok(_) | Err(Error { kind: ErrorKind::Unrecorded(_), .. }) => {}
                    Err(error) => return Err(error.to_string()),
                }
                let (item, since, until) = (&aside.item, aside.time, aside.until);
                let (store, kept_as) = (&aside.store, &aside.kept_as);
                tracing::info!(%store, kept_as, %item, %since, %until, "removed content that was kept aside");
                AsideEnd::Removed
            }
        };
        self.catalogue.end_aside(aside.id, end).await.map_err(|error| error.to_string())?;
        Ok(Step::Ended(end))
    }

    /// The tag of what is kept; `None` where nothing is. A store without any space is one that cannot be seen.
    async fn content(store: &Arc<dyn Store>, kept: &Item) -> Result<Option<EntityTag>, String> {
        let found = match store.head(kept).await {
            Err(Error { kind: ErrorKind::NoSpace, .. }) => None,
            found => found.map_err(|error| error.to_string())?,
        };
        if found.is_none() && store.spaces().await.map_err(|error| error.to_string())?.is_empty() {
            return Err("the store has no space at all".to_owned());
        }
        Ok(found.map(|properties| properties.etag))
    }

    /// How many items of the space are not put aside.
    async fn foreign(&self, store: &Arc<dyn Store>) -> Result<u64, String> {
        let space = ASIDE.parse::<SpaceName>().map_err(|error| error.to_string())?;
        let mut listed = listing(store, &space, b"", None).await?.chunks(PAGE);
        let (mut number, mut first) = (0, None);
        while let Some(chunk) = listed.next().await {
            let items = chunk.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
            // What is listed was recorded before.
            let keys: Vec<_> = items.iter().map(|item| item.key.to_string()).collect();
            let known = self.known(store.name(), &keys).await?;
            let foreign: Vec<_> = keys.into_iter().filter(|key| known.binary_search(key).is_err()).collect();
            number += foreign.len() as u64;
            first = first.or_else(|| foreign.into_iter().next());
        }
        if let Some(key) = first {
            let store = store.name();
            tracing::warn!(%store, number, key, "the space {ASIDE} has items that the mill did not put there; they are not removed");
        }
        Ok(number)
    }

    /// Which keys are recorded between the first and the last of some.
    async fn known(&self, store: &StoreName, keys: &[String]) -> Result<Vec<String>, String> {
        let (Some(first), Some(last)) = (keys.iter().min(), keys.iter().max()) else { return Ok(Vec::new()) };
        let (mut known, mut from) = (Vec::new(), first.clone());
        loop {
            let page = self.catalogue.aside_keys(store, &from, last).await.map_err(|error| error.to_string())?;
            let is_last = page.len() < PAGE;
            known.extend(page);
            match known.last() {
                // Text that comes next.
                Some(end) if !is_last => from = format!("{end}\u{1}"),
                _ => return Ok(known),
            }
        }
    }
}
