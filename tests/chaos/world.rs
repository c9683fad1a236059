//! A cluster, its daemons, a mirror that is looked at from within, and the program, which is looked at from outside.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::state::State;
use queuekeeper_zookeeper::Config;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::daemons::{CHROOT, Daemons};
use super::program::Program;
use super::samples::{Holds, Samples};
use super::sentry::Sentry;
use crate::mirror::harness::{Mirror, config};
use queuekeeper_testkit::tree::{Tree, read_tree};

/// How long it may take until all is as it should be again, on however busy a machine. The goal is two seconds, and
/// how often it was reached is printed at the end.
const LIMIT: Duration = Duration::from_mins(5);

/// How much more memory it may hold in the end: what an allocator keeps, and what 8 remembered steps of a job take.
const SLACK_BYTES: u64 = 24 << 20;

/// A number that whoever starts the test has set.
pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) daemons: Daemons,
    pub(super) program: Program,
    pub(super) rng: StdRng,
    pub(super) sentry: Sentry,
    /// Recoveries while a server was still away.
    pub(super) early: Vec<Recovery>,
    mirror: Mirror,
    base: Holds,
}

/// How long it took after an episode until the mirror said what the tree says, and until the program did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub(super) mirror: Duration,
    pub(super) program: Duration,
}

impl World {
    pub(super) async fn start(members: usize, seed: u64) -> Self {
        let cluster = Cluster::start(members).await;
        let rng = StdRng::seed_from_u64(seed);
        let address = format!("{}{CHROOT}", cluster.through_proxies());
        let session = Config { session_timeout: Duration::from_secs(4), ..config(&address) };
        // Without drift checks: nothing but walks and events may repair it.
        let mirror = Mirror::with(session, None);
        let program = Program::start(address);
        let base = Holds { descriptors: 0, tasks: 0, threads: 0, resident_bytes: 0 };
        let daemons = Daemons::new(&cluster).await;
        let sentry = Sentry::watch(&program.address());
        let mut world = Self { cluster, daemons, program, rng, sentry, early: Vec::new(), mirror, base };
        // What is there when they begin, they do not count.
        world.program_is_ready().await;
        world.mirror.is_synced().await;
        world.daemons.build(&world.cluster).await;
        world.comes_right("the start", Instant::now()).await;
        world.base = world.held_at_most().await;
        world
    }

    /// The most that it holds within two seconds. At a single moment, one of its connections may just be made again.
    async fn held_at_most(&mut self) -> Holds {
        let mut most = self.samples().await.holds();
        for _ in 0..20 {
            sleep(Duration::from_millis(100)).await;
            most = most.or_more(self.samples().await.holds());
        }
        most
    }

