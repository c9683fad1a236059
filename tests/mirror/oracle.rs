//! What a tree says, worked out from a plain reading of it: nothing here is shared with the mirror but the words.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::facts::{Facts, say};
use super::grammar::{JOB_NODES, Kind, Machine, OUTCOMES, is_known_folder, kind};
use super::values::{self, Reading, cut};
use crate::support::tree::Tree;

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
        self.facts.insert(format!("lock {path}"), format!("{kind} {stat:?}"));
    }

    fn tell(&mut self, name: &str, values: impl IntoIterator<Item = (&'static str, String)>) {
        self.facts.extend(values.into_iter().map(|(field, value)| (format!("{name} {field}"), value)));
    }
}

/// What the tree below a root says, with the same arguments as for the store. `closed` are paths that are there, but
/// not ours to read; of these the tree's data and stats are not used.
pub(crate) fn of_tree(tree: &Tree, closed: &BTreeSet<String>, now: Timestamp, space: i64) -> Facts {
    let mut figures =
        Figures { facts: Facts::new(), counts: BTreeMap::new(), oldest: BTreeMap::new(), now_ms: now.as_millisecond() };
    let mut passed_over = BTreeSet::new();
    let (mut jobs, mut batches, mut requests) =
        (BTreeMap::<_, Item>::new(), BTreeMap::<_, Item>::new(), BTreeMap::<_, Item>::new());
    let (mut entries, mut references) = (Vec::new(), Vec::new());
    let mut folders = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    for (path, found) in tree {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let kind = kind(path);
        if passed_over.contains(parent) || kind == Kind::Foreign {
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
            Kind::Folder => {
                if parent == "/jobs/states" && !is_known_folder(name) {
                    unknown.insert(name.to_owned());
                }
            }
            Kind::Uuid => {
                passed_over.insert(path);
            }
            Kind::Job(job) => {
                jobs.entry(job).or_default().nodes.insert(".".to_owned(), node);
            }
            Kind::JobNode(job, name) => {
                jobs.entry(job).or_default().nodes.insert(name, node);
            }
            Kind::Batch(batch) => {
                batches.entry(batch).or_default().nodes.insert(".".to_owned(), node);
            }
            Kind::BatchNode(batch, name) => {
                batches.entry(batch).or_default().nodes.insert(name, node);
            }
            Kind::Request(request) => {
                requests.entry(request).or_default().nodes.insert(".".to_owned(), node);
            }
            Kind::RequestNode(request, name) => {
                requests.entry(request).or_default().nodes.insert(name, node);
            }
            Kind::Entry(job) => {
                passed_over.insert(path);
                entries.push((job, path.as_str()));
            }
            Kind::Outcome(batch, outcome) => {
                folders.insert((batch, outcome));
            }
            Kind::Reference(batch, outcome, job) => {
                passed_over.insert(path);
                references.push((batch, outcome, job, path.as_str()));
            }
            Kind::Lock(kind) => {
                figures.lock(kind, path, lock_of(node));
                let created = node.map(|(_, stat)| stat.ctime);
                if kind == "queue" {
                    figures.date(format!("paused {name}"), created.or(Some(figures.now_ms)));
                }
                if kind == "collection" {
                    figures.add("collections held".to_owned(), 1);
                }
            }
            Kind::Unexpected => {
                passed_over.insert(path);
                // One that is closed to us has been counted already.
                figures.add("unreadable".to_owned(), u64::from(node.is_some()));
                figures.facts.insert(format!("unexpected {path}"), "is there".to_owned());
            }
            Kind::Foreign => unreachable!("passed over above"),
        }
    }
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
        batch(&mut figures, id, item);
        for (outcome, folder) in OUTCOMES.iter().enumerate() {
            let count = references.iter().filter(|(batch, at, ..)| batch == id && *at == outcome).count();
            let count = folders.contains(&(id.clone(), outcome)).then_some(count);
            figures.facts.insert(format!("batch {id} {folder}"), format!("{count:?}"));
        }
    }
    for (id, item) in &requests {
        request(&mut figures, id, item);
    }
    let unknown: Vec<_> = unknown.into_iter().take(20).collect();
    figures.facts.insert("unknown states".to_owned(), unknown.join(" "));
    let Figures { mut facts, counts, oldest, .. } = figures;
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

