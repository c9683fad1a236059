//! What exists below `/queuekeeper`, read at once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use zookeeper_client::{Client, Error, MultiReadResult, Stat};

use super::nodes::{self, ELECTION, HELD, PAUSED, PENDING, ROOT, RULES};

mod held;

/// How many znodes are read in one request, at first and after a large answer: each may hold 1 MiB.
const FEWEST: usize = 8;

/// How many are where the answers before were small.
const MOST: usize = 64;

/// Ours are smaller than this, in bytes, with few exceptions.
const SMALL: usize = 16 << 10;

/// How many foreign znodes are listed.
const MOST_FOREIGN: usize = 100;

/// A znode below `/queuekeeper`.
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
    /// How many children it has. Ours have none, and one that has any cannot be deleted.
    pub children: i32,
}

impl Node {
    /// One of which only the existence is known.
    fn unread(name: &str) -> Self {
        let (name, data, then) = (name.to_owned(), Vec::new(), Timestamp::UNIX_EPOCH);
        Self { name, data, version: 0, czxid: 0, created: then, changed: then, children: 0 }
    }

    fn new(name: &str, data: Vec<u8>, stat: &Stat) -> Self {
        let instant = |millis| Timestamp::from_millisecond(millis).unwrap_or_default();
        Self {
            name: name.to_owned(),
            data,
            version: stat.version,
            czxid: stat.czxid,
            created: instant(stat.ctime),
            changed: instant(stat.mtime),
            children: stat.num_children,
        }
    }
}

/// A znode below `/queuekeeper` that queuekeeper did not create, or cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignNode {
    /// Its path, below the chroot. Its name may be any text.
    pub path: String,
    /// Why it counts as foreign.
    pub reason: ForeignReason,
}

/// Why a znode counts as foreign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignReason {
    /// queuekeeper does not use this name.
    UnknownName,
    /// It is named like a candidate, but is persistent.
    PersistentCandidate,
    /// It cannot be read.
    Unreadable(Error),
    /// A folder whose names are only checked cannot be listed.
    Unlisted(Error),
    /// It keeps our sessions off an item, but is persistent: the item is never acquired.
    PersistentHold,
}

impl ForeignReason {
    /// Whether it blocks anything.
    fn stops(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::PersistentHold => true,
            Self::UnknownName | Self::PersistentCandidate | Self::Unlisted(_) => false,
        }
    }
}

/// Everything below `/queuekeeper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The pending decisions, in order of creation.
    pub pending: Vec<Node>,
    /// What each rule remembers, by name.
    pub rules: BTreeMap<String, Node>,
    /// What all rules do together; `None` where the folder is missing.
    pub all: Option<Node>,
    /// The kill switch, while it is there.
    pub paused: Option<Node>,
    /// Foreign znodes, at most a hundred.
    pub foreign: Vec<ForeignNode>,
    /// How many foreign znodes there are beyond those.
    pub more_foreign: usize,
}

