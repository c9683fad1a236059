//! The check of a page: of the keys above one and up to another, a thousand of them at most.
//!
//! What the store lists and what is recorded are gone through side by side, so that neither what is missing nor what is
//! unknown is passed by; what was found wrong before is looked at, too, as it may be neither any more. An item is done
//! here where it is plainly right, by one request; any other becomes a task of its own. What was checked is written
//! when the page ends, and it ends in time: what is left of it becomes the next page.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, IndexEntry, ItemRecords, LoneItem, PageEnd};
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome};
use queuekeeper_store::Key;
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::store::{Item, Listed};
use tokio::time::Instant;

use super::checker::{CheckedSpace, Checker, item_task, said};
use super::decide::decide;
use super::evidence;
use super::look::{self, Reading};
use super::policy::ProofPolicy;
use super::verdict::{Look, Next, Sighting, Sources};
use crate::missing::listing;
use crate::worker::{Lease, Processed, Processor};

/// How many keys a page has at most.
const MOST_KEYS: usize = 1_000;

/// After what time a page ends where it is: a worker that is to stop has more time than that, so that little is checked
/// twice.
const MOST_TIME: Duration = Duration::from_secs(20);

/// How long the pages wait that come after those which were not read in the last loop.
const TURN: Duration = Duration::from_mins(10);

/// So many items that cannot be read, one after the other, are taken for a store that is away.
const MOST_FAILURES: usize = 10;

/// Checks pages.
pub struct PageChecks(pub Checker);

#[async_trait]
impl Processor for PageChecks {
    fn kind(&self) -> TaskKind {
        TaskKind::BitPage
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.0.page_task(task, lease).await.unwrap_or_else(|why| TaskOutcome::Failed(why).into())
    }
}

/// Keys of a space: those behind one and up to another, in a loop with a number.
pub(super) struct Range<'a> {
    pub(super) behind: Option<&'a Key>,
    pub(super) last: Option<&'a Key>,
    pub(super) number: u64,
}

/// What was checked of a range.
pub(super) struct Checked {
    pub(super) right: Vec<CheckedItem>,
    /// What is to be checked alone.
    pub(super) alone: Vec<Key>,
    /// The same, as its run has it.
    alone_in_run: Vec<LoneItem>,
    /// How many items and bytes were not to be read in this loop.
    pub(super) skipped: (u64, u64),
    /// How many items and bytes the store listed.
    listed: (u64, u64),
    /// The key behind which nothing was checked; `None` where all was.
    pub(super) rest: Option<Key>,
    /// Why nothing was checked at all, and when it can be.
    pub(super) not_yet: Option<NotYet>,
}

/// What is known of one key of a page.
#[derive(Default)]
pub(super) struct Known {
    pub(super) listed: Option<Listed>,
    pub(super) records: Option<ItemRecords>,
}

/// The keys of a page, or of its beginning.
pub(super) struct Keys {
    pub(super) known: BTreeMap<Key, Known>,
    /// The key up to which they are all there; `None` for the end of the page.
    pub(super) cut: Option<Key>,
}

impl Keys {
    /// Leaves out what comes behind a key.
    fn cut_at(&mut self, cut: Option<&Key>) {
        if let Some(cut) = cut {
            self.known.retain(|key, _| key <= cut);
            self.cut = Some(cut.clone());
        }
    }
}

/// What became of one key of a page.
enum Step {
    /// It is plainly right, or as right as its policy lets one see.
    Right(Box<CheckedItem>),
    /// It is as recorded, and not to be read in this loop: its size in bytes.
    Skipped(u64),
    /// It is to be checked alone.
    Alone,
    /// It cannot be read: one sentence.
    Failed(String),
    /// Nothing can be read from its store before a time.
    NotYet(NotYet),
    /// There is neither content nor a record.
    Nothing,
}

/// What became of a page so far.
#[derive(Default)]
struct Done {
    right: Vec<CheckedItem>,
    alone: Vec<Key>,
    skipped: (u64, u64),
    /// The key up to which all is done.
    marker: Option<Key>,
    /// The keys behind it that could not be read, and why the last one could not.
    failed: Vec<Key>,
    why: String,
}

