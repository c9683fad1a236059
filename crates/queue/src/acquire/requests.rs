//! The next access request of a queue.

use super::{LockOutcome, SkipReason, SkippedItem, Window};
use crate::access::{LockedRequest, Request};
use crate::error::Error;
use crate::handle::{Queue, Read};
use crate::id::RequestId;
use crate::lock::{Claim, ClaimOutcome, Lock, Pause, PendingChange};
use crate::path::{self, AccessQueue, Path, RequestNode};
use crate::state::AccessState;
use crate::transaction::Transaction;

/// One poll for Pending access requests of a queue, oldest first.
#[derive(Debug)]
pub struct RequestPoll {
    queue: Queue,
    access: AccessQueue,
    window: Window<RequestId>,
    /// What was read of the window last, in reverse.
    read: Vec<(AccessState, Request)>,
    has_abandoned: bool,
    /// Of those that were looked at, the Completed and Deleted ones, which no later poll need look at.
    pub ended: Vec<RequestId>,
    /// Set while the queue is paused; the poll is empty then.
    pub paused: Option<Pause>,
    /// The skipped items, with the reasons.
    pub skipped: Vec<SkippedItem>,
}

impl AccessQueue {
    /// The queue whose lock pauses it.
    #[must_use]
    pub fn pausable(self) -> path::QueueName {
        match self {
            Self::Small => path::QueueName::AccessSmall,
            Self::Large => path::QueueName::AccessLarge,
        }
    }
}

impl Queue {
    /// Looks for the next Pending access request and locks it: a poll that is used once. Each call lists and reads the
    /// requests anew, so a daemon takes one after the other from a [`Queue::poll_requests`].
    ///
    /// # Errors
    /// As [`Queue::poll_requests`] and [`RequestPoll::next`].
    pub async fn acquire_request(&self, queue: AccessQueue) -> Result<(Option<LockedRequest>, RequestPoll), Error> {
        let mut poll = self.poll_requests(queue).await?;
        let request = poll.next().await?;
        Ok((request, poll))
    }

    /// Lists the access requests of a queue; none while it is paused.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn poll_requests(&self, access: AccessQueue) -> Result<RequestPoll, Error> {
        let lock = Path::QueueLock(access.pausable());
        let reads = [Read::Children(Path::AccessQueue(access)), Read::Data(lock.clone())];
        let [names, pause] = self.read_each(reads).await?;
        let paused = pause.data().map(|(data, stat)| Pause::from_found(lock, &data, &stat));
        let names = if paused.is_some() { Vec::new() } else { names.children() };
        let mut requests: Vec<RequestId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        requests.sort_unstable();
        let (window, queue) = (Window::new(requests), self.clone());
        let (read, ended, skipped) = (Vec::new(), Vec::new(), Vec::new());
        Ok(RequestPoll { queue, access, window, read, has_abandoned: false, ended, paused, skipped })
    }
}

impl RequestPoll {
    /// With the requests in Processing that are not locked, too: a process has left them that was killed, or has given
    /// them back. Java's daemons do not take these.
    #[must_use]
    pub fn with_abandoned(self) -> Self {
        Self { has_abandoned: true, ..self }
    }

    /// Leaves requests out of the list that were not looked at yet.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(RequestId) -> bool) {
        self.window.waiting.retain(|request| is_wanted(*request));
    }

    /// The next Pending request, locked; `None` at the end of the list. A request that an earlier call locked, by this
    /// poll or another of the same queue, comes first where that call ended in [`Error::Unknown`], or its future was
    /// dropped.
    ///
    /// # Errors
    /// When the queue cannot be read or written. The poll may be continued.
    pub async fn next(&mut self) -> Result<Option<LockedRequest>, Error> {
        let access = self.access;
        while let Some(outcome) = self.queue.recover_claim(|claim: &RequestClaim| claim.0.queue == access).await? {
            match outcome {
                ClaimOutcome::Ours(claim, lock) => return Ok(Some(claim.locked(lock))),
                ClaimOutcome::Lost(claim) => self.skip(claim.0.id, SkipReason::LockBroken),
            }
        }
        loop {
            while let Some((state, request)) = self.read.pop() {
                if let Some(locked) = self.lock(state, request).await? {
                    return Ok(Some(locked));
                }
            }
            let ids = self.window.next();
            if ids.is_empty() {
                return Ok(None);
            }
            let reads: Vec<_> = ids.iter().flat_map(|id| Request::reads(self.access, *id)).collect();
            let mut found = self.queue.read(&reads).await?.into_iter();
            for id in ids {
                let found = found.by_ref().take(Request::READS).collect::<Vec<_>>();
                if let Some(request) = Request::from_found(self.access, id, found) {
                    self.look_at(request);
                }
            }
            self.read.reverse();
        }
    }

    /// Keeps a request that waits for a worker and can be worked on.
    fn look_at(&mut self, request: Request) {
        if request.lock().is_some() {
            return;
        }
        let reason = match request.check_loadable() {
            Ok(state @ AccessState::Pending) => return self.read.push((state, request)),
            Ok(state @ AccessState::Processing) if self.has_abandoned => return self.read.push((state, request)),
            Ok(AccessState::Completed | AccessState::Deleted) => return self.ended.push(request.id),
            Ok(AccessState::Processing | AccessState::Failed) => return,
            Err(_) if request.token.is_none() && request.version().is_none() => SkipReason::Unfinished,
            Err(error) => SkipReason::Unloadable(error),
        };
        self.skip(request.id, reason);
    }

    fn skip(&mut self, id: RequestId, reason: SkipReason) {
        self.skipped.push(SkippedItem { path: Path::Request(self.access, id), reason });
    }

    /// Locks a request as it was read; `None` where another client was faster.
    async fn lock(&mut self, state: AccessState, request: Request) -> Result<Option<LockedRequest>, Error> {
        let id = request.id;
        let status = Path::RequestNode(self.access, id, RequestNode::Status);
        let mut transaction = Transaction::new();
        transaction.check(status, request.version().unwrap_or_default());
        let outcome = self.queue.claim(transaction, RequestClaim(request, state)).await;
        Ok(match LockOutcome::from_claim(outcome)? {
            LockOutcome::Locked(claim, lock) => Some(claim.locked(lock)),
            LockOutcome::Skipped(reason) => {
                self.skip(id, reason);
                None
            }
            LockOutcome::Missed => None,
        })
    }
}

/// A request that is to be locked, and its state.
#[derive(Debug)]
pub(crate) struct RequestClaim(Request, AccessState);

impl RequestClaim {
    fn locked(self, lock: Lock) -> LockedRequest {
        let version = self.0.version().unwrap_or_default();
        LockedRequest { request: self.0, state: self.1, version, lock, pending: PendingChange::default() }
    }
}

impl Claim for RequestClaim {
    fn lock(&self) -> Path {
        Path::RequestNode(self.0.queue, self.0.id, RequestNode::Lock)
    }
}
