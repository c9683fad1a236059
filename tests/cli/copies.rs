//! A repository in one directory makes copies while one looks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use queuekeeper_testkit::wait::eventually;
use rustix::process::Signal;
use serde_json::Value;

use super::mill_verify::rot;
use super::program::run;
use super::repository::Repository;
use super::standalone::{ark, files, submit};

/// Has `ocfl-py` validate a storage root, and each object in it.
fn validated(root: &Path) -> Result<(), String> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin/ocfl-validate.py");
    assert!(tool.exists(), "{} is not installed: run .ci/install", tool.display());
    let is_declaration = |path: &&PathBuf| path.ends_with("0=ocfl_object_1.1");
    let declarations = files(root);
    let objects = declarations.iter().filter(is_declaration).filter_map(|path| path.parent());
    let output = Command::new(tool).arg("--quiet").arg(root).args(objects).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(text.into_owned()) }
}

/// The content below a directory by name, but for what the store keeps beside it.
fn content(root: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let mut all: Vec<_> = files(root).iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// A copy of a file is damaged: wherever the object is looked at, it is that one, and the copy is not complete. Then it
/// is repaired.
async fn damaged_copies_are_shown(data: &Path, copies: &Path, ark: &str, address: &str) {
    let text = data.display().to_string();
    let damaged = files(copies).into_iter().find(|path| path.ends_with("producer/a.txt")).unwrap();
    let key = damaged.strip_prefix(copies).unwrap().display().to_string();
    rot(&damaged);
    let item = format!("repository/copies/default/{key}");
    run(data, &["mill", "verify", &item, "--data", &text]).await.is(7, &["content damaged"]);
    let shown = async || -> Value {
        let url = format!("{address}/api/v1/objects/{ark}");
        serde_json::from_slice(&reqwest::get(url).await.unwrap().bytes().await.unwrap()).unwrap()
    };
    let object = shown().await;
    let copy = &object["copies"][0];
    assert_eq!(
        (&copy["is_complete"], &copy["bit_errors"], &copy["complete_since"], &object["bit_error_count"]),
        (&false.into(), &1.into(), &Value::Null, &1.into()),
        "{object}"
    );
    let error = &object["bit_errors"][0];
    let path = error["path"].as_str().unwrap();
    assert!(path.ends_with("producer/a.txt") && key.ends_with(path), "{error}");
    assert_eq!((&error["store"], &error["waits_for"]), (&"copies".into(), &"policy".into()), "{error}");
    assert!(error["expected"] != error["actual"] && error["found"].is_string(), "{error}");
    let listed = object["files"].as_array().unwrap();
    let file = listed.iter().find(|file| file["path"] == "producer/a.txt").unwrap();
    let of = |store: &str| file["proofs"].as_array().unwrap().iter().find(|of| of["store"] == store).unwrap().clone();
    assert_eq!((&of("copies")["bit_error"], &of("copies")["proven"]), (&error["number"], &Value::Null), "{file}");
    assert_eq!(of("main")["bit_error"], Value::Null, "{file}");
    let page = reqwest::get(format!("{address}/objects/{ark}")).await.unwrap().text().await.unwrap();
    for part in [
        "1 open bit error</h2>",
        "content damaged",
        "mill/errors?account=repository\">1 open bit error</a></td>",
        "copies: <span class=\"tag bad\">bit error</span>",
        "Repairs in copies are started by an operator",
        error["expected"].as_str().unwrap(),
        error["actual"].as_str().unwrap(),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let number = error["number"].to_string();
    let decide = format!("To decide: queuekeeper mill resolve repair|drop {number} --reason TEXT");
    let decide = decide.as_str();
    let expected =
        ["copies  1 open bit error", "1 open bit error:", path, "expected", "are started by an operator", decide];
    let of_object = run(data, &["object", "show", "one", "--data", &text]).await;
    of_object.is(0, &expected);
    assert!(!of_object.out.contains("copies  complete"), "{of_object:?}");
    run(data, &["mill", "spaces", "--data", &text]).await.is(0, &["has bit errors"]);

    let repair = ["mill", "repair", &number, "--reason", "a fire drill", "--data", &text];
    run(data, &repair).await.is(0, &["waits for a worker"]);
    let is_complete = async || shown().await["copies"][0]["is_complete"] == true;
    eventually(Duration::from_mins(1), "the copy is repaired", is_complete).await;
    run(data, &["object", "show", "one", "--data", &text]).await.is(0, &["copies  complete"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_copied_whole_as_soon_as_it_is_stored_and_its_page_shows_the_copy() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (file, text) = (directory.path().join("a.txt"), data.display().to_string());
    std::fs::write(&file, "content").unwrap();
    let file = file.display().to_string();
    let mut repository = Repository::start(&data);
    let deposit = ["--profile", "default", "--local-id", "one", "--title", "A title"];
    // What the report says is true when it is written.
    let pause = ["mill", "pause", "--store", "copies", "--reason", "maintenance", "--data", &text];
    run(&data, &pause).await.is(0, &["store copies is paused"]);
    let ark = ark(&submit(&data, &[&[file.as_str()], deposit.as_slice()].concat()).await.json());
    let report = || {
        let reports = files(&data.join("reports"));
        let text: String = reports.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        text.replace("=\r\n", "").replace("=\n", "")
    };
    let says = async || report().contains("some copies of the object are still pending.");
    eventually(Duration::from_mins(1), "its report says it", says).await;
    let resume = ["mill", "resume", "--store", "copies", "--reason", "it is back", "--data", &text];
    run(&data, &resume).await.is(0, &["store copies is resumed"]);
    let (objects, copies) = (data.join("objects/default"), data.join("copies/default"));
    let shown = async || -> Value {
        let url = format!("{}/api/v1/objects/{ark}", repository.address);
        serde_json::from_slice(&reqwest::get(url).await.unwrap().bytes().await.unwrap()).unwrap()
    };
    let is_complete = async || shown().await["copies"][0]["is_complete"] == true;
    eventually(Duration::from_mins(1), "the copy is complete", is_complete).await;
    assert_eq!(content(&copies), content(&objects));
    validated(&copies).unwrap();
    let copy = shown().await["copies"][0].clone();
    assert_eq!(
        (&copy["store"], &copy["is_wanted"], &copy["files_there"]),
        (&"copies".into(), &true.into(), &copy["files"])
    );
    run(&data, &["mill", "verify", "repository/copies", "--data", &text]).await.is(0, &["0 wrong"]);
    let files = shown().await["files"].as_array().unwrap().clone();
    assert!(files.len() > 1 && files[0]["proofs"][1]["store"] == "main", "{files:?}");
    for file in &files {
        let proof = &file["proofs"][0];
        assert!(proof["store"] == "copies" && proof["proof"] == "read" && proof["proven"].is_string(), "{file}");
    }
    let page = reqwest::get(format!("{}/objects/{ark}", repository.address)).await.unwrap().text().await.unwrap();
    assert!(page.contains("Copies</h2>") && page.contains("<td data-name=\"State\">complete</td>"), "{page}");
    assert!(page.contains("copies: <time") && page.contains("</time> ago by reading"), "{page}");
    run(&data, &["object", "show", "one", "--data", &text]).await.is(0, &["copies  complete", "LAST PROOF"]);
    run(&data, &["mill", "queues", "--data", &text]).await.is(0, &["loop 1 is done", "of 4 workers busy"]);
    damaged_copies_are_shown(&data, &copies, &ark, &repository.address).await;

    // Stopped while the copy of the next version is made, or before it: it goes on.
    std::fs::write(&file, "more").unwrap();
    let more = ["--profile", "default", "--local-id", "one", "--update"];
    submit(&data, &[&[file.as_str()], more.as_slice()].concat()).await.json();
    repository.stop(Signal::TERM);
    let mut repository = Repository::start(&data);
    let is_same = async || content(&copies) == content(&objects);
    eventually(Duration::from_mins(4), "the copy is complete", is_same).await;
    validated(&copies).unwrap();
    repository.stop(Signal::TERM);
    let config = directory.path().join("config.yml");
    std::fs::write(&config, format!("catalogue: {{url: \"sqlite:{text}/catalogue.db\"}}\n")).unwrap();
    let config = config.display().to_string();
    run(&data, &["catalogue", "check", "--config.file", &config]).await.is(0, &["no problems found"]);
    // From cron: what waits is asked for, and workers elsewhere do it.
    let produce = async |what: &str| run(&data, &["mill", "produce", what, "--once", "--data", &text]).await;
    produce("duplication").await.is(0, &["duplication: the loop is done, and the next one is not due"]);
    produce("stats").await.is(0, &["stats: spaces were already counted within the last day"]);
    produce("noop").await.is(0, &["noop: 1 task that does nothing"]);
    run(&data, &["mill", "queues", "--data", &text]).await.is(1, &["duplication-low         1", "has workers: NOOP"]);
}