impl Done {
    /// The last key of which something became.
    fn last(&self) -> Option<Key> {
        self.failed.last().or(self.marker.as_ref()).cloned()
    }

    fn add(&mut self, key: &Key, step: Step) {
        if let Step::Failed(why) = step {
            self.failed.push(key.clone());
            self.why = why;
            return;
        }
        // The store is there: what could not be read is checked alone.
        self.alone.append(&mut self.failed);
        self.marker = Some(key.clone());
        match step {
            Step::Right(checked) => self.right.push(*checked),
            Step::Skipped(bytes) => self.skipped = (self.skipped.0 + 1, self.skipped.1 + bytes),
            Step::Alone => self.alone.push(key.clone()),
            Step::Nothing | Step::Failed(_) | Step::NotYet(_) => {}
        }
    }
}

impl Checker {
    async fn page_task(&self, task: &TakenTask, lease: &Lease) -> Result<Processed, String> {
        let place = match self.place(&task.subject, lease)? {
            Ok(place) => place,
            Err(wait) => return Ok(wait.into()),
        };
        let (subject, name, behind) = (&task.subject, place.store.name(), task.subject.key.as_ref());
        let page = self.catalogue.bit_page(&subject.account, name, &subject.space, behind).await.map_err(said)?;
        // It was done before, or another run has begun.
        let Some(page) = page else { return Ok(TaskOutcome::Done.into()) };
        let is_limited = self.accounts.get(&subject.account).is_some_and(|account| account.is_cold(name));
        if page.is_behind_others && is_limited {
            return Ok(
                TaskOutcome::Restore(TURN, "waits for items that were not read in the last loop".to_owned()).into()
            );
        }
        let range = Range { behind, last: page.last.as_ref(), number: page.number };
        let checked = self.check_page(&place, &range, lease).await?;
        let Checked { right, alone, alone_in_run, skipped, listed, rest, not_yet } = checked;
        if let Some(NotYet { why, after, .. }) = not_yet {
            return Ok(TaskOutcome::Restore(after, why).into());
        }
        let part = CheckedPart {
            run: (!page.is_late).then_some(page.run),
            page: Some(PageEnd {
                run: page.run,
                is_late: page.is_late,
                behind: behind.cloned(),
                rest,
                listed,
                alone: alone_in_run,
            }),
            skipped,
            ..CheckedPart::of(subject.account.clone(), name.clone(), right)
        };
        let follow_ups: Vec<NewTask> = alone.into_iter().map(|key| item_task(subject, key)).collect();
        Ok(Processed { outcome: TaskOutcome::Done, follow_ups, checked: Some(part) })
    }

