//! A queue for each test, and any number of queuekeepers that act on it.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use queuekeeper::actions::audit::{Audit, Destination, Record, Rotation};
use queuekeeper::actions::{self, Actions, Actor, Reason, Role, Source};
use queuekeeper::alerts::{self, Alerts, NotReceived, Received, Rules};
use queuekeeper::config::ConfigFile;
use queuekeeper::mirror::{self, MirrorStore, Writer};
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, JobChange, JobValue, NewJob, Queue};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::coordination::Coordination;
use queuekeeper_zookeeper::{PrivateServer, Sessions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

pub(crate) const LIMIT: Duration = Duration::from_mins(2);
pub(crate) const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// A queue below a chroot of its own.
pub(crate) struct World {
    pub(crate) queue: Queue,
    pub(crate) raw: Client,
    pub(crate) chroot: String,
    pub(crate) batch: BatchId,
}

/// A queuekeeper that acts, as a server does.
pub(crate) struct Keeper {
    pub(crate) alerts: Alerts,
    pub(crate) actions: Actions,
    pub(crate) store: MirrorStore,
    /// The working storage in bytes that a job may need without having to wait; the minimum stands for not measured.
    pub(crate) space: Arc<AtomicI64>,
    registry: Registry,
    audit: PathBuf,
    _folder: TempDir,
    shutdown: CancellationToken,
    tasks: Vec<AbortOnDropHandle<()>>,
    /// The task that executes decisions.
    acting: Option<AbortOnDropHandle<()>>,
}

fn config(address: &str, session_timeout: Duration) -> queuekeeper_zookeeper::Config {
    queuekeeper_zookeeper::Config { session_timeout, ..queuekeeper_zookeeper::Config::new(address.parse().unwrap()) }
}

/// Rules as the configuration file has them.
pub(crate) fn rules(yaml: &str) -> Rules {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yml");
    std::fs::write(&path, yaml).unwrap();
    ConfigFile::read(&path).unwrap_or_else(|error| panic!("{error}\n{yaml}")).rules().clone()
}

/// One rule that resumes failed jobs, with further keys.
pub(crate) fn resume(more: &str) -> Rules {
    rules(&format!(
        "alerts:\n  budget: {{items: 1000, per: 1h}}\n  rules:\n    - name: again\n      alert: MerrittJobsFailed\n      action: resume_jobs\n      {}\n",
        more.replace('\n', "\n      ")
    ))
}

impl World {
    /// An empty queue with one batch.
    pub(crate) async fn new() -> Self {
        Self::on(shared().await).await
    }

    /// The same on a server that is not shared with other tests.
    pub(crate) async fn on(server: &PrivateServer) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let chroot = format!("/r{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let client = connect(&server.connect_string()).await;
        client.create(&chroot, b"", &PERSISTENT).await.unwrap();
        let address = format!("{}{chroot}", server.connect_string());
        let raw = connect(&address).await;
        let queue = Queue::new(connect(&address).await).with_time_limit(LIMIT);
        let submission = json!({"batchID": "uuid-1", "profile": "demo"}).to_string();
        let batch = queue.create_batch(submission.as_bytes(), Timestamp::now()).await.unwrap();
        let (acquired, _) = queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
        queue.unlock(&acquired.unwrap().lock).await.unwrap();
        Self { queue, raw, chroot, batch }
    }

    /// New jobs of a collection, Pending.
    pub(crate) async fn jobs(&self, collection: &str, count: usize, space: u64) -> Vec<JobId> {
        let job = NewJob::new(json!({"profile": collection, "batchID": "uuid-1"}).to_string());
        let job = job.with(JobValue::SpaceNeeded(Some(space)));
        self.queue.create_jobs(self.batch, &vec![job; count], Timestamp::now()).await.unwrap()
    }

    /// Moves jobs to a state.
    pub(crate) async fn take(&self, jobs: &[JobId], path: &[JobState]) {
        for job in jobs {
            for state in path {
                self.queue.change_job(*job, &JobChange::to(*state), Timestamp::now()).await.unwrap();
            }
        }
    }

    pub(crate) async fn failed(&self, count: usize) -> Vec<JobId> {
        let jobs = self.jobs("demo", count, 0).await;
        self.take(&jobs, &[JobState::Failed]).await;
        jobs
    }

    pub(crate) async fn state(&self, job: JobId) -> JobState {
        self.queue.load_job(job).await.unwrap().state().unwrap()
    }

    /// How many of these jobs are in a state.
    pub(crate) async fn count(&self, jobs: &[JobId], state: JobState) -> usize {
        let mut count = 0;
        for job in jobs {
            count += usize::from(self.state(*job).await == state);
        }
        count
    }

    /// How often each job was resumed.
    pub(crate) async fn resumed(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for name in self.raw.list_children("/jobs").await.unwrap() {
            if let Ok((status, _)) = self.raw.get_data(&format!("/jobs/{name}/status")).await {
                let status: Value = serde_json::from_slice(&status).unwrap();
                counts.push(status["retry_count"].as_u64().unwrap());
            }
        }
        counts
    }

    pub(crate) fn address(&self, port: Option<u16>, server: &str) -> String {
        match port {
            Some(port) => format!("127.0.0.1:{port}{}", self.chroot),
            None => format!("{server}{}", self.chroot),
        }
    }

    /// The names of pending decisions.
    pub(crate) async fn pending(&self) -> Vec<String> {
        self.raw.list_children("/queuekeeper/pending").await.unwrap_or_default()
    }

    /// A queuekeeper on this queue.
    pub(crate) async fn keeper(&self, rules: Rules) -> Keeper {
        let address = self.address(None, &shared().await.connect_string());
        Keeper::start(&address, rules, Duration::from_secs(30)).await
    }

    /// A queuekeeper that accepts alerts and never executes decisions.
    pub(crate) async fn answering(&self, rules: Rules) -> Keeper {
        let mut keeper = self.keeper(rules).await;
        keeper.only_answers();
        keeper
    }
}

impl Keeper {
    /// Starts one and waits until it has a mirror of the queue.
    pub(crate) async fn start(address: &str, rules: Rules, session_timeout: Duration) -> Self {
        let connect = || config(address, session_timeout);
        let (writer, mut registry) = (Writer::new(), Registry::default());
        let (store, seen) = (writer.store(), mirror::Metrics::register(&mut registry));
        let shutdown = CancellationToken::new();
        let mirrored = mirror::run(Sessions::new(connect()), writer, seen, None, shutdown.clone());
        let folder = tempfile::tempdir().unwrap();
        let audit = folder.path().join("audit.jsonl");
        let trail = Audit::open(Destination::File(audit.clone(), Rotation::default())).unwrap();
        let counted = actions::Metrics::register(&mut registry);
        let (actions, actions_runner) = Actions::new(store.clone(), Limits::default(), trail, counted);
        let (coordination, keeper) = Coordination::new(Vec::new());
        let counted = alerts::Metrics::register(&mut registry);
        let space = Arc::new(AtomicI64::new(i64::MIN));
        let measured = Arc::clone(&space);
        let space_left = move || Some(measured.load(Ordering::Relaxed)).filter(|space| *space != i64::MIN);
        let alerts = Alerts::new(store.clone(), space_left, actions.clone(), coordination, rules, counted);
        let runner = alerts.runner();
        let requested = actions_runner.run(Sessions::new(connect()), shutdown.clone());
        let kept = keeper.run(Sessions::new(connect()), alerts.wanted(), shutdown.clone());
        let ran = runner.run(shutdown.clone());
        let tasks = vec![
            AbortOnDropHandle::new(tokio::spawn(async move { mirrored.await.unwrap() })),
            AbortOnDropHandle::new(tokio::spawn(async move { requested.await.unwrap() })),
            AbortOnDropHandle::new(tokio::spawn(async move { kept.await.unwrap() })),
        ];
        let acting = Some(AbortOnDropHandle::new(tokio::spawn(ran)));
        let keeper = Self { alerts, actions, store, space, registry, audit, _folder: folder, shutdown, tasks, acting };
        eventually(LIMIT, "the mirror follows the tree", async || keeper.store.freshness().is_synced()).await;
        keeper
    }

    /// It never executes decisions.
    pub(crate) fn only_answers(&mut self) {
        drop(self.acting.take());
    }

    /// Waits until it has read its own znodes, and, if requested, until it is the leader.
    pub(crate) async fn ready(&self, leads: bool) {
        eventually(LIMIT, "it looks after decisions", async || {
            let overview = self.alerts.overview(Timestamp::now());
            overview.read.is_some() && (!leads || overview.leads)
        })
        .await;
    }

    /// Waits until its mirror has this many jobs in a state.
    pub(crate) async fn sees(&self, state: JobState, count: u64) {
        eventually(LIMIT, "the jobs are in the mirror", async || {
            let summary = self.store.summary(Timestamp::now(), None);
            summary.is_some_and(|summary| summary.jobs.get(Some(state)).count == count)
        })
        .await;
    }

    pub(crate) async fn receive(&self, alerts: &[Value]) -> Result<Received, NotReceived> {
        self.alerts.receive(payload(alerts).as_bytes(), &caller(), Timestamp::now()).await
    }

    /// The same, retried while nothing can be decided, as by Alertmanager.
    pub(crate) async fn send(&self, alerts: &[Value]) -> Received {
        self.send_again_and_again(alerts).await.0
    }

    /// The same, and whether an earlier attempt may have been stored: its answer did not come in time.
    async fn send_again_and_again(&self, alerts: &[Value]) -> (Received, bool) {
        let mut may_be_stored = false;
        let received = eventually_some(LIMIT, "it can be decided", async || match self.receive(alerts).await {
            Ok(received) => Some(received),
            Err(NotReceived::NotSynced(_) | NotReceived::Full(_)) => None,
            Err(NotReceived::Unrecorded(_)) => {
                may_be_stored = true;
                None
            }
            Err(error) => panic!("{error}"),
        })
        .await;
        (received, may_be_stored)
    }

    /// The outcome of one alert by one rule.
    pub(crate) async fn outcome(&self, alert: Value) -> String {
        let (received, may_be_stored) = self.send_again_and_again(&[alert]).await;
        assert_eq!(received.decisions.len(), 1, "{received:?}");
        match received.decisions[0].outcome.as_str() {
            "duplicate" if may_be_stored => "accepted".to_owned(),
            outcome => outcome.to_owned(),
        }
    }

    /// The same after the rule's cooldown.
    pub(crate) async fn outcome_when_cool(&self, alert: Value) -> String {
        eventually_some(LIMIT, "the cooldown has passed", async || {
            let outcome = self.outcome(alert.clone()).await;
            Some(outcome).filter(|outcome| outcome != "cooldown" && outcome != "duplicate")
        })
        .await
    }

    /// Waits until no decision is pending.
    pub(crate) async fn settled(&self, world: &World) {
        self.settled_but(world, 0).await;
    }

    /// Waits until at most this many are pending.
    pub(crate) async fn settled_but(&self, world: &World, stay: usize) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let pending = world.pending().await;
            let Some(first) = pending.first().filter(|_| pending.len() > stay) else { return };
            if tokio::time::Instant::now() > deadline {
                let path = format!("/queuekeeper/pending/{first}");
                let data = world.raw.get_data(&path).await.map(|(data, _)| String::from_utf8_lossy(&data).into_owned());
                panic!(
                    "not everything is carried out: {pending:?}, {data:?}, {:#?}",
                    self.alerts.overview(Timestamp::now())
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// How many alerts had an outcome.
    pub(crate) fn counted(&self, outcome: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let name = format!("queuekeeper_alerts_total{{outcome=\"{outcome}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    /// Waits until so many alerts had an outcome: the znode of a decision is gone before its end is counted.
    pub(crate) async fn counts(&self, outcome: &str, count: u64) {
        eventually(LIMIT, "it is counted", async || self.counted(outcome) == count).await;
    }

    /// The value of a series, by its name and labels.
    pub(crate) fn series(&self, series: &str) -> Option<f64> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    /// The records of the audit trail.
    pub(crate) fn records(&self) -> Vec<Record> {
        [self.read(""), self.read(".alerts")].concat().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The text of the audit file, or of the one with that suffix.
    pub(crate) fn read(&self, ending: &str) -> String {
        std::fs::read_to_string(format!("{}{ending}", self.audit.display())).unwrap_or_default()
    }

    /// Puts a directory in the place of the audit file for alerts, or removes it.
    pub(crate) fn block_trail(&self, is_blocked: bool) {
        let path = format!("{}.alerts", self.audit.display());
        if is_blocked {
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(path).unwrap();
        } else {
            std::fs::remove_dir(path).unwrap();
        }
    }

    /// How many actions of a rule were executed.
    pub(crate) fn done(&self) -> usize {
        let records = self.records();
        let requested: Vec<_> = records
            .iter()
            .filter_map(|record| match record {
                Record::Requested { id, source, .. } if source == "alert" => Some(*id),
                _ => None,
            })
            .collect();
        let is_done = |record: &&Record| matches!(record, Record::Outcome { id, outcome, .. } if requested.contains(id) && outcome == "done");
        records.iter().filter(is_done).count()
    }

    /// Shuts it down as a signal does.
    pub(crate) async fn end(mut self) {
        self.shutdown.cancel();
        for task in self.tasks.drain(..).chain(self.acting.take()) {
            task.await.unwrap();
        }
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

pub(crate) fn operator() -> (Actor, Reason) {
    let actor = Actor { name: "oscar".to_owned(), role: Role::Operator, source: Source::Api, from: None };
    (actor, Reason::new("tried").unwrap())
}

fn caller() -> Actor {
    Actor { name: "alertmanager".to_owned(), role: Role::Alertmanager, source: Source::Alert, from: None }
}

pub(crate) fn payload(alerts: &[Value]) -> String {
    json!({"version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing", "receiver": "queuekeeper",
           "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://am", "alerts": alerts})
    .to_string()
}

/// An alert as sent by Alertmanager.
pub(crate) fn alert(status: &str, labels: &Value, fingerprint: &str, starts_at: &str) -> Value {
    json!({"status": status, "labels": labels, "annotations": {}, "startsAt": starts_at,
           "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://prometheus", "fingerprint": fingerprint})
}

/// The alert for failed jobs.
pub(crate) fn failed_jobs(fingerprint: &str) -> Value {
    let labels = json!({"alertname": "MerrittJobsFailed", "instance": "a", "severity": "warning"});
    alert("firing", &labels, fingerprint, "2026-11-21T10:00:00Z")
}

/// The alert for jobs that wait for space.
pub(crate) fn stuck(status: &str) -> Value {
    let labels = json!({"alertname": "MerrittProvisioningStuck", "cause": "waiting_for_space"});
    alert(status, &labels, "0123456789abcdef", "2026-11-21T10:00:00Z")
}
