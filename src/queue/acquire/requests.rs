//! The next access request of a queue.

use super::{PassedOver, Reason, Window, was_quicker};
use crate::queue::access::{LockedRequest, Request};
use crate::queue::error::Error;
use crate::queue::handle::{Queue, Read};
use crate::queue::id::RequestId;
use crate::queue::lock::Pause;
use crate::queue::path::{self, AccessQueue, Path, RequestNode};
use crate::queue::state::AccessState;
use crate::queue::transaction::Transaction;

/// One poll for Pending access requests of a queue, oldest first.
#[derive(Debug)]
pub struct RequestPoll {
    queue: Queue,
    access: AccessQueue,
    window: Window<RequestId>,
    /// What was read of the window last, in reverse.
    read: Vec<Request>,
    /// Set while the queue is paused; the poll is empty then.
    pub paused: Option<Pause>,
    /// What was passed over, and why.
    pub passed_over: Vec<PassedOver>,
}

impl AccessQueue {
    /// The queue whose lock pauses it.
    #[must_use]
    pub fn pausable(self) -> path::Queue {
        match self {
            Self::Small => path::Queue::AccessSmall,
            Self::Large => path::Queue::AccessLarge,
        }
    }
}

impl Queue {
    /// Looks for the next Pending access request and locks it: a poll that is asked once.
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
        Ok(RequestPoll { queue, access, window, read: Vec::new(), paused, passed_over: Vec::new() })
    }
}

impl RequestPoll {
    /// The next Pending request, locked; `None` at the end of the list.
    ///
    /// # Errors
    /// When the queue cannot be read or written. The poll may be asked again.
    pub async fn next(&mut self) -> Result<Option<LockedRequest>, Error> {
        loop {
            while let Some(request) = self.read.pop() {
                if let Some(locked) = self.lock(request).await? {
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

    /// Keeps a request that is Pending and can be worked on.
    fn look_at(&mut self, request: Request) {
        if request.lock().is_some() {
            return;
        }
        let path = Path::Request(self.access, request.id);
        let reason = match request.check_loadable() {
            Ok(AccessState::Pending) => return self.read.push(request),
            Ok(AccessState::Processing | AccessState::Completed | AccessState::Failed | AccessState::Deleted) => return,
            Err(_) if request.token.is_none() && request.version().is_none() => Reason::Unfinished,
            Err(error) => Reason::Unloadable(error),
        };
        self.passed_over.push(PassedOver { path, reason });
    }

    /// Locks a request as it was read; `None` where another was quicker.
    async fn lock(&self, request: Request) -> Result<Option<LockedRequest>, Error> {
        let node = |node| Path::RequestNode(self.access, request.id, node);
        let version = request.version().unwrap_or_default();
        let mut transaction = Transaction::new();
        transaction.create_ephemeral(node(RequestNode::Lock)).check(node(RequestNode::Status), version);
        match self.queue.commit(&transaction).await {
            Ok(committed) => {
                let lock = self.queue.made_lock(node(RequestNode::Lock), committed.stats[0]).await?;
                Ok(Some(LockedRequest { request, state: AccessState::Pending, version, lock }))
            }
            Err(error) if was_quicker(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
