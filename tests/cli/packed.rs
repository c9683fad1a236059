//! Several files as one object, and content that is sent to a server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::program::{Ran, queuekeeper, run};
use super::repository::Repository;
use super::standalone::{ark, submit};

/// The files of an object's newest version that a depositor gave, with their sizes.
async fn files(address: &str, ark: &str) -> Vec<(String, u64)> {
    let object = reqwest::get(format!("{address}/api/v1/objects/{ark}")).await.unwrap().text().await.unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let file = |file: &Value| {
        let name = file["path"].as_str()?.strip_prefix("producer/")?.to_owned();
        Some((name, file["size_bytes"].as_u64()?))
    };
    object["files"].as_array().unwrap().iter().filter_map(file).collect()
}

fn named(files: &[(&str, u64)]) -> Vec<(String, u64)> {
    files.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

/// The bytes that have come of all uploads.
fn come(working: &Path) -> u64 {
    let entries = fs::read_dir(working).unwrap().map(|entry| entry.unwrap().path().join(".upload"));
    entries.filter_map(|upload| Some(fs::metadata(upload).ok()?.len())).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_and_several_files_are_one_object_and_what_is_no_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (data, pack) = (directory.path().join("data"), directory.path().join("herbarium"));
    fs::create_dir_all(pack.join("plates/none")).unwrap();
    fs::write(pack.join("a.txt"), "content").unwrap();
    fs::write(pack.join("plates/é b.tif"), vec![7; 3_000]).unwrap();
    let path = pack.display().to_string();
    let repository = Repository::start(&data);

    let made = submit(&data, &[&path, "--profile", "default"]).await;
    made.is(0, &["empty directories are not stored: plates/none"]);
    let receipt = made.json();
    assert_eq!(receipt["type"], "container");
    let expected = named(&[("a.txt", 7), ("plates/é b.tif", 3_000)]);
    assert_eq!(files(&repository.address, &ark(&receipt)).await, expected);

    // What is no file is refused, and nothing is deposited.
    std::os::unix::fs::symlink("/etc/passwd", pack.join("link")).unwrap();
    fs::write(pack.join("line\nend"), "").unwrap();
    let problems = ["line\\nend: the name has a control character", "link is a link; only files and directories"];
    submit(&data, &[&path, "--profile", "default"]).await.is(2, &[problems[0], "and one more problem"]);
    let text = data.display().to_string();
    let check = ["submit", &path, "--profile", "default", "--data", &text, "--check"];
    run(&data, &check).await.is(3, &[problems[0], problems[1], "2 problems; nothing was deposited"]);
    fs::remove_file(pack.join("link")).unwrap();
    fs::remove_file(pack.join("line\nend")).unwrap();
    run(&data, &check).await.is(0, &["no problems found", "type: container"]);
    let typed = [&check[..], &["--type", "file"]].concat();
    run(&data, &typed).await.is(2, &["--type: a directory or several files are deposited as a container"]);
    run(&data, &[&check[..], &["http://127.0.0.1/a"]].concat()).await.is(2, &["cannot be combined with others"]);

    // Several files by their paths, from where the command runs.
    let mut several = queuekeeper(&data, &["submit", "herbarium/a.txt", "./herbarium/plates", "--profile", "default"]);
    several.args(["--server", &repository.address, "--wait", "-o", "json"]).current_dir(directory.path());
    let several = several.output().unwrap();
    let receipt: Value = serde_json::from_slice(&several.stdout).unwrap();
    let expected = named(&[("herbarium/a.txt", 7), ("herbarium/plates/é b.tif", 3_000)]);
    assert_eq!(files(&repository.address, &ark(&receipt)).await, expected);

    refused(&data, &path, &repository.address).await;
}

/// Sends a directory to a server by way of a connection that is cut when a part of it has come.
pub(crate) async fn send_over(proxy: &Proxy, address: &str, data: &Path, token: &str) {
    const SIZE: u64 = 24 << 20;
    let pack = data.parent().unwrap().join("large");
    fs::create_dir_all(pack.join("inner")).unwrap();
    fs::write(pack.join("inner/large.bin"), vec![1; usize::try_from(SIZE).unwrap()]).unwrap();
    // All of it would take some 20 s.
    proxy.slow(Duration::from_millis(50));
    let (path, server) = (pack.display().to_string(), format!("http://{}", proxy.connect_string()));
    let send = ["submit", &path, "--profile", "default", "--server", &server, "--token-file", token];
    let send = [&send[..], &["--key", "one", "--wait", "-o", "json"]].concat();
    let sending = tokio::spawn({
        let (home, send) = (data.to_owned(), send.iter().map(ToString::to_string).collect::<Vec<_>>());
        async move { run(&home, &send.iter().map(String::as_str).collect::<Vec<_>>()).await }
    });
    let working = data.join("working");
    eventually(Duration::from_mins(1), "a part has come", async || come(&working) > 1 << 20).await;
    let before = proxy.accepted();
    proxy.cut(Newcomers::Refuse);
    let kept = come(&working);
    assert!(kept < SIZE, "{kept}");
    proxy.restore();
    let receipt = sending.await.unwrap().json();
    assert!(proxy.accepted() > before);
    assert_eq!(files(address, &ark(&receipt)).await, named(&[("inner/large.bin", SIZE)]));
    // With its key it is the same deposit, of which nothing is sent again.
    let again = run(data, &send).await.json();
    assert_eq!((&again["batch"], again["arks"].clone()), (&receipt["batch"], json!([ark(&receipt)])));
}

/// What a server refuses, before and after it has the content.
async fn refused(data: &Path, path: &str, server: &str) {
    let send = async |more: &[&str]| -> Ran {
        run(data, &[&["submit", path, "--server", server, "--profile", "default"], more].concat()).await
    };
    send(&["--check"]).await.is(0, &["the server would accept it"]);
    let other = run(data, &["submit", path, "--server", server, "--profile", "none", "--check"]).await;
    other.is(3, &["you may not deposit for \"none\""]);
    let file = format!("{path}/a.txt");
    let zeros = format!("sha256:{}", "0".repeat(64));
    let digest = ["submit", &file, "--profile", "default", "--server", server, "--digest", &zeros];
    run(data, &digest).await.is(3, &["expected the sha256 digest 0000"]);
    run(data, &[&digest[..4], &["--server", "ftp://a"]].concat()).await.is(2, &["--server: expected http or https"]);
    send(&["--data", "x"]).await.is(2, &["--data", "cannot be used with"]);
    // Another program's answer is distinguished from a refusal.
    let none = format!("{server}/none");
    let wrong = run(data, &["submit", &file, "--profile", "default", "--server", &none]).await;
    wrong.is(1, &["is it another program?"]);
    // One that does not answer may come back, and that it is waited for is said.
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let mut waiting = queuekeeper(data, &["submit", &file, "--profile", "default", "--server", &nobody]);
    let mut child = waiting.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("does not answer") && said.contains("; trying again for up to 1"), "{said}");
}
