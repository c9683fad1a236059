//! A repository in one directory, as its owner runs it.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::program::run;
use super::repository::Repository;

pub(crate) async fn submit(data: &Path, more: &[&str]) -> super::program::Ran {
    let data_text = data.display().to_string();
    let arguments = [&["submit", "--data", &data_text, "--wait", "-o", "json"], more].concat();
    run(data, &arguments).await
}

pub(crate) fn ark(receipt: &Value) -> String {
    assert_eq!((&receipt["state"], &receipt["completed"]), (&"Completed".into(), &1.into()), "{receipt}");
    receipt["arks"][0].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_takes_deposits_and_goes_on_where_it_was_stopped_or_killed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("a.txt");
    std::fs::write(&file, "content").unwrap();
    let path = file.display().to_string();
    submit(&data, &[&path, "--profile", "default"]).await.is(2, &["is queuekeeper standalone running there?"]);

    let mut repository = Repository::start(&data);
    let digest = "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
    let deposit = ["--profile", "default", "--local-id", "one", "--title", "A title", "--digest", digest];
    let made = submit(&data, &[&[path.as_str()], deposit.as_slice()].concat()).await.json();
    let first = ark(&made);
    // Another process must not work in the same directory.
    let text = data.display().to_string();
    let second = ["standalone", "--data", &text, "--web.listen-address", "127.0.0.1:0"];
    run(&data, &second).await.is(1, &["is used by another process"]);
    submit(&data, &[&path, "--profile", "other"]).await.is(3, &["there is no valid profile \"other\""]);
    submit(&data, &[&path, "--profile", "default", "--digest", &format!("sha256:{}", "0".repeat(64))])
        .await
        .is(3, &["expected the sha256 digest 0000", "found ed7002b4"]);
    let page = reqwest::get(format!("{}/metrics", repository.address)).await.unwrap().text().await.unwrap();
    assert!(page.contains("merritt_daemon_ended_total{daemon=\"storing\",outcome=\"done\"} 1"), "{page}");
    let puts = "queuekeeper_store_requests_total{store=\"main\",operation=\"put\",outcome=\"ok\"} ";
    let puts = page.lines().find_map(|line| line.strip_prefix(puts)).and_then(|count| count.parse::<u64>().ok());
    assert!(puts.is_some_and(|puts| puts > 0), "{page}");
    repository.stop(Signal::TERM);

    // The same batch made again with its UUID is the same batch, and the object the same after a restart.
    let mut repository = Repository::start(&data);
    let uuid = made["id"].as_str().unwrap().trim_start_matches("bid-").to_owned();
    let again = submit(&data, &[&[path.as_str()], deposit.as_slice(), &["--uuid", &uuid]].concat()).await.json();
    assert_eq!((&again["batch"], ark(&again)), (&made["batch"], first.clone()));
    repository.stop(Signal::KILL);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut repository = Repository::start(&data);
    let other = directory.path().join("b.txt");
    std::fs::write(&other, "more").unwrap();
    let other = other.display().to_string();
    let updated = submit(&data, &[&other, "--profile", "default", "--local-id", "one", "--update"]).await.json();
    assert_eq!(ark(&updated), first);
    repository.stop(Signal::TERM);
    let objects = data.join("objects/default");
    let (mut inventories, mut folders) = (Vec::new(), vec![objects]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false if entry.file_name() == "inventory.json" => inventories.push(entry.path()),
                false => {}
            }
        }
    }
    let newest = inventories.iter().map(|path| std::fs::read_to_string(path).unwrap()).max_by_key(String::len).unwrap();
    let inventory: Value = serde_json::from_str(&newest).unwrap();
    assert_eq!((&inventory["id"], &inventory["head"]), (&first.into(), &"v2".into()));
    let state: Vec<_> =
        inventory["versions"]["v2"]["state"].as_object().unwrap().values().map(Value::to_string).collect();
    for name in ["producer/a.txt", "producer/b.txt", "system/mrt-erc.txt"] {
        assert!(state.iter().any(|paths| paths.contains(name)), "{name} is missing in {state:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_ends_with_its_zookeeper_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut repository = Repository::start(&directory.path().join("data"));
    kill_process(repository.zookeeper(), Signal::KILL).unwrap();
    let (code, err) = repository.ended();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("error: the repository's ZooKeeper has ended (signal: 9"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_does_not_start_while_its_objects_are_away() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    Repository::start(&data).stop(Signal::TERM);
    let [objects, away] = ["objects", "away"].map(|name| data.join(name));
    std::fs::rename(&objects, &away).unwrap();
    let start = ["standalone", "--data", data.to_str().unwrap(), "--web.listen-address", "127.0.0.1:0"];
    for is_mount_point in [false, true] {
        if is_mount_point {
            std::fs::create_dir(&objects).unwrap();
        }
        run(directory.path(), &start).await.is(1, &["there is a catalogue; mount its volume"]);
        assert_eq!(objects.exists(), is_mount_point);
    }
    std::fs::remove_dir(&objects).unwrap();
    std::fs::rename(&away, &objects).unwrap();
    Repository::start(&data).stop(Signal::TERM);
}

/// The files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_shown_read_and_verified_and_each_damage_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("a.txt");
    std::fs::write(&file, "content").unwrap();
    let text = data.display().to_string();
    let mut repository = Repository::start(&data);
    let deposit = [&file.display().to_string(), "--profile", "default", "--local-id", "an id", "--title", "A title"];
    let ark = ark(&submit(&data, &deposit).await.json());
    let verify = ["object", "verify", &ark, "--data", &text];
    let sound = run(&data, &[verify.as_slice(), &["-o", "json"]].concat()).await.json();
    assert_eq!((&sound["ark"], &sound["count"]), (&ark.clone().into(), &0.into()), "{sound}");
    repository.stop(Signal::TERM);
    run(&data, &verify).await.is(0, &["nothing differs"]);
    run(&data, &["object", "verify", "ark:/99999/fk4none", "--data", &text])
        .await
        .is(4, &["the catalogue has no object ark:/99999/fk4none"]);
    run(&data, &["object", "verify", &ark, "--data", "/nonexistent"]).await.is(4, &["catalogue.db: there is none"]);

    // By the id of its owner as by its ARK.
    let show = ["object", "show", "an id", "--data", &text];
    run(&data, &show).await.is(0, &[&ark, "A title", "main/default", "producer/a.txt"]);
    let shown = run(&data, &[show.as_slice(), &["-o", "json"]].concat()).await.json();
    assert_eq!((&shown["object"]["ark"], &shown["local_ids"][0]), (&ark.clone().into(), &"an id".into()), "{shown}");
    run(&data, &["object", "show", "another", "--data", &text])
        .await
        .is(4, &["no object with the local id \"another\" of ark:/99999/fk4owner"]);
    let (target, to) = (directory.path().join("to"), directory.path().join("to").display().to_string());
    let get = ["object", "get", &ark, "--data", &text, "--to", &to];
    let read = run(&data, &[get.as_slice(), &["-o", "json"]].concat()).await.json();
    assert_eq!((&read["kept"], &read["version"], &read["errors"]), (&0.into(), &1.into(), &json!([])), "{read}");
    let files_read = read["files"].as_u64().unwrap();
    assert_eq!(files(&target).len() as u64, files_read);
    assert_eq!(std::fs::read_to_string(target.join("producer/a.txt")).unwrap(), "content");
    std::fs::remove_file(target.join("producer/a.txt")).unwrap();
    let again = run(&data, &[get.as_slice(), &["-o", "json"]].concat()).await.json();
    assert_eq!((&again["files"], &again["kept"]), (&1.into(), &(files_read - 1).into()), "{again}");
    std::fs::write(target.join("producer/a.txt"), "mine").unwrap();
    run(&data, &get).await.is(3, &["producer/a.txt exists and has other content"]);
    // A link in the directory leads nowhere, whether it is a file's or a folder's.
    let outside = directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir_all(target.join("producer")).unwrap();
    std::os::unix::fs::symlink(&outside, target.join("producer")).unwrap();
    run(&data, &get).await.is(3, &["producer/a.txt leads through a symbolic link"]);
    std::fs::remove_file(target.join("producer")).unwrap();
    std::fs::create_dir(target.join("producer")).unwrap();
    std::os::unix::fs::symlink(outside.join("a.txt"), target.join("producer/a.txt")).unwrap();
    run(&data, &get).await.is(3, &["producer/a.txt leads through a symbolic link"]);
    assert_eq!(files(&outside), [""; 0].map(std::path::PathBuf::from));
    std::fs::remove_file(target.join("producer/a.txt")).unwrap();
    std::fs::create_dir(target.join("producer/a.txt")).unwrap();
    run(&data, &get).await.is(3, &["producer/a.txt is not a file; remove it"]);
    let one = ["object", "get", &ark, "--data", &text, "--to", "-", "--file"];
    let content = run(&data, &[one.as_slice(), &["producer/a.txt"]].concat()).await;
    assert_eq!((content.code, content.out.as_str()), (0, "content"));
    run(&data, &[one.as_slice(), &["producer/b.txt"]].concat())
        .await
        .is(4, &["version 1 has no file \"producer/b.txt\""]);
    run(&data, &[get.as_slice(), &["--version", "2"]].concat())
        .await
        .is(4, &["has no version 2; its newest version is 1"]);
    run(&data, &["object", "show", &ark]).await.is(2, &["--data: name a repository"]);
    run(&data, &["object", &ark]).await.is(2, &[&format!("an object is shown by 'object show {ark}'")]);
    run(&data, &["object", "get", &ark, "--data", &text, "--to", "-"])
        .await
        .is(2, &["only one file can be written to standard output"]);

    let stored = files(&data.join("objects/default"));
    let ending = |end: &str| stored.iter().find(|path| path.ends_with(end)).unwrap().clone();
    let content = ending("producer/a.txt");
    std::fs::write(&content, "Content").unwrap();
    run(&data, &verify).await.is(1, &["producer/a.txt\": its sha256 is", "1 difference"]);
    // What is damaged is not delivered, and the rest is.
    std::fs::remove_dir_all(&target).unwrap();
    run(&data, &get).await.is(6, &["producer/a.txt\": its SHA-512 is", "1 file could not be read"]);
    assert_eq!(files(&target).len() as u64, files_read - 1);
    std::fs::write(&content, "content!").unwrap();
    run(&data, &verify).await.is(1, &["it has 7 bytes in the catalogue and 8 in the store", "2 differences"]);
    std::fs::remove_file(&content).unwrap();
    run(&data, &verify).await.is(1, &["producer/a.txt\": it is missing", "1 difference"]);
    std::fs::write(&content, "content").unwrap();
    run(&data, &verify).await.is(0, &["nothing differs"]);

    let root = content.ancestors().find(|path| path.join("0=ocfl_object_1.1").exists()).unwrap();
    let sidecar = root.join("inventory.json.sha512");
    let right = std::fs::read(&sidecar).unwrap();
    std::fs::write(&sidecar, format!("{} inventory.json\n", "0".repeat(128))).unwrap();
    run(&data, &verify).await.is(1, &["inventory.json.sha512\": it names 0000"]);
    std::fs::write(&sidecar, right).unwrap();
    let left = root.join("v2/content");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("left"), "left").unwrap();
    run(&data, &verify).await.is(1, &["v2/content/left\": no inventory names it", "1 difference"]);
    std::fs::remove_dir_all(root).unwrap();
    run(&data, &verify).await.is(1, &["no complete version of it is in main/default/"]);
    run(&data, &get).await.is(1, &["no complete version of it is in main/default/"]);
}
