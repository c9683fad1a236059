//! Repairs that are stopped in the middle: by a signal, and by the loss of the session that holds the object's lock.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::{eventually, eventually_some};
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

/// So many that removing them takes longer than a short session lasts.
const FILES: usize = 4_000;

/// How often it is tried to stop a repair in the middle. Where this process is held up, it is over before that.
const ATTEMPTS: usize = 5;

const ARK: &str = "ark:/99999/fk4lost";

/// How many files there are in a folder, which may be gone.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Makes the files that a repair removes; gives how many there are.
fn fill(folder: &Path) -> usize {
    std::fs::create_dir_all(folder).unwrap();
    for number in 0..FILES {
        std::fs::write(folder.join(format!("{number}.txt")), "x").unwrap();
    }
    count(folder)
}

/// Waits until a repair has begun to remove files; `false` where it ends before.
async fn has_begun(child: &mut Child, folder: &Path, before: usize) -> bool {
    eventually_some(LIMIT, "some files are removed", async || {
        if count(folder) < before { Some(true) } else { child.try_wait().unwrap().map(|_ended| false) }
    })
    .await
}

/// The exit code, and what was written to standard error.
async fn ended(child: Child) -> (Option<i32>, String) {
    let output = spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// It ended with 6, having printed each of these texts, and some of the files are left.
fn was_stopped((code, text): &(Option<i32>, String), printed: &[&str], folder: &Path, before: usize) {
    assert_eq!(*code, Some(6), "{text}");
    for part in printed {
        assert!(text.contains(part), "{part:?} is not printed: {text}");
    }
    let after = count(folder);
    assert!(0 < after && after < before, "{after} of {before}");
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
    let repair = |zookeeper: &str, session: &str| {
        let more = ["--yes", "--abandoned-after", "0", "--config.file", &config, "--profiles", &profiles];
        let session = ["--zookeeper.session-timeout", session, "--zookeeper", zookeeper];
        [["object", "repair", ARK].as_slice(), &more, &session].concat().into_iter().map(str::to_owned).collect()
    };
    let start = |arguments: &Vec<String>| {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        queuekeeper(directory.path(), &arguments).spawn().unwrap()
    };

    let direct: Vec<String> = repair(&server.connect_string(), "60s");
    let mut stopped = None;
    for _attempt in 0..ATTEMPTS {
        let before = fill(folder);
        let mut child = start(&direct);
        has_begun(&mut child, folder, before).await;
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let ended = ended(child).await;
        if ended.0 != Some(0) {
            stopped = Some((ended, before));
            break;
        }
    }
    let (ended_by_signal, before) = stopped.expect("a repair is interrupted before it is over");
    let left = "items that no inventory names: to be removed";
    let printed = ["it was interrupted; it was done in part", "Left to be done:", left];
    was_stopped(&ended_by_signal, &printed, folder, before);

    let is_free = async || client.list_children("/locks/storage").await.unwrap().is_empty();
    let mut stopped = None;
    // A session that is so short that a busy machine loses it by itself is followed by a longer one.
    for attempt in 0..ATTEMPTS {
        eventually(LIMIT, "the lock is gone", is_free).await;
        let before = fill(folder);
        let wire = Wire::start(server.port()).await;
        let mut child = start(&repair(&wire.connect_string(), &format!("{}s", 1 << attempt)));
        if has_begun(&mut child, folder, before).await {
            wire.arm(Some((Point::Unsent(1), Cut::Long)));
        }
        let ended = ended(child).await;
        if wire.was_cut() && ended.0 != Some(0) {
            stopped = Some((ended, before));
            break;
        }
    }
    let (ended_by_cut, before) = stopped.expect("a repair is cut off before it is over");
    let printed = ["the session with ZooKeeper was lost", "it was done in part", "Left to be done:"];
    was_stopped(&ended_by_cut, &printed, folder, before);

    eventually(LIMIT, "the lock is gone", is_free).await;
    let arguments: Vec<_> = direct.iter().map(String::as_str).collect();
    run(directory.path(), &arguments).await.is(0, &["items that no inventory names: removed"]);
    assert_eq!(count(folder), 0);
}
