//! The repair of a copy from another one, and what else an operator has decided about one.
//!
//! # Steps
//! 1. The copy is read: what is right by now is not written.
//! 2. Another copy is read. It is good if it is what content index and audit log have of both.
//! 3. The damaged content goes aside, and must arrive there as it was read.
//! 4. It is recorded from which copy it is repaired, then that is written under the entity tag that was read.
//! 5. The copy is read back.
//!
//! A process may die at any of them: the next one begins with the first, and finds what was done. Content that is right
//! is written in its own place in the same steps. What is to be recorded is read, and recorded where it is what was
//! decided about.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_catalogue::asides::NewAside;
use queuekeeper_catalogue::brake::{BrakeLimit, Braked};
use queuekeeper_catalogue::repairs::{Repair, RepairEnd};
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskSubject};
use queuekeeper_store::store::{Chunks, Condition, Item, Properties, Put};
use queuekeeper_store::{Digests, Error, ErrorKind, Store};

use super::checker::{CheckedSpace, Checker, item_task};
use super::decide::is_same;
use super::kept::sighting;
use super::read_copy::{ReadCopy, is_proven};
use super::repair::{NotGood, RepairLimits, RepairMode, RepairStart, check_good, start};
use super::verdict::{CheckVerdict, Fixity, Remedy, Sighting};
use crate::asides;
use crate::worker::{CHANGING, Lease, Processed, Processor, Stop};

/// How a failure begins whose cause is that no other copy is good enough.
pub(super) const NO_GOOD_COPY: &str = "no other copy is good enough to repair it";

/// When a repair that the mill has started looks again whether it may go on.
const STOPPED: Duration = Duration::from_mins(1);

/// Repairs copies.
pub struct Repairer {
    /// What looks at copies.
    pub checker: Checker,
    /// How much may be destroyed within a day.
    pub limit: BrakeLimit,
    /// How long damaged content is kept aside.
    pub keep: Duration,
}

/// Content that is good, in the store that has it.
struct Good {
    store: Arc<dyn Store>,
    properties: Properties,
    content: Fixity,
}

/// Whether something is a remedy for what is found now: where the mill has started it, only what it may start.
fn is_possible(remedy: Remedy, verdict: &CheckVerdict, repair: &Repair) -> bool {
    if remedy != Remedy::RepairFromCopy {
        return verdict.offers.iter().any(|offer| offer.remedy == remedy);
    }
    let limits = RepairLimits { mode: RepairMode::Automatic, ..RepairLimits::default() };
    match start(verdict, &limits) {
        RepairStart::Automatic => true,
        RepairStart::Manual(_) => !repair.is_automatic,
        RepairStart::Never => false,
    }
}

/// Whether the content is still the one that was seen when it was decided to record it.
fn is_as_decided(remedy: Remedy, seen: &ReadCopy, repair: &Repair) -> bool {
    let decided = sighting(repair.content.as_deref());
    match (&seen.sources.content, decided) {
        _ if !remedy.is_of_record() => true,
        (Sighting::Present(now), Ok(Sighting::Present(decided))) => is_same(now, &decided) == Some(true),
        _ => false,
    }
}

#[async_trait]
impl Processor for Repairer {
    fn kind(&self) -> TaskKind {
        TaskKind::Repair
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.repair(task, lease).await.unwrap_or_else(Processed::from)
    }
}

