//! The lists of jobs and failures as a reader gets them, over a real server beside a real ZooKeeper.

use std::time::Duration;

use prometheus_client::registry::Registry;
use queuekeeper::config::Config;
use queuekeeper::mirror::{self, Writer};
use queuekeeper::{metrics, web};
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{PrivateServer, Sessions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_secs(30);

/// A tree, its mirror and a server over it, all of which end when this is dropped.
struct World {
    client: Client,
    base: String,
    http: reqwest::Client,
    _tasks: [AbortOnDropHandle<()>; 2],
    _server: PrivateServer,
}

impl World {
    async fn start() -> Self {
        let server = PrivateServer::start(Options::default()).await.unwrap();
        let connect = || queuekeeper_zookeeper::Config {
            session_timeout: Duration::from_secs(30),
            ..queuekeeper_zookeeper::Config::new(server.connect_string().parse().unwrap())
        };
        let client = connect().connect().await.unwrap();
        let (writer, mut registry) = (Writer::new(), Registry::default());
        let store = writer.store();
        let metrics = mirror::Metrics::register(&mut registry);
        let shutdown = CancellationToken::new();
        let mirrored = mirror::run(Sessions::new(connect()), writer, metrics, None, shutdown.clone());
        let mirrored = AbortOnDropHandle::new(tokio::spawn(async move {
            mirrored.await.unwrap();
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = web::State::new(Config::new(connect()), store, None, None, metrics::registry());
        let served = AbortOnDropHandle::new(tokio::spawn(async move {
            web::run(vec![listener], state, shutdown).await.unwrap();
        }));
        Self { client, base, http: reqwest::Client::new(), _tasks: [mirrored, served], _server: server }
    }

    async fn create(&self, path: &str, data: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(path, data.as_bytes(), &options).await.unwrap();
    }

    /// A job with its status, its configuration and its batch.
    async fn job(&self, number: u32, status: &Value, configuration: &Value) {
        let job = format!("/jobs/jid{number:010}");
        self.create(&job, "").await;
        self.create(&format!("{job}/bid"), "bid0000000007").await;
        self.create(&format!("{job}/priority"), "5").await;
        self.create(&format!("{job}/configuration"), &configuration.to_string()).await;
        self.create(&format!("{job}/status"), &status.to_string()).await;
    }

    async fn get(&self, path: &str, accept: &str) -> (u16, String, String) {
        let request = self.http.get(format!("{}{path}", self.base)).header("accept", accept);
        let response = request.send().await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind, response.text().await.unwrap())
    }

    async fn json(&self, path: &str) -> Value {
        let (code, _, body) = self.get(path, "*/*").await;
        assert_eq!(code, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn html(&self, path: &str) -> String {
        let (code, kind, body) = self.get(path, "text/html").await;
        assert_eq!((code, &*kind), (200, "text/html; charset=utf-8"), "{path}: {body}");
        body
    }

    async fn ids(&self, path: &str) -> Vec<u64> {
        let list = self.json(path).await;
        let id = |item: &Value| item["id"].as_str().unwrap()[3..].parse().unwrap();
        list["items"].as_array().unwrap().iter().map(id).collect()
    }
}

fn status(state: &str, message: &str, retries: u32) -> Value {
    json!({"status": state, "message": message, "retry_count": retries, "last_successful_status": "Provisioning"})
}

/// Names of deposits that are unlikely, and occur.
const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}'&\u{1b}[31m";

async fn filled() -> World {
    let world = World::start().await;
    for path in ["/jobs", "/batches"] {
        world.create(path, "").await;
    }
    let named = |file: &str, profile: &str| json!({"filename": file, "profile": profile, "submitter": "Ä/U"});
    world.job(1, &status("Pending", "Success", 0), &named("one.ZIP", "maps")).await;
    for number in 2..5 {
        let message = format!("404 for https://deposit.example.edu/{number}");
        world.job(number, &status("Failed", &message, number - 2), &named("two.zip", "maps")).await;
    }
    world.job(5, &status("Failed", HOSTILE, 0), &named(HOSTILE, HOSTILE)).await;
    world.job(6, &status("Teleporting", &"long ".repeat(2_000), 0), &named(&"w".repeat(10_000), "")).await;
    are_read(&world, &["pending", "failed", "failed", "failed", "failed", "other"]).await;
    world
}

/// Waits until the mirror has these jobs. Each of their znodes is read on its own, in any order.
async fn are_read(world: &World, states: &[&str]) {
    let is_read = async || {
        let (_, _, body) = world.get("/api/v1/jobs?sort=id", "*/*").await;
        let list = serde_json::from_str::<Value>(&body).unwrap_or_default();
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.len() == states.len()
            && items.iter().zip(states).all(|(item, state)| item["state"] == *state && item["filename"] != "")
    };
    eventually(LIMIT, "the image has all jobs", is_read).await;
}

#[tokio::test]
async fn a_list_is_filtered_sorted_and_paged_alike_as_page_and_as_json() {
    let world = filled().await;
    for (number, state) in [(7, "Completed"), (8, "Held")] {
        world.job(number, &status(state, "", 0), &json!({"filename": "late", "profile": "late"})).await;
    }
    are_read(&world, &["pending", "failed", "failed", "failed", "failed", "other", "completed", "held"]).await;
    for (query, expected) in [
        // Unfinished ones first, and by default so.
        ("?text=late", &[8, 7][..]),
        ("?collection=late&direction=desc", &[8, 7]),
        ("?collection=late&sort=entered", &[7, 8]),
        ("?sort=id", &[1, 2, 3, 4, 5, 6, 7, 8]),
        // None has a batch: the ids decide.
        ("?sort=batch&limit=3", &[1, 2, 3]),
        ("?state=failed&sort=retries&direction=desc&limit=2", &[4, 3]),
        ("?state=pending,other&sort=id", &[1, 6]),
        ("?state=pending&state=other&sort=id", &[1, 6]),
        ("?collection=maps&text=ZIP&sort=id", &[1, 2, 3, 4]),
        ("?text=0000000005", &[5]),
        ("?text=%C3%A4%2Fu&min_retries=1&sort=id", &[3, 4]),
        ("?text=%3CSCRIPT%3E", &[5]),
        ("?batch=7&locked=true", &[]),
        ("?collection=(none)", &[6]),
        ("?min_age=1d", &[]),
    ] {
        assert_eq!(world.ids(&format!("/api/v1/jobs{query}")).await, expected, "{query}");
        let html = world.html(&format!("/jobs{query}")).await;
        let mut shown: Vec<_> =
            (1..=8).filter_map(|id| Some((html.find(&format!("<tr id=\"jid{id:010}\""))?, id))).collect();
        shown.sort_unstable();
        assert_eq!(shown.into_iter().map(|(_, id)| id).collect::<Vec<u64>>(), expected, "{query}: {html}");
    }
    // Page by page, by the links that the pages themselves have, and back.
    let (mut path, mut seen) = ("/jobs?sort=id&limit=2".to_owned(), Vec::new());
    loop {
        let html = world.html(&path).await;
        seen.extend((1..=8).filter(|id| html.contains(&format!("<tr id=\"jid{id:010}\""))));
        let Some(next) = link(&html, "next") else { break };
        let back = link(&world.html(&next).await, "prev").unwrap();
        let html_of_back = world.html(&back).await;
        assert!(html_of_back.contains(&format!("<tr id=\"jid{:010}\"", seen.len())), "{html_of_back}");
        path = next;
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// The states that are offered, each with the number beside it.
fn pills(html: &str) -> Vec<(String, Option<u64>)> {
    let (_, links) = html.split_once("<nav id=\"states\"").unwrap();
    let (links, _) = links.split_once("</nav>").unwrap();
    let pill = |link: &str| {
        let (name, rest) = link.split_once('>')?.1.split_once('<')?;
        let count = rest.strip_prefix("b>").and_then(|count| count.split('<').next()?.replace(',', "").parse().ok());
        Some((name.trim().to_owned(), count))
    };
    // The first one is for all states.
    links.split("<a ").skip(2).filter_map(pill).collect()
}

/// Where the pill of a state leads, and whether the state is selected.
fn pill(html: &str, name: &str) -> (String, bool) {
    let (_, links) = html.split_once("<nav id=\"states\"").unwrap();
    let link = links.split("<a ").find(|link| link.split_once('>').is_some_and(|(_, text)| text.starts_with(name)));
    let tag = link.unwrap().split_once('>').unwrap().0;
    let href = tag.split("href=\"./").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    (format!("/{href}"), tag.contains("aria-current"))
}

#[tokio::test]
async fn the_count_of_each_state_follows_all_other_filters() {
    let world = filled().await;
    for (query, expected) in [
        ("", &[("Pending", 1), ("Failed", 4), ("Other", 1)][..]),
        // Not the states themselves: with another one chosen, there would be so many more.
        ("?state=failed", &[("Pending", 1), ("Failed", 4), ("Other", 1)]),
        ("?collection=maps", &[("Pending", 1), ("Failed", 3)]),
        ("?collection=maps&state=pending", &[("Pending", 1), ("Failed", 3)]),
        ("?collection=(none)", &[("Other", 1)]),
        ("?text=two.zip", &[("Failed", 3)]),
        ("?text=ZIP&min_retries=1", &[("Failed", 2)]),
        ("?batch=7", &[("Pending", 1), ("Failed", 4), ("Other", 1)]),
        ("?batch=8", &[]),
        ("?locked=false", &[("Pending", 1), ("Failed", 4), ("Other", 1)]),
        ("?locked=true", &[]),
        ("?min_age=1d", &[]),
    ] {
        let html = world.html(&format!("/jobs{query}")).await;
        let counted = pills(&html).into_iter().map(|(name, count)| (name, count.expect("each has its count")));
        let counted: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
        let expected: Vec<_> = expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(counted, expected, "{query}: {html}");
        assert_eq!(pills(&html).len(), 13, "all states are offered, those without a job too");
        // A click on a pill asks for its state, too, and another one does not any more; all other filters are kept.
        let (more, is_asked) = pill(&html, "Deleted");
        let with_it = world.html(&more).await;
        let (less, is_asked_then) = pill(&with_it, "Deleted");
        assert!(!is_asked && is_asked_then && more.contains("state=deleted"), "{more}");
        let summary = |html: &str| {
            html.split("<p class=\"list-summary\">").nth(1).unwrap().split("</b>").next().unwrap().to_owned()
        };
        assert_eq!(summary(&world.html(&less).await), summary(&html), "{less}");
        let (all, is_all) = pill(&html, "All");
        assert_eq!((is_all, all.contains("state=")), (!query.contains("state="), false), "{all}");
        // What a pill says is what the list has once it alone is chosen.
        for (name, count) in expected {
            let joint = if query.is_empty() { "?" } else { "&" };
            let rest = query.replace("?state=failed", "?").replace("&state=pending", "");
            let path = format!("/api/v1/jobs{rest}{joint}state={}", name.to_lowercase());
            assert_eq!(world.json(&path).await["total"], count, "{path}");
        }
    }
}

#[tokio::test]
async fn the_count_of_each_state_of_batches_follows_the_other_filters() {
    let world = filled().await;
    for (number, state, profile) in [(1, "Reporting", "maps"), (2, "Reporting", "films"), (3, "Completed", "maps")] {
        let batch = format!("/batches/bid{number:010}");
        world.create(&batch, "").await;
        let submission = json!({"batchID": format!("uuid-{number}"), "profile": profile});
        world.create(&format!("{batch}/submission"), &submission.to_string()).await;
        world.create(&format!("{batch}/status"), &json!({"status": state}).to_string()).await;
    }
    // Each is read on its own, in any order.
    let is_read = async || {
        let reporting = world.json("/api/v1/batches?text=uuid&state=reporting").await["total"] == 2;
        reporting && world.json("/api/v1/batches?text=uuid-3&state=completed").await["total"] == 1
    };
    eventually(LIMIT, "the image has all batches", is_read).await;
    for (query, reporting, completed) in [
        ("", 2, 1),
        ("?state=completed", 2, 1),
        ("?collection=maps", 1, 1),
        ("?collection=maps&state=reporting", 1, 1),
        ("?text=uuid-2", 1, 0),
        ("?collection=films&text=uuid-3", 0, 0),
    ] {
        let html = world.html(&format!("/batches{query}")).await;
        for reported in [format!(">Reporting ({reporting})<"), format!(">Completed ({completed})<")] {
            assert!(html.contains(&reported), "{reported} of {query}: {html}");
        }
    }
}

fn link(html: &str, rel: &str) -> Option<String> {
    let from = html.split(&format!("<a rel=\"{rel}\" href=\"./")).nth(1)?;
    Some(format!("/{}", from.split('"').next()?.replace("&#38;", "&")))
}

#[tokio::test]
async fn failures_are_reported_by_what_they_have_in_common() {
    let world = filled().await;
    let list = world.json("/api/v1/failures").await;
    let group = &list["items"][0];
    assert_eq!((&list["total"], &group["count"], &group["resumed"]), (&json!(2), &json!(3), &json!(2)), "{list:#}");
    assert_eq!(group["pattern"], "404 for https://deposit.example.edu/…");
    assert_eq!(group["failed_in"], "downloading");
    assert_eq!(group["batches"], json!([{"batch": "bid0000000007", "count": 3}]));
    assert_eq!(group["collections"], json!([{"collection": "maps", "count": 3}]));
    let name = group["group"].as_str().unwrap();
    assert_eq!(world.ids(&format!("/api/v1/jobs?group={name}&sort=id")).await, [2, 3, 4]);
    let html = world.html("/failures").await;
    assert!(html.contains(&format!("href=\"./jobs?group={name}\"")), "{html}");
    assert!(html.contains("4 jobs have failed, in 2 groups."), "{html}");
    // One of the group goes on: the others stay, and the group with them.
    let status = status("Downloading", "Success", 1).to_string();
    world.client.set_data("/jobs/jid0000000002/status", status.as_bytes(), None).await.unwrap();
    let is_smaller = async || world.json("/api/v1/failures").await["items"][0]["count"] == json!(2);
    eventually(LIMIT, "the group is smaller", is_smaller).await;
    assert_eq!(world.json("/api/v1/failures").await["items"][0]["group"], name);
}

#[tokio::test]
async fn what_cannot_be_asked_is_reported_with_what_can() {
    let world = filled().await;
    for (path, code, reported) in [
        ("/jobs?state=failing", 400, "provisioning"),
        ("/jobs?limit=501", 400, "1 to 500"),
        ("/jobs?cursor=eaf1&sort=id", 400, "first page"),
        ("/jobs?colour=red", 400, "min_retries"),
        ("/jobs?collection=nowhere", 404, "maps"),
        ("/jobs?group=0123456789abcdef", 404, "group"),
        ("/failures?limit=0", 400, "1 to 500"),
        ("/failures?cursor=x", 400, "first page"),
    ] {
        let (status, kind, body) = world.get(&format!("/api/v1{path}"), "*/*").await;
        assert_eq!((status, &*kind), (code, "application/problem+json"), "{path}: {body}");
        assert!(body.contains(reported), "{path}: {body}");
        let (status, kind, body) = world.get(path, "text/html").await;
        assert_eq!((status, &*kind), (code, "text/html; charset=utf-8"), "{path}: {body}");
        assert!(body.contains(reported), "{path}: {body}");
    }
    // The value is beside the error, the other filters are kept, and a link leads on without it.
    let (_, _, body) = world.get("/jobs?state=failed&batch=%22%3Efoo&text=zip", "text/html").await;
    for part in [
        "<input id=\"retry\" name=\"batch\" value=\"&#34;&#62;foo\"",
        "<input type=\"hidden\" name=\"state\" value=\"failed\">",
        "<input type=\"hidden\" name=\"text\" value=\"zip\">",
        "<a href=\"?state=failed&#38;text=zip\">The same without",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let (_, _, body) = world.get("/jobs?state=failed&cursor=abc", "text/html").await;
    assert!(body.contains("<a href=\"?state=failed\">First page</a>") && !body.contains("id=\"retry\""), "{body}");
    assert!(world.get("/jobs?limit=0", "text/html").await.2.contains("<a href=\"?\">The same without"));
    // Nothing found is no error: the page shows which filter leaves how many.
    let html = world.html("/jobs?state=failed&locked=true").await;
    for reported in ["No job matches.", "in Failed: 4 jobs", "locked: no job", "remove: 4 jobs"] {
        assert!(html.contains(reported), "{reported}: {html}");
    }
}

#[tokio::test]
async fn what_a_znode_holds_stays_text_in_lists() {
    let world = filled().await;
    let query =
        "/jobs?text=%22%3E%3Cscript%3E&collection=%22%3E%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE'%26%1B%5B31m";
    for path in ["/jobs", "/failures", query] {
        let html = world.html(path).await;
        assert!(html.contains("&#60;script&#62;") && html.contains("\\u{202e}"), "{path}: {html}");
        // The field for the collection has what was requested, character by character, or it could not be sent again.
        let html = html.replace("&#60;/script&#62;\u{202e}&#39;&#38;\u{1b}[31m\" list", "");
        for forbidden in ["<script>alert", "\u{1b}", "\u{202e}", "style=", "http-equiv", "href=\"/", "action=\"/"] {
            assert!(!html.contains(forbidden), "{forbidden} in {path}: {html}");
        }
        // Whatever is long is cut, with a note.
        assert!(html.len() < 40_000 && (path != "/jobs" || html.contains(&format!("{}…", "w".repeat(60)))), "{path}");
    }
    let item = &world.json("/api/v1/jobs?text=script").await["items"][0];
    assert_eq!((&item["filename"], &item["collection"]), (&json!(HOSTILE), &json!(HOSTILE)));
}
