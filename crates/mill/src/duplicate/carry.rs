//! Carrying out what was decided.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_catalogue::asides::NewAside;
use queuekeeper_catalogue::brake::Braked;
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::store::{Chunks, Condition, Item, Properties, Put, Store};
use queuekeeper_store::{Digest, Digests, Error, ErrorKind, Hashers, Key};

use super::decide::{self, Action, Record, SpaceAction, StoredItem};
use super::look::{self, Side};
use super::whole;
use super::{ALGORITHM, Duplicator, Places};
use crate::asides;
use crate::bit::intended::is_being_stored;
use crate::worker::{CHANGING, Lease, Processed, Stop};

/// When content is looked at again that a job stores, and has not recorded yet.
const STORING: Duration = Duration::from_mins(10);

impl Duplicator {
    pub(super) async fn space(&self, places: &Places<'_>) -> Processed {
        match self.space_in(places).await {
            Ok(()) => TaskOutcome::Done.into(),
            Err(why) => TaskOutcome::Failed(why).into(),
        }
    }

    async fn space_in(&self, places: &Places<'_>) -> Result<(), String> {
        let Places { source, destination, space, .. } = places;
        let (from, to) = (look::space(source, space).await?, look::space(destination, space).await?);
        let done = match decide::space(from, to) {
            SpaceAction::Nothing => return Ok(()),
            SpaceAction::Create => destination.create_space(space).await,
            SpaceAction::Delete => destination.delete_space(space).await,
            SpaceAction::Orphan => {
                let (source, destination) = (source.name(), destination.name());
                tracing::warn!(%space, %source, %destination, "the space no longer exists at its source, but its copy has items; the copy is kept");
                return Ok(());
            }
        };
        done.map(|_is_new| ()).map_err(|error| error.to_string())
    }

    pub(super) async fn item(&self, task: &TakenTask, places: &Places<'_>, key: &Key, lease: &Lease) -> Processed {
        let item = Item::new(places.space.clone(), key.clone());
        match self.item_in(task, places, &item, lease).await {
            Ok(()) => TaskOutcome::Done.into(),
            Err(stop) => stop.into(),
        }
    }

    async fn item_in(&self, task: &TakenTask, places: &Places<'_>, item: &Item, lease: &Lease) -> Result<(), Stop> {
        let Places { source, destination, .. } = places;
        let (from, to) = futures::try_join!(
            Side::look(&self.catalogue, source, item),
            Side::look(&self.catalogue, destination, item),
        )?;
        lease.progressed();
        let (mut seen, mut there) = (from.seen(), to.seen());
        let mut action = decide::item(seen.as_ref(), from.record(), there.as_ref());
        if action == Action::Read {
            if seen.as_ref().is_some_and(|seen| seen.digests.is_empty()) {
                let found = self.read(source, item, &from, &Digests::default(), lease).await?;
                seen = seen.map(|seen| StoredItem { digests: found, ..seen });
            }
            // What the source is known by decides what is computed of the copy.
            let wanted = seen.as_ref().map(|seen| seen.digests.clone()).unwrap_or_default();
            let found = self.read(destination, item, &to, &wanted, lease).await?;
            there = there.map(|there| StoredItem { digests: found, ..there });
            action = decide::item(seen.as_ref(), from.record(), there.as_ref());
        }
        if matches!(action, Action::Copy | Action::Overwrite)
            && let Some(wait) = whole::wait(&self.catalogue, task, places, item).await?
        {
            return Err(wait.into());
        }
        match (action, &from.properties, &to.properties) {
            (Action::Copy, Some(properties), _) => {
                self.check_source(task, places, item, (&from, &to)).await?;
                self.copy(task, places, item, (&from, properties), Condition::IfAbsent, lease).await
            }
            (Action::Overwrite, Some(properties), Some(old)) => {
                self.check_source(task, places, item, (&from, &to)).await?;
                self.keep(task, places, item, old, "overwrite").await?;
                self.copy(task, places, item, (&from, properties), Condition::IfMatch(old.etag.clone()), lease).await
            }
            (Action::SetProperties, Some(properties), Some(old)) => {
                match destination.set_properties(item, &properties.user, Some(&old.etag)).await {
                    Err(Error { kind: ErrorKind::Archived, .. }) => {
                        tracing::warn!(%item, store = %destination.name(), "cannot change the properties of an archived copy");
                        Ok(())
                    }
                    set => set.map(|_written| ()).map_err(Stop::from),
                }
            }
            (Action::Delete, _, Some(old)) => self.delete(task, places, item, &from, old).await,
            (Action::Lost, ..) => {
                let why = format!("the store {} has lost {item}, which is recorded as present", source.name());
                Err(self.blame(task, places, item, &from, why).await)
            }
            (Action::Foreign, ..) => {
                let (source, destination) = (source.name(), destination.name());
                tracing::warn!(%item, %source, %destination, "the copy has an item that its source never had; it is kept");
                Ok(())
            }
            (Action::Nothing, ..) => Ok(()),
            (Action::Copy | Action::Overwrite | Action::Read | Action::SetProperties | Action::Delete, ..) => {
                Err(Stop::Failed(format!("{item} changed while it was being checked")))
            }
        }
    }

