//! A mirror that runs, a client that changes the tree, and the comparison of the two.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use queuekeeper::mirror::{self, AGE_BOUNDS, Metrics, MirrorStore, Writer};
use queuekeeper_zookeeper::{Auth, Config, Sessions};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use super::facts::{self, Difference, Facts, differences};
use super::oracle;
use queuekeeper_testkit::tree::{Tree, read_tree};
use queuekeeper_testkit::wait::eventually;

/// How long the mirror may take until it equals a tree that has come to rest: far more than it needs, since on a busy
/// machine a single comparison takes seconds.
pub(crate) const SETTLES: Duration = Duration::from_mins(3);

/// Generous: the machine may be busy with other servers.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);

/// What jobs may need and not wait for, in the comparisons.
pub(crate) const SPACE: i64 = 1_000_000;

pub(crate) fn config(connect_string: &str) -> Config {
    Config { session_timeout: Duration::from_secs(30), ..Config::new(connect_string.parse().unwrap()) }
}

/// A client with time enough on a busy machine.
pub(crate) async fn connect(connect_string: &str) -> Client {
    config(connect_string).connect().await.unwrap()
}

/// A client for the znodes that only `user` may read.
pub(crate) async fn connect_as(connect_string: &str, user: &str) -> Client {
    Config { auth: vec![Auth::digest(user, "secret")], ..config(connect_string) }.connect().await.unwrap()
}

