//! Every page of the program behind a proxy, and everything that a browser would load or follow from there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::command_line::queuekeeper;
use super::world::{ADMIN, LIMIT, World, once_read};
use super::{reverse_proxy, site};
use queuekeeper_testkit::wait::eventually;

const PREFIX: &str = "/some/prefix";

/// Of addresses that differ in ids and in what is chosen only, so many are looked at.
const OF_A_KIND: usize = 4;

/// The kinds of what must have been among them beside the pages that need no id, without the prefix.
const KINDS: [&str; 8] =
    ["/action", "/actions/#", "/api/v1/openapi.json", "/batches/#", "/dashboards/#", "/jobs/#", "/lists/#", "/metrics"];

/// The program behind a proxy.
struct Served {
    child: Child,
    /// Where its overview is for a browser.
    home: Url,
    http: reqwest::Client,
    _proxy: AbortOnDropHandle<()>,
    _folder: TempDir,
}

impl Served {
    async fn start(world: &World, has_prefix_taken_away: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let home = Url::parse(&format!("http://{}{PREFIX}/", listener.local_addr().unwrap())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let users = write("web.yml", &format!("basic_auth_users: {{{ADMIN}: {}}}\n", bcrypt::hash(ADMIN, 4).unwrap()));
        // With rules, so that there is something on their page.
        let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/queuekeeper/config.yml");
        let rules = std::fs::read_to_string(rules).unwrap();
        let roles = rules.replace("# tokens_file: tokens.yml", &format!("users: {{{ADMIN}: admin}}"));
        let roles = write("config.yml", &roles);
        let mut child = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .args(["--zookeeper", &world.zookeeper(), "--web.external-url", home.as_str()])
            .args(has_prefix_taken_away.then_some("--web.route-prefix=/"))
            .args(["--audit.file".as_ref(), folder.path().join("audit.jsonl").as_os_str()])
            .args(["--web.config.file".as_ref(), users.as_os_str(), "--config.file".as_ref(), roles.as_os_str()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let upstream = loop {
            let line = log.next().expect("it says where it listens before it ends").unwrap();
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            if line["fields"]["message"] == "listening" {
                break line["fields"]["address"].as_str().unwrap().to_owned();
            }
        };
        // A pipe that is full would stop it.
        std::thread::spawn(move || log.for_each(drop));
        let proxy = reverse_proxy::serve(listener, upstream, PREFIX, has_prefix_taken_away);
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        let served = Self { child, home, http, _proxy: proxy, _folder: folder };
        eventually(LIMIT, "it has read the queue", async || served.get("-/ready").await.0 == StatusCode::OK).await;
        served
    }

    fn ask(&self, method: Method, at: Url) -> reqwest::RequestBuilder {
        let request = self.http.request(method, at).basic_auth(ADMIN, Some(ADMIN));
        // As a browser says of what one of our pages asks for.
        request.header("accept", "text/html,*/*").header("sec-fetch-site", "same-origin")
    }

    async fn open(&self, at: &Url) -> (StatusCode, HeaderMap, String) {
        let ask = async || {
            let answer = self.ask(Method::GET, at.clone()).send().await.unwrap();
            (answer.status(), answer.headers().clone(), answer.text().await.unwrap())
        };
        once_read(ask, |(_, _, text): &(StatusCode, HeaderMap, String)| text.as_str()).await
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let (status, _, text) = self.open(&self.home.join(path).unwrap()).await;
        (status, text)
    }

    /// Follows everything from the overview on, and then sends a form of each kind and follows what that leads to.
    /// Gives how often each kind of address was looked at.
    async fn crawl(&self) -> BTreeMap<String, usize> {
        // No page leads to a smaller page of children, which is what leads on to the next.
        let first = [self.home.clone(), self.home.join("tree/odd?limit=5").unwrap()];
        let mut waiting: VecDeque<_> = first.map(|at| (at, "the test".to_owned())).into();
        let (mut known, mut kinds) = (BTreeSet::from([self.home.clone()]), BTreeMap::<String, usize>::new());
        let (mut to_send, mut sent, mut led_on) = (VecDeque::new(), BTreeSet::new(), BTreeSet::new());
        loop {
            while let Some((at, from)) = waiting.pop_front() {
                let count = kinds.entry(kind(&at)).or_default();
                *count += 1;
                if *count > OF_A_KIND {
                    continue;
                }
                let (status, headers, text) = self.open(&at).await;
                if status == StatusCode::SEE_OTHER {
                    // As the search does where there is one thing to see.
                    let to = at.join(headers["location"].to_str().unwrap()).unwrap();
                    self.is_below(&at, &to);
                    waiting.push_back((to, at.to_string()));
                    continue;
                }
                let media_type = headers["content-type"].to_str().unwrap();
                let (is_page, is_style) = (media_type.starts_with("text/html"), media_type.starts_with("text/css"));
                // What a form has changed may have taken away what a page was about.
                let is_there = status == StatusCode::OK || (!sent.is_empty() && is_missed(status, &text));
                assert!(is_there, "{from} leads to {at}: {status}: {text}");
                let mut found: Vec<Url> = if is_page {
                    links(&text).map(|link| at.join(&link).unwrap()).collect()
                } else {
                    let pictures = text.split("url(").skip(1).filter(|_| is_style);
                    pictures.map(|rest| at.join(rest.split(')').next().unwrap()).unwrap()).collect()
                };
                for form in if is_page { forms(&text) } else { Vec::new() } {
                    let mut to = at.join(&form.action).unwrap();
                    if form.is_post {
                        self.is_below(&at, &to);
                        to_send.push_back((at.clone(), to, form.body));
                    } else {
                        to.set_query(Some(&form.body));
                        found.push(to);
                    }
                }
                for mut link in found {
                    link.set_fragment(None);
                    self.is_below(&at, &link);
                    if known.insert(link.clone()) {
                        waiting.push_back((link, at.to_string()));
                    }
                }
            }
            let Some((at, to, body)) = to_send.pop_front() else { break };
            let page = kind(&at).split('?').next().unwrap_or_default().to_owned();
            if sent.insert((page, kind(&to)))
                && let Some(next) = self.send(&at, &to, body).await
            {
                led_on.insert(kind(&to));
                if known.insert(next.clone()) {
                    waiting.push_back((next, to.to_string()));
                }
            }
        }
        for kind in ["/action", "/lists", "/lists/#"] {
            assert!(led_on.contains(kind), "{kind} took no form: {sent:#?}");
        }
        // Whether there is something to pause, another server may have decided a moment ago.
        assert!(sent.iter().any(|(_, to)| to == "/rules/change"), "{sent:#?}");
        kinds
    }

    #[track_caller]
    fn is_below(&self, from: &Url, link: &Url) {
        let is_below = link.origin() == self.home.origin() && link.path().starts_with(self.home.path());
        assert!(is_below, "{from} leads to {link}, which is not below {PREFIX}");
    }

    /// Sends a form, and gives where the answer leads on to.
    async fn send(&self, page: &Url, to: &Url, body: String) -> Option<Url> {
        let origin = self.home.origin().ascii_serialization();
        let request = self.ask(Method::POST, to.clone()).header("content-type", site::FORM).header("origin", origin);
        let answer = request.body(body).send().await.unwrap();
        let (status, location) = (answer.status(), answer.headers().get("location").cloned());
        let text = answer.text().await.unwrap();
        // What cannot be done to this item now is refused, by a page of ours.
        let is_taken = matches!(status.as_u16(), 200 | 303 | 400 | 409 | 422) || is_missed(status, &text);
        assert!(is_taken, "the form of {page} for {to}: {status}: {text}");
        let next = to.join(location?.to_str().unwrap()).unwrap();
        self.is_below(to, &next);
        Some(next)
    }
}

/// Whether a page of ours says that what it would be about is not there, other than one that says that there is no
/// page.
fn is_missed(status: StatusCode, text: &str) -> bool {
    status == StatusCode::NOT_FOUND && text.contains("queuekeeper") && !text.contains("nothing at this address")
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is the same of addresses that differ in ids and in what is chosen only.
fn kind(at: &Url) -> String {
    let below = at.path().strip_prefix(PREFIX).unwrap_or(at.path());
    let mut parts = below.trim_start_matches('/').split('/');
    let first = parts.next().unwrap_or_default();
    let second = match (first, parts.next()) {
        (_, None) => String::new(),
        ("jobs" | "batches" | "actions" | "lists" | "dashboards", Some(_)) => "/#".to_owned(),
        // Of the tree, what lies equally deep.
        ("tree", Some(_)) => format!("/{}", parts.clone().count()),
        (_, Some(second)) => format!("/{second}"),
    };
    let rest: Vec<_> = if first == "tree" { Vec::new() } else { parts.collect() };
    let rest = if rest.is_empty() { String::new() } else { format!("/{}", rest.join("/")) };
    let keys: Vec<_> = at.query_pairs().map(|(key, _)| key.into_owned()).collect();
    let query = if keys.is_empty() { String::new() } else { format!("?{}", keys.join("&")) };
    format!("/{first}{second}{rest}{query}")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
    Some(value.replace("&#38;", "&").replace("&amp;", "&").replace("&#39;", "'").replace("&#34;", "\""))
}

fn tags(html: &str) -> impl Iterator<Item = &str> {
    html.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0))
}

/// Everything that a page loads or leads to.
fn links(html: &str) -> impl Iterator<Item = String> {
    tags(html).flat_map(|tag| ["href", "src", "formaction"].map(|name| attribute(tag, name))).flatten()
}

struct Form {
    action: String,
    is_post: bool,
    body: String,
}

/// The forms of a page, as they would be sent with what is in them.
fn forms(html: &str) -> Vec<Form> {
    let forms = html.split("<form").skip(1).map(|rest| rest.split("</form>").next().unwrap());
    let form = |form: &str| {
        let head = form.split_once('>').unwrap().0;
        let mut fields = url::form_urlencoded::Serializer::new(String::new());
        let button = tags(form).find(|tag| tag.starts_with("button ") && !tag.contains(" disabled"));
        for tag in tags(form).filter(|tag| tag.starts_with("input ")).chain(button) {
            let is_sent =
                !matches!(attribute(tag, "type").as_deref(), Some("checkbox" | "radio")) || tag.contains(" checked");
            if let (Some(name), true) = (attribute(tag, "name"), is_sent && !tag.contains("name=\"reason\"")) {
                let value = attribute(tag, "value").unwrap_or_default();
                // What a browser would not send empty.
                let is_lacking = value.is_empty() && tag.contains(" required");
                fields.append_pair(&name, if is_lacking { "demo" } else { &value });
            }
        }
        let is_post = attribute(head, "method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
        for select in form.split("<select").skip(1).filter(|_| is_post) {
            let name = attribute(select.split_once('>').unwrap().0, "name");
            let options = tags(select.split("</select>").next().unwrap()).filter(|tag| tag.starts_with("option"));
            let chosen = options.filter_map(|tag| attribute(tag, "value")).find(|value| !value.is_empty());
            if let (Some(name), Some(chosen)) = (name, chosen) {
                fields.append_pair(&name, &chosen);
            }
        }
        if form.contains(" name=\"reason\"") {
            fields.append_pair("reason", "crawled");
        }
        Form { action: attribute(head, "action").unwrap_or_default(), is_post, body: fields.finish() }
    };
    forms.map(form).collect()
}

/// A queue with something of each kind.
async fn queue() -> World {
    let world = Box::pin(World::start()).await;
    for (number, state) in (0..).zip(["Pending", "Processing", "Failed", "Failed", "Held", "Completed"]) {
        world.job(number, state, "404 for the manifest").await;
    }
    for (path, data) in [
        ("/access/small/qid0000000000", ""),
        ("/access/small/qid0000000000/status", r#"{"status":"Failed"}"#),
        ("/access/small/qid0000000000/token", r#"{"token":"t-0","cloud-content-byte":2048}"#),
        ("/batch-uuids/uuid-7", "bid0000000007"),
        ("/locks/collections/demo", r#"{"who":"ada","why":"tried"}"#),
        ("/locks/queue/accessLarge", r#"{"who":"ada","why":"tried"}"#),
        ("/locks/storage/ark_99999_fk4x", ""),
        ("/jobs/states/pending/07-jid0000000099", ""),
        ("/odd", "1"),
        ("/odd/a b?#%&\"<\u{e9}", "2"),
        ("/odd/a b?#%&\"<\u{e9}/deeper", "3"),
    ] {
        world.create(path, data).await;
    }
    for number in 0..20 {
        world.create(&format!("/odd/child{number:03}"), "").await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_everything_stays_below_its_prefix_and_is_there() {
    let world = Box::pin(queue()).await;
    for has_prefix_taken_away in [false, true] {
        let served = Served::start(&world, has_prefix_taken_away).await;
        let kinds = served.crawl().await;
        for kind in queuekeeper::web::pages::addresses().chain(KINDS) {
            assert!(kinds.keys().any(|found| found.split('?').next() == Some(kind)), "{kind} is not among {kinds:#?}");
        }
        let is_tree = |kind: &&String| kind.starts_with("/tree/");
        assert!(kinds.keys().filter(is_tree).count() >= 4 && kinds.contains_key("/tree/0?limit&after"), "{kinds:#?}");

        // What scripts ask for, they build from the way to the overview.
        let events = served.home.join("events?page=tree/jobs").unwrap();
        let stream = served.ask(Method::GET, events).header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        drop(stream);

        // What other programs load has addresses that lead here, too.
        let url = served.home.as_str().trim_end_matches('/');
        let (_, alerts) = served.get("dashboards/alerts.yml").await;
        let runbook: BTreeSet<&str> =
            alerts.lines().filter_map(|line| line.trim().strip_prefix("runbook_url: http")).collect();
        assert!(runbook.len() > 15, "{alerts}");
        for link in runbook {
            assert!(link.starts_with(&url["http".len()..]), "{link}");
        }
        assert_eq!(served.get("runbook").await.0, StatusCode::OK);
        let (_, alertmanager) = served.get("dashboards/alertmanager.yml").await;
        assert!(alertmanager.contains(&format!("- url: {url}/api/v1/alerts\n")), "{alertmanager}");
        let (_, board) = served.get("dashboards/overview.json").await;
        assert!(board.contains(&format!("\"query\": \"{url}\"")) && !board.contains("127.0.0.1:12181"));
        // Prometheus scrapes the server itself.
        let (_, prometheus) = served.get("dashboards/prometheus.yml").await;
        let path = if has_prefix_taken_away { "" } else { PREFIX };
        assert!(prometheus.contains(&format!("metrics_path: {path}/metrics\n")), "{prometheus}");
    }
}
