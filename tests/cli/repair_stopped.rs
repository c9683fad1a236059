//! Repairs that are stopped in the middle: by a signal, and by the loss of the session that holds the object's lock.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::{Cut, Point, Wire};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::spawn_blocking;
use zookeeper_client::{Acls, Client, CreateMode};

use super::program::{queuekeeper, run};
use super::repairs::begin;
use super::standalone::files;

const LIMIT: Duration = Duration::from_mins(2);

/// So many that removing them takes longer than a session lasts.
const FILES: usize = 4_000;

const ARK: &str = "ark:/99999/fk4lost";

/// How many files there are in a folder, which may be gone.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Waits until a repair has begun to remove files.
async fn begun(folder: &Path) -> usize {
    let before = count(folder);
    eventually(LIMIT, "some files are removed", async || count(folder) < before).await;
    before
}

/// Ends with this code, having printed each of these texts.
async fn ends(child: Child, code: i32, printed: &[&str]) {
    let output = spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in printed {
        assert!(text.contains(part), "{part:?} is not printed: {text}");
    }
}

async fn create(client: &Client, path: &str, data: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create(path, data.as_bytes(), &options).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_is_interrupted_or_loses_its_session_begins_no_other_write_and_says_what_is_left() {
    let options = Options { tick: Duration::from_millis(200), ..Options::default() };
    let server = PrivateServer::start(options).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [objects, profiles, config] = ["objects", "profiles", "config.yml"].map(at);
    std::fs::create_dir(&objects).unwrap();
    std::fs::create_dir(&profiles).unwrap();
    let profile = "name: default\nowner: ark:/99999/o\nstore: main\nminter: {kind: noid, shoulder: ark:/99999/fk4}\n";
    std::fs::write(Path::new(&profiles).join("default.yaml"), profile).unwrap();
    let catalogue = format!("sqlite:{}", at("catalogue.db"));
    let text = format!("stores: {{main: {{url: \"file://{objects}\"}}}}\ncatalogue: {{url: \"{catalogue}\"}}\n");
    std::fs::write(&config, text).unwrap();
    let catalogue = Catalogue::open(&catalogue).await.unwrap();
    let client = connect(&server.connect_string()).await;
    create(&client, "/queuekeeper", "").await;
    create(&client, "/queuekeeper/catalogue", &catalogue.id().to_string()).await;
    catalogue.close().await;

    begin(Path::new(&objects), ARK).await;
    let left = files(&PathBuf::from(&objects)).into_iter().find(|path| path.ends_with("left.txt")).unwrap();
    let folder = left.parent().unwrap();
    for number in 1..FILES {
        std::fs::write(folder.join(format!("{number}.txt")), "x").unwrap();
    }
    let repair = |zookeeper: &str, session: &str| {
        let more = ["--yes", "--abandoned-after", "0", "--config.file", &config, "--profiles", &profiles];
        let session = ["--zookeeper.session-timeout", session, "--zookeeper", zookeeper];
        [["object", "repair", ARK].as_slice(), &more, &session].concat().into_iter().map(str::to_owned).collect()
    };
    let start = |arguments: &Vec<String>| {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        queuekeeper(directory.path(), &arguments).spawn().unwrap()
    };

    let direct: Vec<String> = repair(&server.connect_string(), "20s");
    let child = start(&direct);
    let before = begun(folder).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    ends(
        child,
        6,
        &[
            "it was interrupted; it was done in part",
            "Left to be done:",
            "items that no inventory names: to be removed",
        ],
    )
    .await;
    let after = count(folder);
    assert!(0 < after && after < before, "{after} of {before}");

    let port = server.connect_string().rsplit_once(':').unwrap().1.parse().unwrap();
    let wire = Wire::start(port).await;
    let child = start(&repair(&wire.connect_string(), "1s"));
    let before = begun(folder).await;
    wire.arm(Some((Point::Unsent(1), Cut::Long)));
    ends(child, 6, &["the session with ZooKeeper was lost", "it was done in part", "Left to be done:"]).await;
    let after = count(folder);
    assert!(wire.was_cut() && 0 < after && after < before, "{after} of {before}");

    eventually(LIMIT, "the lock is gone", async || client.list_children("/locks/storage").await.unwrap().is_empty())
        .await;
    let arguments: Vec<_> = direct.iter().map(String::as_str).collect();
    run(directory.path(), &arguments).await.is(0, &["items that no inventory names: removed"]);
    assert_eq!(count(folder), 0);
}
