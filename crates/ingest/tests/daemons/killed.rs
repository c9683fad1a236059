//! Daemons in a process of their own, which is killed behind each of its writes, or stopped in the middle of each for
//! longer than its session while another process takes over, or whose disk is full at each.
//!
//! What counts is the end: ZooKeeper, catalogue, objects, working storage and mails are compared with those of daemons
//! that nothing disturbed.
//!
//! `QUEUEKEEPER_TEST_KILLED=every` takes every write instead of some, which takes two hours on two cores, and as long
//! again with PostgreSQL and S3; `3/8` takes the third of each eight. `QUEUEKEEPER_TEST_KINDS=Batch,Parts` leaves out
//! the other kinds.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::engine;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_mail::settings::{MailSettings, Route};
use queuekeeper_testkit::s3::S3Server;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::traced::{self, Trace, Traced, WriteFault};
use queuekeeper_testkit::wait::eventually;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OnceCell, watch};
use zookeeper_client::{Acls, Client, CreateMode};

mod end;
mod kinds;
mod stopped;

use super::remote::Remote;
use super::settings::{delivering, quick};
use super::world::{World, services};
use end::End;
pub(super) use kinds::DepositKind;

/// What the child is to do: `KIND DIRECTORY ZOOKEEPER`.
const CHILD: &str = "QUEUEKEEPER_TEST_KILLED_CHILD";

/// Which writes are tried.
const WHICH: &str = "QUEUEKEEPER_TEST_KILLED";

/// Of which kinds, by name and with commas between; all where it is not set.
const KINDS: &str = "QUEUEKEEPER_TEST_KINDS";

/// How many writes of a kind are tried where nothing else is said. With PostgreSQL and S3, and of a stop, it is one,
/// and each time another one than these.
const SOME: usize = 2;

/// How many are tried at a time: most of it is waiting for the end of a session.
const AT_A_TIME: usize = 4;

const LIMIT: Duration = Duration::from_mins(5);

/// The shortest session that the server grants.
const SESSION: Duration = Duration::from_secs(1);

/// For how many writes a disk stays full.
const FULL: usize = 3;

/// Settings of the child: nothing waits longer than it must.
fn settings(kind: DepositKind, directory: &Path) -> Settings {
    let (short, route) = (Duration::from_millis(100), Route::Directory(directory.join("mails")));
    let mail = MailSettings { route, lease: SESSION, retry_first: short, retry_most: short, ..MailSettings::default() };
    let mut settings = Settings { mail, ..quick() };
    // Seldom, as what it writes moves the numbers of the other writes.
    settings.cleanup.every = short * 10;
    if kind == DepositKind::Access {
        settings = delivering(settings);
    }
    if kind == DepositKind::Parts {
        settings.most_jobs = 1;
    }
    if kind == DepositKind::Cleanup {
        let now = Duration::ZERO;
        settings.cleanup = CleanupSettings {
            after: now,
            share: 1.0,
            every: short,
            entries_after: now,
            directories_every: now,
            messages_after: now,
            objects_after: Duration::from_hours(24),
        };
    }
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by another test, in a process of its own"]
async fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    traced::show_writes();
    let [kind, directory, zookeeper] = task.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let directory = Path::new(directory);
    let services = services(directory, settings(DepositKind::named(kind), directory)).await;
    let zookeeper = Config { session_timeout: SESSION, ..Config::new(zookeeper.parse().unwrap()) };
    let (stop, stopping) = watch::channel(false);
    let daemons = tokio::spawn(engine::run(services, zookeeper, stopping));
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await.unwrap().unwrap();
    stop.send_replace(true);
    daemons.await.unwrap().unwrap();
}

/// The servers of all worlds of a test.
#[derive(Clone)]
struct Server {
    zookeeper: Arc<PrivateServer>,
    client: Client,
    /// Where objects are, and a database of PostgreSQL beside them; `None` for files.
    s3: Option<Arc<S3Server>>,
}

impl Server {
    async fn start() -> Self {
        let options = Options { tick: Duration::from_millis(250), ..Options::default() };
        let zookeeper = Arc::new(PrivateServer::start(options).await.unwrap());
        let client = connect(&zookeeper.connect_string()).await;
        Self { zookeeper, client, s3: None }
    }

    async fn with_remote() -> Self {
        let s3 = S3Server::start(queuekeeper_testkit::s3::Settings::default()).await.unwrap();
        Self { s3: Some(Arc::new(s3)), ..Self::start().await }
    }
}

/// A deposit of a kind, in a queue of its own.
struct Trial {
    world: World,
    kind: DepositKind,
    chroot: String,
}

