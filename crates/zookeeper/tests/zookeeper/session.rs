//! Sessions over time: found late, cut, saved, expired, and found again.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use queuekeeper_zookeeper::diagnose::Symptom;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{
    Config, ConnectError, Connection, PrivateServer, RequestError, SessionEnd, Sessions, chroot, within,
};
use tokio::sync::watch;
use tokio::time::timeout;

use super::connect::{config, create};
use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_testkit::wait::{eventually, eventually_some};

/// Generous: the machine may be busy with other servers.
const LIMIT: Duration = Duration::from_secs(30);

/// The log of this whole process, readable while it is written. A subscriber for one thread would miss lines: whether
/// a line is wanted is remembered for all threads, by the one that comes there first.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn of_this_process() -> &'static Self {
        static LOG: LazyLock<Log> = LazyLock::new(|| {
            let log = Log::default();
            let writer = log.clone();
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
            log
        });
        &LOG
    }

    /// How many lines of ours about the servers at `connect_string` say `what`.
    fn count(&self, connect_string: &str, what: &str) -> usize {
        let log = self.0.lock().unwrap();
        let servers = format!("zookeeper={connect_string}");
        let ours = |line: &&str| line.contains(what) && line.split_whitespace().any(|word| word == servers);
        String::from_utf8_lossy(&log).lines().filter(ours).count()
    }
}

async fn awaits(
    states: &mut watch::Receiver<Connection>,
    what: &str,
    is: impl FnMut(&Connection) -> bool,
) -> Connection {
    let found = timeout(LIMIT, states.wait_for(is)).await.unwrap_or_else(|_| panic!("not within {LIMIT:?}: {what}"));
    found.unwrap().clone()
}

#[tokio::test]
async fn a_server_that_comes_late_is_found_and_its_absence_is_logged_once() {
    let log = Log::of_this_process();
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    server.kill().unwrap();
    let mut sessions = Sessions::new(config(&server.connect_string()));
    let mut states = sessions.subscribe();
    let owner = tokio::spawn(async move { (sessions.establish().await.unwrap(), sessions) });

    let waiting = awaits(&mut states, "three failed attempts", |state| {
        matches!(state, Connection::Connecting { failed_attempts: 3.., .. })
    });
    let Connection::Connecting { last_error: Some(error), .. } = waiting.await else { panic!("no reason is given") };
    assert!(error.failures().unwrap().iter().all(|(_, symptom)| *symptom == Symptom::Refused), "{error}");
    assert_eq!(log.count(&server.connect_string(), "retrying"), 1);
    assert_eq!(log.count(&server.connect_string(), "connection refused"), 1);

    server.restart().await.unwrap();
    let (client, _sessions) = timeout(LIMIT, owner).await.unwrap().unwrap();
    assert!(states.borrow().is_connected());
    create(&client, "/late", b"").await;
    assert_eq!(log.count(&server.connect_string(), "connected to ZooKeeper"), 1);
}

#[tokio::test]
async fn a_cut_is_reported_and_a_lost_session_replaced() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let proxy = Proxy::start(server.port()).await;
    let short = Duration::from_secs(10);
    let mut sessions = Sessions::new(Config { session_timeout: short, ..config(&proxy.connect_string()) });
    let mut states = sessions.subscribe();
    let client = sessions.establish().await.unwrap();
    let first = client.session_id();
    let connected = |state: &Connection| state.is_connected();

    // A short cut: the session is saved, and it is another connection.
    let follower = tokio::spawn(async move { (sessions.follow(&client).await, sessions) });
    proxy.cut(Newcomers::Close);
    awaits(
        &mut states,
        "the cut",
        |state| matches!(state, Connection::Disconnected { session, .. } if *session == first),
    )
    .await;
    proxy.restore();
    let state = awaits(&mut states, "the reconnection", connected).await;
    let Connection::Connected { session, sessions: 1, connections: 2, .. } = state else { panic!("{state:?}") };
    assert_eq!(session, first);

    // A long one: the session is over.
    proxy.cut(Newcomers::Refuse);
    let (end, mut sessions) = timeout(LIMIT, follower).await.unwrap().unwrap();
    assert_eq!(end, SessionEnd::Expired);
    assert!(matches!(*states.borrow(), Connection::Ended { end: SessionEnd::Expired, .. }));
    proxy.restore();
    let client = timeout(LIMIT, sessions.establish()).await.unwrap().unwrap();
    let state = states.borrow_and_update().clone();
    let Connection::Connected { session, sessions: 2, connections: 3, .. } = state else { panic!("{state:?}") };
    assert!(session == client.session_id() && session != first);

    // The server itself, killed and back within the session timeout, saves the session from its log.
    create(&client, "/kept", b"x").await;
    let watched = client.clone();
    let follower = tokio::spawn(async move { sessions.follow(&watched).await });
    server.kill().unwrap();
    awaits(&mut states, "the kill", |state| matches!(state, Connection::Disconnected { .. })).await;
    server.restart().await.unwrap();
    let state = awaits(&mut states, "an end or a reconnection", |state| {
        matches!(state, Connection::Connected { .. } | Connection::Ended { .. })
    });
    // A slow machine may take longer than the session lasts: then it ends, and either is reported.
    if let Connection::Connected { session: again, .. } = state.await {
        assert_eq!(again, session);
        let kept = async || client.get_data("/kept").await.ok();
        assert_eq!(eventually_some(LIMIT, "it answers", kept).await.0, b"x");
    } else {
        assert_eq!(timeout(LIMIT, follower).await.unwrap().unwrap(), SessionEnd::Expired);
    }
}