pub(crate) async fn create(client: &Client, path: &str, data: &[u8]) {
    client.create(path, data, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
}

/// Every sample of a registry by name and labels, all as written in the exposition.
pub(crate) type Samples = BTreeMap<String, String>;

/// A mirror at work; it ends when dropped.
pub(crate) struct Mirror {
    pub(crate) store: MirrorStore,
    registry: Registry,
    task: AbortOnDropHandle<()>,
    shutdown: CancellationToken,
}

impl Mirror {
    /// Starts one that compares its image with the tree nearly all the time.
    pub(crate) fn start(connect_string: &str) -> Self {
        Self::with(config(connect_string), Some(Duration::from_millis(20)))
    }

    pub(crate) fn with(config: Config, drift_interval: Option<Duration>) -> Self {
        Self::with_writer(Writer::new(), config, drift_interval)
    }

    pub(crate) fn with_writer(writer: Writer, config: Config, drift_interval: Option<Duration>) -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let store = writer.store();
        let shutdown = CancellationToken::new();
        let run = mirror::run(Sessions::new(config), writer, metrics, drift_interval, shutdown.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(async move { run.await.unwrap() }));
        Self { store, registry, task, shutdown }
    }

    pub(crate) fn samples(&self) -> Samples {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
        samples.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// A sample that is a count.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.samples().get(name).unwrap_or_else(|| panic!("there is no sample {name}")).parse().unwrap()
    }

    /// A sample that is a time, or the sum of all samples of this name whatever their labels.
    pub(crate) fn seconds(&self, name: &str) -> f64 {
        let samples = self.samples();
        let of_name = samples.iter().filter(|(sample, _)| sample.split('{').next() == Some(name));
        of_name.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
    }

    pub(crate) fn walks(&self, cause: &str) -> u64 {
        self.count(&format!("queuekeeper_mirror_walks_total{{cause=\"{cause}\"}}"))
    }

    pub(crate) fn drift(&self) -> u64 {
        self.count("queuekeeper_mirror_drift_total")
    }

    /// The counted steps of jobs that are not 0, as `from->to`.
    pub(crate) fn steps(&self) -> BTreeMap<String, u64> {
        let steps = self.samples().into_iter().filter_map(|(name, count)| {
            let labels = name.strip_prefix("merritt_job_transitions_total{from=\"")?;
            let (from, to) = labels.strip_suffix("\"}")?.split_once("\",to=\"")?;
            Some((format!("{from}->{to}"), count.parse().unwrap()))
        });
        steps.filter(|(_, count)| *count > 0).collect()
    }

    pub(crate) fn is_synced_now(&self) -> bool {
        assert!(!self.task.is_finished(), "the mirror ended");
        self.store.freshness().is_synced()
    }

    pub(crate) async fn is_synced(&self) {
        eventually(LIMIT, "the mirror is synced", async || self.is_synced_now()).await;
    }

    /// Waits until the image was compared with the tree as it is now. The second check to begin has seen the first
    /// one's end.
    pub(crate) async fn is_compared_again(&self) {
        let before = self.walks("drift_check");
        eventually(LIMIT, "two more drift checks", async || self.walks("drift_check") >= before + 3).await;
    }

    /// Waits until it says the same as the tree that `client` reads, which has come to rest.
    pub(crate) async fn equals(&self, client: &Client) -> Facts {
        self.equals_within(SETTLES, client, &BTreeSet::new()).await
    }

    pub(crate) async fn equals_within(&self, limit: Duration, client: &Client, closed: &BTreeSet<String>) -> Facts {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            // Anew each time: the locks of a session that was closed may be gone a moment later.
            let tree = read_tree(client, "/", &[]).await;
            let (expected, differing) = self.compared(&tree, closed);
            if differing.is_empty() && self.store.freshness().is_synced() {
                assert!(!self.task.is_finished(), "the mirror ended");
                return expected;
            }
            if tokio::time::Instant::now() > deadline {
                let shown: Vec<_> = differing.iter().take(20).collect();
                panic!(
                    "{} of {} facts differ (thing, expected, said), freshness {:?}: {shown:#?}",
                    differing.len(),
                    expected.len(),
                    self.store.freshness()
                );
            }
            // Many in a row, since one is soon seen, and a comparison takes long.
            for _ in 0..20 {
                if !self.clock_seems_behind() {
                    break;
                }
                let (data, _) = client.get_data("/").await.unwrap();
                client.set_data("/", &data, None).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether all that was seen yet came late, as beside other programs: then the servers' clock seems to be behind.
    fn clock_seems_behind(&self) -> bool {
        let clock = self.store.freshness().clock;
        !clock.is_measured && clock.ahead_ms.is_some_and(|ahead_ms| ahead_ms != 0)
    }

    /// What there is to say of a tree, and where the mirror says something else.
    pub(crate) fn compared(&self, tree: &Tree, closed: &BTreeSet<String>) -> (Facts, Vec<Difference>) {
        // With everything young, and with half of it older than a minute; nothing is later than now.
        let now = Timestamp::now();
        for now in [now, now.max(middle(tree) + AGE_BOUNDS[0])] {
            let said = facts::of_store(&self.store, now, SPACE).unwrap_or_default();
            let expected = oracle::of_tree(tree, closed, now, SPACE);
            let differing = differences(&expected, &said);
            if !differing.is_empty() {
                return (expected, differing);
            }
        }
        (oracle::of_tree(tree, closed, Timestamp::now(), SPACE), Vec::new())
    }

    /// Checks the age bands, with each of their bounds in the midst of all ages. The mirror equals the tree.
    pub(crate) async fn ages_are_right(&self, client: &Client) {
        let tree = read_tree(client, "/", &[]).await;
        for bound in AGE_BOUNDS {
            let now = middle(&tree) + bound;
            let said = facts::of_store(&self.store, now, SPACE).unwrap();
            let expected = oracle::of_tree(&tree, &BTreeSet::new(), now, SPACE);
            assert_eq!(differences(&expected, &said), [], "with ages around {bound:?}");
        }
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(LIMIT, self.task).await.unwrap().unwrap();
    }
}

/// An instant before which about half of what is in the tree was changed.
fn middle(tree: &Tree) -> Timestamp {
    let mut times: Vec<_> = tree.values().map(|(_, stat)| stat.mtime).filter(|mtime| *mtime > 0).collect();
    times.sort_unstable();
    Timestamp::from_millisecond(times.get(times.len() / 2).copied().unwrap_or_default()).unwrap()
}
