//! Objects whose writer was stopped, repaired from the command line.

use std::path::Path;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_queue::Queue;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_store::audit::Change;
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Root, Start, User};
use queuekeeper_store::{Algorithm, DirectoryStore, Hashers, Store};
use queuekeeper_testkit::server::connect;
use rustix::process::Signal;
use std::sync::Arc;

use super::program::run;
use super::repository::Repository;
use super::standalone::{ark, files, submit};

/// Content for the next version of an object, of a job that is stopped before the version is made.
pub(crate) async fn begin(objects: &Path, ark: &str) {
    let store: Arc<dyn Store> =
        Arc::new(DirectoryStore::open("main".parse().unwrap(), objects.to_owned()).await.unwrap());
    let object = Root::open(store, "default".parse().unwrap()).await.unwrap().object(ark).unwrap();
    let job = uuid::Uuid::new_v4();
    let new = NewVersion {
        job,
        content: job,
        user: User { name: "a user".to_owned(), address: None },
        message: String::new(),
        created: Timestamp::now(),
        start: Start::Empty,
    };
    let Begun::Writer(mut writer) = object.begin(new).await.unwrap() else { panic!("the job is new") };
    let content = NewFile::new(|| stream::iter([Ok("left".into())]).boxed());
    writer.add("producer/left.txt", content).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_writer_was_stopped_is_repaired_once_and_never_while_it_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("a.txt");
    let (text, path) = (data.display().to_string(), file.display().to_string());
    let mut repository = Repository::start(&data);
    let deposit = [&path, "--profile", "default", "--local-id", "one"];
    std::fs::write(&file, "content").unwrap();
    let object = ark(&submit(&data, &deposit).await.json());
    std::fs::write(&file, "other content").unwrap();
    ark(&submit(&data, &deposit).await.json());
    let of_version = ["object", "show", &object, "--data", &text, "--version", "1", "-o", "json"];
    let shown = run(&data, &of_version).await.json();
    let size = |shown: &serde_json::Value| {
        let files = shown["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == "producer/a.txt").unwrap()["size_bytes"].as_u64().unwrap()
    };
    assert_eq!((shown["version"].as_u64(), size(&shown)), (Some(1), 7), "{shown}");
    run(&data, &["object", "show", &object, "--data", &text, "--version", "3"])
        .await
        .is(4, &["has no version 3; its newest is 2"]);

    let repair = ["object", "repair", &object, "--data", &text];
    let with = |more: &[&'static str]| [repair.as_slice(), more].concat();
    run(&data, &repair).await.is(2, &["no terminal to prompt on: pass --yes to "]);
    run(&data, &with(&["--yes"])).await.is(0, &["nothing needs to be repaired"]);

    // The state between the inventory of a version and what follows from it.
    let objects = data.join("objects");
    let inventories = files(&objects.join("default"));
    let declared = inventories.iter().find(|path| path.ends_with("0=ocfl_object_1.1")).unwrap();
    let root = declared.parent().unwrap();
    let put_back = || {
        for name in ["inventory.json", "inventory.json.sha512"] {
            std::fs::copy(root.join("v1").join(name), root.join(name)).unwrap();
        }
    };
    put_back();
    let verify = ["object", "verify", &object, "--data", &text];
    run(&data, &verify).await.is(1, &["the newest version is 2 in the catalogue and 1 in the inventory"]);
    let planned = run(&data, &with(&["--dry-run"])).await;
    planned.is(0, &["newest        version 1", "would be finished"]);
    run(&data, &verify).await.is(1, &["the newest version is 2 in the catalogue and 1 in the inventory"]);

    // A job that stores the object holds its lock.
    let servers = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let queue = Queue::new(connect(&servers).await);
    let lock = queue.lock_object(LockFolder::Storage, &object).await.unwrap();
    run(&data, &with(&["--yes"])).await.is(3, &["is being stored", "nothing was done"]);
    queue.unlock(&lock).await.unwrap();
    run(&data, &with(&["--yes"])).await.is(0, &["was finished"]);
    run(&data, &verify).await.is(0, &["nothing differs"]);

    // Without a process that works there: content of a version that was never made.
    repository.stop(Signal::TERM);
    begin(&objects, &object).await;
    run(&data, &verify).await.is(1, &["no inventory names it"]);
    run(&data, &with(&["--yes"])).await.is(3, &["left, because it is recent", "may still be in use"]);
    run(&data, &verify).await.is(1, &["no inventory names it"]);
    let all = ["--yes", "--abandoned-after", "0", "-o", "json"];
    let repaired = run(&data, &with(&all)).await.json();
    assert_eq!((&repaired["removed"], &repaired["version"]), (&1.into(), &2.into()), "{repaired}");
    run(&data, &verify).await.is(0, &["nothing differs"]);
    assert_eq!(run(&data, &with(&all)).await.json()["removed"], 0);

    // An object that the catalogue does not have, since its first version was never made.
    let lost = "ark:/99999/fk4lost";
    begin(&objects, lost).await;
    let repair = ["object", "repair", lost, "--data", &text, "--yes", "--abandoned-after", "0"];
    run(&data, &repair).await.is(0, &["1 item that no inventory names: removed"]);
    run(&data, &repair).await.is(4, &["none of its content is in the spaces of the profiles"]);

    let catalogue = Catalogue::open(&format!("sqlite:{text}/catalogue.db")).await.unwrap();
    let events = catalogue.events(&Events::All, None, 100).await.unwrap();
    // Beside those of the daemons, which stored the object.
    let ours = events.iter().filter(|event| event.user != "ingest");
    let count = |change: Change| ours.clone().filter(|event| event.kind == EventKind::Made(change)).count();
    assert_eq!((count(Change::Delete), count(Change::Update)), (2, 2), "{events:?}");
    catalogue.close().await;

    rebuild(&data, &object).await;
}

/// Loses the catalogue of a repository with one object of two versions, and makes it again.
async fn rebuild(data: &Path, object: &str) {
    let text = data.display().to_string();
    let verify = ["object", "verify", object, "--data", &text];
    for name in ["catalogue.db", "catalogue.db-wal", "catalogue.db-shm"] {
        let _ = std::fs::remove_file(data.join(name));
    }
    run(data, &verify).await.is(4, &["catalogue.db: there is none"]);
    let rebuild = ["catalogue", "rebuild", "--data", &text];
    run(data, &rebuild).await.is(2, &["no terminal to prompt on: pass --yes to "]);
    let rebuild = [rebuild.as_slice(), &["--yes"]].concat();
    // One that lost its catalogue is not begun anew.
    let standalone = ["standalone", "--data", &text, "--web.listen-address", "127.0.0.1:0"];
    run(data, &standalone).await.is(1, &["the queue has catalogue", "see queuekeeper catalogue rebuild --help"]);
    run(data, &rebuild).await.is(0, &["2 added, 0 corrected, 0 were right", "found nothing wrong"]);
    let mut repository = Repository::start(data);
    run(data, &rebuild).await.is(3, &["is used by another process; stop the repository first"]);
    let servers = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let client = connect(&servers).await;
    let (noted, _) = client.get_data("/queuekeeper/catalogue").await.unwrap();
    let catalogue = Catalogue::open(&format!("sqlite:{text}/catalogue.db")).await.unwrap();
    assert_eq!(String::from_utf8(noted).unwrap(), catalogue.id().to_string());
    catalogue.close().await;
    repository.stop(Signal::TERM);
    assert!(!data.join("catalogue.rebuilt").exists());
    run(data, &verify).await.is(0, &["nothing differs"]);
    run(data, &["object", "show", "one", "--data", &text]).await.is(0, &[object]);
    std::fs::write(data.join("objects/default/stray"), "x").unwrap();
    run(data, &rebuild).await.is(6, &["0 added, 0 corrected, 2 were right", "main/default/stray"]);

    // An object whose inventory the store does not give out: what is said of it cannot be read.
    std::fs::remove_file(data.join("objects/default/stray")).unwrap();
    let objects = data.join("objects/default");
    let inventories = files(&objects);
    let inventory = inventories.iter().find(|path| path.ends_with("v1/inventory.json")).unwrap();
    let inventory = inventory.ancestors().nth(2).unwrap().join("inventory.json");
    let mut hasher = Hashers::new([Algorithm::Sha256]);
    hasher.update(inventory.strip_prefix(&objects).unwrap().to_str().unwrap().as_bytes());
    let key = hasher.finish().strongest().unwrap().hex();
    let records = files(&data.join("objects/.queuekeeper/records/default").join(&key[..3]));
    // Each writing of it has left one.
    for record in records.iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&key[3..])) {
        std::fs::remove_file(record).unwrap();
        std::fs::create_dir(record).unwrap();
    }
    let ran = run(data, &rebuild).await;
    ran.is(6, &["0 added, 0 corrected, 0 were right", "1 object could not be read"]);
    assert!(ran.err.contains(&format!("cannot read {object}")) && ran.err.contains("inventory.json"), "{ran:?}");
}