impl Trial {
    async fn new(server: &Server, kind: DepositKind, name: &str) -> Self {
        let chroot = format!("/{name}");
        let anyone = CreateMode::Persistent.with_acls(Acls::anyone_all());
        server.client.create(&chroot, b"", &anyone).await.unwrap();
        let remote = |directory: &Path| server.s3.as_ref().map(|s3| Remote::new(s3, &name.to_lowercase(), directory));
        let mut world = World::build(Arc::clone(&server.zookeeper), &chroot, quick(), remote).await;
        kinds::set_up(&mut world, kind).await;
        // Nothing of the catalogue or the working storage is open but by the child.
        world.services.catalogue.close().await;
        Self { world, kind, chroot }
    }

    fn start(&self, fault: Option<WriteFault>) -> Traced {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "daemons::killed::child", "--ignored", "--quiet", "--test-threads", "1"]);
        let (directory, at) = (self.world.directory.path(), &self.chroot);
        let server = self.world.server.connect_string();
        command.env(CHILD, format!("{} {} {server}{at}", self.kind.name(), directory.display()));
        Traced::start(&command, directory.to_owned(), fault)
    }

    /// Runs a process until all is done, or it has ended.
    async fn run(&self, context: &str, fault: Option<WriteFault>) -> Trace {
        let process = self.start(fault);
        let began = Instant::now();
        while !process.has_ended() && !kinds::is_done(&self.world, self.kind).await {
            if began.elapsed() > LIMIT {
                let end = End::of(&self.world).await;
                panic!("{context}: it is not done: {end:#?}, {:#?}", process.stop().await);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        process.stop().await
    }

    /// Runs a process to its fault, and others until all is done; the answer is what the first one wrote, and the end.
    async fn end(&self, fault: Option<WriteFault>) -> (Trace, End) {
        let context = format!("{:?} {fault:?}", self.kind);
        let trace = match fault {
            Some(fault @ WriteFault::Stop(_)) => self.run_stopped(&context, fault).await,
            Some(WriteFault::Kill(_) | WriteFault::Full(..)) | None => self.run(&context, fault).await,
        };
        let mut last = trace.clone();
        let mut attempts = 0;
        while last.code != Some(0) {
            attempts += 1;
            assert!(attempts < 5, "{context}: {last:?}");
            if self.kind == DepositKind::Failure {
                // Nobody waits here for the lease of a process that is gone.
                self.world.sql("UPDATE outbox SET due = 0 WHERE kind = 'failed-callback' AND ended IS NULL");
            }
            last = self.run(&context, None).await;
        }
        eventually(LIMIT, &context, async || {
            self.world.children("/queuekeeper/daemons").await.is_empty()
                && self.world.children("/queuekeeper/held").await.is_empty()
        })
        .await;
        (trace, End::of(&self.world).await)
    }
}

/// The writes that are tried, of so many.
fn chosen(writes: usize, is_remote: bool, fault: WriteFault) -> Vec<usize> {
    let which = std::env::var(WHICH).unwrap_or_default();
    let (first, step) = match which.split_once('/') {
        _ if which == "every" => (1, 1),
        Some((first, step)) => (first.parse().unwrap(), step.parse().unwrap()),
        // Not the last ones: how many there are differs a little from run to run.
        None => match (fault, is_remote) {
            (WriteFault::Stop(_), true) => (1 + writes / 4, writes),
            (WriteFault::Stop(_), false) => (1 + writes / 2, writes),
            (_, true) => (1 + writes * 3 / 8, writes),
            (_, false) => (1 + writes / (4 * SOME), writes.div_ceil(SOME)),
        },
    };
    (first..=writes).step_by(step).collect()
}

/// Those of the kinds that are asked for.
fn wanted(kinds: &[DepositKind]) -> Vec<DepositKind> {
    let asked = std::env::var(KINDS).ok();
    let names = asked.as_ref().map(|names| names.split(',').map(DepositKind::named).collect::<Vec<_>>());
    kinds.iter().copied().filter(|kind| names.as_ref().is_none_or(|names| names.contains(kind))).collect()
}

/// What one that nothing disturbs writes, and its end: found once for all tests.
async fn undisturbed(server: &Server, kind: DepositKind) -> Arc<(Trace, End)> {
    type Ends = BTreeMap<(String, bool), Arc<OnceCell<Arc<(Trace, End)>>>>;
    static ENDS: Mutex<Ends> = Mutex::const_new(BTreeMap::new());
    let cell = Arc::clone(ENDS.lock().await.entry((kind.name(), server.s3.is_some())).or_default());
    let find = async || Arc::new(Trial::new(server, kind, &format!("{kind:?}-undisturbed")).await.end(None).await);
    Arc::clone(cell.get_or_init(find).await)
}

/// Tries faults at writes of a kind, and compares the end of each with one without. The answer is how many were met,
/// and of how many.
#[expect(clippy::print_stdout, reason = "which writes were tried is what a long run shows")]
async fn try_all(
    server: &Server,
    kind: DepositKind,
    name: &str,
    fault: impl Fn(usize) -> WriteFault,
    writes: impl Fn(&Trace) -> usize,
) -> (usize, usize) {
    let began = Instant::now();
    let (trace, expected) = &*undisturbed(server, kind).await;
    let all = writes(trace);
    let chosen = chosen(all, server.s3.is_some(), fault(1));
    let trials = chosen.iter().map(|at| {
        let (fault, name, server) = (fault(*at), format!("{kind:?}-{name}-{at}"), server.clone());
        // In a thread of its own: it waits for other programs, and would hold up those beside it.
        let trial = move || {
            Handle::current().block_on(async {
                let trial = Trial::new(&server, kind, &name).await;
                let (trace, end) = trial.end(Some(fault)).await;
                (fault, trace, end)
            })
        };
        async { tokio::task::spawn_blocking(trial).await.unwrap() }
    });
    let mut trials = stream::iter(trials.collect::<Vec<_>>()).buffer_unordered(AT_A_TIME);
    let (mut met, mut differences) = (BTreeMap::<String, usize>::new(), Vec::new());
    while let Some((fault, trace, end)) = trials.next().await {
        let at = match fault {
            WriteFault::Kill(_) if trace.code.is_none() => trace.writes.last().map(ToString::to_string),
            WriteFault::Kill(_) => None,
            WriteFault::Stop(_) => trace.stopped.as_ref().map(ToString::to_string),
            WriteFault::Full(..) => trace.failed.first().map(ToString::to_string),
        };
        // Timers write as well, so that a process may end before its last write.
        if let Some(at) = &at {
            *met.entry(end::masked(at)).or_default() += 1;
        }
        let at = at.unwrap_or_default();
        differences.extend(expected.differences(&end).into_iter().map(|line| format!("{fault:?}, {at}: {line}")));
    }
    let count: usize = met.values().sum();
    println!("{kind:?} {name}: {all} writes, {count} faults of {}, {:?}", chosen.len(), began.elapsed());
    for (at, times) in &met {
        println!("  {times} x {at}");
    }
    assert!(differences.is_empty(), "{kind:?} {name}:\n{}", differences.join("\n"));
    (count, chosen.len())
}

/// Checks that half of all faults were met at least. A process may end before its write: of one kind alone, of which a
/// fault or two are tried, that says nothing.
fn check_met(met: impl IntoIterator<Item = (usize, usize)>) {
    let (count, all) = met.into_iter().fold((0, 0), |(count, all), (met, of)| (count + met, all + of));
    assert!(count * 2 >= all, "{count} of {all} faults were met");
}

async fn kill(server: &Server, kinds: &[DepositKind]) {
    try_kinds(server, kinds, "killed", WriteFault::Kill).await;
}

async fn stop(server: &Server, kinds: &[DepositKind]) {
    try_kinds(server, kinds, "stopped", WriteFault::Stop).await;
}

async fn try_kinds(server: &Server, kinds: &[DepositKind], name: &str, fault: fn(usize) -> WriteFault) {
    // Where few are tried of each, there is little to do at a time.
    let at_a_time = if std::env::var_os(WHICH).is_some() { 1 } else { AT_A_TIME / SOME };
    let all = wanted(kinds).into_iter().map(|kind| try_all(server, kind, name, fault, |trace| trace.writes.len()));
    check_met(stream::iter(all.collect::<Vec<_>>()).buffer_unordered(at_a_time).collect::<Vec<_>>().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_of_each_kind_is_done_once_by_daemons_that_are_killed_at_any_write() {
    kill(
        &Server::start().await,
        &[DepositKind::File, DepositKind::Container, DepositKind::Manifest, DepositKind::Batch, DepositKind::Parts],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_reports_and_cleanup_are_done_once_by_daemons_that_are_killed_at_any_write() {
    kill(
        &Server::start().await,
        &[DepositKind::Update, DepositKind::Failure, DepositKind::Resumed, DepositKind::Cleanup],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_delivered_once_by_daemons_that_are_killed_at_any_write() {
    kill(&Server::start().await, &[DepositKind::Access]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_postgresql_and_s3_as_well_all_of_it_is_done_once_by_daemons_that_are_killed_at_any_write() {
    kill(&Server::with_remote().await, &DepositKind::ALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_it_is_done_once_when_daemons_are_stopped_in_any_write_and_go_on_after_others_took_over() {
    stop(&Server::start().await, &DepositKind::ALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_postgresql_and_s3_as_well_it_is_when_daemons_are_stopped_and_go_on_after_others_took_over() {
    stop(&Server::with_remote().await, &DepositKind::ALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_full_at_any_write_delays_a_deposit_and_changes_nothing_of_its_end() {
    let (server, mut met) = (Server::start().await, Vec::new());
    for kind in wanted(&[DepositKind::File, DepositKind::Manifest, DepositKind::Update, DepositKind::Access]) {
        let files = |trace: &Trace| trace.writes.iter().filter(|write| write.is_file()).count();
        met.push(try_all(&server, kind, "full", |at| WriteFault::Full(at, FULL), files).await);
    }
    check_met(met);
}
