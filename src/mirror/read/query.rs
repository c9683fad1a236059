//! What is requested of the tree, and the answers.

use std::fmt::Write as _;

use zookeeper_client::{Error, MultiReadResult, MultiReader, Stat};

use super::kind::ReadKind;
pub(in crate::mirror) use super::kind::{USUAL_BATCH_NODES, USUAL_JOB_NODES, USUAL_REQUEST_NODES};
use queuekeeper_queue::path::{Path, StateFolder};

/// What a read found at a path.
#[derive(Debug)]
pub(in crate::mirror) enum Found {
    /// There is no znode.
    Nothing,
    /// There is one.
    Node {
        /// Its data.
        data: Vec<u8>,
        /// Its stat.
        stat: Stat,
    },
    /// There is one: its parent lists it, or it lists its own children, and that is all that is requested of it.
    Listed,
    /// There may be one, but our credentials do not allow us to read it.
    Denied,
}

impl Found {
    pub(in crate::mirror) fn is_present(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    pub(in crate::mirror) fn node(&self) -> Option<(&[u8], &Stat)> {
        match self {
            Self::Node { data, stat } => Some((data, stat)),
            Self::Nothing | Self::Listed | Self::Denied => None,
        }
    }

    /// How many children it has.
    pub(in crate::mirror) fn num_children(&self) -> usize {
        self.node().map_or(0, |(_, stat)| usize::try_from(stat.num_children).unwrap_or(0))
    }

    fn bytes(&self) -> usize {
        self.node().map_or(0, |(data, _)| data.len())
    }

    fn of(result: Option<MultiReadResult>) -> Result<Self, Error> {
        match result {
            Some(MultiReadResult::Data { data, stat }) => Ok(Self::Node { data, stat }),
            Some(MultiReadResult::Children { .. }) => Ok(Self::Listed),
            Some(MultiReadResult::Error { err: Error::NoNode }) => Ok(Self::Nothing),
            Some(MultiReadResult::Error { err: Error::NoAuth }) => Ok(Self::Denied),
            Some(MultiReadResult::Error { err }) => Err(err),
            _ => Err(unexpected()),
        }
    }
}

/// What to read.
#[derive(Debug)]
pub(in crate::mirror) enum Query {
    /// A znode.
    Node(Path),
    /// A job, batch or request and the children that it usually has, in one request.
    Item(Path),
    /// The names of a znode's children, of which there are about so many.
    Names(Path, usize),
    /// Whether a znode without children is there and readable, but none of its data. To list children needs the
    /// same permission.
    Permission(Path),
}

impl Query {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Node(path) | Self::Item(path) | Self::Names(path, _) | Self::Permission(path) => path,
        }
    }

    /// The children that are read along with it.
    pub(super) fn children(&self) -> Vec<Path> {
        match *self {
            Self::Item(Path::Job(job)) => USUAL_JOB_NODES.map(|node| Path::JobNode(job, node)).into(),
            Self::Item(Path::Batch(batch)) => USUAL_BATCH_NODES.map(|node| Path::BatchNode(batch, node)).into(),
            Self::Item(Path::Request(queue, request)) => {
                USUAL_REQUEST_NODES.map(|node| Path::RequestNode(queue, request, node)).into()
            }
            Self::Item(_) | Self::Node(_) | Self::Names(..) | Self::Permission(_) => Vec::new(),
        }
    }

    /// How many reads it is.
    pub(super) fn reads(&self) -> usize {
        match self {
            Self::Item(path) => ReadKind::of_item(path).reads(),
            Self::Node(_) | Self::Names(..) | Self::Permission(_) => 1,
        }
    }

    pub(super) fn kind(&self) -> ReadKind {
        match self {
            Self::Node(path) => ReadKind::of_node(path),
            Self::Item(path) => ReadKind::of_item(path),
            Self::Names(..) | Self::Permission(_) => ReadKind::NAMES,
        }
    }

    /// About how long its paths are, at least.
    pub(super) fn path_bytes(&self) -> usize {
        // Longer than any path that the queue creates, with the protocol's overhead. Names from other clients may be as
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

    /// Adds its reads to a request. `text` is where paths are written: each of its own would grow from nothing, letter
    /// by letter, a million times in a walk.
    pub(super) fn add(&self, children: &[Path], reader: &mut MultiReader<'_>, text: &mut String) -> Result<(), Error> {
        let path = written(self.path(), text);
        match self {
            Self::Names(..) | Self::Permission(_) => return reader.add_get_children(path),
            Self::Node(_) | Self::Item(_) => reader.add_get_data(path)?,
        }
        children.iter().try_for_each(|child| reader.add_get_data(written(child, text)))
    }

    /// What the results of its reads say.
    pub(super) fn answer(
        self,
        children: Vec<Path>,
        results: &mut impl Iterator<Item = MultiReadResult>,
    ) -> Result<Answer, Error> {
        match self {
            Self::Node(path) => Ok(Answer::Node(path, Found::of(results.next())?)),
            Self::Item(path) => {
                let found = Found::of(results.next())?;
                let children = children.into_iter().map(|child| Ok((child, Found::of(results.next())?)));
                Ok(Answer::Item(path, found, children.collect::<Result<_, Error>>()?))
            }
            Self::Names(path, _) => match results.next() {
                Some(MultiReadResult::Children { children }) => Ok(Answer::Names(path, Some(children))),
                // It was there a moment ago: its end is an event to come.
                Some(MultiReadResult::Error { err: Error::NoNode }) => Ok(Answer::Names(path, Some(Vec::new()))),
                Some(MultiReadResult::Error { err: Error::NoAuth }) => Ok(Answer::Names(path, None)),
                Some(MultiReadResult::Error { err }) => Err(err),
                _ => Err(unexpected()),
            },
            Self::Permission(path) => Ok(Answer::Permission(path, Found::of(results.next())?)),
        }
    }
}

