//! Values as large as ZooKeeper takes them, on a server whose memory they nearly fill: it survives every way in which
//! we read, as it survives a plain one, and our own memory does not grow with them.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path as QueuePath;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Queue, RepairOptions};
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use tokio::time::{interval, timeout};
use zookeeper_client::{Acls, Client, CreateMode};

use super::harness::{LIMIT, Mirror, config, create};
use super::writes::{Write, folders, new_batch, new_job, play};
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::{eventually, eventually_some};

/// How many jobs are small. They come first, by their ids and in time: a reader learns from them what the large ones
/// contradict.
const SMALL: u32 = 3_000;

/// How many jobs have two values of 1 MB. Together they are 200 MB, of a heap of 512 MiB.
const LARGE: u32 = 100;

/// How many jobs of each kind go into one step of filling the tree.
const STEP: usize = 12;

/// Java's collector leaves values of this size where they are: of the 300 MiB beside them little is in one piece, and
/// an answer has to fit into one.
const HEAP_MIB: u32 = 512;

/// How much of our own memory may be in use at most, in MiB: far less than what was read.
const MEMORY_MIB: u64 = 128;

/// How long a session of the program may be without contact: a full collection of such a heap stops the server.
const SESSION: &str = "60s";

/// The same for a mirror of our own.
fn patient(address: &str) -> Config {
    Config { session_timeout: Duration::from_mins(1), ..config(address) }
}

fn large() -> std::ops::Range<u32> {
    SMALL..SMALL + LARGE
}

