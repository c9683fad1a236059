//! The failed rows of a batch, submitted again.

use std::time::Duration;

use queuekeeper_testkit::origin::Origin;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use super::repository::Repository;

const LONGEST: Duration = Duration::from_mins(1);

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.header("sec-fetch-site", "same-origin").send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failed_rows_of_a_batch_become_one_new_batch_however_often_they_are_submitted_again() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start_beside_origins(&data);
    let origin = Origin::start().await;
    origin.serve("/a", "content");
    origin.serve("/c", "content");

    let client = Client::new();
    let request = |method: Method, path: &str| client.request(method, format!("{}{path}", repository.address));
    let deposit = async |body: Value| {
        let begin = request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
        answer(begin.body(body.to_string())).await
    };
    let view = async |id: &str| answer(request(Method::GET, &format!("/api/v1/deposits/{id}"))).await.1;
    let again = async |id: &str| {
        let request = request(Method::POST, &format!("/api/v1/deposits/{id}/failed"));
        answer(request.header("content-type", "application/json").body("{}")).await
    };
    let page = async |path: String| {
        let (status, page) = answer(request(Method::GET, &path)).await;
        assert_eq!(status, 200, "{path}");
        page.as_str().unwrap().to_owned()
    };
    let reported = async |id: &str, state: &str| {
        let is_over = async || ["completed", "failed"].contains(&view(id).await["state"].as_str().unwrap());
        eventually(LONGEST, "it is reported", is_over).await;
        let found = view(id).await;
        assert_eq!(found["state"], state, "{found}");
    };

    // Two of four rows cannot be had. One has a query that no znode shows.
    let row = |path: &str| {
        format!("{} | | | 7 | | {path}.txt | | id-{path} | A creator | Title {path}", origin.url(&format!("/{path}")))
    };
    let secret = row("d").replace("/d |", "/d?key=secret |");
    let rows = [row("a"), row("b"), row("c"), secret].join("\n");
    let form = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
    let manifest = format!("#%checkm_0.7\n#%profile | {form}\n{rows}\n#%eof\n");
    let described = json!({"profile": "internal", "filename": "all.checkm", "size": manifest.len(), "title": "All"});
    let begun = async || {
        let (status, begun) = deposit(described.clone()).await;
        (status == 202).then_some(begun)
    };
    let begun = eventually_some(LONGEST, "the new profile is known", begun).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    let send = request(Method::PATCH, &format!("/api/v1/deposits/{id}")).header("upload-offset", "0");
    let (status, made) = answer(send.header("content-type", "application/octet-stream").body(manifest)).await;
    assert_eq!(status, 201, "{made}");
    reported(&id, "failed").await;
    let first = view(&id).await;
    assert_eq!((&first["completed"], &first["failed"]), (&2.into(), &2.into()), "{first}");
    let batch = first["batch"].as_str().unwrap();
    let form = format!("action=\"../submit/{id}/failed\"");
    let has_button = async || page(format!("/batches/{batch}")).await.contains(&form);
    eventually(LONGEST, "the page has a button", has_button).await;

    // What they failed by is repaired, and nothing but these rows is fetched.
    origin.serve("/b", "content");
    origin.serve("/d?key=secret", "content");
    drop(origin.take_requests());
    let (status, made) = again(&id).await;
    assert_eq!(status, 201, "{made}");
    let new = made["id"].as_str().unwrap().to_owned();
    reported(&new, "completed").await;
    let second = view(&new).await;
    assert_eq!((&second["completed"], &second["failed"]), (&2.into(), &0.into()), "{second}");
    let requests = format!("{:?}", origin.take_requests());
    assert!(requests.contains("/b") && requests.contains("/d") && !requests.contains("/a"), "{requests}");
    // By a form it is the same batch, and so it is by the API.
    let sent = request(Method::POST, &format!("/submit/{id}/failed")).header("sec-fetch-site", "same-origin");
    let sent = sent.header("content-type", "application/x-www-form-urlencoded").body("").send().await.unwrap();
    let (at, status) = (sent.url().path().to_owned(), sent.status());
    let shown = sent.text().await.unwrap();
    assert!(status == 200 && at == format!("/submit/{new}"), "{status} {at}: {shown}");
    assert_eq!(again(&id).await.1["batch"], second["batch"]);
    let objects = answer(request(Method::GET, "/api/v1/objects?collection=internal")).await.1;
    let titles: Vec<_> =
        objects["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
    for title in ["Title a", "Title b", "Title c", "Title d"] {
        assert_eq!(titles.iter().filter(|found| **found == title).count(), 1, "{titles:?}");
    }
    // Each leads to the other, and the button is gone.
    let (old_page, new_batch) = (page(format!("/batches/{batch}")).await, second["batch"].as_str().unwrap());
    assert!(old_page.contains(&format!("href=\"../batches/{new_batch}\"")) && !old_page.contains(&form), "{old_page}");
    let new_page = page(format!("/batches/{new_batch}")).await;
    assert!(new_page.contains(&format!("These are the failed rows of <a href=\"../batches/{batch}\"")), "{new_page}");
    assert!(!old_page.contains("secret") && !new_page.contains("secret"));

    // What cannot be made again is said, and nothing is made.
    let single = json!({"profile": "internal", "url": origin.url("/none"), "filename": "e.txt", "type": "file"});
    let single = deposit(single).await.1["id"].as_str().unwrap().to_owned();
    reported(&single, "failed").await;
    for (id, status, why) in [
        (&*new, 409, "has not failed"),
        (&*single, 409, "it is one object"),
        ("bid-00000000-0000-4000-8000-000000000000", 404, "There is no deposit"),
    ] {
        let (found, problem) = again(id).await;
        assert!(found == status && problem["detail"].as_str().unwrap().contains(why), "{id}: {problem}");
    }
    let batches = answer(request(Method::GET, "/api/v1/batches")).await.1;
    assert_eq!(batches["total"], 3, "{batches}");
}
