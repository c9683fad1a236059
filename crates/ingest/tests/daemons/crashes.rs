//! Daemons that end at any instant.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::contents::{manifest, sha256, tar_gz, zip};
use super::settings::quick;
use super::world::World;

const JOBS: usize = 30;

const LIMIT: Duration = Duration::from_mins(5);

/// How often the daemons are ended, at most, before they may go on.
const CRASHES: u64 = 300;

/// Numbers that are the same for the same seed (Xorshift).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// Another sequence, by the same seed.
    pub(super) fn another(&self) -> Self {
        Self::new(self.0.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Sleeps for a time between two, in milliseconds.
    pub(super) async fn sleep(&mut self, between: Range<u64>) {
        let pause = between.start + self.below(between.end - between.start);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// What a variable of the environment says, or something else where it says nothing.
pub(super) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().unwrap())
}

impl World {
    pub(super) async fn deposit_rows(&self, name: &str, rows: usize) -> BatchId {
        self.deposit_rows_to("demo", name, rows).await
    }

    /// The same for another collection.
    pub(super) async fn deposit_rows_to(&self, profile: &str, name: &str, rows: usize) -> BatchId {
        self.origin.serve("/row", "content of a row");
        let path = format!("/{name}.checkm");
        let rows = (0..rows).map(|row| format!("{} | | | 16 | | {name}-{row}.txt", self.origin.url("/row")));
        self.origin.serve(&path, manifest(ManifestProfile::SingleFileBatch, rows));
        let say = json!({"profile": profile, "type": "single-file-batch-manifest", "filename": format!("{name}.checkm"),
                         "payload_url": self.origin.url(&path)});
        self.deposit(say).await.0
    }

    /// Checks that each job of a batch has an object of its own with one version, and is reported once.
    pub(super) async fn check_batch(&self, batch: BatchId, jobs: usize) -> BTreeSet<String> {
        let (state, report) = self.ended_within(LIMIT, batch).await;
        let counts = (state, report.completed.len(), report.len());
        if counts != (BatchState::Completed, jobs, jobs) {
            let mut ended = self.jobs(batch).await;
            ended.retain(|(state, _)| state != "Completed");
            panic!("{counts:?}: {ended:?}");
        }
        let (data, _) = self.queue.client().get_data(&format!("/batches/{batch}/status-report")).await.unwrap();
        let written: Value = serde_json::from_slice(&data).unwrap();
        let names: Vec<_> = report.completed.iter().map(ToString::to_string).collect();
        assert_eq!((&written["successful_jobs"], &written["failed_jobs"]), (&json!(names), &json!([])));
        let mut arks = BTreeSet::new();
        for job in report.completed {
            let ark = self.ark(job).await;
            self.check_object(&ark, 1).await;
            arks.insert(ark);
        }
        assert_eq!(arks.len(), jobs);
        arks
    }

    /// Checks that nothing is left of work that has ended.
    pub(super) async fn check_nothing_is_left(&self) {
        eventually(LIMIT, "no working file is left", async || self.left().is_empty()).await;
        for folder in ["expansions", "retry", "held"] {
            let path = format!("/queuekeeper/{folder}");
            eventually(LIMIT, &path, async || self.children(&path).await.is_empty()).await;
        }
        let grants = format!("/queuekeeper/space/{}", self.services.working.volume());
        eventually(LIMIT, "no grant is left", async || {
            self.queue.client().get_data(&grants).await.is_ok_and(|(data, _)| data == br#"{"grants":{}}"#)
        })
        .await;
        let storage = "/locks/storage";
        eventually(LIMIT, storage, async || self.children(storage).await.is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_whose_daemons_end_at_random_instants_are_completed_once() {
    let seed = number("SEED", 0x5eed);
    let world = World::with(quick()).await;
    let mut batches = vec![(world.deposit_rows("many", 12).await, 12)];
    world.origin.serve("/a.txt", "content");
    world.origin.serve("/a.zip", zip(&[("a.txt", "alpha"), ("b/c.txt", "gamma")]));
    world.origin.serve("/a.tar.gz", tar_gz(&[("x.txt", "xi"), ("y/z.txt", "zeta")]));
    let row = format!("{} | sha256 | {} | 7 | | in/a.txt", world.origin.url("/a.txt"), sha256("content"));
    world.origin.serve("/a.checkm", manifest(ManifestProfile::Ingest, [row]));
    let kinds = [("file", "a.txt"), ("container", "a.zip"), ("container", "a.tar.gz"), ("object-manifest", "a.checkm")];
    for at in 0..18 {
        let (kind, name) = kinds[at % kinds.len()];
        let url = world.origin.url(&format!("/{name}"));
        let say = json!({"type": kind, "filename": name, "payload_url": url, "localID": format!("crash-{at}")});
        batches.push((world.deposit(say).await.0, 1));
    }

    let (mut random, mut crashes) = (Random::new(seed), 0);
    while crashes < CRASHES && world.children("/jobs/states/completed").await.len() < JOBS {
        let daemons = world.start_anew(quick(), Duration::from_secs(1)).await;
        random.sleep(10..70).await;
        daemons.abort().await;
        crashes += 1;
    }
    assert!(crashes > 10, "seed {seed}: {crashes} crashes");
    let daemons = world.start_anew(quick(), Duration::from_secs(2)).await;
    let mut arks = BTreeSet::new();
    for (batch, jobs) in &batches {
        arks.extend(world.check_batch(*batch, *jobs).await);
    }
    assert_eq!(arks.len(), JOBS);
    world.check_nothing_is_left().await;
    daemons.stop().await;
}
