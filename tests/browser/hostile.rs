//! What depositors write is shown as text, whatever it is.

use std::fmt::Write as _;

use serde_json::Value;
use zookeeper_client::{Acls, Client, CreateMode};

use super::chromium::{Browser, LIMIT, Look, TOO_WIDE};
use super::served::Served;
use queuekeeper_testkit::wait::eventually;

/// Markup that would run, in every way that a page may take it for its own.
const MARKUP: &str = r#"</title></script><script>window.owned=1</script><img src=x onerror="window.owned=2">'"><svg onload=window.owned=3><!--/live jobs--><a href="javascript:window.owned=4">{{7*7}}"#;

/// Marks that turn the direction of what follows, control characters, and what does not show.
const MARKS: &str = "\u{202e}evil\u{2066}\u{0007}\u{200b}\u{feff}\r\n\ttail";

async fn create(client: &Client, path: &str, data: &[u8]) {
    client.create(path, data, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
}

/// A queue of items whose every field is hostile.
async fn fill(client: &Client) {
    let long = "W".repeat(1_000_000 - 4_000);
    for (number, text) in [MARKUP, MARKS, &long, "\u{fffd}"].into_iter().enumerate() {
        let json = |fields: &[&str]| {
            let mut object = serde_json::Map::new();
            for field in fields {
                // Several fields of a megabyte do not fit into one znode.
                let size = text.len() / fields.len();
                let cut: String = text.chars().take(size.max(400)).collect();
                object.insert((*field).to_owned(), Value::String(cut));
            }
            Value::Object(object).to_string()
        };
        let status = |state: &str| {
            let mut status: Value = serde_json::from_str(&json(&["message"])).unwrap();
            status["status"] = state.into();
            status["retry_count"] = 1.into();
            status.to_string()
        };
        let (jid, bid, qid) = (format!("jid{number:010}"), format!("bid{number:010}"), format!("qid{number:010}"));
        let submission = json(&["batchID", "profile", "submitter", "filename", "title", "type", "creator"]);
        create(client, &format!("/batches/{bid}"), b"").await;
        create(client, &format!("/batches/{bid}/submission"), submission.as_bytes()).await;
        create(client, &format!("/batches/{bid}/status"), status("Failed").as_bytes()).await;
        create(client, &format!("/batches/{bid}/states"), b"").await;
        create(client, &format!("/jobs/{jid}"), b"").await;
        let configuration =
            json(&["profile", "submitter", "filename", "title", "creator", "objectID", "localID", "jobID"]);
        for (node, data) in [
            ("bid", bid.clone()),
            ("configuration", configuration),
            ("status", status("Failed")),
            ("priority", "5".to_owned()),
            ("space_needed", "-1".to_owned()),
            ("identifiers", json(&["primary_id"])),
            ("metadata", json(&["erc_who", "erc_what"])),
        ] {
            create(client, &format!("/jobs/{jid}/{node}"), data.as_bytes()).await;
        }
        let request = format!("/access/small/{qid}");
        create(client, &request, b"").await;
        create(client, &format!("{request}/token"), json(&["token", "url"]).as_bytes()).await;
        create(client, &format!("{request}/status"), status("Failed").as_bytes()).await;
        let name: String = text.chars().filter(|c| *c != '/' && !c.is_control()).take(200).collect();
        let name = name.replace(['\u{fffd}', '\u{feff}'], "");
        if !name.is_empty() {
            create(client, &format!("/locks/collections/{name}"), b"").await;
            create(client, &format!("/locks/storage/{name}"), b"").await;
            create(client, &format!("/odd {name}"), text.as_bytes()).await;
        }
    }
    create(client, "/jobs/jid0000000009", b"\xff\xfe").await;
    create(client, "/jobs/jid0000000009/status", b"\xff\xfe{\"status\":\x00}").await;
    create(client, "/jobs/jid0000000009/configuration", b"\xc3\x28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_content_runs_nothing_breaks_no_layout_and_draws_no_report() {
    let served = Served::still().await;
    let client = served.queue().await.client().clone();
    for path in ["/access/small", "/locks/collections", "/locks/storage", "/jobs/states/failed"] {
        create(&client, path, b"").await;
    }
    fill(&client).await;
    let browser = Browser::start().await;
    let metrics = format!("{}/metrics", served.base);
    eventually(LIMIT, "all of it has been read", async || {
        let text = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
        text.contains("merritt_jobs{state=\"failed\"} 4\n")
    })
    .await;
    let fixed = queuekeeper::web::pages::addresses().chain(["/tree/jobs", "/jobs?text=%3Cscript%3E"]);
    let mut pages: Vec<String> = fixed.map(str::to_owned).collect();
    for number in [0, 1, 2, 3] {
        pages.push(format!("/jobs/jid{number:010}"));
        pages.push(format!("/batches/bid{number:010}"));
        pages.push(format!("/tree/jobs/jid{number:010}/configuration"));
    }
    pages.push("/jobs/jid0000000009".to_owned());
    let mut wrong = String::new();
    for width in [360, 1440] {
        browser.look(Look { scheme: "light", width, scripts: true }).await;
        for page in &pages {
            browser.open(&format!("{}{page}", served.base)).await;
            let found = browser
                .run(
                    "return [window.owned ?? null,
                             document.querySelectorAll('main').length,
                             document.querySelector('a[href^=\"javascript:\"]') !== null,
                             document.body.innerText.includes('\u{202e}'),
                             document.documentElement.outerHTML.length > 400_000]",
                )
                .await;
            if found != serde_json::json!([null, 1, false, false, false]) {
                writeln!(wrong, "{page} at {width}: {found}").unwrap();
            }
            let wide = browser.run(TOO_WIDE).await;
            if wide != serde_json::json!([]) {
                writeln!(wrong, "{page} at {width} is too wide: {wide}").unwrap();
            }
            for complaint in browser.complaints().await {
                writeln!(wrong, "{page} at {width}: {complaint}").unwrap();
            }
        }
    }
    assert_eq!(wrong, "");
    browser.close().await;
    served.stop().await;
}
