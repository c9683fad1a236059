//! The handle through which everything reads and writes the queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::seq::SliceRandom as _;
use zookeeper_client::{Acl, Acls, Client, MultiReadResult, SessionId, Stat};

use super::error::{Error, RequestFailure};
use super::pace::{ANSWER_BYTES, EXPECTED_BYTES, Estimate, LARGEST_DATA, REQUESTS_IN_FLIGHT, VALUES_IN_FLIGHT};
use super::path::Path;
use super::pending_claims::PendingClaims;

/// How many reads go into one request at most.
const READS_A_REQUEST: usize = 128;

/// How many values are read in one request where they belong together: an item and what is around it are read at one
/// moment.
const VALUES_TOGETHER: usize = 32;

/// How many jobs a transaction is about at most: 1,500 were seen to go through, and 2,000 to reset the connection.
const JOBS_PER_TRANSACTION: usize = 1_000;

/// How long a request may take by default; see [`Queue::with_time_limit`].
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A queue in ZooKeeper, below the chroot of its client; cheap to clone.
///
/// Give it a [`Client`] of its own: a request that is too large, or answers that are, hold up everyone who shares the
/// connection. Locks belong to the client's session and end with it. Give the workers of a session clones of one
/// handle: an item that one of them locked without learning of it, because a connection was lost, is returned by the
/// next poll of any of them.
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    /// `None` for the open ACL.
    acl: Option<Arc<[Acl]>>,
    time_limit: Duration,
    jobs_per_transaction: usize,
    /// Attempts to lock an item whose outcome is not known: at most one for each worker.
    pending_claims: Arc<PendingClaims>,
}

impl Queue {
    /// The queue that the client sees, whose new znodes are open to anyone.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let pending_claims = Arc::default();
        Self { client, acl: None, time_limit: TIME_LIMIT, jobs_per_transaction: JOBS_PER_TRANSACTION, pending_claims }
    }

    /// Sets the ACL of new znodes; an empty one means the open ACL.
    #[must_use]
    pub fn with_acl(mut self, acl: impl Into<Arc<[Acl]>>) -> Self {
        self.acl = Some(acl.into()).filter(|acl| !acl.is_empty());
        self
    }

    /// Limits how long one request may take; a request made while disconnected would wait for minutes otherwise.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Limits how many jobs one transaction is about, for larger things than a job; a thousand are the most that is
    /// safe. Fewer leave others' requests shorter gaps to wait in.
    #[must_use]
    pub fn with_jobs_per_transaction(mut self, jobs: usize) -> Self {
        self.jobs_per_transaction = jobs.clamp(1, JOBS_PER_TRANSACTION);
        self
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The session that our locks belong to.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.client.session_id()
    }

    pub(super) fn pending_claims(&self) -> &Arc<PendingClaims> {
        &self.pending_claims
    }

    pub(super) fn acls(&self) -> Acls<'_> {
        self.acl.as_deref().map_or(Acls::anyone_all(), Acls::new)
    }

    pub(super) fn jobs_per_transaction(&self) -> usize {
        self.jobs_per_transaction
    }

    /// How long one request may take.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// About how many bytes chroot and ACL add to each operation of a transaction.
    pub(super) fn operation_overhead(&self) -> usize {
        overhead_of(self.acls().iter(), self.client.path())
    }

    /// Awaits one request of its client within the time limit.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn within<T, E: Into<zookeeper_client::Error>>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, RequestFailure> {
        match tokio::time::timeout(self.time_limit, request).await {
            Ok(answer) => answer.map_err(|error| RequestFailure::Client(error.into())),
            Err(_elapsed) => Err(RequestFailure::TimedOut(self.time_limit)),
        }
    }

    /// Reads many znodes, in order: in one request what has at most 32 values and 128 reads, as what belongs together
    /// is read at one moment; else in several of at most 16 values, one after the other. Four requests of four values
    /// in flight would be four times as many requests. The price is an answer of 16 MiB where each value is as large as
    /// a znode can be; that of one item may be twice as large.
    pub(super) async fn read(&self, reads: &[Read]) -> Result<Vec<Found>, Error> {
        let mut found = Vec::with_capacity(reads.len());
        let is_one = reads.len() <= READS_A_REQUEST && values(reads) <= VALUES_TOGETHER;
        let most = if is_one { VALUES_TOGETHER } else { VALUES_IN_FLIGHT };
        let mut rest = reads;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(request_of(rest, most));
            let failed = |cause| Error::Read { path: chunk[0].path().clone(), cause };
            let answers = self.within(self.send(chunk.iter())).await.map_err(failed)?;
            for (read, answer) in chunk.iter().zip(answers) {
                found.push(Found::from_answer(read, answer)?);
            }
            rest = later;
        }
        Ok(found)
    }

    /// Reads many znodes that each stand for themselves, in random order, and hands each on with the position of its
    /// read. Far faster than [`Queue::read`] where values are small, and bounded as well where they are not.
    pub(super) async fn read_each_alone(
        &self,
        reads: &[Read],
        mut take: impl FnMut(usize, Found),
    ) -> Result<(), Error> {
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.shuffle(&mut rand::rng());
        let (mut rest, mut estimate) = (order.as_slice(), Estimate::at_most(LARGEST_DATA));
        let (mut in_flight, mut under_way) = (VecDeque::new(), 0);
        loop {
            while in_flight.len() < REQUESTS_IN_FLIGHT && !rest.is_empty() {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of reads, cut")]
                let room = (EXPECTED_BYTES / estimate.expected().bytes()) as usize;
                let left = room.saturating_sub(under_way).max(usize::from(in_flight.is_empty()));
                let a_request = estimate.reads_within(ANSWER_BYTES).min(READS_A_REQUEST);
                let count = a_request.min(left).min(rest.len());
                if count == 0 {
                    break;
                }
                let (chunk, later) = rest.split_at(count);
                in_flight.push_back((chunk, self.send(chunk.iter().map(|at| &reads[*at]))));
                (rest, under_way) = (later, under_way + count);
            }
            let Some((chunk, request)) = in_flight.pop_front() else { return Ok(()) };
            let failed = |cause| Error::Read { path: reads[chunk[0]].path().clone(), cause };
            let answers = self.within(request).await.map_err(failed)?;
            under_way -= chunk.len();
            for (at, answer) in chunk.iter().zip(answers) {
                estimate.saw(bytes(&answer) as u64);
                take(*at, Found::from_answer(&reads[*at], answer)?);
            }
        }
    }

    fn send<'r, I: Iterator<Item = &'r Read>>(
        &self,
        mut reads: I,
    ) -> impl Future<Output = Result<Vec<MultiReadResult>, zookeeper_client::Error>> + Send + use<'_, 'r, I> {
        let mut reader = self.client.new_multi_reader();
        let added = reads.try_for_each(|read| match read {
            Read::Data(path) => reader.add_get_data(&path.to_string()),
            Read::Children(path) | Read::Existence(path) => reader.add_get_children(&path.to_string()),
        });
        let request = reader.commit();
        async move {
            added?;
            request.await
        }
    }

    /// Reads one znode's data.
    pub(super) async fn read_data(&self, path: Path) -> Result<Found, Error> {
        let [found] = self.read_each([Read::Data(path)]).await?;
        Ok(found)
    }

    /// Reads a fixed number of znodes in one request.
    pub(super) async fn read_each<const N: usize>(&self, reads: [Read; N]) -> Result<[Found; N], Error> {
        let found = self.read(&reads).await?;
        Ok(found.try_into().expect("each read of a request is answered"))
    }
}

