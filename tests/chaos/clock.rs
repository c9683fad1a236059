//! A clock that is wrong or set while nothing changes in the tree: no age is wrong for it.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, JobChange, NewJob, Queue};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use serde_json::{Value, json};
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Permission};

use super::program::{Program, command_at};
use crate::mirror::harness::{LIMIT, connect, create};
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::{eventually, eventually_some};

const HOUR: i64 = 3_600;

/// Longer than the test takes, and shorter than anything that a wrong clock makes of it.
const YOUNG: f64 = 600.0;

/// A queue in which nothing happens any more: one job waits, one is worked on, one has gone on.
async fn quiet(connect_string: &str) -> Client {
    let client = connect(connect_string).await;
    let queue = Queue::new(client.clone());
    let submission = json!({"batchID": "uuid-1", "profile": "demo"}).to_string();
    let batch = queue.create_batch(submission.as_bytes(), Timestamp::now()).await.unwrap();
    let (acquired, _) = queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    queue.unlock(&acquired.unwrap().lock).await.unwrap();
    let job = NewJob::new(json!({"profile": "demo", "batchID": "uuid-1"}).to_string());
    let jobs = queue.create_jobs(batch, &vec![job; 3], Timestamp::now()).await.unwrap();
    let steps = [JobState::Estimating, JobState::Provisioning, JobState::Downloading];
    for (job, steps) in [(jobs[1], &steps[..1]), (jobs[2], &steps[..])] {
        for state in steps {
            queue.change_job(job, &JobChange::to(*state), Timestamp::now()).await.unwrap();
        }
    }
    client
}