fn status(state: &str) -> Vec<u8> {
    format!(r#"{{"status":"{state}","retry_count":0,"message":"{}"}}"#, "m".repeat(1_000_000)).into_bytes()
}

fn configuration() -> Vec<u8> {
    format!(r#"{{"profile":"merritt_demo_content","title":"{}"}}"#, "t".repeat(1_000_000)).into_bytes()
}

/// The server keeps the last 500 transactions in memory: these push out those before them.
async fn write_small_ones(client: &Client) {
    let writes: Vec<_> = (0..520).map(|_| client.set_data("/locks", b"", None)).collect();
    for written in join_all(writes).await {
        written.unwrap();
    }
}

async fn fill_with_small_jobs(client: &Client) {
    play(client, &folders()).await;
    play(client, &new_batch("bid0000000000")).await;
    for numbers in (0..SMALL).collect::<Vec<_>>().chunks(100) {
        let jobs = numbers.iter().map(|job| new_job(*job, "bid0000000000", 5));
        let all = jobs.flat_map(|job| match job {
            Write::Multi(writes) => writes,
            one => vec![one],
        });
        play(client, &[Write::Multi(all.collect())]).await;
    }
}

async fn fill(client: &Client) {
    fill_with_small_jobs(client).await;
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for jobs in large().collect::<Vec<_>>().chunks(STEP) {
        for job in jobs {
            let job = JobId::new(*job);
            client.create(&format!("/jobs/{job}"), b"", &mode).await.unwrap();
            client.create(&format!("/jobs/{job}/configuration"), &configuration(), &mode).await.unwrap();
            client.create(&format!("/jobs/{job}/status"), &status("Pending"), &mode).await.unwrap();
        }
        write_small_ones(client).await;
    }
}

/// The program, killed when dropped.
struct Served {
    child: Child,
    base: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    async fn start(zookeeper: &str) -> Self {
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(["serve", "--zookeeper", zookeeper, "--zookeeper.session-timeout", SESSION, "--log.level", "error"])
            .args(["--web.listen-address", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let served = Self { child, base: format!("http://127.0.0.1:{port}") };
        let is_ready =
            async || reqwest::get(format!("{}/-/ready", served.base)).await.is_ok_and(|it| it.status() == 200);
        eventually(LIMIT, "the program is ready", is_ready).await;
        served
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("{}{path}", self.base)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// The most memory that it has had in use.
    fn peak_mib(&self) -> u64 {
        let process = procfs::process::Process::new(self.child.id().try_into().unwrap()).unwrap();
        let status = process.status().unwrap();
        // The pages of the program's own file grow with the program, not with what it reads.
        (status.vmhwm.unwrap() - status.rssfile.unwrap()) >> 10
    }
}

fn jobs_in(mirror: &Mirror, state: JobState) -> u64 {
    let summary = mirror.store.summary(Timestamp::now(), None).unwrap();
    summary.jobs.get(Some(state)).count
}

/// Does all this on a server of that little memory, and fails with the server's own words where it dies of it: what is
/// waited for then never comes.
async fn on_a_small_server(work: impl AsyncFnOnce(String)) {
    let mut server = PrivateServer::start(Options { heap_mib: HEAP_MIB, ..Options::default() }).await.unwrap();
    let address = server.connect_string();
    tokio::select! {
        () = work(address) => {}
        end = server.ended() => panic!("the server died: {}", end.unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_nearly_full_of_large_values_survives_every_way_of_reading_them() {
    on_a_small_server(large_values_are_read).await;
}

async fn large_values_are_read(address: String) {
    let client = connect(&address).await;
    fill(&client).await;
    // One after the other, as any client might.
    let tree = read_tree(&client, "/", &[]).await;
    assert!(tree.values().map(|(data, _)| data.len()).sum::<usize>() > 200_000_000, "the values are large");
    drop(tree);

    let mirror = Mirror::with(patient(&address), Some(Duration::from_millis(20)));
    mirror.is_synced().await;
    assert_eq!(jobs_in(&mirror, JobState::Pending), u64::from(SMALL + LARGE));
    mirror.is_compared_again().await;

    // Each value is written again, while the mirror follows.
    for jobs in large().collect::<Vec<_>>().chunks(2 * STEP) {
        for job in jobs {
            let path = format!("/jobs/{}/status", JobId::new(*job));
            client.set_data(&path, &status("Failed"), None).await.unwrap();
        }
        write_small_ones(&client).await;
    }
    eventually(LIMIT, "all changes are seen", async || jobs_in(&mirror, JobState::Failed) == u64::from(LARGE)).await;
    mirror.is_compared_again().await;
    assert_eq!(mirror.drift(), 0);
    assert_eq!((mirror.walks("start"), mirror.walks("reconnect")), (1, 0), "the server never let go of the connection");
    mirror.stop().await;

    // The program, with a page for each of many large jobs at once. One that the server had no time for is tried again.
    let served = Served::start(&address).await;
    let pages = large().take(40).map(|job| {
        let served = &served;
        let path = format!("/jobs/{}", JobId::new(job));
        async move {
            eventually_some(LIMIT, &path, async || Some(served.get(&path).await).filter(|(status, _)| *status != 503))
                .await
        }
    });
    for (status, body) in join_all(pages).await {
        assert!(status == 200 && body.contains("merritt_demo_content"), "{status}: {body}");
    }
    let peak = served.peak_mib();
    assert!(peak < MEMORY_MIB, "the program took {peak} MiB");
    drop(served);

    // And a dump, which reads in order: what comes after the small ones is not known before.
    let mut dump = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    dump.args(["dump", "--zookeeper", &address, "--zookeeper.session-timeout", SESSION])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let dumped = tokio::task::spawn_blocking(move || dump.status().unwrap());
    assert!(timeout(LIMIT, dumped).await.unwrap().unwrap().success());
    patient(&address).connect().await.expect("the server answers").get_data("/jobs").await.unwrap();
}

/// How many jobs of one large value have an entry. Together they are 200 MB as well.
const MOVED: u32 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_survives_that_many_entries_of_jobs_with_old_large_values_move_at_once() {
    on_a_small_server(entries_move).await;
}

async fn entries_move(address: String) {
    let client = connect(&address).await;
    fill_with_small_jobs(&client).await;
    let moved = SMALL..SMALL + MOVED;
    for jobs in moved.clone().collect::<Vec<_>>().chunks(2 * STEP) {
        for job in jobs {
            play(&client, &[new_job(*job, "bid0000000000", 5)]).await;
            client.set_data(&format!("/jobs/{}/status", JobId::new(*job)), &status("Pending"), None).await.unwrap();
        }
        write_small_ones(&client).await;
    }

    // Small values are written and read all the time, so that much is known of small ones and nothing of others.
    let mirror = Mirror::with(patient(&address), None);
    mirror.is_synced().await;
    let reads = mirror.count("queuekeeper_mirror_reads_total");
    let mut ticks = interval(Duration::from_millis(8));
    let mut small = (0..SMALL).cycle();
    let mut write_one = async || {
        ticks.tick().await;
        let path = format!("/jobs/{}/status", JobId::new(small.next().unwrap()));
        client.set_data(&path, br#"{"status":"Pending","retry_count":0}"#, None).await.unwrap();
    };
    while mirror.count("queuekeeper_mirror_reads_total") < reads + 600 {
        write_one().await;
    }

    // Each entry implies a status for which no event came.
    let entry = |job: u32, priority: &str| format!("/jobs/states/pending/{priority}-{}", JobId::new(job));
    let moves = moved.flat_map(|job| [Write::Delete(entry(job, "05")), Write::Create(entry(job, "06"), Vec::new())]);
    play(&client, &[Write::Multi(moves.collect())]).await;
    let facts = mirror.equals(&client).await;
    assert_eq!(facts["jobs pending count"], (SMALL + MOVED).to_string());

    // And a repair, which reads the state of every job: in order, all the large ones would follow each other.
    create(&client, "/locks/storage/ark_1", b"").await;
    let queue = Queue::new(connect(&address).await).with_time_limit(LIMIT);
    let now = Timestamp::now() + SignedDuration::from_hours(24);
    let action = RepairOptions { limits: &Limits::default(), now, even_if_locked: false };
    let lock = QueuePath::parse("/locks/storage/ark_1");
    let repair = queue.plan_repair(Fault::LeakedStorageLock, &lock, action).await.unwrap();
    queue.commit_repair(&repair).await.unwrap();
    mirror.equals(&client).await;
    assert_eq!((mirror.walks("start"), mirror.walks("reconnect")), (1, 0), "the server never let go of the connection");
}