/// About how many bytes a chroot and an ACL add to each operation of a transaction.
pub(super) fn overhead_of<'a>(acl: impl Iterator<Item = &'a Acl>, chroot: &str) -> usize {
    // A permission and the lengths of two texts for each identity, and the number of them.
    4 + acl.map(|acl| 12 + acl.scheme().len() + acl.id().len()).sum::<usize>() + chroot.len()
}

/// How many values some reads bring. The names of children are no values: all of them together are far less than the
/// tree.
fn values(reads: &[Read]) -> usize {
    reads.iter().filter(|read| matches!(read, Read::Data(_))).count()
}

/// How many of the first reads make a request of at most so many values.
fn request_of(reads: &[Read], most_values: usize) -> usize {
    let values = reads.iter().enumerate().filter(|(_, read)| matches!(read, Read::Data(_)));
    let too_many = values.map(|(at, _)| at).nth(most_values);
    too_many.unwrap_or(reads.len()).min(READS_A_REQUEST)
}

/// How much an answer brought.
fn bytes(answer: &MultiReadResult) -> usize {
    match answer {
        MultiReadResult::Data { data, .. } => data.len(),
        MultiReadResult::Children { children } => children.iter().map(String::len).sum(),
        _ => 0,
    }
}

/// One read of a request.
#[derive(Clone, Debug)]
pub(super) enum Read {
    /// Data and stat.
    Data(Path),
    /// The children's names, without a stat.
    Children(Path),
    /// Whether it is there, and nothing of its data: of a znode that should have neither data nor children.
    Existence(Path),
}

impl Read {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Data(path) | Self::Children(path) | Self::Existence(path) => path,
        }
    }
}

