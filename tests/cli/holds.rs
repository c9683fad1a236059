//! A store that is held: by the command line, the API and a page, with all that shows it.

use std::time::Duration;

use queuekeeper_testkit::wait::{eventually, eventually_some};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::program::run;
use super::repository::Repository;

const LONGEST: Duration = Duration::from_mins(1);

async fn json_of(request: RequestBuilder) -> (u16, Value) {
    let response = request.header("sec-fetch-site", "same-origin").send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_store_is_shown_with_who_and_why_and_released_by_whoever_has_seen_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start(&data);
    let zookeeper = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let store = async |arguments: &[&str]| {
        run(directory.path(), &[&["store"], arguments, &["--zookeeper", zookeeper.trim()]].concat()).await
    };
    let (client, url) = (Client::new(), |path: &str| format!("{}{path}", repository.address));
    let get = async |path: &str| json_of(client.get(url(path))).await.1;

    store(&["held"]).await.is(0, &["No store is held."]);
    store(&["hold", "a/b", "--yes", "--reason", "x"]).await.is(2, &["invalid name"]);
    let hold = ["hold", "main", "--yes", "--reason", "its disks are replaced"];
    store(&hold).await.is(0, &["hold store:main: done", "Whether there is a store main was not checked."]);
    store(&hold).await.is(3, &["the store main is already held"]);
    store(&["held"]).await.is(0, &["main", "its disks are replaced"]);

    let file = directory.path().join("a.txt");
    std::fs::write(&file, "content").unwrap();
    let text = data.display().to_string();
    let submit = ["submit", &file.display().to_string(), "--data", &text, "--profile", "default"];
    run(&data, &submit).await.is(0, &["bid0000000000"]);
    let waits = async || get("/api/v1/jobs?state=storing").await["items"][0]["id"].is_string();
    eventually(LONGEST, "it waits in Storing", waits).await;
    let job = get("/api/v1/jobs?state=storing").await["items"][0]["id"].as_str().unwrap().to_owned();

    // Everyone who asks why is answered with it.
    let find = async || {
        // Its lock may go a moment after its state has changed.
        let why = get(&format!("/api/v1/jobs/{job}/diagnosis")).await;
        let cause = why["causes"].as_array()?.iter().find(|cause| cause["kind"] == "store_held").cloned()?;
        Some((why, cause))
    };
    let (why, cause) = eventually_some(LONGEST, "it is said that the store is held", find).await;
    assert!(cause["sentence"].as_str().unwrap().starts_with("The store “main” has been held for "), "{why}");
    assert!(cause["evidence"].as_str().unwrap().contains("reason: “its disks are replaced”"), "{why}");
    let overview = get("/api/v1/overview").await;
    let items = overview["attention"].as_array().unwrap();
    assert!(items.iter().any(|item| item["kind"] == "store_held" && item["title"] == "The store main is held"));
    let locks = get("/api/v1/locks").await;
    assert_eq!(locks["held_stores"][0]["reason"], "its disks are replaced", "{locks}");
    let page = get("/locks").await;
    let page = page.as_str().unwrap();
    assert!(page.contains("its disks are replaced") && page.contains("on=store%3Amain"), "{page}");
    let form = get("/action?action=hold&store=main").await;
    assert!(form.as_str().unwrap().contains("is already held"), "{form}");

    // By the API, the hold that was seen and no other.
    let act = async |body: Value| {
        let request = client.post(url("/api/v1/actions")).header("content-type", "application/json");
        json_of(request.body(body.to_string())).await
    };
    let release = json!({"action": "release", "on": "store:main", "reason": "they are in place"});
    let mut other = release.clone();
    other["precondition"] = json!({"czxid": 1});
    let (status, problem) = act(other).await;
    assert_eq!(status, 409, "{problem}");
    let (status, done) = act(release.clone()).await;
    assert_eq!((status, &done["outcome"]), (200, &"done".into()), "{done}");
    let (status, problem) = act(release).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("is not held"), "{problem}");
    let is_done = async || get(&format!("/api/v1/jobs/{job}")).await["state"] == "completed";
    eventually(LONGEST, "the job goes on", is_done).await;
    assert_eq!(get("/api/v1/locks").await["held_stores"], json!([]));
}
