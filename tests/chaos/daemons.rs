//! Daemons that lead healthy jobs, one transaction a step, and know exactly what they did, however often the connection
//! is lost in the middle of it.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use queuekeeper_queue::state::{JobState, State};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use zookeeper_client::MultiWriteError::{OperationFailed, RequestFailed};
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::cluster::{Cluster, LIMIT, connect};

/// How many jobs there are at the least.
const JOBS: usize = 120;

const BATCHES: u32 = 3;

/// How many steps are on their way at once.
const IN_FLIGHT: usize = 32;

/// Where the queue is.
pub(super) const CHROOT: &str = "/queue";

/// How often each step of a job was made, as `from->to`.
pub(super) type Steps = BTreeMap<String, u64>;

enum Write {
    Create(String, String),
    Set(String, String, i32),
    Delete(String),
}

#[derive(Clone, Copy)]
struct Job {
    state: JobState,
    version: i32,
}

pub(super) struct Daemons {
    client: Client,
    address: String,
    jobs: BTreeMap<u32, Job>,
    next: u32,
    pub(super) steps: Steps,
    /// Those that can still be moved in this episode: none moves twice, so that none of its steps can be missed.
    unmoved: Vec<u32>,
}

fn status(state: JobState) -> String {
    format!(r#"{{"status":"{}","last_successful_status":null,"retry_count":0,"message":"Success"}}"#, state.name())
}

fn outcome(state: JobState) -> &'static str {
    if state == JobState::Completed { "batch-completed" } else { "batch-processing" }
}

impl Job {
    fn step(self, id: u32) -> (Vec<Write>, Option<JobState>) {
        let (jid, batch) = (format!("jid{id:010}"), format!("/batches/bid{:010}", id % BATCHES));
        let job = format!("/jobs/{jid}");
        let entry = |state: JobState| format!("/jobs/states/{}/05-{jid}", state.label());
        let reference = |state| format!("{batch}/states/{}/{jid}", outcome(state));
        let old = [Write::Delete(entry(self.state)), Write::Delete(reference(self.state))].into_iter();
        let Some(next) = self.state.success() else {
            let nodes = ["bid", "configuration", "priority", "space_needed", "identifiers", "status"];
            let nodes = nodes.map(|node| Write::Delete(format!("{job}/{node}")));
            return (nodes.into_iter().chain([Write::Delete(job)]).chain(old).collect(), None);
        };
        let new = [entry(next), reference(next)].map(|path| Write::Create(path, String::new()));
        let set = Write::Set(format!("{job}/status"), status(next), self.version);
        ([set].into_iter().chain(old).chain(new).collect(), Some(next))
    }