/// What a read found.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// There is no such znode.
    Nothing,
    /// Its data.
    Data(Vec<u8>, Stat),
    /// Its children's names, in no order.
    Children(Vec<String>),
}

impl Found {
    fn from_answer(read: &Read, answer: MultiReadResult) -> Result<Self, Error> {
        match answer {
            MultiReadResult::Data { data, stat } => Ok(Self::Data(data, stat)),
            MultiReadResult::Children { children } => Ok(Self::Children(children)),
            MultiReadResult::Error { err: zookeeper_client::Error::NoNode } => Ok(Self::Nothing),
            MultiReadResult::Error { err } => {
                Err(Error::Read { path: read.path().clone(), cause: RequestFailure::Client(err) })
            }
            // The library's enum may grow with reads that we do not make.
            other => unreachable!("no such read was made: {other:?}"),
        }
    }

    pub(super) fn data(self) -> Option<(Vec<u8>, Stat)> {
        match self {
            Self::Data(data, stat) => Some((data, stat)),
            Self::Nothing | Self::Children(_) => None,
        }
    }

    pub(super) fn stat(&self) -> Option<&Stat> {
        match self {
            Self::Data(_, stat) => Some(stat),
            Self::Nothing | Self::Children(_) => None,
        }
    }

    /// The children's names; none where there is no such znode.
    pub(super) fn children(self) -> Vec<String> {
        match self {
            Self::Children(children) => children,
            Self::Nothing | Self::Data(..) => Vec::new(),
        }
    }

    pub(super) fn exists(&self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// An instant of the server's clock, as a stat gives it; one that no calendar has becomes the epoch.
pub(super) fn instant(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use crate::testing::stat;

    #[test]
    fn whatever_is_read_in_order_is_in_requests_of_few_values() {
        for place in [Read::Data, Read::Children, Read::Existence] {
            let reads = (0..300).map(|job| {
                let path = Path::Job(JobId::new(job));
                if job % 3 == 0 { Read::Data(path) } else { place(path) }
            });
            let reads: Vec<_> = reads.collect();
            let (mut rest, mut requests) = (reads.as_slice(), 0);
            while !rest.is_empty() {
                let (chunk, later) = rest.split_at(request_of(rest, VALUES_IN_FLIGHT));
                assert!(!chunk.is_empty() && values(chunk) <= VALUES_IN_FLIGHT && chunk.len() <= READS_A_REQUEST);
                (rest, requests) = (later, requests + 1);
            }
            assert_eq!(requests, values(&reads).div_ceil(VALUES_IN_FLIGHT));
        }
        let names = vec![Read::Children(Path::Root); 300];
        assert_eq!(request_of(&names, VALUES_IN_FLIGHT), READS_A_REQUEST);
    }

    #[test]
    fn what_is_found_is_what_was_answered() {
        let read = Read::Existence(Path::Jobs);
        assert_eq!(read.path(), &Path::Jobs);
        let of = |answer| Found::from_answer(&read, answer);
        let (one, two) = ("a".to_owned(), "bcd".to_owned());
        let data = || MultiReadResult::Data { data: b"12345".to_vec(), stat: stat() };
        let children = || MultiReadResult::Children { children: vec![one.clone(), two.clone()] };
        let error = |err| MultiReadResult::Error { err };
        assert_eq!(
            [data(), children(), error(zookeeper_client::Error::NoAuth)].map(|answer| bytes(&answer)),
            [5, 4, 0]
        );

        let found = of(data()).unwrap();
        assert_eq!((found.stat(), found.exists()), (Some(&stat()), true));
        assert_eq!((found.clone().children(), found.data()), (Vec::new(), Some((b"12345".to_vec(), stat()))));
        let found = of(children()).unwrap();
        assert_eq!((found.stat(), found.exists(), found.clone().data()), (None, true, None));
        assert_eq!(found.children(), [one.clone(), two.clone()]);
        let found = of(error(zookeeper_client::Error::NoNode)).unwrap();
        assert_eq!(
            (found.stat(), found.exists(), found.clone().data(), found.clone().children()),
            (None, false, None, Vec::new())
        );
        let denied = of(error(zookeeper_client::Error::NoAuth)).unwrap_err();
        let cause = RequestFailure::Client(zookeeper_client::Error::NoAuth);
        assert_eq!(denied, Error::Read { path: Path::Jobs, cause });
    }

    #[test]
    fn an_instant_that_no_calendar_has_is_the_epoch() {
        let instants = [1_500, i64::MAX].map(|milliseconds| instant(milliseconds).as_millisecond());
        assert_eq!(instants, [1_500, 0]);
    }
}
