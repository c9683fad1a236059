//! An access request as its znodes say it, and changes of its state.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::batch::{check_status, check_version, readable_state};
use super::error::Error;
use super::handle::{Found, Queue, Read, instant};
use super::id::RequestId;
use super::item::{ItemChange, ItemChanged, ItemUpdate, LockedItem, PendingUpdate};
use super::lock::{ChangeTarget, Lock, Unlocked};
use super::path::{AccessQueue, Path, RequestNode};
use super::record::{self, Decoded, ItemStatus, Retry, Token};
use super::state::AccessState;
use super::status::impl_status;
use super::transaction::Transaction;

/// An access request as one request found it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its queue.
    pub queue: AccessQueue,
    /// Its id, unique within its queue.
    pub id: RequestId,
    /// The data of its token, if it has one.
    pub token: Option<Vec<u8>>,
    token_stat: Option<Stat>,
    status: Option<(Vec<u8>, Stat)>,
    lock: Option<Stat>,
}

/// An access request that we hold. The lock ends with our session, or through [`Queue::finish_request`] or
/// [`Queue::unlock_request`]; dropping this value does not release it.
#[derive(Clone, Debug)]
pub struct LockedRequest {
    /// The request, as it was read when it was acquired.
    pub request: Request,
    /// Its state.
    pub state: AccessState,
    /// The version of its status.
    pub version: i32,
    /// Its lock.
    pub lock: Lock,
    pub(super) pending: PendingUpdate<AccessState, Vec<u8>>,
}

/// Which request a change is meant for: made from its queue and id, the request in whatever state it is; from a
/// [`Request`], only in the version that was seen; from a [`LockedRequest`], under the lock that is held.
#[derive(Clone, Debug)]
pub struct RequestTarget {
    pub(super) queue: AccessQueue,
    pub(super) id: RequestId,
    lock: Option<Lock>,
    version: Option<i32>,
}

impl RequestTarget {
    /// Lets the change apply only to this version of the request's status, the one its caller saw.
    #[must_use]
    pub fn at_version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    pub(super) fn check(&self, request: &Request) -> Result<(), Error> {
        self.check_lock(request.lock.as_ref())?;
        check_version(request.path(RequestNode::Status), self.version, request.status.as_ref().map(|(_, stat)| stat))
    }
}

impl ChangeTarget for RequestTarget {
    fn lock_path(&self) -> Path {
        Path::RequestNode(self.queue, self.id, RequestNode::Lock)
    }

    fn held(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }
}

impl From<(AccessQueue, RequestId)> for RequestTarget {
    fn from((queue, id): (AccessQueue, RequestId)) -> Self {
        Self { queue, id, lock: None, version: None }
    }
}

impl From<&Request> for RequestTarget {
    fn from(request: &Request) -> Self {
        Self { queue: request.queue, id: request.id, lock: None, version: request.version() }
    }
}

impl From<&LockedRequest> for RequestTarget {
    fn from(locked: &LockedRequest) -> Self {
        let target = Self::from((locked.request.queue, locked.request.id));
        Self { lock: Some(locked.lock.clone()), version: Some(locked.version), ..target }
    }
}

impl Request {
    /// How many reads a request takes.
    pub(super) const READS: usize = 4;

    pub(super) fn reads(queue: AccessQueue, id: RequestId) -> [Read; Self::READS] {
        let node = |node| Read::Data(Path::RequestNode(queue, id, node));
        let request = Read::Data(Path::Request(queue, id));
        [request, node(RequestNode::Token), node(RequestNode::Status), node(RequestNode::Lock)]
    }

    /// Takes what [`Self::reads`] found; `None` where there is no such request.
    pub(super) fn from_found(
        queue: AccessQueue,
        id: RequestId,
        found: impl IntoIterator<Item = Found>,
    ) -> Option<Self> {
        let mut found = found.into_iter().map(Found::data);
        found.next()??;
        let mut next = || found.next().flatten();
        let (token, token_stat) = next().unzip();
        Some(Self { queue, id, token, token_stat, status: next(), lock: next().map(|(_, stat)| stat) })
    }

    /// What is to be assembled; empty where that cannot be read.
    #[must_use]
    pub fn content(&self) -> Decoded<Token<'_>> {
        Token::decode(self.token.as_deref().unwrap_or_default())
    }

    /// Checks that the daemons can read its token. They do without one.
    pub(super) fn check_token(&self) -> Result<(), record::Malformed> {
        self.token.as_deref().map_or(Ok(()), |token| record::refused(token, self.content().malformed))
    }

    /// Its lock, if it is held.
    #[must_use]
    pub fn lock(&self) -> Option<Lock> {
        self.lock.as_ref().map(|stat| Lock::from_stat(self.path(RequestNode::Lock), stat))
    }

    /// The state that its status names, as the daemons must be able to read it.
    ///
    /// # Errors
    /// What is wrong with its status or token.
    pub fn check_loadable(&self) -> Result<AccessState, Error> {
        let token = self.token.as_deref().ok_or(Error::Missing(self.path(RequestNode::Token)))?;
        let decode = |malformed| Error::Decode { path: self.path(RequestNode::Token), malformed };
        record::object_form(token).map_err(decode)?;
        check_status(&self.path(RequestNode::Status), self.status.is_some(), self.status())
    }

    fn path(&self, node: RequestNode) -> Path {
        Path::RequestNode(self.queue, self.id, node)
    }
}

impl LockedItem for LockedRequest {
    type State = AccessState;
    type Written = Vec<u8>;