fn job(figures: &mut Figures, id: &str, item: &Item<'_>, space: i64, unknown: &mut BTreeSet<String>) {
    let mut status = Reading::of(item.data("status"));
    let (state, odd) = status.status(Machine::Job, item.node("status").is_some());
    let last_successful = status.text(&["last_successful_status"]);
    let retries = status.integer("retry_count");
    let retry_count = retries.and_then(|retries| u32::try_from(retries).ok());
    let message = status.text(&["message"]);
    status.is_bad |= retries.is_some() && retry_count.is_none();

    let mut configuration = Reading::of(item.data("configuration"));
    let collection = cut(&configuration.text(&["profile", "profile_name"]));
    let submitter = configuration.text(&["submitter"]);
    let submitted = configuration.text(&["submissionDate"]);
    let filename = configuration.text(&["filename"]);
    let title = configuration.text(&["title"]);
    let object_id = configuration.text(&["objectID"]);
    configuration.text(&["creator"]);
    let named_local_ids = configuration.list("localID");
    let (mut identifiers, mut identifier) =
        (Reading::of(item.data("identifiers")), Reading::of(item.data("identifier")));
    let arks = [identifiers.text(&["primary_id", "primary"]), identifier.text(&["primary_id", "primary"]), object_id];
    let local_ids = [identifiers.list("local_id"), identifier.list("local_id"), named_local_ids];
    let first = |texts: [String; 3]| texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();

    let space_needed = item.data("space_needed").map_or(Some(0), values::space);
    let batch = item.data("bid").and_then(values::bid);
    let priority = item.data("priority").and_then(values::priority);
    let mut bad: Vec<_> = JOB_NODES.iter().chain(&["."]).filter(|node| item.is_denied(node)).copied().collect();
    let closed = bad.len();
    let object = |name: &str| Reading::of(item.data(name)).is_bad;
    for (node, is_bad) in [
        ("status", status.is_bad),
        ("configuration", configuration.is_bad),
        ("identifiers", identifiers.is_bad),
        ("identifier", identifier.is_bad),
        ("space_needed", space_needed.is_none()),
        ("bid", item.data("bid").is_some() && batch.is_none()),
        ("priority", item.data("priority").is_some() && priority.is_none()),
        ("metadata", object("metadata")),
        ("store", object("store")),
        ("inventory", object("inventory")),
    ] {
        if is_bad {
            bad.push(node);
        }
    }
    figures.add("unreadable".to_owned(), (bad.len() - closed) as u64);
    bad.sort_unstable();
    let space_needed = space_needed.unwrap_or(0);
    if state.is_none() && !odd.is_empty() {
        unknown.insert(cut(&odd));
    }

    let lock = item.lock();
    let locked = if lock.is_some() { "locked" } else { "unlocked" };
    let retries = u64::from(retry_count.unwrap_or(0));
    let group = format!("jobs {}", state.unwrap_or("other"));
    figures.add(format!("{group} count"), 1);
    figures.add(format!("{group} locked"), u64::from(lock.is_some()));
    figures.add(format!("{group} retried"), u64::from(retries > 0));
    figures.add(format!("{group} retries"), retries);
    figures.add(format!("{group} space"), space_needed);
    figures.date(format!("{group} oldest {locked}"), item.entered());
    figures.date(format!("{group} oldest"), item.entered());
    figures.age(&group, item.entered());
    figures.most("most retries", retries);
    figures.add(format!("retried {} times", retries.min(3)), 1);
    let waits = state == Some("provisioning") && i64::try_from(space_needed).is_ok_and(|needed| needed > space);
    figures.add("waiting for space".to_owned(), u64::from(waits));
    figures.add(format!("collection {collection:?} {}", state.unwrap_or("other")), 1);
    if lock.is_some() {
        figures.date(format!("{group} oldest lock"), lock.map(|(_, created, _)| created));
        figures.lock("job", &format!("/jobs/{id}/lock"), lock);
    }
    let submitted = queuekeeper::queue::time::read(&submitted).map(Timestamp::as_millisecond);
    figures.tell(
        &format!("job {id}"),
        [
            ("state", format!("{state:?}")),
            ("odd status", cut(&odd)),
            ("entered", format!("{:?}", item.entered())),
            ("status version", item.version().to_string()),
            ("created", format!("{:?}", item.created())),
            ("priority", format!("{priority:?}")),
            ("lock", format!("{lock:?}")),
            ("retry count", format!("{retry_count:?}")),
            ("last successful", format!("{:?}", Machine::Job.state(&last_successful).map(|(_, label)| label))),
            ("message", cut(&message)),
            ("space", space_needed.to_string()),
            ("batch", format!("{batch:?}")),
            ("collection", collection),
            ("submitter", cut(&submitter)),
            ("submitted", format!("{submitted:?}")),
            ("filename", cut(&filename)),
            ("title", cut(&title)),
            ("ark", cut(&first(arks))),
            ("local ids", cut(&first(local_ids))),
            ("unreadable", bad.join(" ")),
        ],
    );
}