    /// Checks the keys of a range, or of its beginning.
    pub(super) async fn check_page(
        &self,
        place: &CheckedSpace,
        range: &Range<'_>,
        lease: &Lease,
    ) -> Result<Checked, String> {
        let (name, behind) = (place.store.name(), range.behind);
        let mut keys = self.keys(place, range, lease).await?;
        let end = keys.cut.as_ref().or(range.last);
        let wrong = self.catalogue.bit_error_keys(name, &place.space, (behind, end), limit()).await.map_err(said)?;
        if wrong.len() >= MOST_KEYS {
            keys.cut_at(wrong.last());
        }
        // What was wrong may be neither stored nor recorded any more.
        for key in &wrong {
            keys.known.entry(key.clone()).or_default();
        }
        let end = keys.cut.as_ref().or(range.last);
        let wrong: BTreeSet<Key> = wrong.into_iter().collect();
        let (mut done, began, mut rest, mut not_yet) = (Done::default(), Instant::now(), keys.cut.clone(), None);
        for (key, known) in &keys.known {
            let is_late = done.marker.is_some() && done.failed.is_empty() && began.elapsed() >= MOST_TIME;
            if is_late || done.failed.len() >= MOST_FAILURES {
                rest.clone_from(&done.marker);
                break;
            }
            let is_wrong = wrong.contains(key);
            let step = if is_wrong { Step::Alone } else { self.step(place, range, key, known, lease).await };
            if let Step::NotYet(why) = step {
                // What was done before that is kept.
                rest = done.last();
                not_yet = rest.is_none().then_some(why);
                break;
            }
            done.add(key, step);
            lease.progressed();
        }
        if done.failed.len() >= MOST_FAILURES {
            // What was done before that is kept; without anything, all of it is tried again.
            rest = Some(done.marker.clone().ok_or_else(|| std::mem::take(&mut done.why))?);
        } else {
            done.alone.append(&mut done.failed);
        }
        self.confirm(place, (behind, end), &keys, &mut done).await?;
        let seen = keys.known.iter().filter(|(key, _)| rest.as_ref().is_none_or(|rest| *key <= rest));
        let sizes = seen.filter_map(|(_, known)| known.listed.as_ref()).map(|listed| listed.size);
        let listed = sizes.fold((0, 0), |(items, bytes), size| (items + 1, bytes + size));
        let Done { right, alone, skipped, .. } = done;
        let alone_in_run = alone.iter().map(|key| lone_item(key, keys.known.get(key))).collect();
        Ok(Checked { right, alone, alone_in_run, skipped, listed, rest, not_yet })
    }

    /// What the store lists and what is recorded, side by side.
    pub(super) async fn keys(&self, place: &CheckedSpace, range: &Range<'_>, lease: &Lease) -> Result<Keys, String> {
        let (behind, last) = (range.behind, range.last);
        let (mut known, mut cuts) = (BTreeMap::<Key, Known>::new(), Vec::new());
        let mut listed = listing(&place.store, &place.space, b"", behind).await?;
        while let Some(item) = listed.next().await {
            let item = item.map_err(|error| error.to_string())?;
            if last.is_some_and(|last| item.key > *last) {
                break;
            }
            let (key, is_last) = (item.key.clone(), last == Some(&item.key));
            known.entry(key.clone()).or_default().listed = Some(item);
            if is_last {
                break;
            }
            if known.len() >= MOST_KEYS {
                cuts.push(key);
                break;
            }
        }
        lease.progressed();
        let store = place.store.name();
        let records = self.catalogue.item_records(store, &place.space, (behind, last), limit()).await.map_err(said)?;
        if records.len() >= MOST_KEYS {
            cuts.extend(records.last().map(|record| record.key.clone()));
        }
        for record in records {
            if record.index.is_some() || record.audit.is_some() || known.contains_key(&record.key) {
                let key = record.key.clone();
                known.entry(key).or_default().records = Some(record);
            }
        }
        let mut keys = Keys { known, cut: None };
        keys.cut_at(cuts.iter().min());
        Ok(keys)
    }

    async fn step(&self, place: &CheckedSpace, range: &Range<'_>, key: &Key, known: &Known, lease: &Lease) -> Step {
        let records = known.records.as_ref();
        let (index, audit) = (evidence::index(records), evidence::audit(records));
        let is_recorded = index.is_some() || audit.is_some();
        let listed = match &known.listed {
            None if is_recorded => return Step::Alone,
            None => return Step::Nothing,
            Some(_) if !is_recorded => return Step::Alone,
            Some(listed) => listed,
        };
        if !place.policy.has_turn(key, range.number) {
            return if is_listed_as_recorded(listed, records) { Step::Skipped(listed.size) } else { Step::Alone };
        }
        let item = Item::new(place.space.clone(), key.clone());
        let (content, store) = (Sighting::NotLooked, Sighting::NotLooked);
        let mut sources = Sources { content, store, index, audit };
        let may_read = place.policy.may_read();
        if place.policy == ProofPolicy::Provider {
            match look::ask(&place.store, &item).await {
                Ok((store, _)) => sources.store = store,
                Err(why) => return Step::Failed(why),
            }
        } else {
            let Some(state) = &listed.etag else { return Step::Alone };
            match look::read(&place.store, &item, state, &sources, lease).await {
                Reading::Read { content, store } => {
                    (sources.content, sources.store) = (Sighting::Present(content), Sighting::Present(store));
                }
                Reading::Archived => return Self::archived(place, item, records, sources).await,
                Reading::NotYet(not_yet) if not_yet.is_of_store => return Step::NotYet(not_yet),
                Reading::Missing | Reading::Changed | Reading::NotYet(_) | Reading::Unreadable(_) => {
                    return Step::Alone;
                }
                Reading::Failed(why) => return Step::Failed(why),
            }
        }
        let answer = decide(&sources, Look { may_read, is_second: false, is_last_round: false });
        if answer.next != Next::End || !answer.verdict.is_nothing_wrong() {
            return Step::Alone;
        }
        Step::Right(Box::new(evidence::checked(item, records, &sources, &answer.verdict)))
    }

