//! The reads that a dump makes, and what their answers become.

use std::sync::{Arc, LazyLock};

use zookeeper_client::{MultiReadResult, MultiReader, Stat};

use super::line::{self, Trailer};
use super::redact::Redaction;
use crate::pace::VALUES_IN_FLIGHT;
use crate::path::{BatchNode, JobNode, Path, RequestNode};

/// About how many bytes the protocol adds to a path.
const READ_BYTES: usize = 13;

/// The path of a znode, and the one that it is shown by.
#[derive(Clone, Debug)]
pub(super) struct DumpPath {
    pub(super) real: Arc<str>,
    pub(super) shown: Arc<str>,
}

impl DumpPath {
    pub(super) fn root() -> Self {
        Self { real: "/".into(), shown: "/".into() }
    }

    pub(super) fn child(&self, name: &str, redaction: Option<&Redaction>) -> Self {
        let below = |parent: &str, name: &str| Arc::from(format!("{}/{name}", parent.trim_end_matches('/')));
        let real: Arc<str> = below(&self.real, name);
        let shown = match redaction {
            None => Arc::clone(&real),
            Some(redaction) => below(&self.shown, &redaction.name(&Path::parse_whole(&self.real), name)),
        };
        Self { real, shown }
    }
}

/// Names of children, shared by all queries of the same names.
pub(super) type Names = Arc<[Arc<str>]>;

static JOB: LazyLock<Names> = LazyLock::new(|| JobNode::ALL.iter().map(|node| node.name().into()).collect());
static BATCH: LazyLock<Names> = LazyLock::new(|| BatchNode::ALL.iter().map(|node| node.name().into()).collect());
static REQUEST: LazyLock<Names> = LazyLock::new(|| RequestNode::ALL.iter().map(|node| node.name().into()).collect());

/// What is read in one request.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) of: DumpPath,
    pub(super) reading: Reading,
}

#[derive(Debug)]
pub(super) enum Reading {
    /// A znode and those of its children that are named, whether they are there or not: an item is read as it is at one
    /// moment.
    Item(Names),
    /// A znode and its children as they were listed: what is gone by now has vanished.
    Listed(Names),
    /// A znode, listed with its parent.
    Node,
    /// The names of a znode's children. `true` for an item's, which are then read together with it.
    Names(bool),
}

/// What replaces a query once it is answered.
#[derive(Debug)]
pub(super) enum QueryResult {
    /// Lines of the dump.
    Lines(Vec<u8>),
    /// Another query.
    Query(Query),
    /// All children of a znode, one after the other.
    Children(DumpPath, Vec<String>),
}

impl Query {
    /// The first look at a znode that was listed. The children of jobs, batches and requests are known by name.
    pub(super) fn first(of: DumpPath) -> Self {
        let reading = match Path::parse_whole(&of.real) {
            Path::Job(_) => Reading::Item(Arc::clone(&JOB)),
            Path::Batch(_) => Reading::Item(Arc::clone(&BATCH)),
            Path::Request(..) => Reading::Item(Arc::clone(&REQUEST)),
            _ => Reading::Node,
        };
        Self { of, reading }
    }

    fn children(&self) -> &[Arc<str>] {
        match &self.reading {
            Reading::Item(names) | Reading::Listed(names) => names,
            Reading::Node | Reading::Names(_) => &[],
        }
    }

    /// How many reads it is.
    pub(super) fn reads(&self) -> usize {
        1 + self.children().len()
    }

    /// About how large it makes a request, below a chroot of that length.
    pub(super) fn bytes(&self, chroot: usize) -> usize {
        let names: usize = self.children().iter().map(|name| name.len()).sum();
        (self.of.real.len() + chroot + READ_BYTES) * self.reads() + names
    }

    pub(super) fn add(&self, reader: &mut MultiReader<'_>) -> Result<(), zookeeper_client::Error> {
        if let Reading::Names(_) = self.reading {
            return reader.add_get_children(&self.of.real);
        }
        reader.add_get_data(&self.of.real)?;
        self.children().iter().try_for_each(|name| reader.add_get_data(&format!("{}/{name}", self.of.real)))
    }