fn written<'t>(path: &Path, text: &'t mut String) -> &'t str {
    text.clear();
    write!(text, "{path}").expect("a text takes whatever is written");
    text
}

fn unexpected() -> Error {
    Error::UnexpectedError("the answer is of another kind than the read".into())
}

/// The answer to a [`Query`].
#[derive(Debug)]
pub(in crate::mirror) enum Answer {
    /// To [`Query::Node`].
    Node(Path, Found),
    /// To [`Query::Item`].
    Item(Path, Found, Vec<(Path, Found)>),
    /// To [`Query::Names`]; `None` where our credentials do not allow us to list them.
    Names(Path, Option<Vec<String>>),
    /// To [`Query::Permission`].
    Permission(Path, Found),
}

impl Answer {
    /// Of which kind its query was, and how many bytes of data it brought. What listings bring was known before.
    pub(super) fn data_bytes(&self) -> Option<(ReadKind, u64)> {
        let (kind, bytes) = match self {
            Self::Node(path, found) => (ReadKind::of_node(path), found.bytes()),
            Self::Item(path, found, children) => {
                let below: usize = children.iter().map(|(_, found)| found.bytes()).sum();
                (ReadKind::of_item(path), found.bytes() + below)
            }
            Self::Names(..) | Self::Permission(..) => return None,
        };
        Some((kind, bytes as u64))
    }

    /// The znodes that our credentials do not allow us to read.
    pub(super) fn denied(&self) -> impl Iterator<Item = &Path> {
        let (path, found, children) = match self {
            Self::Node(path, found) | Self::Permission(path, found) => (path, Some(found), [].as_slice()),
            Self::Item(path, found, children) => (path, Some(found), children.as_slice()),
            Self::Names(path, names) => (path, names.is_none().then_some(&Found::Denied), [].as_slice()),
        };
        let own = found.map(|found| (path, found));
        let all = own.into_iter().chain(children.iter().map(|(path, found)| (path, found)));
        all.filter(|(_, found)| matches!(found, Found::Denied)).map(|(path, _)| path)
    }
}

/// What was found at each path that was requested by itself.
pub(in crate::mirror) fn nodes(answers: Vec<Answer>) -> Vec<(Path, Found)> {
    let node = |answer| match answer {
        Answer::Node(path, found) | Answer::Item(path, found, _) => Some((path, found)),
        Answer::Names(..) | Answer::Permission(..) => None,
    };
    answers.into_iter().filter_map(node).collect()
}
