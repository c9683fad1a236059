//! What runs in a process of its own: the mill, what fills its source, and listings.

use std::io::Read as _;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::bit::forecast::forecast;
use queuekeeper_mill::bit::producer::{BitSettings, PRODUCER as CHECKS};
use queuekeeper_mill::merge::merge;
use queuekeeper_mill::producer::{PRODUCER, Step};
use queuekeeper_mill::run::Mill;
use queuekeeper_store::audit::Change;
use queuekeeper_store::noted::{Noted, NotedChange};
use queuekeeper_store::store::{Condition, EntityTag, Put, Written};
use queuekeeper_store::{Algorithm, Digests, Item, Key, Store};
use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::world::{self, STORES, World};
use super::{SPACE, rivals};

/// The first argument of such a process.
pub(crate) const MARK: &str = "--mill";

/// How many items are written at once to fill a source, and how many are recorded by one transaction.
const AT_ONCE: usize = 64;
const RECORDED: usize = 1000;

/// How often it is seen whether all is done.
const LOOK: Duration = Duration::from_millis(100);

/// How many clock ticks the system counts in a second: so many everywhere.
const TICKS: f64 = 100.0;

/// What a process took.
pub(crate) struct Ran {
    /// From its start to its end.
    pub(crate) seconds: f64,
    /// The peak of its memory.
    pub(crate) peak_mb: u64,
    /// The time of processors that it used.
    pub(crate) cpu_seconds: f64,
}

fn command(mode: &str, world: &World, more: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([MARK, mode]).args(world.arguments()).args(more);
    command
}

/// Begins a mode that writes nothing to its output that is needed.
pub(crate) fn start(mode: &str, world: &World, more: &[&str]) -> Child {
    command(mode, world, more).stdout(Stdio::null()).spawn().unwrap()
}

/// Runs a mode to its end: `fill FIRST FILES SIZE [ALGORITHM]`, `run NAME WORKERS`, `check WORKERS`,
/// `forecast WORKERS`, `loop`, `both COUNT`, `merge COUNT`, `burst EVENTS` or `hash THREADS`.
pub(crate) fn time(mode: &str, world: &World, more: &[&str]) -> Ran {
    rivals::settle(&world.top);
    let began = Instant::now();
    let said = said(mode, world, more);
    let seconds = began.elapsed().as_secs_f64();
    Ran { seconds, peak_mb: said["peak_mb"].as_u64().unwrap(), cpu_seconds: said["cpu_seconds"].as_f64().unwrap() }
}

