//! What stands below `/queuekeeper`, at one look.

use std::collections::BTreeMap;

use jiff::Timestamp;
use zookeeper_client::{Client, Error, MultiReadResult, Stat};

use super::nodes::{self, PAUSED, PENDING, RULES};

/// How many znodes are asked for in one request.
const CHUNK: usize = 256;

/// A znode of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Vec<u8>,
    /// The version of its data.
    pub version: i32,
    /// The transaction that made it: what was made earlier has a smaller one.
    pub czxid: i64,
    /// When it was made, by the servers' clock.
    pub created: Timestamp,
    /// When its data was changed, by the servers' clock.
    pub changed: Timestamp,
}

impl Node {
    fn new(name: &str, data: Vec<u8>, stat: &Stat) -> Self {
        let instant = |millis| Timestamp::from_millisecond(millis).unwrap_or_default();
        let (created, changed) = (instant(stat.ctime), instant(stat.mtime));
        Self { name: name.to_owned(), data, version: stat.version, czxid: stat.czxid, created, changed }
    }
}

/// Everything below `/queuekeeper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The decisions that wait, in the order in which they were made.
    pub pending: Vec<Node>,
    /// What each rule remembers, by name.
    pub rules: BTreeMap<String, Node>,
    /// What all rules do together; `None` where the folder is missing.
    pub all: Option<Node>,
    /// The kill switch, while it is there.
    pub paused: Option<Node>,
}

impl Snapshot {
    /// Reads it: two requests, and one more for each 256 znodes. What comes and goes meanwhile may be missing.
    pub(super) async fn read(client: &Client) -> Result<Self, Error> {
        let mut reader = client.new_multi_reader();
        reader.add_get_data(PAUSED)?;
        reader.add_get_data(RULES)?;
        reader.add_get_children(RULES)?;
        reader.add_get_children(PENDING)?;
        let mut answers = reader.commit().await?.into_iter();
        let paused = node("paused", answers.next())?;
        let all = node("rules", answers.next())?;
        let (rules, pending) = (children(answers.next())?, children(answers.next())?);
        let names: Vec<_> =
            rules.iter().map(|name| nodes::rule(name)).chain(pending.iter().map(|name| nodes::pending(name))).collect();
        let mut found = Vec::with_capacity(names.len());
        for chunk in names.chunks(CHUNK) {
            let mut reader = client.new_multi_reader();
            chunk.iter().try_for_each(|path| reader.add_get_data(path))?;
            found.extend(reader.commit().await?);
        }
        let mut found = found.into_iter();
        let mut snapshot = Self { paused, all, ..Self::default() };
        for name in rules {
            if let Some(node) = node(&name, found.next())? {
                snapshot.rules.insert(name, node);
            }
        }
        for name in pending {
            snapshot.pending.extend(node(&name, found.next())?);
        }
        snapshot.pending.sort_by_key(|node| node.czxid);
        Ok(snapshot)
    }

    /// A decision that waits, by its name.
    #[must_use]
    pub fn pending(&self, name: &str) -> Option<&Node> {
        self.pending.iter().find(|node| node.name == name)
    }
}

fn node(name: &str, answer: Option<MultiReadResult>) -> Result<Option<Node>, Error> {
    match answer {
        Some(MultiReadResult::Data { data, stat }) => Ok(Some(Node::new(name, data, &stat))),
        Some(MultiReadResult::Error { err: Error::NoNode }) | None => Ok(None),
        Some(MultiReadResult::Error { err }) => Err(err),
        Some(_) => Ok(None),
    }
}

fn children(answer: Option<MultiReadResult>) -> Result<Vec<String>, Error> {
    match answer {
        Some(MultiReadResult::Children { children }) => {
            // What is called otherwise is none of ours: it was put there by hand.
            Ok(children.into_iter().filter(|name| nodes::is_name(name)).collect())
        }
        Some(MultiReadResult::Error { err: Error::NoNode }) | None => Ok(Vec::new()),
        Some(MultiReadResult::Error { err }) => Err(err),
        Some(_) => Ok(Vec::new()),
    }
}