    /// The digests of what a store has now, by the algorithms of others.
    async fn read(
        &self,
        store: &Arc<dyn Store>,
        item: &Item,
        side: &Side,
        wanted: &Digests,
        lease: &Lease,
    ) -> Result<Digests, Stop> {
        let etag = side.properties.as_ref().map(|properties| &properties.etag);
        let mut chunks = store.get(item, None, etag).await?.chunks;
        let mut hashers = Hashers::new(wanted.iter().map(Digest::algorithm).chain([ALGORITHM]));
        while let Some(chunk) = chunks.next().await {
            hashers.update(&chunk.map_err(|error| format!("{item} cannot be read from {}: {error}", store.name()))?);
            lease.progressed();
        }
        Ok(hashers.finish())
    }

    async fn delete(
        &self,
        task: &TakenTask,
        places: &Places<'_>,
        item: &Item,
        from: &Side,
        old: &Properties,
    ) -> Result<(), Stop> {
        let age = match from.seq() {
            Some(seq) => self.catalogue.deletion_age(seq).await?,
            None => None,
        };
        let age =
            age.ok_or_else(|| format!("the deletion of {item} in {} is not in the audit log", places.source.name()))?;
        if let Some(left) = self.delete_after.checked_sub(age).filter(|left| !left.is_zero()) {
            return Err(TaskOutcome::PutOff(left).into());
        }
        self.keep(task, places, item, old, "delete").await?;
        match places.destination.delete(item, Some(&old.etag)).await {
            Ok(_) | Err(Error { kind: ErrorKind::Unrecorded(_), .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps content aside before it is destroyed; holds the task where too much would be destroyed within a day.
    async fn keep(
        &self,
        task: &TakenTask,
        places: &Places<'_>,
        item: &Item,
        old: &Properties,
        reason: &str,
    ) -> Result<(), Stop> {
        let (account, store) = (task.subject.account.as_str(), places.destination);
        let of = Braked { account, store: store.name(), space: &places.space };
        let aside = asides::place(task, store.name(), item, &old.etag)?;
        let kept_as = aside.key.to_string();
        let new = NewAside { item, kept_as: &kept_as, reason, keep: self.delete_after };
        let limit = (!task.is_released).then_some(self.limit);
        let answer = self.catalogue.put_aside(&of, &new, limit).await?;
        let answer = answer.ok_or_else(|| format!("earlier content of {item} that was kept aside is being removed"))?;
        if !answer.is_allowed {
            return Err(TaskOutcome::Held(asides::too_many(&of, &answer)).into());
        }
        store.create_space(&aside.space).await?;
        // A worker that died after this has put it there.
        if store.head(&aside).await?.is_none() {
            store.copy(item, Some(&old.etag), &aside, &Condition::IfAbsent).await?;
        }
        Ok(())
    }

    /// Writes the copy, and makes its space where that is missing.
    async fn copy(
        &self,
        task: &TakenTask,
        places: &Places<'_>,
        item: &Item,
        (from, properties): (&Side, &Properties),
        condition: Condition,
        lease: &Lease,
    ) -> Result<(), Stop> {
        let written = match put(places, item, (from, properties), condition.clone(), lease).await {
            Err(Error { kind: ErrorKind::NoSpace, .. }) => {
                places.destination.create_space(&item.space).await?;
                put(places, item, (from, properties), condition, lease).await
            }
            written => written,
        };
        match written {
            // It was done, and its record follows.
            Ok(()) | Err(Error { kind: ErrorKind::Unrecorded(_), .. }) => Ok(()),
            Err(error) if matches!(error.kind, ErrorKind::Digest { .. } | ErrorKind::Size { .. }) => {
                let why = format!("{item} is damaged in {} and was not copied: {error}", places.source.name());
                Err(self.blame(task, places, item, from, why).await)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses to copy what is not as it was recorded: content that was changed around this program. Content
    /// without a record is copied only to where nothing is or was, as long as no check has found it: then an operator
    /// decides.
    async fn check_source(
        &self,
        task: &TakenTask,
        places: &Places<'_>,
        item: &Item,
        (from, to): (&Side, &Side),
    ) -> Result<(), Stop> {
        if from.is_as_recorded() {
            return Ok(());
        }
        let (source, destination) = (places.source.name(), places.destination.name());
        let why = if from.is_recorded() {
            format!("the content in {source} differs from its record, so it is not copied; check its integrity")
        } else if to.properties.is_some() || to.record() != Record::Never {
            format!(
                "the content in {source} has no record, so the copy in {destination} is not overwritten; check its integrity"
            )
        } else if let Some(error) = self.catalogue.bit_error(source, item).await? {
            format!("the content in {source} is not copied until bit error {} is resolved: {}", error.id, error.detail)
        } else if is_being_stored(&self.catalogue, source, item).await? {
            return Err(TaskOutcome::PutOff(STORING).into());
        } else {
            return Ok(());
        };
        Err(self.blame(task, places, item, from, why).await)
    }

    /// Fails, and has the source checked, unless the source is just being changed: then its record follows.
    async fn blame(&self, task: &TakenTask, places: &Places<'_>, item: &Item, from: &Side, why: String) -> Stop {
        match from.is_at_rest(&self.catalogue, places.source, item).await {
            Ok(true) => {
                let destination = Some(places.source.name().clone());
                let subject = TaskSubject { kind: TaskKind::Bit, destination, ..task.subject.clone() };
                let check = NewTask { queue: TaskQueue::BitIntegrity, subject, source: None };
                Stop::Ended(Processed { outcome: TaskOutcome::Failed(why), follow_ups: vec![check], checked: None })
            }
            Ok(false) => TaskOutcome::PutOff(CHANGING).into(),
            Err(error) => error.into(),
        }
    }
}

/// Writes the copy, unless what is read differs from what the source is known by.
async fn put(
    places: &Places<'_>,
    item: &Item,
    (from, properties): (&Side, &Properties),
    condition: Condition,
    lease: &Lease,
) -> Result<(), Error> {
    let content = places.source.get(item, None, Some(&properties.etag)).await?;
    let progress = lease.clone();
    let chunks: Chunks = content.chunks.inspect_ok(move |_chunk: &Bytes| progress.progressed()).boxed();
    let put = Put {
        size: Some(properties.size),
        expected: from.seen().map(|seen| seen.digests).unwrap_or_default(),
        compute: vec![ALGORITHM],
        condition,
        user: properties.user.clone(),
        abort: lease.ended().clone(),
        ..Put::default()
    };
    places.destination.put(item, chunks, put).await.map(|_written| ())
}