    async fn samples(&mut self) -> Samples {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self.program.samples().await {
                Some(samples) => return samples,
                None => assert!(Instant::now() < deadline, "it does not listen: {}", self.program.log()),
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the program has walked the tree.
    pub(super) async fn program_is_ready(&mut self) {
        let deadline = Instant::now() + LIMIT;
        while !matches!(self.program.get("/-/ready").await, Some((200, _))) {
            assert!(Instant::now() < deadline, "it is not ready: {}", self.program.log());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until both have counted what was done and no more, and say where all jobs are; then both must say all that
    /// a plain reading of the tree says, which has come to rest. From then on each job may move again.
    pub(super) async fn comes_right(&mut self, after: &str, since: Instant) -> Recovery {
        let (mut mirror, mut program) = (None, None);
        while mirror.is_none() || program.is_none() {
            let (in_mirror, in_program) = (self.wrong_in_mirror(), self.wrong_in_program().await);
            if in_mirror.is_none() {
                mirror = mirror.or(Some(since.elapsed()));
            }
            if in_program.is_none() {
                program = program.or(Some(since.elapsed()));
            }
            assert!(
                since.elapsed() < LIMIT,
                "after {after}: mirror {in_mirror:?}, program {in_program:?}; {}",
                self.program.log()
            );
            sleep(Duration::from_millis(20)).await;
        }
        let client = self.cluster.connect(CHROOT).await;
        // What came right just in time must still show the clock: see below.
        let counted = Instant::now();
        let tree = loop {
            client.sync("/").await.unwrap();
            let tree = read_tree(&client, "/", &[]).await;
            let (_, differing) = self.mirror.compared(&tree, &BTreeSet::new());
            if differing.is_empty() {
                break tree;
            }
            let shown = &differing[..differing.len().min(20)];
            assert!(counted.elapsed() < LIMIT, "after {after} these differ (thing, expected, said): {shown:#?}");
            // Where the machine was too busy for any change to be seen in time, the servers' clock seems to be behind
            // ours. One that is seen in time shows that it is not.
            client.set_data("/jobs", b"", None).await.unwrap();
            sleep(Duration::from_millis(20)).await;
        };
        self.jobs_are(&tree).await;
        self.sentry.has_seen_nothing_untrue(after);
        self.sentry.excuse(false);
        self.daemons.turn(client, &mut self.rng);
        Recovery { mirror: mirror.unwrap(), program: program.unwrap() }
    }

    fn wrong_in_mirror(&self) -> Option<String> {
        if !self.mirror.is_synced_now() {
            return Some(format!("{:?}", self.mirror.store.freshness()));
        }
        let Some(summary) = self.mirror.store.summary(Timestamp::now(), None) else {
            return Some("there is no image".to_owned());
        };
        let jobs = summary.jobs.iter().filter(|(_, figures)| figures.count > 0);
        let shown: BTreeMap<String, u64> =
            jobs.map(|(state, figures)| (state.map_or("other", State::label).to_owned(), figures.count)).collect();
        let states = self.daemons.states();
        if shown != states {
            return Some(format!("{shown:?} of {states:?}"));
        }
        let (counted, made) = (self.mirror.steps(), &self.daemons.steps);
        (counted != *made).then(|| format!("{counted:?} is counted of {made:?}"))
    }

    async fn wrong_in_program(&mut self) -> Option<String> {
        let states = self.daemons.states();
        let Some(samples) = self.program.samples().await else { return Some("it does not listen".to_owned()) };
        for figure in ["queuekeeper_zookeeper_connected", "queuekeeper_mirror_synced"] {
            if samples.count(figure) != 1 {
                return Some(format!("{figure} is not 1"));
            }
        }
        assert_eq!(samples.count("queuekeeper_mirror_drift_total"), 0, "what events should have brought and did not");
        let shown: BTreeMap<String, u64> = samples
            .all("merritt_jobs")
            .map(|(labels, count)| (labels.split('"').nth(1).unwrap_or_default().to_owned(), count))
            .collect();
        if shown != states {
            return Some(format!("{shown:?} of {states:?}"));
        }
        let (counted, made) = (samples.steps(), self.program.counts_of(&self.daemons.steps));
        (counted != made).then(|| format!("{counted:?} is counted of {made:?}"))
    }

    /// The API shows every job as the tree has it.
    async fn jobs_are(&mut self, tree: &Tree) {
        let mut expected = BTreeMap::new();
        for (path, (data, stat)) in tree {
            if let Some(job) = path.strip_prefix("/jobs/").and_then(|path| path.strip_suffix("/status")) {
                expected.insert(job.to_owned(), (state_of(data), stat.version));
            }
        }
        let (mut shown, mut cursor) = (BTreeMap::new(), String::new());
        loop {
            let (code, body) = self.program.get(&format!("/api/v1/jobs?limit=500{cursor}")).await.unwrap();
            assert_eq!(code, 200, "{body}");
            let list: Value = serde_json::from_str(&body).unwrap();
            for job in list["items"].as_array().unwrap() {
                let text = |name: &str| job[name].as_str().unwrap().to_owned();
                let version = i32::try_from(job["status_version"].as_i64().unwrap()).unwrap();
                shown.insert(text("id"), (text("state"), version));
            }
            match list["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(shown, expected);
    }

    /// Neither descriptors nor tasks are left over; how many threads wait for work is the runtime's affair.
    pub(super) async fn holds_no_more(&mut self, after: &str) -> Holds {
        let deadline = Instant::now() + LIMIT;
        loop {
            let holds = self.samples().await.holds();
            if holds.descriptors <= self.base.descriptors
                && holds.tasks <= self.base.tasks
                && holds.resident_bytes <= self.base.resident_bytes + SLACK_BYTES
            {
                return holds;
            }
            assert!(Instant::now() < deadline, "after {after} it holds {holds:?}, and at first {:?}", self.base);
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// From now on another client has a connection to the program, too, as Prometheus keeps one.
    pub(super) fn is_visited(&mut self) {
        self.base.descriptors += 1;
        self.base.tasks += 1;
    }

    /// Waits until the program has been looked at more often than that.
    pub(super) async fn is_looked_at_after(&self, looks: u64) {
        let deadline = Instant::now() + LIMIT;
        while self.looks() <= looks {
            assert!(Instant::now() < deadline, "nobody looks at the program");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// How often the program was looked at while all this happened, and said nothing that was not so.
    pub(super) fn looks(&self) -> u64 {
        self.sentry.has_seen_nothing_untrue("the end")
    }

    pub(super) fn base(&self) -> Holds {
        self.base
    }
}

fn state_of(status: &[u8]) -> String {
    let status: Value = serde_json::from_slice(status).unwrap();
    status["status"].as_str().unwrap().to_lowercase()
}
