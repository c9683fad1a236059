//! Objects as archives, from a request to a link that anybody may follow.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Queue;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::AccessState;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually_some;
use reqwest::{Client, Response, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::program::run;
use super::repository::Repository;
use super::standalone::{ark, submit};

const LIMIT: Duration = Duration::from_mins(1);

async fn get(url: &str, headers: &[(&str, &str)]) -> Response {
    let request = headers.iter().fold(Client::new().get(url), |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap()
}

/// The token of a request, once it is completed.
async fn completed(queue: &Queue, access: AccessQueue, token: &Value) -> Value {
    let id = queue.create_request(access, token.to_string().as_bytes(), Timestamp::now()).await.unwrap();
    eventually_some(LIMIT, "the request is completed", async || {
        let request = queue.load_request(access, id).await.unwrap();
        let is_completed = request.state() == Some(AccessState::Completed);
        is_completed.then(|| serde_json::from_slice(request.token.as_deref().unwrap()).unwrap())
    })
    .await
}

/// The content of a file in an archive, as other programs read it.
fn unpacked(archive: &Path, name: &str) -> String {
    let zip = archive.extension().is_some_and(|extension| extension == "zip");
    let mut command = Command::new(if zip { "unzip" } else { "tar" });
    command.arg(if zip { "-p" } else { "-xOf" }).arg(archive).arg(name);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with an object of one file, and the content of that.
struct Stored {
    repository: Repository,
    data: std::path::PathBuf,
    object: String,
    /// The folder in its archives.
    folder: String,
    content: String,
}

async fn stored(directory: &Path) -> Stored {
    let data = directory.join("data");
    let repository = Repository::start(&data);
    let file = directory.join("a.txt");
    let content = "some content\n".repeat(50_000);
    std::fs::write(&file, &content).unwrap();
    let object = ark(&submit(&data, &[&file.display().to_string(), "--profile", "default"]).await.json());
    let folder = format!("{}_v1", object.replace(":/", "_").replace('/', "_"));
    Stored { repository, data, object, folder, content }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requested_object_is_downloaded_by_its_link_and_a_download_goes_on_where_it_was_broken_off() {
    let directory = tempfile::tempdir().unwrap();
    let Stored { mut repository, data, object, folder, content } = stored(directory.path()).await;
    let servers = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let queue = Queue::new(connect(&servers).await).with_time_limit(LIMIT);
    for (access, format) in [(AccessQueue::Small, "zip"), (AccessQueue::Large, "tar")] {
        let token = completed(&queue, access, &json!({"token": "t", "object": object, "format": format})).await;
        let url = token["url"].as_str().unwrap();
        assert!(url.starts_with(&format!("{}/access/download/", repository.address)), "{url}");
        let sent = get(url, &[("Accept-Encoding", "gzip")]).await;
        let header = |name: &str| sent.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((sent.status(), header("content-type").as_str()), (StatusCode::OK, "application/octet-stream"));
        assert_eq!(header("content-disposition"), format!("attachment; filename=\"{folder}.{format}\""));
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
        let (length, tag) = (sent.content_length().unwrap(), header("etag"));
        let bytes = sent.bytes().await.unwrap();
        assert_eq!(bytes.len() as u64, length);
        let archive = directory.path().join(format!("a.{format}"));
        std::fs::write(&archive, &bytes).unwrap();
        assert_eq!(unpacked(&archive, &format!("{folder}/producer/a.txt")), content);

        // The rest of it, of the same archive only.
        let at = bytes.len() / 2;
        let range = format!("bytes={at}-");
        let rest = get(url, &[("Range", &range), ("If-Range", &tag)]).await;
        assert_eq!(rest.status(), StatusCode::PARTIAL_CONTENT);
        let expected = format!("bytes {at}-{}/{length}", length - 1);
        assert_eq!(rest.headers()["content-range"], expected.as_str());
        assert_eq!(rest.bytes().await.unwrap(), bytes[at..]);
        assert_eq!(get(url, &[("Range", &range), ("If-Range", "\"other\"")]).await.status(), StatusCode::OK);
        let behind = get(url, &[("Range", &format!("bytes={length}-"))]).await;
        assert_eq!(behind.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(behind.headers()["content-range"], format!("bytes */{length}").as_str());

        // No other link leads anywhere.
        for (from, to) in [("/access/download/1", "/access/download/2"), (".zip", ".tar"), (".tar", ".zip")] {
            let forged = url.replacen(from, to, 1);
            if forged != url {
                let refused = get(&forged, &[]).await;
                assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{forged}");
                assert!(refused.text().await.unwrap().contains("not a valid download link"));
            }
        }
        assert_eq!(
            get(&url.replace("/access/download/", "/access/download/x"), &[]).await.status(),
            StatusCode::NOT_FOUND
        );
    }
    let page = get(&format!("{}/metrics", repository.address), &[]).await.text().await.unwrap();
    for line in [
        "merritt_daemon_ended_total{daemon=\"access\",outcome=\"done\"} 2",
        "merritt_daemon_workers{daemon=\"access\"} 4",
        "queuekeeper_store_requests_total{store=\"deliveries\",operation=\"put\",outcome=\"ok\"} 3",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    let daemons = get(&format!("{}/daemons", repository.address), &[]).await.text().await.unwrap();
    assert!(daemons.contains("access 4"), "{daemons}");
    repository.stop(Signal::TERM);
    let text = data.display().to_string();
    let few = ["standalone", "--data", &text, "--workers", "access=1", "--web.listen-address", "127.0.0.1:0"];
    run(&data, &few).await.is(2, &["access needs at least 2 workers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_requested_from_the_command_line_by_the_api_and_by_the_form_on_its_page() {
    let directory = tempfile::tempdir().unwrap();
    let Stored { mut repository, data, object, folder, content } = stored(directory.path()).await;
    let text = data.display().to_string();
    let command =
        ["object", "request", &object, "--data", &text, "--archive", "tar", "--content", "producer", "--wait"];
    let made = run(&data, &[command.as_slice(), &["-o", "json"]].concat()).await.json();
    assert_eq!((&made["state"], &made["version"], &made["queue"]), (&json!("completed"), &json!(1), &json!("small")));
    assert_eq!(made["requested_bytes"], json!(content.len()), "{made}");
    let bytes = get(made["url"].as_str().unwrap(), &[]).await.bytes().await.unwrap();
    let archive = directory.path().join("b.tar");
    std::fs::write(&archive, &bytes).unwrap();
    assert_eq!(unpacked(&archive, &format!("{folder}/producer/a.txt")), content);
    let missing = ["object", "request", &object, "--data", &text, "--version", "2"];
    run(&data, &missing).await.is(4, &["has no version 2; its newest is 1"]);

    // By the API, and by the form on the object's page.
    let api = format!("{}/api/v1/access", repository.address);
    let post = async |body: Value| {
        let request =
            Client::new().post(&api).header("Content-Type", "application/json").header("Sec-Fetch-Site", "none");
        request.body(body.to_string()).send().await.unwrap()
    };
    for (body, status, why) in [
        (json!({"ark": "ark:/99999/fk4none"}), StatusCode::NOT_FOUND, "no object ark:"),
        (json!({"ark": object, "version": 3}), StatusCode::NOT_FOUND, "has no version 3"),
        (json!({"ark": object, "format": "rar"}), StatusCode::BAD_REQUEST, "neither zip nor tar"),
        (json!({"ark": "../a"}), StatusCode::BAD_REQUEST, "is not an ARK"),
    ] {
        let refused = post(body).await;
        assert_eq!(refused.status(), status);
        assert!(refused.text().await.unwrap().contains(why), "{why}");
    }
    let made = post(json!({"ark": object, "version": 0})).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    let made: Value = serde_json::from_slice(&made.bytes().await.unwrap()).unwrap();
    assert_eq!((&made["version"], &made["queue"]), (&json!(1), &json!("small")), "{made}");
    let listed = eventually_some(LIMIT, "the list has its link", async || {
        let list = get(&format!("{api}?text={}", made["token"].as_str().unwrap()), &[]).await.bytes().await.unwrap();
        let list: Value = serde_json::from_slice(&list).unwrap();
        let item = list["items"][0].clone();
        item["url"].is_string().then_some(item)
    })
    .await;
    assert_eq!((&listed["id"], &listed["state"]), (&made["id"], &json!("completed")), "{listed}");
    assert_eq!(get(listed["url"].as_str().unwrap(), &[]).await.status(), StatusCode::OK);
    let page = format!("{}/objects/{object}", repository.address);
    assert!(get(&page, &[]).await.text().await.unwrap().contains("Request an archive"));
    let form = "version=1&format=zip&content=producer";
    let own = repository.address.clone();
    let sent =
        Client::new().post(&page).header("Content-Type", "application/x-www-form-urlencoded").header("Origin", own);
    let sent = sent.body(form).send().await.unwrap();
    let (status, path) = (sent.status(), sent.url().clone());
    assert_eq!((status, path.path()), (StatusCode::OK, "/access"), "{path}");
    let shown = eventually_some(LIMIT, "the page has its link", async || {
        let page = get(path.as_str(), &[]).await.text().await.unwrap();
        page.contains(">Download</a>").then_some(page)
    })
    .await;
    assert!(shown.contains("/access/download/") && shown.contains(" UTC</span>"), "{shown}");
    // Each is in the audit trail, before and after.
    let audit = std::fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let records = audit.lines().filter(|line| line.contains("request_object") && line.contains(&object)).count();
    assert!(records >= 2 && audit.contains("small/qid"), "{audit}");
    repository.stop(Signal::TERM);
    run(&data, &command).await.is(2, &["is queuekeeper standalone running there?"]);
}
