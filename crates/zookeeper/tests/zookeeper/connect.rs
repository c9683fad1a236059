//! One attempt: chroot, credentials, and what is said when there is no session.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use queuekeeper_zookeeper::connections::NoConnections;
use queuekeeper_zookeeper::diagnose::Symptom;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Auth, Config, ConnectError, PrivateServer, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zookeeper_client::{Acls, Client, CreateMode, Error};

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::eventually_some;

const LIMIT: Duration = Duration::from_secs(30);

/// With time enough for a first handshake on a busy machine: a connection may take two fifths of the session timeout.
pub(crate) fn config(connect_string: &str) -> Config {
    Config { session_timeout: Duration::from_secs(30), ..Config::new(connect_string.parse().unwrap()) }
}

pub(crate) async fn create(client: &Client, path: &str, data: &[u8]) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create(path, data, &options).await.unwrap();
}

#[tokio::test]
async fn a_chroot_is_below_what_a_client_without_sees() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = config(&server.connect_string()).connect().await.unwrap();
    create(&root, "/merritt", b"").await;
    let below = config(&format!("{}/merritt/", server.connect_string())).connect().await.unwrap();
    create(&below, "/jobs", b"x").await;
    create(&below, "/jobs/jid0000000000", b"y").await;

    let seen_below = read_tree(&below, "/", &[]).await;
    let seen: Vec<_> = read_tree(&root, "/", &[]).await.into_keys().collect();
    assert_eq!(seen, ["/", "/merritt", "/merritt/jobs", "/merritt/jobs/jid0000000000"]);
    assert_eq!(seen_below.keys().collect::<Vec<_>>(), ["/", "/jobs", "/jobs/jid0000000000"]);
    assert_eq!(seen_below["/jobs/jid0000000000"], root.get_data("/merritt/jobs/jid0000000000").await.unwrap());
    assert_eq!(read_tree(&root, "/", &["/merritt/jobs"]).await.len(), 2);

    let nowhere = config(&format!("{}/nowhere", server.connect_string()));
    let error = nowhere.connect().await.unwrap_err();
    assert!(matches!(error, ConnectError::NoChroot(_)) && error.is_retryable(), "{error}");
    let command = format!("zkCli.sh -server {} create /nowhere", server.connect_string());
    assert!(error.to_string().contains(&command), "{error}");
    let nowhere = nowhere.connect_anywhere().await.unwrap();
    assert_eq!(within(LIMIT, nowhere.check_stat("/")).await.unwrap(), None);
    assert!(read_tree(&nowhere, "/", &[]).await.is_empty());
}

#[tokio::test]
async fn credentials_open_the_nodes_of_their_owner_and_wrong_ones_show_as_no_auth() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let connect = async |line: &str| {
        let file = files.path().join("auth");
        std::fs::write(&file, line).unwrap();
        let auth = Auth::read_file(&file).unwrap();
        Config { auth, ..config(&server.connect_string()) }.connect().await
    };
    let owner = connect("digest:keeper:right").await.unwrap();
    let private = CreateMode::Persistent.with_acls(Acls::creator_all());
    owner.create("/private", b"x", &private).await.unwrap();

    assert_eq!(connect("digest:keeper:right").await.unwrap().get_data("/private").await.unwrap().0, b"x");
    for stranger in
        [connect("digest:keeper:wrong").await.unwrap(), config(&server.connect_string()).connect().await.unwrap()]
    {
        assert_eq!(stranger.get_data("/private").await.unwrap_err(), Error::NoAuth);
    }

    let refused = connect("nosuchscheme:x").await.unwrap_err();
    assert!(matches!(refused, ConnectError::AuthRefused { .. }), "{refused}");
    assert!(!refused.is_retryable());
    let reported = format!("ZooKeeper at {} refused the credentials of --zookeeper.auth-file", server.connect_string());
    assert!(refused.to_string().contains(&reported) && refused.to_string().contains("nosuchscheme"), "{refused}");
}

#[tokio::test]
async fn what_does_not_serve_is_named_host_by_host_in_one_line() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let proxy = Proxy::start(server.port()).await;
    proxy.cut(Newcomers::Close);
    server.kill().unwrap();
    let both = format!("{},localhost:{},{}", server.connect_string(), server.port(), proxy.connect_string());
    let said = eventually_some(LIMIT, "a step takes no longer than a diagnosis gives it", async || {
        let error = config(&both).connect().await.unwrap_err();
        assert!(error.is_retryable());
        let said = error.to_string();
        let symptoms: Vec<_> = error.failures().expect(&said).iter().map(|(_, symptom)| symptom).collect();
        (symptoms == [&Symptom::Refused, &Symptom::Refused, &Symptom::NoAnswer]).then_some(said)
    })
    .await;
    let listed = format!("{0}, localhost:{1}: connection refused", server.connect_string(), server.port());
    assert!(said.contains(&listed) && !said.contains('\n'), "{said}");
    assert!(said.contains("does not answer as ZooKeeper"), "{said}");
}

#[tokio::test]
async fn timeouts_that_cannot_work_are_refused_before_any_attempt() {
    let base = config("127.0.0.1:1");
    for (session, connection, allowed) in [
        (Duration::from_millis(99), None, "100 ms to one hour"),
        (Duration::from_hours(2), None, "100 ms to one hour"),
        (Duration::from_secs(10), Some(Duration::from_secs(7)), "10 ms to 6000 ms"),
        (Duration::from_secs(10), Some(Duration::ZERO), "10 ms to 6000 ms"),
    ] {
        let config = Config { session_timeout: session, connection_timeout: connection, ..base.clone() };
        let error = config.connect().await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)) && !error.is_retryable());
        assert!(error.to_string().contains(allowed), "{error}");
        assert_eq!(config.check().unwrap_err().to_string(), error.to_string());
    }
}

#[tokio::test]
async fn a_session_is_found_at_the_address_of_its_client_or_it_is_said_why_not() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let own = config(&server.connect_string());
    let client = own.connect().await.unwrap();
    // A busy server may not answer in time.
    let found = async || Some(own.connections().await).filter(|found| found.failures.is_empty());
    let found = eventually_some(LIMIT, "it is found", found).await;
    let address = found.addresses[&client.session_id().0];
    assert!(address.ip().is_loopback() && address.port() > 0, "{address}");

    // A server that does not allow it, and one that is not there, report nothing; the others are queried all the same.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refusing = listener.local_addr().unwrap();
    let gone = format!("127.0.0.1:{}", free_port());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut command = [0; 4];
            stream.read_exact(&mut command).await.unwrap();
            let refusal: &[u8] = match &command {
                b"cons" => b"cons is not executed because it is not in the whitelist.\n",
                _ => b"",
            };
            stream.write_all(refusal).await.unwrap();
        }
    });
    let several = config(&format!("{},{refusing},{gone}", server.connect_string()));
    let refused = NoConnections::Unanswered(Symptom::Refused);
    let expected = [(refusing.to_string(), NoConnections::NotAllowed), (gone, refused)];
    let is_said = async || {
        let found = several.connections().await;
        let why: Vec<_> = found.failures.into_iter().map(|(host, why)| (host.to_string(), why)).collect();
        (why == expected && found.addresses.get(&client.session_id().0) == Some(&address)).then_some(())
    };
    eventually_some(LIMIT, "it is found, and why the others report nothing", is_said).await;
}
