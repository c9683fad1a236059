//! What a tree says, worked out from a plain reading of it: nothing here is shared with the mirror but the words.

mod items;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use zookeeper_client::Stat;

use self::items::{batch, job, request};
use super::facts::{Facts, say};
use super::grammar::{NodeKind, OUTCOMES, is_known_folder, kind};
use queuekeeper_testkit::tree::Tree;

/// The bounds of the age bands in milliseconds, and their labels.
const AGES: [(i64, &str); 6] = [
    (60_000, "1m"),
    (600_000, "10m"),
    (3_600_000, "1h"),
    (6 * 3_600_000, "6h"),
    (24 * 3_600_000, "1d"),
    (i64::MAX, "older"),
];

/// A znode as our credentials show it: `None` for one that is there and closed to us.
type Node<'a> = Option<&'a (Vec<u8>, Stat)>;

#[derive(Default)]
struct Item<'a> {
    nodes: BTreeMap<String, Node<'a>>,
}

impl<'a> Item<'a> {
    fn node(&self, name: &str) -> Node<'a> {
        self.nodes.get(name).copied().flatten()
    }

    fn data(&self, name: &str) -> Option<&'a [u8]> {
        self.node(name).map(|(data, _)| data.as_slice())
    }

    fn created(&self) -> Option<i64> {
        self.node(".").map(|(_, stat)| stat.ctime)
    }

    fn entered(&self) -> Option<i64> {
        self.node("status").map_or(self.created(), |(_, stat)| Some(stat.mtime))
    }

    fn version(&self) -> i32 {
        self.node("status").map_or(-1, |(_, stat)| stat.version)
    }

    fn lock(&self) -> Option<(i64, i64, i64)> {
        lock_of(self.node("lock"))
    }

    fn is_denied(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(Option::is_none)
    }
}

fn lock_of(node: Node<'_>) -> Option<(i64, i64, i64)> {
    node.map(|(_, stat)| (stat.ephemeral_owner, stat.ctime, stat.czxid))
}

/// Figures over several items, by name.
struct Figures {
    facts: Facts,
    counts: BTreeMap<String, u64>,
    oldest: BTreeMap<String, i64>,
    /// Those that hold a lock, and the collections that an operator has locked.
    sessions: BTreeSet<i64>,
    held: BTreeSet<String>,
    now_ms: i64,
}

impl Figures {
    fn add(&mut self, name: String, by: u64) {
        *self.counts.entry(name).or_default() += by;
    }

    fn most(&mut self, name: &str, value: u64) {
        let most = self.counts.entry(name.to_owned()).or_default();
        *most = value.max(*most);
    }

    fn date(&mut self, name: String, at: Option<i64>) {
        if let Some(at) = at {
            let oldest = self.oldest.entry(name).or_insert(at);
            *oldest = at.min(*oldest);
        }
    }

    /// An item without a date is as young as can be.
    fn age(&mut self, name: &str, at: Option<i64>) {
        let age = at.map_or(0, |at| self.now_ms - at);
        let (_, label) = AGES.iter().find(|(bound, _)| age < *bound).expect("the last bound is beyond all");
        self.add(format!("{name} aged {label}"), 1);
    }

    fn lock(&mut self, kind: &str, path: &str, stat: Option<(i64, i64, i64)>) {
        let created = stat.map(|(_, created, _)| created);
        self.add(format!("locks {kind} count"), 1);
        self.date(format!("locks {kind} oldest"), created);
        self.age(&format!("locks {kind}"), created);
        self.sessions.extend(stat.map(|(session, ..)| session).filter(|session| *session != 0));
        self.facts.insert(format!("lock {path}"), format!("{kind} {stat:?}"));
    }

