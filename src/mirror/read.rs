//! Reading many znodes at once.

use std::fmt::Write as _;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::timeout;
use zookeeper_client::{Client, Error, MultiReadResult, MultiReader, Stat};

use crate::queue::path::{Path, StateFolder};

/// How many reads go into one request. Measured with ZooKeeper 3.8.0 on two cores: 512 reads a request and four
/// requests in flight give 830,000 to 910,000 reads/s, 256 give 480,000 to 730,000.
const READS_A_REQUEST: usize = 512;

/// How many requests are in flight at once.
const REQUESTS_IN_FLIGHT: usize = 4;

/// How many bytes an answer should stay below: four of them are in memory at once.
const ANSWER_BYTES: usize = 16 << 20;

/// How many bytes of paths go into one request: the server resets the connection at 1 MiB, for everyone on it.
const REQUEST_BYTES: usize = 256 << 10;

/// A request made while disconnected waits until the session ends; this one does not.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// What a read found at a path.
#[derive(Debug)]
pub(super) enum Found {
    /// There is no znode.
    Nothing,
    /// There is one.
    Node {
        /// Its data.
        data: Vec<u8>,
        /// Its stat.
        stat: Stat,
    },
    /// There is one: its parent lists it, which is all that is asked of it.
    Listed,
    /// There may be one, but our credentials do not allow us to read it.
    Denied,
}

impl Found {
    pub(super) fn is_present(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    pub(super) fn node(&self) -> Option<(&[u8], &Stat)> {
        match self {
            Self::Node { data, stat } => Some((data, stat)),
            Self::Nothing | Self::Listed | Self::Denied => None,
        }
    }

    /// How many children it has.
    pub(super) fn num_children(&self) -> usize {
        self.node().map_or(0, |(_, stat)| usize::try_from(stat.num_children).unwrap_or(0))
    }
}

/// What to read.
#[derive(Debug)]
pub(super) enum Query {
    /// A znode.
    Node(Path),
    /// A znode and these of its children, in one request.
    Item(Path, Vec<Path>),
    /// A znode and the names of its children.
    Folder(Path),
}

impl Query {
    fn path(&self) -> &Path {
        match self {
            Self::Node(path) | Self::Item(path, _) | Self::Folder(path) => path,
        }
    }

    fn reads(&self) -> usize {
        match self {
            Self::Node(_) => 1,
            Self::Item(_, children) => 1 + children.len(),
            Self::Folder(_) => 2,
        }
    }

    /// About how long its paths are, at least.
    fn bytes(&self) -> usize {
        // Longer than any path of our own making and what the protocol adds to it. A name of somebody else's may be as
        // long as a request can be.
        const KNOWN: usize = 96;
        let named = match self.path() {
            Path::BatchUuid(name)
            | Path::NamedLock(_, name)
            | Path::PublishedLocalId(name)
            | Path::StateFolder(StateFolder::Other(name))
            | Path::Entry(StateFolder::Other(name), _)
            | Path::Unexpected(name) => name.len(),
            _ => 0,
        };
        self.reads() * (KNOWN + named)
    }
}

/// The answer to a [`Query`].
#[derive(Debug)]
pub(super) enum Answer {
    /// To [`Query::Node`].
    Node(Path, Found),
    /// To [`Query::Item`].
    Item(Path, Found, Vec<(Path, Found)>),
    /// To [`Query::Folder`]; no names where there is no such znode.
    Folder(Path, Found, Vec<String>),
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

/// A queue of reads, sent in large requests of which several are in flight. Answers may ask for more.
pub(super) struct Reader<'a> {
    client: &'a Client,
    /// The reads still to be sent, last first.
    waiting: Vec<Query>,
    reads_a_request: usize,
    requests_in_flight: usize,
    pub(super) reads: u64,
    pub(super) requests: u32,
    /// How many znodes our credentials do not allow us to read, and the first of them.
    pub(super) denied: Option<(u64, Path)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(client: &'a Client) -> Self {
        Self {
            client,
            waiting: Vec::new(),
            reads_a_request: READS_A_REQUEST,
            requests_in_flight: REQUESTS_IN_FLIGHT,
            reads: 0,
            requests: 0,
            denied: None,
        }
    }

    /// A reader that leaves the server to others between any two of its requests.
    pub(super) fn patient(client: &'a Client) -> Self {
        Self { requests_in_flight: 1, ..Self::new(client) }
    }

    pub(super) fn push(&mut self, query: Query) {
        self.waiting.push(query);
    }

    /// Reads all that is waiting, and what `take` adds to it meanwhile, handing it each answer.
    pub(super) async fn run(&mut self, mut take: impl FnMut(Answer, &mut Vec<Query>)) -> Result<(), ReadError> {
        let mut in_flight = FuturesUnordered::new();
        loop {
            while in_flight.len() < self.requests_in_flight && !self.waiting.is_empty() {
                in_flight.push(request(self.client, self.next()));
            }
            let Some(answers) = in_flight.next().await else { return Ok(()) };
            let answers = answers?;
            self.adapt(&answers);
            for answer in answers {
                self.note_denied(&answer);
                take(answer, &mut self.waiting);
            }
        }
    }