/// What batches and requests have in common: how they stand. Gives the label of the state.
fn item(figures: &mut Figures, name: &str, group: &str, item: &Item<'_>, machine: Machine) -> &'static str {
    let mut status = Reading::of(item.data("status"));
    let (state, odd) = status.status(machine, item.node("status").is_some());
    let message = status.text(&["message"]);
    figures.add("unreadable".to_owned(), u64::from(status.is_bad));
    let label = state.unwrap_or("other");
    figures.add(format!("{group} {label} count"), 1);
    figures.date(format!("{group} {label} oldest"), item.entered());
    figures.tell(
        name,
        [
            ("state", format!("{state:?}")),
            ("odd status", cut(&odd)),
            ("entered", format!("{:?}", item.entered())),
            ("status version", item.version().to_string()),
            ("message", cut(&message)),
            ("lock", format!("{:?}", item.lock())),
        ],
    );
    label
}

fn batch(figures: &mut Figures, id: &str, found: &Item<'_>) {
    let name = format!("batch {id}");
    item(figures, &name, "batches", found, Machine::Batch);
    let mut submission = Reading::of(found.data("submission"));
    let [uuid, collection, submitter, filename, title] =
        [&["batchID"][..], &["profile", "profile_name"], &["submitter"], &["filename"], &["title"]]
            .map(|keys| cut(&submission.text(keys)));
    submission.text(&["type"]);
    submission.text(&["submissionDate"]);
    let report = Reading::of(found.data("status-report"));
    figures.add("unreadable".to_owned(), u64::from(submission.is_bad) + u64::from(report.is_bad));
    let is_acquired = found.nodes.contains_key("states").to_string();
    figures.tell(
        &name,
        [
            ("uuid", uuid),
            ("collection", collection),
            ("submitter", submitter),
            ("filename", filename),
            ("title", title),
            ("is acquired", is_acquired),
        ],
    );
    if found.lock().is_some() {
        figures.lock("batch", &format!("/batches/{id}/lock"), found.lock());
    }
}

fn request(figures: &mut Figures, id: &str, found: &Item<'_>) {
    let name = format!("request {id}");
    let group = format!("requests {}", id.split('/').next().unwrap_or_default());
    let label = item(figures, &name, &group, found, Machine::Access);
    let mut token = Reading::of(found.data("token"));
    let text = cut(&token.text(&["token"]));
    let bytes = token.integer("cloud-content-byte").and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    token.integer("delivery-node");
    token.text(&["url"]);
    figures.add("unreadable".to_owned(), u64::from(token.is_bad));
    figures.add(format!("{group} {label} bytes"), bytes);
    figures.tell(&name, [("token", text), ("bytes", bytes.to_string())]);
    if found.lock().is_some() {
        figures.lock("access", &format!("/access/{id}/lock"), found.lock());
    }
}
