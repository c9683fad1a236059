//! Objects as archives, from a request to a link that anybody may follow.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Queue;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::AccessState;
use queuekeeper_testkit::wait::eventually_some;
use queuekeeper_zookeeper::Config;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_requested_object_is_downloaded_by_its_link_and_a_download_goes_on_where_it_was_broken_off() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut repository = Repository::start(&data);
    let file = directory.path().join("a.txt");
    let content = "some content\n".repeat(50_000);
    std::fs::write(&file, &content).unwrap();
    let object = ark(&submit(&data, &[&file.display().to_string(), "--profile", "default"]).await.json());
    let folder = format!("{}_v1", object.replace(":/", "_").replace('/', "_"));

    let servers = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let queue = Queue::new(Config::new(servers.parse().unwrap()).connect().await.unwrap());
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
                assert!(refused.text().await.unwrap().contains("no link to a download"));
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
    run(&data, &few).await.is(2, &["access has at least 2 workers"]);
}
