//! Java's daemons and admin's tool on one tree with ours: who can be exchanged alone, and what is deleted under our
//! workers.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use queuekeeper_ingest::daemon::{Daemon, Exchange};
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::queue::{JOB_STATES, PERSISTENT};
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use uuid::Uuid;

use super::contents::manifest;
use super::java::{Java, JavaJob};
use super::settings::{only, quick};
use super::world::{SESSION, World};

const LIMIT: Duration = Duration::from_mins(3);

/// Those that can be exchanged alone, and which step of a job they are.
fn alone() -> Vec<(Daemon, Option<(&'static str, &'static str)>)> {
    let all = Daemon::ALL.into_iter().filter(|daemon| daemon.spec().exchange == Exchange::Alone);
    let step = |state: JobState| (state.name(), state.success().unwrap().name());
    let alone: Vec<_> = all.map(|daemon| (daemon, daemon.state().map(step))).collect();
    assert!(alone.len() >= 5, "{alone:?}");
    alone
}

/// A queue of its own on a server, and a session of Java's on it.
async fn both(server: &Arc<PrivateServer>, name: &str) -> (World, Java) {
    let root = connect(&server.connect_string()).await;
    let chroot = format!("/{name}");
    root.create(&chroot, b"", &PERSISTENT).await.unwrap();
    let world = World::on(Arc::clone(server), &chroot, quick()).await;
    (world, Java(connect(&format!("{}{chroot}", server.connect_string())).await))
}

async fn server() -> Arc<PrivateServer> {
    Arc::new(PrivateServer::start(Options::default()).await.unwrap())
}