impl Repairer {
    async fn repair(&self, task: &TakenTask, lease: &Lease) -> Result<Processed, Stop> {
        let place = match self.checker.place(&task.subject, lease)? {
            Ok(place) => place,
            Err(wait) => return Ok(wait.into()),
        };
        let key = task.subject.key.clone().ok_or_else(|| "the task names no item".to_owned())?;
        let item = Item::new(place.space.clone(), key);
        let Some(repair) = self.checker.catalogue.open_repair(place.store.name(), &item).await? else {
            return Ok(checked_again(&task.subject));
        };
        self.check_stops(&place, &repair).await?;
        let seen = ReadCopy::read(&self.checker, &place, &item, &Digests::default(), lease).await?;
        let verdict = seen.verdict();
        if is_proven(&verdict) {
            let end = if repair.source.is_some() { RepairEnd::Repaired } else { RepairEnd::Healthy };
            return self.end(task, &place, &item, (&seen, &verdict), end).await;
        }
        let remedy = Remedy::named(&repair.remedy);
        let remedy =
            remedy.filter(|remedy| is_possible(*remedy, &verdict, &repair) && is_as_decided(*remedy, &seen, &repair));
        let Some(remedy) = remedy else {
            let catalogue = &self.checker.catalogue;
            catalogue.end_repair(place.store.name(), &item, RepairEnd::Refused, &verdict.to_string()).await?;
            return Ok(checked_again(&task.subject));
        };
        if remedy.is_of_record() {
            let seen = self.checker.record(&place, &item, seen, remedy, &repair.user).await?;
            let verdict = seen.verdict();
            return self.end(task, &place, &item, (&seen, &verdict), RepairEnd::Recorded).await;
        }
        let good = match (remedy, &seen.properties, &seen.sources.content) {
            (Remedy::RewriteInPlace, Some(properties), Sighting::Present(content)) => {
                let store = Arc::clone(&place.store);
                Good { store, properties: properties.clone(), content: content.clone() }
            }
            _ => self.good_copy(task, &item, &seen, lease).await?,
        };
        // Large content takes long to read.
        self.check_stops(&place, &repair).await?;
        self.write(task, &place, &item, (&seen, &repair), &good, lease).await?;
        let seen = ReadCopy::read(&self.checker, &place, &item, &Digests::default(), lease).await?;
        let verdict = seen.verdict();
        if is_proven(&verdict) {
            return self.end(task, &place, &item, (&seen, &verdict), RepairEnd::Repaired).await;
        }
        Err(Stop::Failed(format!("the written content was read back and is not the intended content: {verdict}")))
    }

    /// Puts a repair off that the mill has started, where those are stopped by now. What has begun to write is worse
    /// half done.
    async fn check_stops(&self, place: &CheckedSpace, repair: &Repair) -> Result<(), Stop> {
        let may_wait = repair.is_automatic && repair.source.is_none();
        if may_wait && self.checker.catalogue.are_repairs_stopped(place.store.name()).await? {
            return Err(TaskOutcome::PutOff(STOPPED).into());
        }
        Ok(())
    }

    /// The first other copy that is good, of those that the content index has; the store that the task names, if it
    /// names one.
    async fn good_copy(&self, task: &TakenTask, item: &Item, target: &ReadCopy, lease: &Lease) -> Result<Good, Stop> {
        let subject = &task.subject;
        let account = self.checker.accounts.get(&subject.account);
        let stores = account.into_iter().flat_map(|account| account.stores.values());
        let mut others: Vec<_> = stores.filter(|store| Some(*store) != subject.destination.as_ref()).collect();
        // One that is read at once comes before one that costs.
        others.sort_by_key(|store| account.is_some_and(|account| account.is_cold(store)));
        let (mut reasons, mut checks, mut wait) = (Vec::new(), Vec::new(), None);
        for store in others.into_iter().filter(|store| task.source.as_ref().is_none_or(|named| named == *store)) {
            let subject = TaskSubject { destination: Some(store.clone()), ..subject.clone() };
            let place = match self.checker.place(&subject, lease)? {
                Ok(place) => place,
                Err(closed) => {
                    wait = wait.or(Some(closed));
                    continue;
                }
            };
            let known = self.checker.catalogue.copy(store, item).await?;
            if known.is_none_or(|copy| copy.is_deleted) {
                continue;
            }
            let seen = match ReadCopy::read(&self.checker, &place, item, &target.recorded(), lease).await {
                Ok(seen) => seen,
                Err(Stop::Ended(later)) => {
                    wait = wait.or(Some(later.outcome));
                    continue;
                }
                Err(Stop::Failed(why)) => {
                    reasons.push(why);
                    continue;
                }
            };
            match (check_good(&seen.sources, &target.sources), seen.properties, seen.sources.content) {
                (Ok(()), Some(properties), Sighting::Present(content)) => {
                    let store = Arc::clone(&place.store);
                    return Ok(Good { store, properties, content });
                }
                (Err(why), ..) => {
                    reasons.push(format!("{store} {why}"));
                    if matches!(why, NotGood::Missing | NotGood::NotRecorded | NotGood::NotAsRecorded) {
                        checks.extend(subject.key.clone().map(|key| item_task(&subject, key)));
                    }
                }
                (Ok(()), ..) => reasons.push(format!("{store} {}", NotGood::Missing)),
            }
        }
        if let Some(wait) = wait {
            return Err(wait.into());
        }
        let reasons = if reasons.is_empty() { "no other store has it".to_owned() } else { reasons.join("; ") };
        let outcome = TaskOutcome::Failed(format!("{NO_GOOD_COPY}: {reasons}"));
        Err(Stop::Ended(Processed { follow_ups: checks, ..outcome.into() }))
    }