    fn tell(&mut self, name: &str, values: impl IntoIterator<Item = (&'static str, String)>) {
        self.facts.extend(values.into_iter().map(|(field, value)| (format!("{name} {field}"), value)));
    }
}

/// A tree's items, and what refers to jobs from elsewhere.
#[derive(Default)]
struct Sorted<'a> {
    jobs: BTreeMap<String, Item<'a>>,
    batches: BTreeMap<String, Item<'a>>,
    requests: BTreeMap<String, Item<'a>>,
    /// Job and path.
    entries: Vec<(String, &'a str)>,
    /// Batch, folder, job and path.
    references: Vec<(String, usize, String, &'a str)>,
    folders: BTreeSet<(String, usize)>,
    unknown: BTreeSet<String>,
}

/// Sorts the znodes by what they are, and counts at once what is counted one by one.
fn sort<'a>(tree: &'a Tree, closed: &BTreeSet<String>, figures: &mut Figures) -> Sorted<'a> {
    let mut sorted = Sorted::default();
    let mut passed_over = BTreeSet::new();
    for (path, found) in tree {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let kind = kind(path);
        if passed_over.contains(parent) || kind == NodeKind::Foreign {
            passed_over.insert(path.as_str());
            continue;
        }
        figures.add("znodes".to_owned(), 1);
        let node: Node<'_> = (!closed.contains(path)).then_some(found);
        if node.is_none() {
            figures.add("unreadable".to_owned(), 1);
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        match kind {
            NodeKind::Folder => {
                if parent == "/jobs/states" && !is_known_folder(name) {
                    sorted.unknown.insert(name.to_owned());
                }
            }
            NodeKind::Uuid => {
                passed_over.insert(path);
            }
            NodeKind::Job(job) => {
                sorted.jobs.entry(job).or_default().nodes.insert(".".to_owned(), node);
            }
            NodeKind::JobNode(job, name) => {
                sorted.jobs.entry(job).or_default().nodes.insert(name, node);
            }
            NodeKind::Batch(batch) => {
                sorted.batches.entry(batch).or_default().nodes.insert(".".to_owned(), node);
            }
            NodeKind::BatchNode(batch, name) => {
                sorted.batches.entry(batch).or_default().nodes.insert(name, node);
            }
            NodeKind::Request(request) => {
                sorted.requests.entry(request).or_default().nodes.insert(".".to_owned(), node);
            }
            NodeKind::RequestNode(request, name) => {
                sorted.requests.entry(request).or_default().nodes.insert(name, node);
            }
            NodeKind::Entry(job) => {
                passed_over.insert(path);
                sorted.entries.push((job, path.as_str()));
            }
            NodeKind::Outcome(batch, outcome) => {
                sorted.folders.insert((batch, outcome));
            }
            NodeKind::Reference(batch, outcome, job) => {
                passed_over.insert(path);
                sorted.references.push((batch, outcome, job, path.as_str()));
            }
            NodeKind::Lock(kind) => {
                figures.lock(kind, path, lock_of(node));
                let created = node.map(|(_, stat)| stat.ctime);
                if kind == "queue" {
                    figures.date(format!("paused {name}"), created.or(Some(figures.now_ms)));
                }
                if kind == "collection" {
                    figures.add("collections held".to_owned(), 1);
                    figures.held.insert(name.to_owned());
                }
            }
            NodeKind::Unexpected => {
                passed_over.insert(path);
                // One that is closed to us has been counted already.
                figures.add("unreadable".to_owned(), u64::from(node.is_some()));
                figures.facts.insert(format!("unexpected {path}"), "is there".to_owned());
            }
            NodeKind::Foreign => unreachable!("passed over above"),
        }
    }
    sorted
}

/// What the tree below a root says, with the same arguments as for the store. `closed` are paths that are there, but
/// not ours to read; of these the tree's data and stats are not used.
pub(crate) fn of_tree(tree: &Tree, closed: &BTreeSet<String>, now: Timestamp, space: i64) -> Facts {
    let mut figures = Figures {
        facts: Facts::new(),
        counts: BTreeMap::new(),
        oldest: BTreeMap::new(),
        sessions: BTreeSet::new(),
        held: BTreeSet::new(),
        now_ms: now.as_millisecond(),
    };
    let Sorted { jobs, batches, requests, entries, references, folders, mut unknown } =
        sort(tree, closed, &mut figures);
    let strays = entries.iter().map(|(job, path)| (job, path));
    for (_, path) in
        strays.chain(references.iter().map(|(_, _, job, path)| (job, path))).filter(|(job, _)| !jobs.contains_key(*job))
    {
        figures.facts.insert(format!("stray {path}"), "is there".to_owned());
    }
    for (id, item) in &jobs {
        let mut places: Vec<_> = entries.iter().filter(|(job, _)| job == id).map(|(_, path)| below(path, 2)).collect();
        places.sort();
        let own = references.iter().filter(|(_, _, job, _)| job == id);
        let mut own: Vec<_> = own.map(|(batch, outcome, ..)| format!("{batch}/{}", OUTCOMES[*outcome])).collect();
        own.sort();
        job(&mut figures, id, item, space, &mut unknown);
        let name = format!("job {id}");
        figures.tell(&name, [("entries", places.join(" ")), ("references", own.join(" "))]);
    }
    for (id, item) in &batches {
        batch(&mut figures, id, item, &mut unknown);
        for (outcome, folder) in OUTCOMES.iter().enumerate() {
            let count = references.iter().filter(|(batch, at, ..)| batch == id && *at == outcome).count();
            let count = folders.contains(&(id.clone(), outcome)).then_some(count);
            figures.facts.insert(format!("batch {id} {folder}"), format!("{count:?}"));
        }
    }
    for (id, item) in &requests {
        request(&mut figures, id, item, &mut unknown);
    }
    let unknown: Vec<_> = unknown.into_iter().take(20).collect();
    figures.facts.insert("unknown states".to_owned(), unknown.join(" "));
    let Figures { mut facts, counts, oldest, sessions, .. } = figures;
    say(&mut facts, "lock sessions".to_owned(), &(sessions.len() as u64));
    for (name, count) in counts {
        say(&mut facts, name, &count);
    }
    for (name, oldest) in oldest {
        say(&mut facts, name, &Some(oldest));
    }
    facts
}

/// The last parts of a path.
fn below(path: &str, parts: usize) -> String {
    let all: Vec<_> = path.split('/').collect();
    all[all.len() - parts..].join("/")
}
