//! Files of objects, listed and downloaded from a running repository.

use reqwest::{Client, Response, StatusCode};
use rustix::process::Signal;

use super::program::run;
use super::repository::Repository;
use super::standalone::{ark, files, submit};

async fn download(address: &str, ark: &str, version: &str, path: &str) -> Response {
    let query = [("ark", ark), ("version", version), ("path", path)];
    let url = format!("{address}/api/v1/objects/file");
    Client::new().get(url).query(&query).header("Accept-Encoding", "gzip").send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_downloaded_whole_or_not_to_its_end_and_never_shown_by_the_browser() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut repository = Repository::start(&data);
    let address = repository.address.clone();
    let name = "é \"<script>\".html";
    let file = directory.path().join(name);
    // Many chunks, which would be worth compressing.
    let content = "<script>alert(1)</script>\n".repeat(100_000);
    std::fs::write(&file, &content).unwrap();
    let deposit = [&file.display().to_string(), "--profile", "default", "--local-id", "one"];
    let object = ark(&submit(&data, &deposit).await.json());
    std::fs::write(&file, "newer").unwrap();
    ark(&submit(&data, &deposit).await.json());

    let path = format!("producer/{name}");
    let sent = download(&address, &object, "1", &path).await;
    let header = |name: &str| sent.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((sent.status(), header("content-type").as_str()), (StatusCode::OK, "application/octet-stream"));
    assert_eq!((sent.content_length(), header("x-content-type-options").as_str()), (Some(2_600_000), "nosniff"));
    assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
    let disposition = "attachment; filename=\"_ __script__.html\"; filename*=UTF-8''%C3%A9%20%22%3Cscript%3E%22.html";
    assert_eq!(header("content-disposition"), disposition);
    assert!(header("repr-digest").starts_with("sha-512=:"), "{sent:?}");
    assert_eq!(sent.text().await.unwrap(), content);
    assert_eq!(download(&address, &object, "0", &path).await.text().await.unwrap(), "newer");

    for (ark, version, path, why) in [
        (object.as_str(), "1", "producer/none", "has no file"),
        (&object, "1", "../../catalogue.db", "has no file"),
        (&object, "3", &path, "has no version 3"),
        ("ark:/99999/fk4none", "1", &path, "There is no object"),
    ] {
        let refused = download(&address, ark, version, path).await;
        assert_eq!(refused.status(), StatusCode::NOT_FOUND);
        assert!(refused.text().await.unwrap().contains(why), "{why}");
    }

    // The page lists the files of each version, with their links.
    let page = |query: &str| {
        let url = format!("{address}/objects/{object}{query}");
        async move { reqwest::get(url).await.unwrap().text().await.unwrap() }
    };
    let newest = page("").await;
    let link = "api/v1/objects/file?ark=ark%3A%2F99999%2F";
    assert!(newest.contains("Files of version 2") && newest.contains(link), "{newest}");
    assert!(newest.contains("&#34;&#60;script&#62;&#34;.html") && !newest.contains("<script>&"), "{newest}");
    let first = page("?version=1&after=producer0").await;
    assert!(
        first.contains("Files of version 1") && !first.contains("producer/") && first.contains("system/mrt-erc.txt")
    );
    assert!(page("?version=3").await.contains("has no version 3"));

    // One byte of it changed on the disk, and one missing: nobody gets all bytes that were announced.
    let stored = files(&data.join("objects/default"));
    // The name of the content is not that of the file.
    let first = stored.iter().find(|file| file.metadata().unwrap().len() == content.len() as u64).unwrap();
    let mut damaged = content.clone().into_bytes();
    damaged[0] = b'>';
    std::fs::write(first, &damaged).unwrap();
    let sent = download(&address, &object, "1", &path).await;
    assert_eq!((sent.status(), sent.content_length()), (StatusCode::OK, Some(2_600_000)));
    sent.bytes().await.expect_err("the connection ends before the last byte");
    std::fs::write(first, &damaged[1..]).unwrap();
    let sent = download(&address, &object, "1", &path).await;
    assert_eq!(sent.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(sent.text().await.unwrap().contains("the server's log has the cause"));
    std::fs::write(first, &content).unwrap();
    assert_eq!(download(&address, &object, "1", &path).await.text().await.unwrap(), content);
    repository.stop(Signal::TERM);
    let text = data.display().to_string();
    run(&data, &["object", "verify", &object, "--data", &text]).await.is(0, &["nothing differs"]);
}
