//! The access daemon: versions of objects as archives in the delivery store, and links to them.
//!
//! Small and large requests share the workers, of which one is never given to a large request: no small one waits for a
//! large one. A request that a killed process has left in Processing is begun again; an archive that was complete is
//! found by its name.
//!
//! No archive is begun while the delivery store is held, or where it would fill the volume above the threshold
//! (`room`): the request is given back, with a note of why.

mod allocation;
mod archive;
mod delay;
mod delivery;
mod failure;
mod link;
mod request;
mod settings;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::inventory::{File, Object, Version};
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::{AccessQueue, Path};
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::AccessState;
use queuekeeper_queue::{self as queue, ItemChange, LockedRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::{info, warn};

pub use delivery::Deliveries;
pub use link::{LINKS, LinkError, OpenedDelivery};
pub use request::{FindError, RequestError, Requested, request};
pub use settings::AccessSettings;
pub use token::{Extent, Format, RequestedArchive, UnknownWord};

use crate::clock::now;
use crate::contents::{ObjectReader, Opened};
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::engine::through;
use crate::metrics::Ended;
use crate::name;
use crate::services::Services;
use crate::step;
use allocation::UnallocatedBytes;
use archive::{Bound, Files};
use delay::{Delay, Delays};
use failure::{AccessFailure, Unfilled, permanent, unreadable};
use request::Found;
use token::Delivered;

/// What the workers of one session share.
struct Lane {
    session: Arc<Session>,
    deliveries: Deliveries,
    contents: ObjectReader,
    /// The workers that large requests may have.
    large: Arc<Semaphore>,
    delays: Delays,
    room: UnallocatedBytes,
}

/// A worker, which may be one of those for large requests.
struct Worker(#[expect(dead_code, reason = "it is held while it works")] [Option<OwnedSemaphorePermit>; 2]);

/// Assembles what is requested, until it is dropped.
pub(crate) async fn assemble(session: Arc<Session>) {
    let Some(lane) = Lane::new(&session) else { return std::future::pending().await };
    let lane = Arc::new(lane);
    let mut ended: BTreeMap<AccessQueue, BTreeSet<RequestId>> = BTreeMap::new();
    loop {
        let mut is_retried = false;
        if session.may_take(Daemon::Access) {
            for access in AccessQueue::ALL {
                if let Err(error) = poll(&lane, *access, ended.entry(*access).or_default()).await {
                    warn!(queue = access.name(), %error, "cannot acquire access requests");
                    is_retried |= error.may_be_retried();
                }
            }
        }
        session.pause_after_look(Daemon::Access, is_retried).await;
    }
}

/// Takes the requests of a queue while there are workers; `ended` are those that need not be looked at.
async fn poll(lane: &Arc<Lane>, access: AccessQueue, ended: &mut BTreeSet<RequestId>) -> Result<(), queue::Error> {
    let Some(mut worker) = lane.worker(access) else { return Ok(()) };
    let session = &lane.session;
    session.look_at_holds().await?;
    let (began, is_held) = (now(), lane.is_held());
    let mut poll = session.queue.poll_requests(access).await?.with_abandoned();
    let mut listed = 0;
    poll.retain(|request| {
        listed += 1;
        !ended.contains(&request) && !lane.delays.is_waiting(access, request, began, is_held)
    });
    session.has_listed(Daemon::Access, listed);
    loop {
        let next = poll.next().await;
        ended.extend(poll.ended.drain(..));
        let Some(request) = next? else {
            if poll.paused.is_none() {
                lane.delays.prune(access, began, is_held);
            }
            return Ok(());
        };
        let (at_work, before) = (Arc::clone(lane), lane.delays.take(access, request.request.id));
        session.spawn(async move {
            at_work.work(request, before).await;
            drop(worker);
            // More may wait than there were workers.
            at_work.session.wake(Daemon::Access).notify_one();
        });
        let Some(next) = lane.worker(access).filter(|_| session.may_take(Daemon::Access)) else { return Ok(()) };
        worker = next;
    }
}

impl Lane {
    /// What it takes; `None` where nothing can be delivered.
    fn new(session: &Arc<Session>) -> Option<Self> {
        let services = &session.services;
        let settings = services.settings.access.clone()?;
        let workers = services.settings.workers.get(&Daemon::Access).copied().unwrap_or(0);
        let Some(store) = services.stores.get(&settings.store) else {
            warn!(store = %settings.store, "there is no store to deliver to; access requests are not processed");
            return None;
        };
        Some(Self {
            session: Arc::clone(session),
            deliveries: Deliveries::new(Arc::clone(store), settings),
            // All stores are open.
            contents: ObjectReader::new(Arc::clone(services), Arc::new(|_| Box::pin(async { None }))),
            // One is never given to them, so that small ones are not held up.
            large: Arc::new(Semaphore::new(workers.saturating_sub(1).max(1))),
            delays: Delays::default(),
            room: UnallocatedBytes::default(),
        })
    }

    fn services(&self) -> &Services {
        &self.session.services
    }

    /// A worker for a request of a queue, where one is free.
    fn worker(&self, access: AccessQueue) -> Option<Worker> {
        let large = match access {
            AccessQueue::Small => None,
            AccessQueue::Large => Some(Arc::clone(&self.large).try_acquire_owned().ok()?),
        };
        let any = self.session.workers(Daemon::Access)?.try_acquire_owned().ok()?;
        Some(Worker([large, Some(any)]))
    }

    /// Whether nothing is delivered, since the store is held.
    fn is_held(&self) -> bool {
        self.session.is_store_held(&self.deliveries.settings().store)
    }

    /// Works on a request; `before` is its delay, where it was given back before.
    async fn work(&self, mut request: LockedRequest, before: Option<Delay>) {
        let (access, id) = (request.request.queue, request.request.id);
        let (began, busy) = (Instant::now(), self.services().metrics.begin(Daemon::Access));
        let outcome = match self.complete(&mut request).await {
            Ok(()) => Ended::Done,
            Err(failure) => self.after_failure(&request, failure, before).await,
        };
        if before.is_some() && matches!(outcome, Ended::Done | Ended::Failed) {
            self.remove_note(access, id).await;
        }
        drop(busy);
        self.services().metrics.end(Daemon::Access, outcome, began.elapsed());
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (queue, outcome) = (access.name(), outcome.as_str());
        info!(request = %id, queue, outcome, duration_ms, "work on an access request ended");
    }

    async fn complete(&self, request: &mut LockedRequest) -> Result<(), AccessFailure> {
        let queue = &self.session.queue;
        if self.is_held() {
            let store = &self.deliveries.settings().store;
            return Err(AccessFailure::Held(format!("store {store} is held, so nothing is delivered")));
        }
        if request.state == AccessState::Pending {
            through!(queue, queue.step_request(request, &ItemChange::success(), now()))?;
        }
        let token = request.request.token.clone().unwrap_or_default();
        let delivered = self.deliver(&token).await?;
        let node = self.deliveries.settings().node;
        // What is written again after a lost connection must be the same.
        let at = now();
        let token = token::completed(&token, &delivered, node, at).map_err(|error| permanent(&error))?;
        through!(queue, queue.finish_request(request, &ItemChange::success(), Some(&token), at))?;
        Ok(())
    }

    /// Delivers what a token requests, unless that was done before.
    async fn deliver(&self, token: &[u8]) -> Result<Delivered, AccessFailure> {
        let wanted = RequestedArchive::of(token).map_err(|why| AccessFailure::Permanent(400, why))?;
        let (catalogue, fence) = (&self.services().catalogue, &self.session.fence);
        let found = request::find(catalogue, &wanted).await?;
        let number = found.version.number;
        fence.pass().await;
        let name = wanted.delivery(number);
        // ASCII without quotes.
        let shown = format!("{}.{}", wanted.folder(number), wanted.format);
        let modified = match self.deliveries.find(&name, now()).await? {
            Some(there) => there.modified,
            None => self.write(&found, &wanted, (&name, &shown)).await?,
        };
        let expires = self.deliveries.expires(modified);
        let url = self.deliveries.link(&name, &shown, now(), expires).await?;
        Ok(Delivered { url, expires, bytes: found.bytes, version: number })
    }

    /// Writes the archive of a version, and says when that was.
    async fn write(
        &self,
        found: &Found,
        wanted: &RequestedArchive,
        (name, shown): (&str, &str),
    ) -> Result<Timestamp, AccessFailure> {
        let Found { object, version, .. } = found;
        let folder = wanted.folder(version.number);
        let most = self.bound(found, wanted, &folder).await?;
        let room = self.room.take(&self.deliveries.store, self.services().settings.space, most).await?;
        let (files, chunks) = archive::begin(wanted.format, version.ingested);
        let filling = self.fill(object, version, (&folder, wanted.extent), files);
        let writing = self.deliveries.put(name, shown, room.around(chunks), &self.session.fence);
        let (filled, written) = tokio::join!(filling, writing);
        // Why the files could not be read says more than that the archive was given up.
        match filled {
            Err(Unfilled::Failed(failure)) => return Err(failure),
            Ok(()) | Err(Unfilled::Stopped) => written?,
        }
        let found = self.deliveries.find(name, now()).await?;
        Ok(found.ok_or_else(|| AccessFailure::Temporary("removed the archive immediately".to_owned()))?.modified)
    }

    /// How many bytes the archive takes at most; where that is of no use, how many its files have.
    async fn bound(&self, found: &Found, wanted: &RequestedArchive, folder: &str) -> Result<u64, AccessFailure> {
        if self.deliveries.store.directory().is_none() {
            return Ok(found.bytes);
        }
        let (mut bound, mut after) = (Bound::of(wanted.format), wanted.extent.prefix().to_owned());
        loop {
            let (catalogue, number) = (&self.services().catalogue, found.version.number);
            let page = request::page(catalogue, &found.object, number, wanted.extent, &after).await?;
            let Some(last) = page.last() else { return Ok(bound.bytes()) };
            after.clone_from(&last.path);
            for file in &page {
                bound.add(&format!("{folder}/{}", file.path), file.size);
            }
        }
    }

    /// Puts the files of a version into an archive, each below a folder.
    async fn fill(
        &self,
        object: &Object,
        version: &Version,
        (folder, extent): (&str, Extent),
        files: Files,
    ) -> Result<(), Unfilled> {
        let mut after = extent.prefix().to_owned();
        let (mut count, mut bytes) = (0, 0);
        loop {
            let page = request::page(&self.services().catalogue, object, version.number, extent, &after).await;
            let page = page.map_err(AccessFailure::from)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.path);
            for file in &page {
                self.add(object, file, folder, &files).await?;
                (count, bytes) = (count + 1, bytes + file.size);
            }
        }
        if extent == Extent::Full && (count, bytes) != (version.file_count, version.byte_count) {
            let Version { number, file_count, byte_count, .. } = version;
            let why = format!(
                "the catalogue lists {count} files of {bytes} bytes in version {number} of {}, which has {file_count} of \
                 {byte_count}: restore the catalogue, or rebuild it",
                object.ark
            );
            return Err(AccessFailure::Permanent(500, why).into());
        }
        Ok(files.end().await?)
    }

    async fn add(&self, object: &Object, file: &File, folder: &str, files: &Files) -> Result<(), Unfilled> {
        let shown = || format!("{:?} of {}", name::shown(&file.path), object.ark);
        // Whatever unpacks the archive writes where the path says.
        name::check(&file.path).map_err(|error| AccessFailure::Permanent(500, format!("{}: {error}", shown())))?;
        let opened = self.contents.read(object, file).await;
        let Opened { content, .. } = opened.map_err(|error| unreadable(&shown(), error))?;
        files.file(format!("{folder}/{}", file.path), file.size).await?;
        let mut chunks = content.chunks;
        loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => {
                    self.services().metrics.archived(chunk.len() as u64);
                    files.data(chunk).await?;
                }
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(AccessFailure::Permanent(500, format!("{}: {error}", shown())).into());
                }
                Err(error) => return Err(AccessFailure::Temporary(format!("{}: {error}", shown())).into()),
            }
        }
    }

    async fn after_failure(&self, request: &LockedRequest, failure: AccessFailure, before: Option<Delay>) -> Ended {
        let (access, id) = (request.request.queue, request.request.id);
        let settings = &self.services().settings;
        let (since, attempts) = before.map_or((now(), 0), |delay| (delay.since, delay.attempts));
        let delay = |since, is_for_hold| {
            let not_before = now().checked_add(settings.pause(attempts)).unwrap_or(Timestamp::MAX);
            Delay { since, attempts: attempts + 1, not_before, is_for_hold }
        };
        let (status, why) = match failure {
            AccessFailure::Permanent(status, why) => (status, why),
            AccessFailure::Temporary(why) if now().duration_since(since).unsigned_abs() < settings.retry_within => {
                return self.wait(request, delay(since, false), &why).await;
            }
            // What it is tried for after that has its time anew.
            AccessFailure::Waits(why) => return self.wait(request, delay(now(), false), &why).await,
            AccessFailure::Held(why) => return self.wait(request, delay(now(), true), &why).await,
            AccessFailure::Temporary(why) => (500, format!("{why} (after {} attempts)", attempts + 1)),
            AccessFailure::Queue(error) => {
                warn!(request = %id, queue = access.name(), %error, "stopped working on an access request");
                self.unlock(request).await;
                return Ended::Lost;
            }
        };
        let why = step::message(&why);
        warn!(request = %id, queue = access.name(), %why, "an access request failed");
        let token = token::failed(request.request.token.as_deref().unwrap_or_default(), status, &why).ok();
        let (queue, change, at) = (&self.session.queue, ItemChange::to(AccessState::Failed).with_message(why), now());
        match through!(queue, queue.finish_request(request, &change, token.as_deref(), at)) {
            Ok(_) => Ended::Failed,
            Err(error) => {
                warn!(request = %id, queue = access.name(), %error, "stopped working on an access request");
                self.unlock(request).await;
                Ended::Lost
            }
        }
    }

    /// Gives a request back, to be taken again after a pause, with a note of why.
    async fn wait(&self, request: &LockedRequest, delay: Delay, why: &str) -> Ended {
        let (access, id) = (request.request.queue, request.request.id);
        let Delay { since, attempts, not_before, .. } = delay;
        info!(request = %id, queue = access.name(), %why, %not_before, "will retry an access request later");
        let pause = not_before.duration_since(now()).try_into().unwrap_or(Duration::ZERO);
        self.delays.put(access, id, delay);
        self.session.wake_after(Daemon::Access, pause);
        let retry = Retry { version: 0, since, attempts, not_before, waits_since: None, why: step::message(why) };
        if let Err(error) = self.session.queue.delay_request(request, &retry).await {
            warn!(request = %id, queue = access.name(), %error, "cannot record why an access request waits");
            self.unlock(request).await;
        }
        if delay.is_for_hold && !self.is_held() {
            // A look that the release caused has found it locked.
            self.session.wake(Daemon::Access).notify_one();
        }
        Ended::Delayed
    }

    /// Removes the note of a request that does not wait any more; cleanup removes one that stays.
    async fn remove_note(&self, access: AccessQueue, id: RequestId) {
        let path = Path::request_retry(access, id);
        match self.session.queue.client().delete(&path.to_string(), None).await {
            Ok(()) | Err(zookeeper_client::Error::NoNode) => {}
            Err(error) => info!(%path, %error, "cannot remove the note of a request; cleanup removes it later"),
        }
    }

    async fn unlock(&self, request: &LockedRequest) {
        let queue = &self.session.queue;
        if let Err(error) = through!(queue, queue.unlock_request(request)) {
            warn!(request = %request.request.id, %error, "cannot release the lock of an access request; it ends with the session");
        }
    }
}