    /// What its answers say, of which there are as many as reads.
    ///
    /// # Errors
    /// The path that could not be read, and why.
    pub(super) fn take(
        self,
        answers: &mut impl Iterator<Item = MultiReadResult>,
        redaction: Option<&Redaction>,
        counts: &mut Trailer,
    ) -> Result<Vec<QueryResult>, (String, zookeeper_client::Error)> {
        let Self { of, reading } = self;
        let names = match reading {
            Reading::Names(is_item) => return take_names(of, is_item, answers.next(), redaction, counts),
            Reading::Item(ref names) | Reading::Listed(ref names) => &**names,
            Reading::Node => &[],
        };
        let node = data(&of.real, answers.next())?;
        let mut children = Vec::new();
        for name in names {
            let child = of.child(name, redaction);
            match data(&child.real, answers.next())? {
                Some(found) => children.push((child, found)),
                None => counts.vanished += u64::from(matches!(reading, Reading::Listed(_))),
            }
        }
        let Some((value, stat)) = node else {
            counts.vanished += 1;
            return Ok(Vec::new());
        };
        let is_whole = stat.num_children.unsigned_abs() as usize == children.len();
        if matches!(reading, Reading::Item(_)) && !is_whole {
            // It has children of other names: once they are listed, all is read again together.
            return Ok(vec![QueryResult::Query(Query { of, reading: Reading::Names(true) })]);
        }
        let mut next = QueryResult::of(&of, &value, &stat, redaction, counts);
        if matches!(reading, Reading::Node) {
            if stat.num_children > 0 {
                next.push(QueryResult::Query(Query { of, reading: Reading::Names(false) }));
            }
            return Ok(next);
        }
        children.sort_unstable_by(|(one, _), (other, _)| line::compare(&one.shown, &other.shown));
        for (child, (value, stat)) in children {
            let lines = QueryResult::of(&child, &value, &stat, redaction, counts);
            match (next.last_mut(), lines.into_iter().next()) {
                (Some(QueryResult::Lines(above)), Some(QueryResult::Lines(line))) => above.extend(line),
                (_, line) => next.extend(line),
            }
            if stat.num_children > 0 {
                next.push(QueryResult::Query(Query { of: child, reading: Reading::Names(false) }));
            }
        }
        Ok(next)
    }
}

impl QueryResult {
    fn of(of: &DumpPath, value: &[u8], stat: &Stat, redaction: Option<&Redaction>, counts: &mut Trailer) -> Vec<Self> {
        let path = Path::parse_whole(&of.real);
        let shown = redaction.map(|redaction| redaction.data(&path, value));
        let shown = shown.as_deref().unwrap_or(value);
        counts.nodes += 1;
        counts.ephemeral += u64::from(stat.ephemeral_owner != 0);
        counts.count_item(&path);
        counts.data_bytes += shown.len() as u64;
        counts.newest_zxid = counts.newest_zxid.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
        let mut lines = Vec::with_capacity(of.shown.len() + shown.len() + shown.len() / 8 + 64);
        line::write_node(&mut lines, &of.shown, shown, stat);
        vec![Self::Lines(lines)]
    }
}

fn take_names(
    of: DumpPath,
    is_item: bool,
    answer: Option<MultiReadResult>,
    redaction: Option<&Redaction>,
    counts: &mut Trailer,
) -> Result<Vec<QueryResult>, (String, zookeeper_client::Error)> {
    let mut names = match answer {
        Some(MultiReadResult::Children { children }) => children,
        Some(MultiReadResult::Error { err: zookeeper_client::Error::NoNode }) => {
            // Of a znode whose line is written already, nothing is lost but what it might have had below.
            counts.vanished += u64::from(is_item);
            return Ok(Vec::new());
        }
        answer => return Err((of.real.to_string(), refusal(answer))),
    };
    if is_item && names.len() >= VALUES_IN_FLIGHT {
        // Together they could be more than a server can hold: its children are read as those of any other znode.
        return Ok(vec![QueryResult::Query(Query { of, reading: Reading::Node })]);
    }
    if is_item {
        let names = names.into_iter().map(Arc::from).collect();
        return Ok(vec![QueryResult::Query(Query { of, reading: Reading::Listed(names) })]);
    }
    if &*of.real == "/" {
        names.retain(|name| Path::Root.child(name) != Path::Foreign);
    }
    match redaction {
        None => names.sort_unstable(),
        Some(redaction) => {
            let parent = Path::parse_whole(&of.real);
            names.sort_by_cached_key(|name| redaction.name(&parent, name).into_owned());
        }
    }
    Ok(vec![QueryResult::Children(of, names)])
}

type Found = Option<(Vec<u8>, Stat)>;

fn data(path: &str, answer: Option<MultiReadResult>) -> Result<Found, (String, zookeeper_client::Error)> {
    match answer {
        Some(MultiReadResult::Data { data, stat }) => Ok(Some((data, stat))),
        Some(MultiReadResult::Error { err: zookeeper_client::Error::NoNode }) => Ok(None),
        answer => Err((path.to_owned(), refusal(answer))),
    }
}

fn refusal(answer: Option<MultiReadResult>) -> zookeeper_client::Error {
    match answer {
        Some(MultiReadResult::Error { err }) => err,
        // Fewer answers than reads, or answers of another kind, are against the protocol.
        _ => zookeeper_client::Error::UnexpectedError("an answer of another kind".into()),
    }
}

#[cfg(test)]
mod tests;