    /// As the daemons create it, pending.
    fn creation(id: u32) -> Vec<Write> {
        let (jid, batch) = (format!("jid{id:010}"), format!("bid{:010}", id % BATCHES));
        let node = |name: &str, data: String| Write::Create(format!("/jobs/{jid}{name}"), data);
        vec![
            node("", String::new()),
            node("/bid", batch.clone()),
            node("/configuration", r#"{"profile":"demo"}"#.to_owned()),
            node("/priority", "5".to_owned()),
            node("/space_needed", "0".to_owned()),
            node("/identifiers", format!(r#"{{"primary_id":"ark:/99999/{id}"}}"#)),
            node("/status", status(JobState::Pending)),
            Write::Create(format!("/jobs/states/pending/05-{jid}"), String::new()),
            Write::Create(format!("/batches/{batch}/states/batch-processing/{jid}"), String::new()),
        ]
    }
}

impl Daemons {
    /// Makes the chroot and nothing in it.
    pub(super) async fn new(cluster: &Cluster) -> Self {
        let client = chroot(cluster).await;
        Self {
            client,
            address: cluster.address(CHROOT),
            jobs: BTreeMap::new(),
            next: 1,
            steps: Steps::new(),
            unmoved: Vec::new(),
        }
    }

    fn count(&mut self, from: &str, to: &str) {
        *self.steps.entry(format!("{from}->{to}")).or_default() += 1;
    }

    /// Makes folders, batches and jobs.
    pub(super) async fn build(&mut self, cluster: &Cluster) {
        self.client = chroot(cluster).await;
        let folders = ["/batches", "/batch-uuids", "/jobs", "/jobs/states", "/access", "/locks"].map(str::to_owned);
        let states = JobState::ALL.iter().map(|state| format!("/jobs/states/{}", state.label()));
        let folder = |path| Write::Create(path, String::new());
        let mut writes: Vec<Write> = folders.into_iter().chain(states).map(folder).collect();
        for batch in 0..BATCHES {
            let bid = format!("/batches/bid{batch:010}");
            writes.extend([
                Write::Create(bid.clone(), String::new()),
                Write::Create(format!("{bid}/submission"), format!(r#"{{"batchID":"uuid-{batch}","profile":"demo"}}"#)),
                Write::Create(format!("{bid}/status"), r#"{"status":"Reporting","message":""}"#.to_owned()),
                Write::Create(format!("{bid}/states"), String::new()),
                Write::Create(format!("/batch-uuids/uuid-{batch}"), format!("bid{batch:010}")),
            ]);
            let outcomes = ["processing", "failed", "completed", "deleted"];
            writes.extend(outcomes.map(|outcome| folder(format!("{bid}/states/batch-{outcome}"))));
        }
        self.commit(&writes).await;
        self.submit(JOBS).await;
    }

    /// Creates so many jobs.
    pub(super) async fn submit(&mut self, count: usize) {
        let ids: Vec<u32> = (self.next..).take(count).collect();
        let creations = ids.iter().map(|id| Job::creation(*id));
        stream::iter(creations).for_each_concurrent(IN_FLIGHT, async |writes| self.commit(&writes).await).await;
        self.next += u32::try_from(count).unwrap();
        for id in ids {
            self.count("none", "pending");
            self.jobs.insert(id, Job { state: JobState::Pending, version: 0 });
        }
    }

    /// From now on each job may move again: the mirror has seen all that was done. The daemons' own session may have
    /// been lost in what happened, so they go on with another.
    pub(super) fn turn(&mut self, client: Client, rng: &mut StdRng) {
        self.client = client;
        self.unmoved = self.jobs.keys().copied().collect();
        self.unmoved.shuffle(rng);
    }

    /// Takes so many jobs a step, and submits as many new ones as are gone.
    pub(super) async fn work(&mut self, count: usize) {
        let ids = self.unmoved.split_off(self.unmoved.len().saturating_sub(count));
        let steps: Vec<_> = ids.iter().map(|id| (*id, self.jobs[id].step(*id))).collect();
        let made = steps.iter().map(|(_, (writes, _))| writes);
        stream::iter(made).for_each_concurrent(IN_FLIGHT, async |writes| self.commit(writes).await).await;
        for (id, (_, next)) in steps {
            let from = self.jobs[&id].state.label();
            self.count(from, next.map_or("none", State::label));
            match next {
                Some(state) => {
                    let version = self.jobs[&id].version + 1;
                    self.jobs.insert(id, Job { state, version });
                }
                None => {
                    self.jobs.remove(&id);
                }
            }
        }
        self.submit(JOBS.saturating_sub(self.jobs.len())).await;
    }

    /// Removes jobs until as few as usual are left.
    pub(super) async fn clear(&mut self) {
        let surplus: Vec<u32> = self.jobs.keys().rev().copied().take(self.jobs.len().saturating_sub(JOBS)).collect();
        let removals = surplus.iter().map(|id| {
            let job = self.jobs[id];
            let mut writes = Job { state: JobState::Completed, ..job }.step(*id).0;
            writes.truncate(7);
            let (jid, batch) = (format!("jid{id:010}"), id % BATCHES);
            writes.push(Write::Delete(format!("/jobs/states/{}/05-{jid}", job.state.label())));
            writes.push(Write::Delete(format!("/batches/bid{batch:010}/states/{}/{jid}", outcome(job.state))));
            writes
        });
        stream::iter(removals).for_each_concurrent(IN_FLIGHT, async |writes| self.commit(&writes).await).await;
        for id in surplus {
            let job = self.jobs.remove(&id).unwrap();
            self.count(job.state.label(), "none");
        }
    }

    /// How many jobs are in each state that has any.
    pub(super) fn states(&self) -> BTreeMap<String, u64> {
        let mut states = BTreeMap::new();
        for job in self.jobs.values() {
            *states.entry(job.state.label().to_owned()).or_default() += 1;
        }
        states
    }

    /// Whether there are more jobs than usual.
    pub(super) fn is_crowded(&self) -> bool {
        self.jobs.len() > JOBS
    }

    /// Everything was lost.
    pub(super) fn lost(&mut self) {
        for job in std::mem::take(&mut self.jobs).into_values() {
            self.count(job.state.label(), "none");
        }
        self.unmoved.clear();
    }

    /// Deletes the whole tree, leaves first.
    pub(super) async fn delete_tree(&mut self) {
        for path in ["/jobs", "/batches", "/batch-uuids", "/access", "/locks"] {
            delete(&self.client, path).await;
        }
        self.lost();
    }

    /// From the first id on again: what is built now are other jobs of the same names.
    pub(super) fn begin_again(&mut self) {
        self.next = 1;
    }

    /// Commits a transaction, and tries again where the connection was lost: whether it was done then is shown by the
    /// second attempt.
    async fn commit(&self, writes: &[Write]) {
        let mut client = self.client.clone();
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let deadline = tokio::time::Instant::now() + LIMIT;
        for attempt in 0.. {
            let mut writer = client.new_multi_writer();
            for write in writes {
                match write {
                    Write::Create(path, data) => writer.add_create(path, data.as_bytes(), &persistent).unwrap(),
                    Write::Set(path, data, version) => {
                        writer.add_set_data(path, data.as_bytes(), Some(*version)).unwrap();
                    }
                    Write::Delete(path) => writer.add_delete(path, None).unwrap(),
                }
            }
            match writer.commit().await {
                Ok(_) => return,
                // The first attempt was committed, and its answer lost.
                Err(OperationFailed { source: Error::NoNode | Error::NodeExists | Error::BadVersion, .. })
                    if attempt > 0 =>
                {
                    return;
                }
                Err(RequestFailed { .. }) if tokio::time::Instant::now() < deadline => {
                    client = connect(&self.address).await;
                }
                Err(error) => panic!("a daemon's transaction failed: {error:?}"),
            }
        }
    }
}

/// A client of the chroot, which is made if it is not there.
async fn chroot(cluster: &Cluster) -> Client {
    let root = cluster.connect("").await;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match root.create(CHROOT, b"", &persistent).await {
        Ok(_) | Err(Error::NodeExists) => {}
        Err(error) => panic!("cannot create {CHROOT}: {error}"),
    }
    cluster.connect(CHROOT).await
}

async fn delete(client: &Client, path: &str) {
    for child in client.list_children(path).await.unwrap_or_default() {
        Box::pin(delete(client, &format!("{path}/{child}"))).await;
    }
    match client.delete(path, None).await {
        Ok(()) | Err(Error::NoNode) => {}
        Err(error) => panic!("cannot delete {path}: {error}"),
    }
}