    fn note_denied(&mut self, answer: &Answer) {
        let mut note = |path: &Path, found: &Found| {
            if matches!(found, Found::Denied) {
                self.denied.get_or_insert_with(|| (0, path.clone())).0 += 1;
            }
        };
        match answer {
            Answer::Node(path, found) | Answer::Folder(path, found, _) => note(path, found),
            Answer::Item(path, found, children) => {
                note(path, found);
                for (path, found) in children {
                    note(path, found);
                }
            }
        }
    }

    /// The queries of the next request.
    fn next(&mut self) -> Vec<Query> {
        let (mut at, mut reads, mut bytes) = (self.waiting.len(), 0, 0);
        while at > 0 {
            let query = &self.waiting[at - 1];
            let fits = reads + query.reads() <= self.reads_a_request && bytes + query.bytes() <= REQUEST_BYTES;
            if reads > 0 && !fits {
                break;
            }
            at -= 1;
            reads += query.reads();
            bytes += query.bytes();
        }
        self.reads += reads as u64;
        self.requests += 1;
        self.waiting.split_off(at)
    }

    /// A znode holds up to 1 MiB, so a request for 512 of them could bring half a gigabyte.
    fn adapt(&mut self, answers: &[Answer]) {
        let size = |found: &Found| found.node().map_or(0, |(data, _)| data.len());
        let (mut bytes, mut reads) = (0, 1);
        for answer in answers {
            let (more_bytes, more_reads) = match answer {
                Answer::Node(_, found) => (size(found), 1),
                Answer::Item(_, found, children) => {
                    (size(found) + children.iter().map(|(_, found)| size(found)).sum::<usize>(), 1 + children.len())
                }
                Answer::Folder(_, found, names) => (size(found) + names.len() * 16, 2),
            };
            bytes += more_bytes;
            reads += more_reads;
        }
        self.reads_a_request = (ANSWER_BYTES / (bytes / reads + 1)).clamp(8, READS_A_REQUEST);
    }
}

/// Makes one request. It is sent when this is called, not when it is awaited.
fn request(client: &Client, queries: Vec<Query>) -> impl Future<Output = Result<Vec<Answer>, ReadError>> + use<'_> {
    let mut reader = client.new_multi_reader();
    // One text for all paths: each of its own would grow from nothing, letter by letter, a million times in a walk.
    let mut text = String::with_capacity(128);
    let added = queries.iter().try_for_each(|query| add(&mut reader, query, &mut text));
    let commit = reader.commit();
    async move {
        let first = queries.first().map(|query| query.path().to_string()).unwrap_or_default();
        let failed = |source| ReadError::Failed { path: first.clone(), source };
        added.map_err(failed)?;
        let results = match timeout(TIME_LIMIT, commit).await {
            Ok(results) => results.map_err(failed)?,
            Err(_) => return Err(ReadError::TimedOut { path: first }),
        };
        let mut results = results.into_iter();
        queries.into_iter().map(|query| answer(query, &mut results).map_err(failed)).collect()
    }
}

fn add(reader: &mut MultiReader<'_>, query: &Query, text: &mut String) -> Result<(), Error> {
    reader.add_get_data(written(query.path(), text))?;
    match query {
        Query::Node(_) => Ok(()),
        Query::Item(_, children) => children.iter().try_for_each(|child| reader.add_get_data(written(child, text))),
        Query::Folder(path) => reader.add_get_children(written(path, text)),
    }
}

fn written<'t>(path: &Path, text: &'t mut String) -> &'t str {
    text.clear();
    write!(text, "{path}").expect("a text takes whatever is written");
    text
}

fn answer(query: Query, results: &mut impl Iterator<Item = MultiReadResult>) -> Result<Answer, Error> {
    let found = found(results.next())?;
    match query {
        Query::Node(path) => Ok(Answer::Node(path, found)),
        Query::Item(path, children) => {
            let children = children.into_iter().map(|child| Ok((child, self::found(results.next())?)));
            Ok(Answer::Item(path, found, children.collect::<Result<_, Error>>()?))
        }
        Query::Folder(path) => match results.next() {
            Some(MultiReadResult::Children { children }) => Ok(Answer::Folder(path, found, children)),
            Some(MultiReadResult::Error { err: Error::NoNode }) => Ok(Answer::Folder(path, found, Vec::new())),
            Some(MultiReadResult::Error { err: Error::NoAuth }) => Ok(Answer::Folder(path, Found::Denied, Vec::new())),
            Some(MultiReadResult::Error { err }) => Err(err),
            _ => Err(unexpected()),
        },
    }
}

fn found(result: Option<MultiReadResult>) -> Result<Found, Error> {
    match result {
        Some(MultiReadResult::Data { data, stat }) => Ok(Found::Node { data, stat }),
        Some(MultiReadResult::Error { err: Error::NoNode }) => Ok(Found::Nothing),
        Some(MultiReadResult::Error { err: Error::NoAuth }) => Ok(Found::Denied),
        Some(MultiReadResult::Error { err }) => Err(err),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::UnexpectedError("the answer is of another kind than the read".into())
}
