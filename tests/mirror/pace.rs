//! How many requests the mirror makes: none while nothing changes, and few under any load.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
#![expect(clippy::print_stdout, reason = "the figures, for whoever wants to know them")]

use std::time::{Duration, Instant};

use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::grammar::Machine;
use super::harness::{LIMIT, Mirror, config, connect, create};
use super::writes::{Write, folders, new_batch, new_job, play, status};
use queuekeeper_testkit::wait::eventually;

/// What the server says of one connection.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    /// Packets that it sent, pings among them.
    packets: u64,
    /// The number of its last request; pings have none.
    last_request: u64,
}

async fn traffic(server: &PrivateServer, session: &str) -> Traffic {
    let mut stream = TcpStream::connect(server.connect_string()).await.unwrap();
    stream.write_all(b"cons").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let id = session.trim_start_matches("0x").trim_start_matches('0');
    let line = answer.lines().find(|line| line.contains(&format!("sid=0x{id},")));
    let line = line.unwrap_or_else(|| panic!("no session {session} in {answer}"));
    let value = |key: &str| {
        let at = line.find(key).unwrap() + key.len();
        line[at..].split([',', ')']).next().unwrap()
    };
    Traffic {
        packets: value("recved=").parse().unwrap(),
        last_request: u64::from_str_radix(value("lcxid=0x"), 16).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_tree_costs_pings_only_and_a_busy_one_few_requests() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/queue", b"").await;
    let connect_string = format!("{}/queue", server.connect_string());
    let client = connect(&connect_string).await;
    play(&client, &folders()).await;
    play(&client, &new_batch("bid0000000000")).await;
    let jobs: Vec<_> = (0..300).map(|job| new_job(job, "bid0000000000", 5)).collect();
    play(&client, &jobs).await;
    let mirror = Mirror::with(config(&connect_string), None);
    mirror.equals(&client).await;
    let session = mirror.store.freshness().session.unwrap();

    let before = traffic(&server, &session).await;
    let events = mirror.count("queuekeeper_mirror_events_total");
    // What daemons of ours work on comes and goes with every job, and is none of the mirror's.
    for path in ["/queuekeeper", "/queuekeeper/held"] {
        create(&client, path, b"").await;
    }
    for job in 0..50 {
        let held = format!("/queuekeeper/held/jid{job:010}");
        create(&client, &held, b"1").await;
        client.delete(&held, None).await.unwrap();
    }
    // A ping comes after some seconds without a request, by when whatever those changes led to would have been sent.
    let quiet = traffic(&server, &session).await;
    let mut after = quiet;
    eventually(LIMIT, "a ping", async || {
        after = traffic(&server, &session).await;
        after.packets > quiet.packets
    })
    .await;
    assert_eq!(after.last_request, before.last_request, "nothing has changed, nothing is asked");
    assert_eq!(mirror.count("queuekeeper_mirror_events_total"), events);

    let began = Instant::now();
    let mut writes = 0;
    // At least two seconds, and at least three rounds, however slow the machine is.
    while began.elapsed() < Duration::from_secs(2) || writes <= 1_000 {
        let round = (0..500).map(|at| {
            let state = Machine::Job.states()[(writes / 500 + at) % 12].0;
            Write::Set(format!("/jobs/jid{:010}/status", (writes + at * 7) % 300), status(state, 0))
        });
        let round: Vec<_> = round.collect();
        writes += round.len();
        play(&client, &round).await;
    }
    let requests = traffic(&server, &session).await.last_request - after.last_request;
    let took = began.elapsed().as_secs_f64();
    let facts = mirror.equals(&client).await;
    println!(
        "{writes} writes in {took:.2} s: {requests} requests, {} events, {} s behind on average; {} facts",
        mirror.count("queuekeeper_mirror_events_total"),
        mirror.seconds("queuekeeper_mirror_delay_seconds_sum")
            / mirror.seconds("queuekeeper_mirror_delay_seconds_count"),
        facts.len(),
    );
    // A hundred full ones; on a machine that is busy with more, pauses come between, and smaller ones after these.
    assert!(requests > 0 && (requests as f64) <= took * 200.0 + 2.0, "{requests} requests in {took} s");
}

#[tokio::test]
async fn names_of_any_length_are_read_in_requests_that_the_server_takes() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let client = connect(&server.connect_string()).await;
    play(&client, &folders()).await;
    let heard = Mirror::start(&server.connect_string());
    heard.equals(&client).await;
    // 512 of these in one request would be 1.3 MB, more than what makes the server end the connection.
    let locks: Vec<_> = (0..600)
        .map(|lock| Write::Create(format!("/locks/storage/{lock}-{}", "x".repeat(2_500)), Vec::new()))
        .collect();
    play(&client, &locks).await;
    let walked = Mirror::start(&server.connect_string());
    for mirror in [heard, walked] {
        let facts = mirror.equals(&client).await;
        assert_eq!(facts["locks storage count"], "600");
        assert_eq!((mirror.walks("reconnect"), mirror.walks("expired"), mirror.drift()), (0, 0, 0));
    }
}
