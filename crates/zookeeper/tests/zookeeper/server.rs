//! The private server: what it leaves behind, and what it says when it cannot start.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{PrivateServer, ServerError, within};
use rustix::process::{Pid, getpgid};

use super::connect::{config, create};
use queuekeeper_testkit::wait::{eventually, eventually_some};

const LIMIT: Duration = Duration::from_secs(30);

/// The environment variable that makes [`an_owner_that_waits_to_be_killed`] do so, and where it says what it owns.
const OWNER: &str = "QUEUEKEEPER_TEST_OWNER";

/// Whether a process runs; one that ended and was not yet awaited by its parent does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The processes whose command line names `directory`: the server, and the shell that guards it.
fn processes_of(directory: &Path) -> Vec<u32> {
    let directory = directory.to_str().unwrap();
    let names_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(directory)
    };
    let numbers =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(names_it).collect()
}

/// The addresses on which a process listens at a port, as the kernel writes them.
fn listening_at(port: u16) -> Vec<String> {
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default());
    let sockets = tables.iter().flat_map(|table| table.lines()).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listening = sockets.filter(|fields| fields.get(3) == Some(&"0A"));
    let ending = format!(":{port:04X}");
    listening.filter_map(|fields| Some(fields[1].strip_suffix(&*ending)?.to_owned())).collect()
}

#[tokio::test]
async fn a_dropped_server_leaves_neither_process_nor_directory() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let (pid, directory) = (server.pid().unwrap(), server.directory().to_owned());
    assert!(runs(pid) && directory.join("zoo.cfg").is_file());
    // No other user of the machine can read it, and no other machine can reach it.
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let listening = listening_at(server.port());
    assert!(!listening.is_empty() && listening.iter().all(|address| address.ends_with("0100007F")), "{listening:?}");
    assert_eq!(processes_of(&directory).len(), 2);
    let group = |pid: Option<u32>| getpgid(pid.and_then(|pid| Pid::from_raw(pid.cast_signed()))).unwrap();
    for process in processes_of(&directory) {
        assert_ne!(group(Some(process)), group(None), "the terminal's Ctrl-C would reach it");
    }
    drop(server);
    assert!(!runs(pid));
    assert!(!directory.exists());
    assert!(processes_of(&directory).is_empty());
}

#[tokio::test]
async fn a_server_whose_owner_is_killed_leaves_neither_process_nor_directory() {
    let files = tempfile::tempdir().unwrap();
    let report = files.path().join("owned");
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "zookeeper::server::an_owner_that_waits_to_be_killed", "--ignored"])
        .env(OWNER, &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let reported = async || std::fs::read_to_string(&report).ok().filter(|text| text.ends_with('\n'));
    // A server may take a minute to start.
    let reported = eventually_some(4 * LIMIT, "the owner has a server", reported).await;
    let (pid, directory) = reported.trim_end().split_once(' ').unwrap();
    let (pid, directory) = (pid.parse().unwrap(), PathBuf::from(directory));
    assert!(runs(pid) && directory.exists());

    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually(LIMIT, "the server ends", async || !runs(pid)).await;
    eventually(LIMIT, "its directory is removed", async || !directory.exists()).await;
    eventually(LIMIT, "its guard ends", async || processes_of(&directory).into_iter().all(|pid| !runs(pid))).await;
}

/// The other process of the test above; by itself it does nothing.
#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn an_owner_that_waits_to_be_killed() {
    let Some(report) = std::env::var_os(OWNER) else { return };
    let server = PrivateServer::start(Options::default()).await.unwrap();
    std::fs::write(report, format!("{} {}\n", server.pid().unwrap(), server.directory().display())).unwrap();
    std::future::pending::<()>().await;
}

/// An unpacked release as far as its `lib` goes: links to the jars of the system's package.
fn unpacked_release(home: &Path) {
    let lib = home.join("lib");
    std::fs::create_dir(&lib).unwrap();
    for (name, jar) in [("zookeeper-3.8.0.jar", "zookeeper.jar"), ("slf4j-simple.jar", "slf4j-simple.jar")] {
        std::os::unix::fs::symlink(Path::new("/usr/share/java").join(jar), lib.join(name)).unwrap();
    }
}

#[tokio::test]
async fn a_directory_of_the_callers_keeps_its_data_over_servers() {
    let (home, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    unpacked_release(home.path());
    let options = Options {
        home: Some(home.path().to_owned()),
        directory: Some(kept.path().to_owned()),
        snap_count: Some(100),
        durable: true,
        ..Options::default()
    };
    let mut server = PrivateServer::start(options.clone()).await.unwrap();
    let (port, pid) = (server.port(), server.pid());
    let client = config(&server.connect_string()).connect().await.unwrap();
    create(&client, "/kept", b"x").await;

    server.suspend();
    assert!(within(Duration::from_millis(300), client.get_data("/kept")).await.unwrap_err().is_connection());
    server.resume();
    assert_eq!(within(LIMIT, client.get_data("/kept")).await.unwrap().0, b"x");

    server.restart().await.unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    server.suspend();
    server.stop().await.unwrap();
    assert_eq!(server.pid(), None);
    drop(server);

    let server = PrivateServer::start(options).await.unwrap();
    let client = config(&server.connect_string()).connect().await.unwrap();
    assert_eq!(client.get_data("/kept").await.unwrap().0, b"x");
}

#[tokio::test]
async fn what_is_not_installed_or_does_not_start_is_said() {
    let empty = tempfile::tempdir().unwrap();
    let options = Options { home: Some(empty.path().to_owned()), ..Options::default() };
    let error = PrivateServer::start(options).await.unwrap_err();
    assert!(matches!(error, ServerError::NotInstalled(_)), "{error}");
    assert!(error.to_string().contains("apt-get install zookeeper"), "{error}");

    let error = PrivateServer::start(Options { heap_mib: 1, ..Options::default() }).await.unwrap_err();
    let ServerError::NotStarted { log_tail, log, .. } = error else { panic!("{error}") };
    assert!(log_tail.contains("heap"), "{log_tail}");
    assert!(!log.exists());
}
