//! Reading many znodes at once, without asking the server for more than it can hold.
//!
//! All answers that are under way are in the server's memory beside the tree, so what they are expected to bring
//! together stays within a budget. Sizes are learnt from answers, which is safe in random order only; see
//! [`queuekeeper_queue::pace`].

mod kind;
mod query;
mod waiting;

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::timeout;
use zookeeper_client::{Client, Error};

pub(super) use self::query::{Answer, Found, Query, USUAL_BATCH_NODES, USUAL_JOB_NODES, USUAL_REQUEST_NODES, nodes};
use self::waiting::UnderWay;
pub(super) use self::waiting::{Estimates, Waiting};
use queuekeeper_queue::pace::{Expected, PART_A_REQUEST};
use queuekeeper_queue::path::Path;

/// How many reads go into one request. Measured with ZooKeeper 3.8.0 on two cores: 512 reads a request and four
/// requests in flight give 830,000 to 910,000 reads/s, 256 give 480,000 to 730,000.
const READS_A_REQUEST: usize = 512;

/// How many requests are in flight at once.
const REQUESTS_IN_FLIGHT: usize = 4;

/// How many bytes of paths go into one request: the server resets the connection at 1 MiB, for everyone on it.
const REQUEST_BYTES: usize = 256 << 10;

/// How many answers to earlier changes the size of the next ones is estimated from. Changes come in no order of ours,
/// so what was seen is no sample of them: this bounds how many reads are made at once before the next ones are known by
/// themselves.
const REMEMBERED_CHANGES: f64 = 1.0;

/// The same while changes are read all the time: since the last look not much can have been written.
const REMEMBERED_LATELY: f64 = 256.0;

/// How long ago that look may be. A server takes some 100 MB of values a second.
const LATELY: Duration = Duration::from_millis(50);

/// How many bytes of answers all reading of the tree may have under way at once, where nothing else is configured.
pub const READ_BUDGET_BYTES: u64 = 8 << 20;

/// What is said of a znode that our credentials may not read, after its path.
pub(crate) const NOT_READABLE: &str = "is not readable with these credentials (NoAuth): check --zookeeper.auth-file";

/// A request made while disconnected waits until the session ends; this one does not.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many bytes of answers all our reads may have under way at once, by what is expected of them: the sum of the
/// parts that the mirror's tasks take, as these work side by side. One read is always allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadBudget(u64);

impl Default for ReadBudget {
    fn default() -> Self {
        Self(READ_BUDGET_BYTES)
    }
}

impl ReadBudget {
    pub(super) const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// For a walk that readers wait for.
    fn walk(self) -> u64 {
        self.0 / 4 * 3
    }

    /// For reading changes, which never happens during such a walk.
    fn changes(self) -> u64 {
        self.0 / 2
    }

    /// For a walk beside that.
    fn walk_beside(self) -> u64 {
        self.0 / 4
    }

    /// For pages that show a znode.
    pub(super) fn pages(self) -> u64 {
        self.0 / 4
    }
}

/// Why reading stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// ZooKeeper or the client library refused, or the connection was lost.
    #[error("cannot read {path}: {source}")]
    Failed {
        /// The first path of the request.
        path: String,
        /// The cause.
        source: Error,
    },
    /// There was no answer.
    #[error("cannot read {path}: no answer for {} s", TIME_LIMIT.as_secs())]
    TimedOut {
        /// The first path of the request.
        path: String,
    },
}

type Request<'a> = BoxFuture<'a, (UnderWay, Result<Vec<Answer>, ReadError>)>;

/// Reads that wait, sent in large requests of which several are in flight. Answers may ask for more.
pub(super) struct Reader<'a> {
    client: &'a Client,
    pub(super) waiting: Waiting,
    in_flight: FuturesUnordered<Request<'a>>,
    under_way: UnderWay,
    pub(super) estimates: Estimates,
    /// What may be under way, and what one request may bring, in bytes.
    budget: u64,
    budget_a_request: u64,
    requests_in_flight: usize,
    pub(super) reads: u64,
    /// How many znodes our credentials do not allow us to read, and the first of them.
    pub(super) denied: Option<(u64, Path)>,
}

impl<'a> Reader<'a> {
    /// A reader for the whole tree.
    pub(super) fn new(client: &'a Client, budget: ReadBudget) -> Self {
        let budget = budget.walk();
        Self::with(client, Estimates::default(), budget, budget / u64::from(PART_A_REQUEST))
    }

    /// A reader that leaves the server to others between any two of its requests.
    pub(super) fn patient(client: &'a Client, budget: ReadBudget) -> Self {
        let budget = budget.walk_beside();
        Self { requests_in_flight: 1, ..Self::with(client, Estimates::default(), budget, budget / 2) }
    }