/// Runs a mode to its end; the answer is what it says of itself.
pub(crate) fn said(mode: &str, world: &World, more: &[&str]) -> Value {
    let output = command(mode, world, more).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{mode} {more:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A mill that works until this is dropped.
pub(crate) struct Working(Child);

impl Working {
    pub(crate) fn start(world: &World, name: &str, workers: usize) -> Self {
        let mut command = command("work", world, &[name, &workers.to_string()]);
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// The peak of its memory, in MB.
    pub(crate) fn peak_mb(&self) -> u64 {
        memory_mb(&self.0.id().to_string(), "VmHWM:")
    }

    /// The time of processors that it has used, in seconds, and the memory that it has, in MB.
    pub(crate) fn used(&self) -> (f64, u64) {
        let id = self.0.id().to_string();
        (cpu_seconds(&id), memory_mb(&id, "VmRSS:"))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// What such a process does.
pub(crate) fn run(arguments: &[String]) {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mode, rest) = arguments.split_first().unwrap();
    let (place, rest) = rest.split_at(4);
    let world = World::of_arguments(place);
    let mut said = json!({});
    runtime.block_on(async {
        match (*mode, rest) {
            ("fill", [first, files, size, also @ ..]) => {
                let algorithms = [Algorithm::Sha256].into_iter().chain(also.iter().map(|one| one.parse().unwrap()));
                let files = first.parse().unwrap()..first.parse::<usize>().unwrap() + files.parse::<usize>().unwrap();
                fill(&world, files, size.parse().unwrap(), &algorithms.collect::<Vec<_>>()).await;
            }
            ("run", [name, workers]) => run_to_end(world.mill(name, workers.parse().unwrap()).await, PRODUCER).await,
            ("check", [workers]) => {
                let mut mill = world.mill("bench", workers.parse().unwrap()).await;
                (mill.settings.is_duplicating, mill.settings.bit) = (false, Some(BitSettings::default()));
                run_to_end(mill, CHECKS).await;
            }
            ("forecast", [workers]) => {
                let mut mill = world.mill("bench", workers.parse().unwrap()).await;
                (mill.settings.is_duplicating, mill.settings.bit) = (false, Some(BitSettings::default()));
                said = forecasts(mill).await;
            }
            ("burst", [events]) => burst(&world, events.parse().unwrap()).await,
            ("hash", [threads]) => hash(&world, threads.parse().unwrap()),
            ("work", [name, workers]) => work(&world, name, workers.parse().unwrap()).await,
            ("loop", []) => go_through(&world).await,
            ("both", [count]) => list_both(&world, count.parse().unwrap()).await,
            ("merge", [count]) => list_merged(&world, count.parse().unwrap()).await,
            _ => panic!("{arguments:?}"),
        }
    });
    said["peak_mb"] = memory_mb("self", "VmHWM:").into();
    said["cpu_seconds"] = cpu_seconds("self").into();
    println!("{said}");
}

/// Writes items into the source, and records them.
async fn fill(world: &World, files: Range<usize>, size: usize, algorithms: &[Algorithm]) {
    let catalogue = Catalogue::open(&world.database).await.unwrap();
    let noted = Arc::new(Noted::new(world.store(0).await));
    noted.create_space(&world::space()).await.unwrap();
    let name = noted.store().name().clone();
    for first in files.clone().step_by(RECORDED) {
        let puts = (first..files.end.min(first + RECORDED)).map(|number| {
            let noted = Arc::clone(&noted);
            async move {
                let key = format!("{:03}/{number:07}", number / 1000);
                let item = Item::new(world::space(), Key::new(key.into_bytes()).unwrap());
                let put = Put {
                    size: Some(size as u64),
                    compute: algorithms.to_vec(),
                    condition: Condition::IfAbsent,
                    ..Put::default()
                };
                noted.put(&item, stream::iter(content(number, size)).boxed(), put).await.unwrap();
            }
        });
        stream::iter(puts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        let notes = noted.take();
        assert!(catalogue.record_changes(&name, "bench", &notes.made).await.unwrap().is_empty());
    }
    while catalogue.fold().await.unwrap() > 0 {}
    catalogue.close().await;
}

/// Content that does not compress and does not repeat.
fn content(number: usize, size: usize) -> impl Iterator<Item = std::io::Result<Bytes>> {
    const PART: usize = 1 << 20;
    let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..size).step_by(PART).map(move |from| {
        let mut part = vec![0; PART.min(size - from)];
        for word in part.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        Ok(Bytes::from(part))
    })
}

/// Has a mill work until a loop of a producer is done and nothing waits.
async fn run_to_end(mill: Mill, producer: &str) {
    let catalogue = mill.catalogue.clone();
    let stop = CancellationToken::new();
    let running = tokio::spawn(mill.run(stop.clone()));
    while !is_done(&catalogue, producer).await {
        tokio::time::sleep(LOOK).await;
    }
    stop.cancel();
    running.await.unwrap();
    catalogue.close().await;
}

/// Has a mill check everything; the answer is what it took, and what it was forecast to take, in seconds, after each of
/// them.
async fn forecasts(mill: Mill) -> Value {
    let (catalogue, accounts, stop) = (mill.catalogue.clone(), mill.accounts.clone(), CancellationToken::new());
    let running = tokio::spawn(mill.run(stop.clone()));
    let mut forecasts = Vec::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = Timestamp::now();
        let forecast = forecast(&catalogue, &accounts, now).await.unwrap();
        if forecast.is_none() && is_done(&catalogue, CHECKS).await {
            break;
        }
        if let Some(ends) = forecast.and_then(|forecast| forecast.ends) {
            let started = catalogue.loop_state(CHECKS).await.unwrap().unwrap().started.unwrap();
            let seconds = |to: Timestamp| to.duration_since(started).as_secs_f64();
            forecasts.push((seconds(now), seconds(ends)));
        }
    }
    let state = catalogue.loop_state(CHECKS).await.unwrap().unwrap();
    let took = Timestamp::now().duration_since(state.started.unwrap()).as_secs_f64();
    stop.cancel();
    running.await.unwrap();
    catalogue.close().await;
    json!({"took": took, "forecasts": forecasts})
}

/// Whether a loop of a producer has ended, and no task waits.
pub(crate) async fn is_done(catalogue: &Catalogue, producer: &str) -> bool {
    let has_ended = catalogue.loop_state(producer).await.unwrap().is_some_and(|state| state.ended.is_some());
    let figures = catalogue.task_figures().await.unwrap();
    assert!(figures.iter().all(|of| of.dead == 0 && of.held == 0), "{figures:?}");
    has_ended && figures.iter().all(|of| of.waiting == 0)
}

/// Reads and hashes all files of the source, by so many threads, and writes nothing.
fn hash(world: &World, threads: usize) {
    let mut folders = vec![world.top.join(STORES[0]).join(SPACE)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let of = if entry.file_type().unwrap().is_dir() { &mut folders } else { &mut files };
            of.push(entry.path());
        }
    }
    files.sort_unstable();
    std::thread::scope(|scope| {
        for part in files.chunks(files.len().div_ceil(threads)) {
            scope.spawn(move || {
                for file in part {
                    std::hint::black_box(digest(&SHA256, &std::fs::read(file).unwrap()));
                }
            });
        }
    });
}

/// Has the mill work until the standard input ends.
async fn work(world: &World, name: &str, workers: usize) {
    let mill = world.mill(name, workers).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(mill.run(stop.clone()));
    let wait = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
    stop.cancel();
    running.await.unwrap();
}

/// Records so many changes, each of another item, in a space that no policy copies.
async fn burst(world: &World, events: usize) {
    let catalogue = Catalogue::open(&world.database).await.unwrap();
    let name = STORES[0].parse().unwrap();
    let change = |number: usize| NotedChange {
        space: world::ignored(),
        key: Some(Key::new(format!("{number:09}").into_bytes()).unwrap()),
        change: Change::Add,
        seen: None,
        after: Some(Written { size: 1, etag: EntityTag(number.to_string()), digests: Digests::default() }),
    };
    for first in (0..events).step_by(RECORDED) {
        let changes: Vec<_> = (first..events.min(first + RECORDED)).map(change).collect();
        assert!(catalogue.record_changes(&name, "bench", &changes).await.unwrap().is_empty());
    }
    catalogue.close().await;
}

/// Goes through everything once, as `queuekeeper mill produce duplication --once` does: nothing has changed.
async fn go_through(world: &World) {
    let mill = world.mill("loop", 0).await;
    // A loop without any part, so that the next one is due.
    let holder = Uuid::now_v7();
    let lead = mill.catalogue.lead(PRODUCER, holder, Duration::from_mins(1)).await.unwrap().unwrap();
    assert!(mill.catalogue.begin_loop(&lead, &[], Duration::ZERO).await.unwrap());
    mill.catalogue.resign(PRODUCER, holder).await.unwrap();
    assert_eq!(mill.produce_once(&CancellationToken::new()).await.unwrap(), Step::Idle);
    let figures = mill.catalogue.task_figures().await.unwrap();
    let asked: u64 = figures.iter().map(|of| of.waiting).sum();
    // The space itself is looked at in each loop.
    assert_eq!(asked, 1, "nothing has changed");
    mill.catalogue.close().await;
}

/// Lists one store after the other.
async fn list_both(world: &World, count: usize) {
    for at in 0..STORES.len() {
        let listed = world.store(at).await.list(&world::space(), b"", None);
        let found = listed.try_fold(0, async |count, _| Ok(count + 1)).await.unwrap();
        assert_eq!(found, count);
    }
}

/// Merges the listings of both stores.
async fn list_merged(world: &World, count: usize) {
    let list = async |at: usize| world.store(at).await.list(&world::space(), b"", None);
    let merged = merge(list(0).await, list(1).await);
    let found = merged.try_fold(0, async |count, _| Ok(count + 1)).await.unwrap();
    assert_eq!(found, count);
}

fn memory_mb(process: &str, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the program, in parentheses, may have spaces.
    let columns: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| columns[at].parse::<u32>().unwrap();
    f64::from(ticks(11) + ticks(12)) / TICKS
}