    /// An item that is to be read and is archived: whether its store says that it is as recorded.
    async fn archived(place: &CheckedSpace, item: Item, records: Option<&ItemRecords>, mut sources: Sources) -> Step {
        match look::ask(&place.store, &item).await {
            Ok((store, _)) => sources.store = store,
            Err(why) => return Step::Failed(why),
        }
        let answer = decide(&sources, Look { may_read: false, is_second: false, is_last_round: false });
        if answer.next != Next::End || !answer.verdict.is_nothing_wrong() {
            return Step::Alone;
        }
        Step::Right(Box::new(evidence::unread(item, records, &sources).1))
    }

    /// Reads again what is recorded: an item of which that is not what it was when its bytes were looked at is checked
    /// alone.
    async fn confirm(
        &self,
        place: &CheckedSpace,
        range: (Option<&Key>, Option<&Key>),
        keys: &Keys,
        done: &mut Done,
    ) -> Result<(), String> {
        if done.right.is_empty() {
            return Ok(());
        }
        let store = place.store.name();
        let again = self.catalogue.item_records(store, &place.space, range, limit()).await.map_err(said)?;
        let again: BTreeMap<_, _> = again.iter().map(|record| (&record.key, record)).collect();
        let is_same = |key: &Key| again.get(key).copied() == keys.known.get(key).and_then(|one| one.records.as_ref());
        let (right, moved): (Vec<_>, Vec<_>) =
            std::mem::take(&mut done.right).into_iter().partition(|one| is_same(&one.item.key));
        done.right = right;
        done.alone.extend(moved.into_iter().map(|one| one.item.key));
        Ok(())
    }
}

/// An item that is checked alone, with what a page knows of it.
fn lone_item(key: &Key, known: Option<&Known>) -> LoneItem {
    let listed = known.and_then(|known| known.listed.as_ref()).map(|listed| listed.size);
    let records = known.and_then(|known| known.records.as_ref());
    let recorded =
        [evidence::index(records), evidence::audit(records)].into_iter().flatten().map(|fixity| fixity.size).next();
    LoneItem { key: key.clone(), bytes: listed.or(recorded).unwrap_or(0), is_listed: listed.is_some() }
}

/// How many records are read at once.
fn limit() -> u32 {
    u32::try_from(MOST_KEYS).unwrap_or(u32::MAX)
}

/// Whether a listing has an item in the state that both records have of it.
pub(super) fn is_listed_as_recorded(listed: &Listed, records: Option<&ItemRecords>) -> bool {
    let Some((index, audit)) = records.and_then(|records| records.index.as_ref().zip(records.audit.as_ref())) else {
        return false;
    };
    let is_same = index.seq == audit.seq && index.size == audit.size && index.digests == audit.digests;
    is_same && is_listed_as_indexed(listed, index)
}

/// Whether a listing has an item in the state that the content index has of it.
pub(super) fn is_listed_as_indexed(listed: &Listed, index: &IndexEntry) -> bool {
    index.size == listed.size && listed.etag.is_some() && index.etag == listed.etag
}