#[tokio::test]
async fn a_session_that_no_server_knows_any_more_is_replaced_long_before_it_ends() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let long = Duration::from_secs(40);
    let mut sessions = Sessions::new(Config { session_timeout: long, ..config(&server.connect_string()) });
    let mut states = sessions.subscribe();
    sessions = sessions.without_ephemerals();
    let client = sessions.establish().await.unwrap();
    // What it has seen, an empty server has not, and so refuses it.
    create(&client, "/seen", b"").await;
    let first = client.session_id();
    let follower = tokio::spawn(async move { (sessions.follow(&client).await, sessions) });
    server.kill().unwrap();
    server.lose_data().unwrap();
    server.restart().await.unwrap();

    let (end, mut sessions) = timeout(LIMIT, follower).await.unwrap().unwrap();
    assert_eq!(end, SessionEnd::Replaced);
    assert!(matches!(*states.borrow_and_update(), Connection::Ended { end: SessionEnd::Replaced, .. }));
    let client = timeout(LIMIT, sessions.establish()).await.unwrap().unwrap();
    let state = states.borrow_and_update().clone();
    let Connection::Connected { session, sessions: 2, connections: 2, .. } = state else { panic!("{state:?}") };
    assert!(session == client.session_id() && session != first);
    create(&client, "/new", b"").await;
}

#[tokio::test]
async fn a_stalled_answer_leaves_a_request_unanswered_in_time_although_it_was_carried_out() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let proxy = Proxy::start(server.port()).await;
    let stalled = config(&proxy.connect_string()).connect().await.unwrap();
    let direct = config(&server.connect_string()).connect().await.unwrap();
    create(&direct, "/a", b"old").await;

    proxy.stall(Direction::ToClient);
    let write = within(Duration::from_millis(300), stalled.set_data("/a", b"new", None)).await.unwrap_err();
    assert!(matches!(write, RequestError::TimedOut { .. }) && write.is_connection(), "{write}");
    eventually(LIMIT, "the write arrives at the server", async || direct.get_data("/a").await.unwrap().0 == b"new")
        .await;

    proxy.stall(Direction::ToServer);
    let read = within(Duration::from_millis(300), stalled.get_data("/a")).await.unwrap_err();
    assert!(read.is_connection(), "{read}");

    proxy.restore();
    let read = async || within(LIMIT, stalled.get_data("/a")).await.ok();
    assert_eq!(eventually_some(LIMIT, "answers come again", read).await.0, b"new");
    assert_eq!(proxy.accepted(), 1, "a stall keeps the connection");
    let no_node = within(LIMIT, stalled.get_data("/b")).await.unwrap_err();
    assert!(!no_node.is_connection(), "{no_node}");
}

#[tokio::test]
async fn a_session_waits_for_its_chroot_and_shows_when_it_is_removed() {
    let log = Log::of_this_process();
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let root = config(&server.connect_string()).connect().await.unwrap();
    let at = format!("{}/merritt/queue", server.connect_string());
    let mut sessions = Sessions::new(config(&at));
    let mut states = sessions.subscribe();
    let mut others = Sessions::new(config(&at)).beside_another();
    let mut despite = Sessions::new(config(&at)).despite_missing_chroot();
    assert_eq!(timeout(LIMIT, despite.establish()).await.unwrap().unwrap().check_stat("/").await.unwrap(), None);
    let owner = tokio::spawn(async move { (sessions.establish().await.unwrap(), sessions) });
    let other = tokio::spawn(async move { others.establish().await.unwrap() });
    let is_missing = |state: &Connection| match state {
        Connection::Connecting { last_error: Some(error), .. } => matches!(**error, ConnectError::NoChroot(_)),
        _ => false,
    };
    let waiting = awaits(&mut states, "the missing chroot", is_missing).await;
    let problem = waiting.problem().unwrap();
    assert!(problem.starts_with("ZooKeeper has no znode /merritt/queue: ") && !problem.contains('\n'), "{problem}");

    // Neither its parent nor another server process makes it up.
    create(&root, "/merritt", b"").await;
    server.kill().unwrap();
    server.restart().await.unwrap();
    let root = config(&server.connect_string()).connect().await.unwrap();
    assert!(is_missing(&states.borrow_and_update()) && !owner.is_finished() && !other.is_finished());
    create(&root, "/merritt/queue", b"").await;
    let (client, _sessions) = timeout(LIMIT, owner).await.unwrap().unwrap();
    timeout(LIMIT, other).await.unwrap().unwrap();
    assert!(states.borrow().is_connected());
    assert_eq!(log.count(&at, "has no znode /merritt/queue"), 1);

    let servers = at.parse().unwrap();
    let mut removed = Box::pin(chroot::removed(&client, &servers));
    let change = within(LIMIT, root.set_data("/merritt/queue", b"x", None));
    tokio::select! {
        () = &mut removed => panic!("it is still there"),
        set = change => drop(set.unwrap()),
    }
    root.delete("/merritt/queue", None).await.unwrap();
    timeout(LIMIT, removed).await.unwrap();
}