/// Lets Java's stand-in for a daemon poll until a batch is in a state.
async fn poll_until(java: &Java, daemon: Daemon, step: Option<(&str, &str)>, batch: &str, state: &str) {
    eventually(LIMIT, &format!("{batch} is {state} with Java's {daemon}"), async || {
        match step {
            Some((from, to)) => while java.step(from, to).await {},
            None if daemon == Daemon::Report || daemon == Daemon::UpdateReport => {
                java.report(daemon == Daemon::UpdateReport).await;
            }
            None => {}
        }
        java.load_batch(batch).await == state
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_daemon_that_can_be_exchanged_alone_may_be_javas() {
    let server = server().await;
    for (daemon, step) in alone() {
        let (world, java) = both(&server, daemon.name()).await;
        world.origin.serve("/there", "content");
        let row = |path: &str| format!("{} | | | 7 | | {}.txt", world.origin.url(path), &path[1..]);
        world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, ["/there", "/later"].map(row)));
        let all: Vec<_> = Daemon::ALL.into_iter().filter(|other| *other != daemon).collect();
        let ours = world.start_anew(only(&all, quick()), SESSION).await;
        let (batch, _) = world
            .deposit(json!({"type": "single-file-batch-manifest", "filename": "all.checkm",
                            "payload_url": world.origin.url("/all.checkm")}))
            .await;
        let batch = batch.to_string();
        poll_until(&java, daemon, step, &batch, "Failed").await;
        let failed = java.children(&format!("/batches/{batch}/states/batch-failed")).await;
        assert_eq!(failed.len(), 1, "{daemon}");
        let job = java.load_job(&failed[0]).await.unwrap();
        assert!(job.status["message"].as_str().unwrap().contains("404"), "{daemon}: {job:?}");

        // The admin's tool resumes what failed, and has it reported again.
        world.origin.serve("/later", "content");
        java.resume(&failed[0], "Estimating").await;
        java.set_batch(&batch, "UpdateReporting").await;
        poll_until(&java, daemon, step, &batch, "Completed").await;
        ours.stop().await;
        let jobs = java.children(&format!("/batches/{batch}/states/batch-completed")).await;
        assert_eq!(jobs.len(), 2, "{daemon}");
        for id in jobs {
            let job = java.load_job(&id).await.unwrap();
            assert_eq!((job.state(), job.space), ("Completed", 7), "{daemon}: {job:?}");
            world.check_object(job.identifiers["primary_id"].as_str().unwrap(), 1).await;
            assert_eq!(java.children(&format!("/jobs/{id}")).await.iter().filter(|name| *name == "lock").count(), 0);
        }
        assert_eq!(world.sql("SELECT COUNT(*) FROM versions"), [json!([2])], "{daemon}");
        assert_eq!(java.children("/queuekeeper/held").await, Vec::<String>::new(), "{daemon}");
    }
}

/// Brings a job by Java's daemons to a state that it has not passed yet.
async fn bring(java: &Java, job: &JavaJob, to: &str) {
    while let state = java.load_job(&job.id).await.unwrap().state().to_owned()
        && state != to
    {
        // They are listed in the order in which a job passes them.
        let at = JOB_STATES.iter().position(|known| *known == state).unwrap();
        assert!(java.step(JOB_STATES[at], JOB_STATES[at + 1]).await, "{}: {state}", job.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_daemon_that_can_be_exchanged_alone_may_be_ours_among_javas() {
    let server = server().await;
    for (daemon, step) in alone() {
        let (world, java) = both(&server, daemon.name()).await;
        world.origin.serve("/there", "content");
        // While Java creates batch and job znode after znode, ours are looking.
        let ours = world.start_anew(only(&[daemon], quick()), SESSION).await;
        let uuid = format!("bid-{}", Uuid::new_v4());
        let configuration = json!({
            "batchID": uuid, "jobID": format!("jid-{}", Uuid::new_v4()), "profile": "demo", "type": "file",
            "submitter": "tester/A Tester", "submissionDate": "2026-03-02T10:15:40-08:00", "filename": "there",
            "payload_url": world.origin.url("/there"), "update": false, "responseForm": "xml",
        });
        let job = java.create_job(&uuid, &configuration).await;
        if let Some((from, to)) = step {
            bring(&java, &job, from).await;
            eventually(LIMIT, &format!("{daemon} takes it on"), async || {
                java.load_job(&job.id).await.unwrap().state() == to
            })
            .await;
            let space = java.load_job(&job.id).await.unwrap().space;
            assert!(daemon != Daemon::Estimating || space == 7, "{space}");
            bring(&java, &job, "Completed").await;
            assert!(java.report(false).await, "{daemon}");
        } else {
            bring(&java, &job, "Storing").await;
            let mut failing = java.acquire("Storing").await.unwrap();
            java.set_state(&mut failing, "Failed", "a file differs from its digest").await;
            java.unlock(&format!("/jobs/{}", job.id)).await;
            let is_again = daemon == Daemon::UpdateReport;
            if is_again {
                assert!(java.report(false).await);
            } else {
                poll_until(&java, Daemon::Batch, None, &job.batch, "Failed").await;
            }
            java.resume(&job.id, "Storing").await;
            java.set_batch(&job.batch, "UpdateReporting").await;
            bring(&java, &job, "Completed").await;
            if !is_again {
                assert!(java.report(true).await);
            }
        }
        poll_until(&java, Daemon::Batch, None, &job.batch, "Completed").await;
        let last = java.load_job(&job.id).await.unwrap();
        assert_eq!(last.status["last_successful_status"], "Notify", "{daemon}: {last:?}");
        assert_eq!(last.configuration, configuration, "{daemon}");
        assert_eq!(java.children("/jobs/states/completed").await, [format!("{:02}-{}", last.priority, job.id)]);
        ours.stop().await;
        assert!(!java.children(&format!("/jobs/{}", job.id)).await.contains(&"lock".to_owned()), "{daemon}");
    }
}

/// The warnings of our daemons, a line each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct FieldText(String);

impl Visit for FieldText {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN && metadata.target().starts_with("queuekeeper")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = FieldText(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// How long a file takes of which something is deleted while it is on its way, in seconds: a busy machine finds two of
/// them at work one after the other.
const LONG: u32 = 7;

/// Deposits so many files that take about so many seconds each.
async fn deposit_slow(
    world: &World,
    name: &str,
    files: usize,
    seconds: u32,
) -> (queuekeeper_queue::id::BatchId, String) {
    // They come in seven pieces.
    let slow = OriginFault::Slow(Duration::from_secs(1) * seconds / 7);
    let path = |file| format!("/{name}-{file}");
    for file in 0..files {
        world.origin.serve(&path(file), vec![b'x'; 100_000]);
        world.origin.fail(&path(file), std::iter::repeat_n(slow.clone(), 9));
    }
    let rows = (0..files).map(|file| format!("{} | | | 100000 | | {name}-{file}", world.origin.url(&path(file))));
    world.origin.serve(&format!("/{name}"), manifest(ManifestProfile::SingleFileBatch, rows));
    let url = world.origin.url(&format!("/{name}"));
    world.deposit(json!({"type": "single-file-batch-manifest", "filename": name, "payload_url": url})).await
}

/// A job of a batch that one of our workers is downloading, and that is none of these.
async fn at_work(java: &Java, batch: &str, but: &[String]) -> String {
    eventually_some(LIMIT, "a job is being downloaded", async || {
        for id in java.children(&format!("/batches/{batch}/states/batch-processing")).await {
            let is_locked = java.text(&format!("/jobs/{id}/lock")).await.is_some();
            let status = java.text(&format!("/jobs/{id}/status")).await.unwrap_or_default();
            if is_locked && status.contains("\"Downloading\"") && !but.contains(&id) {
                return Some(id);
            }
        }
        None
    })
    .await
}

/// In one thread, where what is logged can be read.
#[tokio::test]
async fn what_an_admin_deletes_under_our_workers_costs_one_line_each_and_no_worker() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let server = server().await;
    let (world, java) = both(&server, "admin").await;
    let mut settings: Settings = quick();
    settings.workers.insert(Daemon::Downloading, 2);
    let services = super::world::services(world.directory.path(), settings).await;
    let ours = world.start_with(Arc::clone(&services), SESSION);
    let (first, _) = deposit_slow(&world, "first", 4, LONG).await;
    let unlocked = at_work(&java, &first.to_string(), &[]).await;
    java.unlock(&format!("/jobs/{unlocked}")).await;
    let gone = at_work(&java, &first.to_string(), std::slice::from_ref(&unlocked)).await;
    java.delete_job(&gone).await;
    let (state, report) = world.ended_within(LIMIT, first).await;
    assert_eq!((state, report.completed.len(), report.len()), (BatchState::Completed, 3, 3));

    let (second, uuid) = deposit_slow(&world, "second", 2, LONG).await;
    let under = at_work(&java, &second.to_string(), &[]).await;
    let other = at_work(&java, &second.to_string(), std::slice::from_ref(&under)).await;
    java.delete_batch(&second.to_string(), &uuid).await;

    // There are still two workers, each of which takes jobs.
    let (third, _) = deposit_slow(&world, "third", 4, 2).await;
    let one = at_work(&java, &third.to_string(), &[]).await;
    at_work(&java, &third.to_string(), &[one]).await;
    let (state, report) = world.ended_within(LIMIT, third).await;
    assert_eq!((state, report.completed.len(), report.len()), (BatchState::Completed, 4, 4));
    eventually(LIMIT, "nothing is held", async || java.children("/queuekeeper/held").await.is_empty()).await;
    ours.stop().await;

    // Nothing of what was deleted was written again, and nothing was done twice.
    let jobs = java.children("/jobs").await;
    assert_eq!(jobs.len(), 7 + 1, "{jobs:?}");
    for job in jobs.iter().filter(|name| *name != "states") {
        let job = java.load_job(job).await.unwrap();
        world.check_object(job.identifiers["primary_id"].as_str().unwrap(), 1).await;
    }
    for state in java.children("/jobs/states").await {
        let entries = java.children(&format!("/jobs/states/{state}")).await;
        assert_eq!(entries.len(), if state == "completed" { 7 } else { 0 }, "{state}: {entries:?}");
    }
    assert_eq!(java.children("/batches").await, [first.to_string(), third.to_string()]);
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(DISTINCT job) FROM versions"), [json!([7, 7])]);
    let mut registry = Registry::default();
    services.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains("merritt_daemon_workers_busy{daemon=\"downloading\"} 0\n"), "{text}");

    let log = log.0.lock().clone();
    let stopped: Vec<_> = log.iter().filter(|line| line.contains("stopped working on a job")).collect();
    assert_eq!(stopped.len(), 4, "{log:#?}");
    for job in [&unlocked, &gone, &under, &other] {
        assert_eq!(log.iter().filter(|line| line.contains(job)).count(), 1, "{job}: {log:#?}");
        assert!(stopped.iter().any(|line| line.contains(job)), "{job}: {log:#?}");
    }
}