    /// Puts the damaged content aside, and writes the good one in its place.
    async fn write(
        &self,
        task: &TakenTask,
        place: &CheckedSpace,
        item: &Item,
        (seen, repair): (&ReadCopy, &Repair),
        good: &Good,
        lease: &Lease,
    ) -> Result<(), Stop> {
        let (target, source) = (&place.store, &good.store);
        let kept_as = self.put_aside(task, place, item, seen, lease).await?;
        let catalogue = &self.checker.catalogue;
        if !catalogue.begin_repair(target.name(), item, source.name(), kept_as.as_deref()).await? {
            return Err(Stop::Failed("its repair was cancelled meanwhile".to_owned()));
        }
        let (condition, user) = match &seen.properties {
            Some(old) => (Condition::IfMatch(old.etag.clone()), old.user.clone()),
            None => (Condition::IfAbsent, good.properties.user.clone()),
        };
        let put = async || {
            let content = source.get(item, None, Some(&good.properties.etag)).await?;
            let put = Put {
                size: Some(good.content.size),
                expected: good.content.digests.clone(),
                condition: condition.clone(),
                user: user.clone(),
                abort: lease.ended().clone(),
                ..Put::default()
            };
            target.put(item, with_progress(content.chunks, lease), put).await
        };
        let written = match put().await {
            Err(Error { kind: ErrorKind::NoSpace, .. }) => {
                target.create_space(&item.space).await?;
                put().await
            }
            written => written,
        };
        match written {
            Ok(_) => {
                let (store, source, by) = (target.name(), source.name(), &repair.user);
                tracing::info!(%store, %item, %source, by, kept_as, "rewrote a copy");
                Ok(())
            }
            // It was done, and is read back once its record has followed.
            Err(Error { kind: ErrorKind::Unrecorded(_), .. }) => Err(TaskOutcome::PutOff(CHANGING).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the damaged content aside, as it was read: under which key. Holds the task where too much would be
    /// destroyed within a day.
    async fn put_aside(
        &self,
        task: &TakenTask,
        place: &CheckedSpace,
        item: &Item,
        seen: &ReadCopy,
        lease: &Lease,
    ) -> Result<Option<String>, Stop> {
        let (Some(old), Sighting::Present(content)) = (&seen.properties, &seen.sources.content) else {
            return Ok(None);
        };
        let store = &place.store;
        let aside = asides::place(task, store.name(), item, &old.etag)?;
        let kept_as = aside.key.to_string();
        let of = Braked { account: &task.subject.account, store: store.name(), space: &place.space };
        let new = NewAside { item, kept_as: &kept_as, reason: "repair", keep: self.keep };
        let limit = (!task.is_released).then_some(self.limit);
        let answer = self.checker.catalogue.put_aside(&of, &new, limit).await?;
        let answer = answer.ok_or_else(|| format!("earlier content of {item} that was kept aside is being removed"))?;
        if !answer.is_allowed {
            return Err(TaskOutcome::Held(asides::too_many(&of, &answer)).into());
        }
        store.create_space(&aside.space).await?;
        // A worker that died after this has put it there.
        if store.head(&aside).await?.is_none() {
            let damaged = store.get(item, None, Some(&old.etag)).await?;
            let put = Put {
                size: Some(content.size),
                expected: content.digests.clone(),
                condition: Condition::IfAbsent,
                user: old.user.clone(),
                abort: lease.ended().clone(),
                ..Put::default()
            };
            store.put(&aside, with_progress(damaged.chunks, lease), put).await?;
        }
        Ok(Some(kept_as))
    }

    /// Ends a repair of a copy that is proven now.
    async fn end(
        &self,
        task: &TakenTask,
        place: &CheckedSpace,
        item: &Item,
        (seen, verdict): (&ReadCopy, &CheckVerdict),
        end: RepairEnd,
    ) -> Result<Processed, Stop> {
        let store = place.store.name();
        self.checker.catalogue.end_repair(store, item, end, &verdict.to_string()).await?;
        let part = seen.part(&task.subject.account, place, item, verdict);
        Ok(Processed { checked: Some(part), ..TaskOutcome::Done.into() })
    }
}

/// The end of a task whose item is to be checked instead.
fn checked_again(subject: &TaskSubject) -> Processed {
    let check: Vec<NewTask> = subject.key.clone().map(|key| item_task(subject, key)).into_iter().collect();
    Processed { follow_ups: check, ..TaskOutcome::Done.into() }
}

fn with_progress(chunks: Chunks, lease: &Lease) -> Chunks {
    let progress = lease.clone();
    chunks.inspect_ok(move |_chunk| progress.progressed()).boxed()
}