    /// A reader for what has changed, that knows a little from the changes read `ago`.
    pub(super) fn for_changes(
        client: &'a Client,
        budget: ReadBudget,
        mut estimates: Estimates,
        ago: Option<Duration>,
    ) -> Self {
        let budget = budget.changes();
        let is_lately = ago.is_some_and(|ago| ago < LATELY);
        estimates.remember(if is_lately { REMEMBERED_LATELY } else { REMEMBERED_CHANGES });
        Self::with(client, estimates, budget, budget / u64::from(PART_A_REQUEST))
    }

    /// A reader for some of the znodes of one item, in one request.
    pub(super) fn for_few(client: &'a Client) -> Self {
        Self::with(client, Estimates::default(), u64::MAX, u64::MAX)
    }

    fn with(client: &'a Client, estimates: Estimates, budget: u64, budget_a_request: u64) -> Self {
        Self {
            client,
            waiting: Waiting::default(),
            in_flight: FuturesUnordered::new(),
            under_way: UnderWay::default(),
            estimates,
            budget,
            budget_a_request,
            requests_in_flight: REQUESTS_IN_FLIGHT,
            reads: 0,
            denied: None,
        }
    }

    pub(super) fn push(&mut self, query: Query) {
        self.waiting.push(query);
    }

    /// The answers of the next request to be answered; `None` when nothing waits any more. Dropped while it waits, it
    /// loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Answer>>, ReadError> {
        while let Some(queries) = self.next_queries() {
            let mut under_way = UnderWay::default();
            for query in &queries {
                under_way.add(query);
                self.under_way.add(query);
                self.reads += query.reads() as u64;
            }
            let request = request(self.client, queries);
            self.in_flight.push(request.map(move |answers| (under_way, answers)).boxed());
        }
        let Some((ended, answers)) = self.in_flight.next().await else { return Ok(None) };
        self.under_way.end(&ended);
        let answers = answers?;
        for answer in &answers {
            if let Some((kind, bytes)) = answer.data_bytes() {
                self.estimates.saw(kind, bytes);
            }
            for path in answer.denied() {
                self.denied.get_or_insert_with(|| (0, path.clone())).0 += 1;
            }
        }
        Ok(Some(answers))
    }

    /// How many requests all these reads would take if nothing but their number counted.
    pub(super) fn full_requests(&self) -> u32 {
        u32::try_from(self.reads.div_ceil(READS_A_REQUEST as u64)).unwrap_or(u32::MAX)
    }

    /// The queries of the next request; `None` where nothing waits or enough is under way.
    fn next_queries(&mut self) -> Option<Vec<Query>> {
        if self.in_flight.len() >= self.requests_in_flight {
            return None;
        }
        let left = self.budget as f64 - self.under_way.bytes(&self.estimates);
        let (mut reads, mut path_bytes, mut expected) = (0, 0, Expected::default());
        // What is larger than all that may be under way goes alone.
        let least = usize::from(self.in_flight.is_empty());
        let (estimates, budget_a_request) = (&self.estimates, self.budget_a_request as f64);
        let queries = self.waiting.take(least, |query| {
            // One that may well be large has a request for itself.
            let is_first = reads == 0;
            reads += query.reads();
            path_bytes += query.path_bytes();
            expected += estimates.expected(query);
            let has_room = expected.bytes() <= left && (is_first || expected.most() <= budget_a_request);
            reads <= READS_A_REQUEST && path_bytes <= REQUEST_BYTES && has_room
        });
        (!queries.is_empty()).then_some(queries)
    }
}

/// Makes one request. It is sent when this is called, not when it is awaited.
fn request(client: &Client, queries: Vec<Query>) -> impl Future<Output = Result<Vec<Answer>, ReadError>> + use<'_> {
    let mut reader = client.new_multi_reader();
    let mut text = String::with_capacity(128);
    let queries: Vec<_> = queries.into_iter().map(|query| (query.children(), query)).collect();
    let added = queries.iter().try_for_each(|(children, query)| query.add(children, &mut reader, &mut text));
    let commit = reader.commit();
    async move {
        let first = queries.first().map(|(_, query)| query.path().to_string()).unwrap_or_default();
        let failed = |source| ReadError::Failed { path: first.clone(), source };
        added.map_err(failed)?;
        let results = match timeout(TIME_LIMIT, commit).await {
            Ok(results) => results.map_err(failed)?,
            Err(_) => return Err(ReadError::TimedOut { path: first }),
        };
        let mut results = results.into_iter();
        queries.into_iter().map(|(children, query)| query.answer(children, &mut results).map_err(failed)).collect()
    }
}