impl Snapshot {
    /// Reads it: two requests, and more where there is much. What comes and goes meanwhile may be missing. A folder
    /// that cannot be read is given with the reason, where something depends on it; else, and for one znode that
    /// cannot, it is a foreign znode.
    pub(super) async fn read(client: &Client) -> Result<Result<Self, (&'static str, Error)>, Error> {
        let mut reader = client.new_multi_reader();
        reader.add_get_data(PAUSED)?;
        reader.add_get_data(RULES)?;
        for folder in [RULES, PENDING, ELECTION, ROOT, HELD] {
            reader.add_get_children(folder)?;
        }
        let mut answers = reader.commit().await?.into_iter();
        let paused = match answers.next() {
            // Only its existence matters, not its data.
            Some(MultiReadResult::Error { err }) if err != Error::NoNode => Some(Node::unread("paused")),
            answer => node("paused", answer).unwrap_or_default(),
        };
        let all = match node("rules", answers.next()) {
            Ok(all) => all,
            Err(why) => return Ok(Err((RULES, why))),
        };
        let mut snapshot = Self { all, paused, ..Self::default() };
        let mut folders = [RULES, PENDING, ELECTION].map(|folder| (folder, children(answers.next())));
        for (folder, names) in &mut folders {
            match names {
                Ok(names) if *folder != ELECTION => names.retain(|name| snapshot.is_ours(folder, name)),
                Ok(names) => names.retain(|name| snapshot.is_candidate(name)),
                Err(why) => return Ok(Err((folder, why.clone()))),
            }
        }
        let [own, held] = [ROOT, HELD].map(|folder| (folder, children(answers.next())));
        let [rules, pending, candidates] = folders.map(|(folder, names)| (folder, names.unwrap_or_default()));
        let paths = [&rules, &pending].into_iter().chain([&candidates]);
        let paths: Vec<_> =
            paths.flat_map(|(folder, names)| names.iter().map(move |name| format!("{folder}/{name}"))).collect();
        let mut found = paths.iter().zip(read_all(client, &paths).await?);
        let mut take = |snapshot: &mut Self, name: &str| {
            let (path, answer) = found.next()?;
            node(name, Some(answer)).unwrap_or_else(|why| {
                snapshot.add_foreign(path.clone(), ForeignReason::Unreadable(why));
                None
            })
        };
        for name in rules.1 {
            if let Some(node) = take(&mut snapshot, &name) {
                snapshot.rules.insert(name, node);
            }
        }
        for name in pending.1 {
            let node = take(&mut snapshot, &name);
            snapshot.pending.extend(node);
        }
        snapshot.pending.sort_by_key(|node| node.czxid);
        for ((path, answer), _) in found.zip(candidates.1) {
            if let MultiReadResult::Data { stat, .. } = answer
                && stat.ephemeral_owner == 0
            {
                snapshot.add_foreign(path.clone(), ForeignReason::PersistentCandidate);
            }
        }
        snapshot.check_held(client, held).await?;
        let names = snapshot.listed(own);
        names.iter().filter(|name| !nodes::is_child(name)).for_each(|name| {
            snapshot.add_foreign(format!("{ROOT}/{name}"), ForeignReason::UnknownName);
        });
        Ok(Ok(snapshot))
    }

    /// A pending decision, by its name.
    #[must_use]
    pub fn pending(&self, name: &str) -> Option<&Node> {
        self.pending.iter().find(|node| node.name == name)
    }

    fn add_foreign(&mut self, path: String, reason: ForeignReason) {
        let node = ForeignNode { path, reason };
        if self.foreign.len() < MOST_FOREIGN {
            return self.foreign.push(node);
        }
        self.more_foreign += 1;
        // Znodes that block something are listed in preference to harmless ones.
        let idle = self.foreign.iter_mut().rfind(|other| !other.reason.stops());
        if let Some(idle) = idle.filter(|_| node.reason.stops()) {
            *idle = node;
        }
    }

    /// The names in a folder, in order; a folder that cannot be listed is foreign.
    fn listed(&mut self, (folder, names): (&str, Result<Vec<String>, Error>)) -> Vec<String> {
        let mut names = names.unwrap_or_else(|why| {
            self.add_foreign(folder.to_owned(), ForeignReason::Unlisted(why));
            Vec::new()
        });
        names.sort_unstable();
        names
    }

    /// Whether a name is one that we give; any other was created by hand.
    fn is_ours(&mut self, folder: &str, name: &str) -> bool {
        let is_ours = nodes::is_name(name);
        if !is_ours {
            self.add_foreign(format!("{folder}/{name}"), ForeignReason::UnknownName);
        }
        is_ours
    }

    fn is_candidate(&mut self, name: &str) -> bool {
        let is_candidate = nodes::candidate_number(name).is_some();
        if !is_candidate {
            self.add_foreign(format!("{ELECTION}/{name}"), ForeignReason::UnknownName);
        }
        is_candidate
    }
}

/// Reads the data of znodes, as many at once as their sizes allow.
async fn read_all(client: &Client, paths: &[String]) -> Result<Vec<MultiReadResult>, Error> {
    let (mut found, mut rest, mut at_once) = (Vec::with_capacity(paths.len()), paths, FEWEST);
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(at_once.min(rest.len()));
        let mut reader = client.new_multi_reader();
        chunk.iter().try_for_each(|path| reader.add_get_data(path))?;
        let answers = reader.commit().await?;
        let is_small = answers.iter().all(|answer| match answer {
            MultiReadResult::Data { data, .. } => data.len() <= SMALL,
            _ => true,
        });
        at_once = if is_small { (at_once * 2).min(MOST) } else { FEWEST };
        found.extend(answers);
        rest = later;
    }
    Ok(found)
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
        Some(MultiReadResult::Children { children }) => Ok(children),
        Some(MultiReadResult::Error { err: Error::NoNode }) | None => Ok(Vec::new()),
        Some(MultiReadResult::Error { err }) => Err(err),
        Some(_) => Ok(Vec::new()),
    }
}