    fn pending(&self) -> &PendingUpdate<AccessState, Vec<u8>> {
        &self.pending
    }

    fn lock(&self) -> &Lock {
        &self.lock
    }

    fn status(&self) -> Path {
        self.request.path(RequestNode::Status)
    }

    async fn plan(
        &self,
        queue: &Queue,
        update: &ItemUpdate<AccessState, Vec<u8>>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<AccessState>), Error> {
        queue.plan_request_change(self, &update.change, update.written.as_deref(), now).await
    }

    fn entered(&mut self, changed: ItemChanged<AccessState>, _status: Option<Vec<u8>>) {
        (self.state, self.version) = (changed.to, changed.version);
    }
}

impl Queue {
    /// Reads an access request, in one round trip.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no such request, [`Error::Read`] where it cannot be read.
    pub async fn load_request(&self, queue: AccessQueue, id: RequestId) -> Result<Request, Error> {
        let found = self.read(&Request::reads(queue, id)).await?;
        Request::from_found(queue, id, found).ok_or(Error::Missing(Path::Request(queue, id)))
    }

    /// Plans a change of a request's state without doing it; `token` replaces its token where it is given.
    ///
    /// # Errors
    /// As [`Queue::change_request`].
    pub async fn plan_request_change(
        &self,
        target: impl Into<RequestTarget>,
        change: &ItemChange<AccessState>,
        token: Option<&[u8]>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<AccessState>), Error> {
        let target = target.into();
        let request = self.load_request(target.queue, target.id).await?;
        target.check(&request)?;
        let status = request.path(RequestNode::Status);
        let from = readable_state(status.clone(), request.status())?;
        let to = change.target(&Path::Request(request.queue, request.id), from)?;
        let (old, version) = request.status.as_ref().map_or((&[][..], 0), |(data, stat)| (data, stat.version));
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        transaction.set(status, record::item_status(old, to, &change.message, now), version);
        if let Some(token) = token {
            let path = request.path(RequestNode::Token);
            record::object_form(token).map_err(|malformed| Error::Decode { path: path.clone(), malformed })?;
            match &request.token_stat {
                Some(stat) => transaction.set(path, token, stat.version),
                None => transaction.create(path, token),
            };
        }
        target.close(&mut transaction);
        Ok((transaction, ItemChanged { from, to, version: version.wrapping_add(1) }))
    }

    /// Changes a request's state, in one `multi`. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Transition`] where the states forbid it, [`Error::Conflict`] where another holds the request or changed
    /// it, or where our own lock is gone, [`Error::Missing`] and [`Error::Decode`] for a request without a status that
    /// can be read; else as [`Queue::commit`].
    pub async fn change_request(
        &self,
        target: impl Into<RequestTarget>,
        change: &ItemChange<AccessState>,
        now: Timestamp,
    ) -> Result<ItemChanged<AccessState>, Error> {
        let (transaction, changed) = self.plan_request_change(target, change, None, now).await?;
        self.commit(&transaction).await.map(|_| changed)
    }

    /// Changes the state of a request that we hold, and keeps the lock.
    ///
    /// After [`Error::Unknown`], or where the call was cancelled before it returned, the same call returns the outcome
    /// of the first, or makes the change.
    ///
    /// # Errors
    /// As [`Queue::change_request`].
    pub async fn step_request(
        &self,
        locked: &mut LockedRequest,
        change: &ItemChange<AccessState>,
        now: Timestamp,
    ) -> Result<ItemChanged<AccessState>, Error> {
        self.step_item(locked, change, now).await
    }

    /// Changes the state of a request that we hold, and its token where one is given, and releases it, in one `multi`.
    /// What an error leaves, and what the same call does after one, is as with [`Queue::finish_job`].
    ///
    /// # Errors
    /// As [`Queue::change_request`], and [`Error::Decode`] for a token that is no JSON object.
    pub async fn finish_request(
        &self,
        locked: &LockedRequest,
        change: &ItemChange<AccessState>,
        token: Option<&[u8]>,
        now: Timestamp,
    ) -> Result<ItemChanged<AccessState>, Error> {
        self.finish_item(locked, change.clone(), token.map(<[u8]>::to_vec), now).await
    }

    /// Releases a request that we hold, unchanged, as [`Queue::unlock_job`] does a job.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock_request(&self, locked: &LockedRequest) -> Result<Unlocked, Error> {
        self.give_up(&locked.pending, &locked.lock).await
    }

    /// Gives a request that we hold back unchanged, with a note of why and until when it waits, in one `multi`. The
    /// version in `retry` is set here. The note keeps no daemon from taking the request.
    ///
    /// # Errors
    /// As [`Queue::commit`]. After one the lock may still be held: [`Queue::unlock_request`] releases it.
    pub async fn delay_request(&self, locked: &LockedRequest, retry: &Retry) -> Result<(), Error> {
        let (access, id, version) = (locked.request.queue, locked.request.id, locked.version);
        let path = Path::request_retry(access, id);
        let data = Retry { version, ..retry.clone() }.encode();
        let found = self.read_data(path.clone()).await?;
        let mut transaction = Transaction::new();
        transaction.check(Path::RequestNode(access, id, RequestNode::Status), version);
        match found.stat() {
            Some(stat) => transaction.set(path, data, stat.version),
            None => transaction.create(path, data),
        };
        locked.lock.release(&mut transaction);
        self.commit(&transaction).await.map(drop)
    }
}

impl_status!(Request, AccessState);

#[cfg(test)]
mod tests;