fn instant(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

fn kinds(overview: &Value) -> Vec<&str> {
    overview["attention"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect()
}

async fn overview(program: &mut Program) -> Option<Value> {
    let (code, text) = program.get("/api/v1/overview").await?;
    (code == 200).then(|| serde_json::from_str(&text).unwrap())
}

/// What is wrong about the ages that are said where nothing is older than some seconds.
fn wrong_ages(overview: &Value) -> Vec<String> {
    let now = instant(&overview["status"]["now"]);
    let states = overview["states"].as_array().unwrap().iter();
    let instants = states.flat_map(|state| {
        ["oldest_entered", "last_left"].map(|name| (format!("{} {name}", state["state"]), state[name].clone()))
    });
    let ages = instants.filter(|(_, at)| !at.is_null()).map(|(name, at)| (name, now.duration_since(instant(&at))));
    let mut wrong: Vec<_> = ages
        .filter(|(_, age)| !(-1.0..YOUNG).contains(&age.as_secs_f64()))
        .map(|(name, age)| format!("{name} {age}"))
        .collect();
    wrong.extend(kinds(overview).iter().filter(|kind| **kind != "clock_offset").map(ToString::to_string));
    wrong
}

/// Waits until everything is as young as it is, with the program's clock off by so many seconds.
async fn comes_right(program: &mut Program, seconds: i64) {
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let Some(overview) = overview(program).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let status = &overview["status"];
        let offset = status["clock_offset_seconds"].as_f64().unwrap_or_default();
        let is_shown = kinds(&overview).contains(&"clock_offset") == (seconds != 0);
        let wrong = wrong_ages(&overview);
        let is_known = status["clock_measured"] == true && (offset + seconds as f64).abs() < 3.0;
        if is_known && is_shown && wrong.is_empty() {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "at {seconds}: {wrong:?}, {status}, {:?}", kinds(&overview));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let metrics = program.samples().await.unwrap();
    let offset = metrics.get("queuekeeper_zookeeper_clock_offset_seconds");
    assert!((offset + seconds as f64).abs() < 3.0, "{offset} at {seconds}");
    let (_, page) = program.get("/").await.unwrap();
    assert_eq!(page.contains("The clock of the ZooKeeper servers is"), seconds != 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_quiet_tree_no_age_is_wrong_whatever_the_clock_is_set_to() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/quiet", b"").await;
    let address = format!("{}/quiet", server.connect_string());
    let client = quiet(&address).await;
    // Started with a wrong clock, which is set later: by NTP, or by hand. A machine without a battery begins in 1970.
    for (start, later) in [(HOUR, -HOUR), (-HOUR, 0), (-Timestamp::now().as_second() + 1_000, 0), (0, 2 * HOUR)] {
        let mut program = Program::start_at(address.clone(), start);
        comes_right(&mut program, start).await;
        program.set_clock(later);
        comes_right(&mut program, later).await;
        // Who only looks writes nothing: a clock that is behind is seen all the same, and the other is said to be
        // believed.
        let writes = client.check_stat("/queuekeeper/clock").await.unwrap().unwrap().version;
        let shown = program.command(&["status"]);
        assert!(shown.contains("assume that the clocks"), "{shown}");
        if later < 0 {
            let shown: Value = serde_json::from_str(&program.command(&["status", "-o", "json"])).unwrap();
            assert_eq!(wrong_ages(&shown), [""; 0], "{shown}");
        }
        assert!(client.check_stat("/queuekeeper/clock").await.unwrap().unwrap().version - writes <= 1);
    }
    // All of them wrote to one znode, and seldom.
    let ours = client.list_children("/queuekeeper").await.unwrap();
    assert_eq!(ours.iter().filter(|name| name.starts_with("clock")).collect::<Vec<_>>(), ["clock"]);
    let writes = client.check_stat("/queuekeeper/clock").await.unwrap().unwrap().version;
    assert!((4..=16).contains(&writes), "{writes} writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_write_the_queue_is_shown_and_what_cannot_be_known_is_said() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/closed", b"").await;
    let address = format!("{}/closed", server.connect_string());
    let _client = quiet(&address).await;
    root.set_acl("/closed", &[Acl::new(Permission::READ, AuthId::anyone())], None).await.unwrap();
    let mut program = Program::start_at(address, -HOUR);
    let overview = eventually_some(LIMIT, "the problem is shown", async || {
        let overview = overview(&mut program).await?;
        overview["status"]["clock_problem"].is_string().then_some(overview)
    })
    .await;
    assert_eq!(overview["status"]["synced"], true);
    assert!(overview["status"]["clock_problem"].as_str().unwrap().contains("/queuekeeper/clock"), "{overview}");
    // That the servers are an hour ahead is seen at what they dated.
    assert_eq!(wrong_ages(&overview), [""; 0]);
    let (_, page) = program.get("/").await.unwrap();
    assert!(page.contains("ages may be off by the difference"), "{page}");
    let refused = || program.log().matches("ages may be off by the difference").count();
    eventually(LIMIT, "it is logged", async || refused() == 1).await;
}

/// Each acts by an age, and would do harm to what is young and at work.
const BY_AGE: [&[&str]; 4] = [
    &["faults", "--repair"],
    &["jobs", "fail", "--min-age", "1h"],
    &["lock", "/jobs/jid0000000000/lock", "break"],
    &["lock", "/locks/storage/ark_1_2", "break"],
];

const SURE: [&str; 3] = ["--yes", "--reason", "tried by hand"];

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_acts_by_an_age_goes_by_the_clock_of_the_servers_or_refuses() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/ages", b"").await;
    let address = format!("{}/ages", server.connect_string());
    let client = quiet(&address).await;
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    for folder in ["/locks", "/locks/storage"] {
        create(&client, folder, b"").await;
    }
    for lock in ["/jobs/jid0000000000/lock", "/locks/storage/ark_1_2"] {
        client.create(lock, b"", &ephemeral).await.unwrap();
    }
    let tree = async || read_tree(&client, "/", &["/zookeeper", "/queuekeeper"]).await;
    let before = tree().await;
    let run = |seconds, arguments: &[&str], more: &[&str]| {
        let output = command_at(&address, seconds, &[arguments, more].concat());
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code().unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let looks =
        [&["faults"][..], &["faults", "--repair", "--dry-run"]].map(|arguments| run(2 * HOUR, arguments, &[]).1);
    assert!(client.check_stat("/queuekeeper/clock").await.unwrap().is_none());
    for seconds in [2 * HOUR, -2 * HOUR] {
        for arguments in BY_AGE {
            let (code, said) = run(seconds, arguments, &SURE);
            let expected = if arguments[0] == "lock" { (3, "is not a fault") } else { (0, "there is nothing") };
            assert_eq!(code, expected.0, "{arguments:?} at {seconds}: {said}");
            assert!(said.contains(expected.1) || said.contains("nothing to do"), "{arguments:?} at {seconds}: {said}");
            assert_eq!(tree().await, before, "{arguments:?} at {seconds}");
        }
    }
    // What only looks wrote nothing, and says what its ages are worth.
    for said in looks {
        assert!(said.contains("leaked_lock") && said.contains("assume that the clocks"), "{said}");
    }
    // A clock that is behind keeps nothing back that is old enough: the creation of this job was broken off.
    create(&client, "/jobs/jid0000000098", b"").await;
    eventually(LIMIT, "it is purged", async || run(-2 * HOUR, &["job", "98", "purge"], &SURE).0 == 0).await;
    assert!(client.check_stat("/jobs/jid0000000098").await.unwrap().is_none());
    // Without the right to write that znode nothing is known, and nothing is done.
    let reading = [Acl::new(Permission::READ, AuthId::anyone())];
    client.set_acl("/queuekeeper/clock", &reading, None).await.unwrap();
    create(&client, "/jobs/jid0000000099", b"").await;
    let before = tree().await;
    for arguments in BY_AGE.into_iter().chain([&["job", "99", "purge"][..]]) {
        let (code, said) = run(2 * HOUR, arguments, &SURE);
        assert_eq!(code, 1, "{arguments:?}: {said}");
        let is_said = said.contains("clock of the ZooKeeper servers could not be measured");
        assert!(is_said && said.contains("write /queuekeeper/clock"), "{arguments:?}: {said}");
        assert_eq!(tree().await, before, "{arguments:?}");
    }
    // What goes by no age is done as ever.
    let (code, said) = run(2 * HOUR, &["lock", "/locks/storage/ark_1_2", "break", "--force"], &SURE);
    assert_eq!(code, 0, "{said}");
    assert!(client.check_stat("/locks/storage/ark_1_2").await.unwrap().is_none());
}
