//! A queue in a real ZooKeeper, and a server over it that takes actions of three people, each with a role of his own.

use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use queuekeeper::actions::audit::{Audit, Destination, Rotation};
use queuekeeper::actions::{self, Actions};
use queuekeeper::alerts::{self, Alerts, Rules};
use queuekeeper::config::{Config, ConfigFile, Web, WebFile};
use queuekeeper::mirror::{self, MirrorStore, Writer};
use queuekeeper::{metrics, server, web};
use queuekeeper_queue::fault::Limits;
use queuekeeper_zookeeper::coordination::Coordination;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{PrivateServer, Sessions};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use queuekeeper_testkit::server::config;
use queuekeeper_testkit::wait::eventually;

pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// What a page of the tree says, and one of a job.
const LATE: [&str; 2] = ["ZooKeeper did not answer in time", "ZooKeeper did not answer within 2 s"];

/// Everyone has his name as his password.
pub(crate) const VIEWER: &str = "vera";
pub(crate) const OPERATOR: &str = "oscar";
pub(crate) const ADMIN: &str = "ada";

/// A tree, its mirror and a server over it, all of which end when this is dropped.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) http: reqwest::Client,
    store: MirrorStore,
    actions: Actions,
    folder: TempDir,
    _tasks: [AbortOnDropHandle<()>; 3],
    server: PrivateServer,
}

/// An answer to a browser.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) code: u16,
    pub(crate) location: String,
    pub(crate) text: String,
}

impl Page {
    /// The fields of the form that is sent there, as the page has them.
    #[track_caller]
    pub(crate) fn form(&self, action: &str) -> Vec<(String, String)> {
        let start =
            self.text.find(&format!("action=\"{action}\"")).unwrap_or_else(|| panic!("{action}: {}", self.text));
        let form = &self.text[start..start + self.text[start..].find("</form>").unwrap()];
        let value = |tag: &str, name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.replace("&#38;", "&"))
        };
        let inputs = form.split("<input ").skip(1).map(|rest| rest.split_once('>').unwrap().0);
        let is_choice = |tag: &str| tag.contains("type=\"checkbox\"") || tag.contains("type=\"radio\"");
        let fields = inputs.filter(|tag| !is_choice(tag) || tag.contains(" checked"));
        fields.filter_map(|tag| Some((value(tag, "name")?, value(tag, "value")?))).collect()
    }
}

/// Asks until ZooKeeper was read in time for what is asked for: a page says so where that takes longer than 2 s, as it
/// may on a busy machine.
pub(crate) async fn once_read<T>(mut ask: impl AsyncFnMut() -> T, text: impl Fn(&T) -> &str) -> T {
    let began = Instant::now();
    loop {
        let answer = ask().await;
        let found = text(&answer);
        if !LATE.iter().any(|late| found.contains(late)) {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "{found}");
    }
}

/// A form as it was, with other values in some of its fields.
pub(crate) fn with(form: &[(String, String)], fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let kept = form.iter().filter(|(name, _)| !fields.iter().any(|(other, _)| other == name)).cloned();
    kept.chain(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).collect()
}

impl World {
    /// A queue with its folders, one batch that is being done, and no jobs.
    pub(crate) async fn start() -> Self {
        let server = PrivateServer::start(Options::default()).await.unwrap();
        let connect = || config(&server.connect_string());
        let folder = tempfile::tempdir().unwrap();
        let client = connect().connect().await.unwrap();
        let (writer, mut registry) = (Writer::new(), Registry::default());
        let (store, seen) = (writer.store(), mirror::Metrics::register(&mut registry));
        let shutdown = CancellationToken::new();
        let mirrored = mirror::run(Sessions::new(connect()), writer, seen, None, shutdown.clone());
        let audit = Audit::open(Destination::File(folder.path().join("audit.jsonl"), Rotation::default())).unwrap();
        let counted = actions::Metrics::register(&mut registry);
        let (actions, runner) = Actions::new(store.clone(), Limits::default(), audit, counted);
        let requested = runner.run(Sessions::new(connect()), shutdown.clone());

        let user = |name: &str| format!("  {name}: {}\n", bcrypt::hash(name, 4).unwrap());
        let users: String = [VIEWER, OPERATOR, ADMIN].map(user).concat();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        write("web.yml", format!("basic_auth_users:\n{users}"));
        let roles = format!("users: {{{VIEWER}: viewer, {OPERATOR}: operator, {ADMIN}: admin}}\n");
        let file = ConfigFile::read(&write("config.yml", roles)).unwrap();
        let (base, served) = serve(&store, &actions, Some(users_of(&folder)), Some(file)).await;
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(async move { mirrored.await.unwrap() })),
            AbortOnDropHandle::new(tokio::spawn(async move { requested.await.unwrap() })),
            served,
        ];
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        let world = Self { client, base, http, store, actions, folder, _tasks: tasks, server };
        world.seed().await;
        // Actions have a session of their own, which may be later than this.
        let hold = json!({"action": "hold", "on": "collection:none", "reason": "tried", "dry_run": true});
        eventually(LIMIT, "actions can be taken", async || {
            world.post_json(OPERATOR, "/api/v1/actions", &hold).await.code != 503
        })
        .await;
        world
    }

    /// Stops ZooKeeper, or starts it again with the same data.
    pub(crate) async fn run_zookeeper(&mut self, runs: bool) {
        if runs { self.server.restart().await.unwrap() } else { self.server.stop().await.unwrap() }
    }

    /// Where ZooKeeper is, as `--zookeeper` takes it.
    pub(crate) fn zookeeper(&self) -> String {
        self.server.connect_string()
    }

    /// Another server over the same queue: with the same users or with none, and with the users that this file lets
    /// action something. It ends when what is returned beside its address is dropped.
    pub(crate) async fn another(&self, has_users: bool, file: Option<ConfigFile>) -> (String, AbortOnDropHandle<()>) {
        let users = has_users.then(|| users_of(&self.folder));
        serve(&self.store, &self.actions, users, file).await
    }

    /// The whole server over the same queue, with a mirror of its own and what this file names.
    pub(crate) async fn whole(&self, file: ConfigFile) -> (String, AbortOnDropHandle<()>) {
        let zookeeper = config(&self.zookeeper());
        let audit = Destination::File(self.folder.path().join("audit-of-whole.jsonl"), Rotation::default());
        let config = Config { file: Some(file), audit, ..Config::new(zookeeper) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let run = async move { server::serve(config, vec![listener], &CancellationToken::new()).await.unwrap() };
        let served = AbortOnDropHandle::new(tokio::spawn(run));
        eventually(LIMIT, "the server is ready", async || {
            let ready = self.http.get(format!("{base}/-/ready")).send().await;
            ready.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        (base, served)
    }

    /// A server over the same queue that takes alerts, too, by no rules.
    pub(crate) async fn with_alerts(&self, file: ConfigFile) -> (String, AbortOnDropHandle<()>) {
        let (coordination, _) = Coordination::new(Vec::new());
        let mut registry = metrics::registry();
        let (counted, store) = (alerts::Metrics::register(&mut registry), self.store.clone());
        let rules = Rules::default();
        let alerts = Alerts::new(store.clone(), || None, self.actions.clone(), coordination, rules, counted);
        let config = Config {
            file: Some(file),
            ..Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap()))
        };
        let state = web::State::new(config, store, None, Some(self.actions.clone()), registry).with_alerts(alerts);
        run(state).await
    }

    async fn seed(&self) {
        for path in ["/access", "/access/small", "/access/large", "/batch-uuids", "/batches", "/jobs", "/jobs/states"] {
            self.create(path, "").await;
        }
        for path in ["/locks", "/locks/collections", "/locks/queue", "/locks/storage", "/locks/inventory"] {
            self.create(path, "").await;
        }
        for state in ["pending", "downloading", "processing", "failed", "held", "completed", "deleted"] {
            self.create(&format!("/jobs/states/{state}"), "").await;
        }
        let batch = "/batches/bid0000000007";
        self.create(batch, "").await;
        self.create(&format!("{batch}/submission"), r#"{"batchID":"uuid-7","profile":"demo"}"#).await;
        self.create(&format!("{batch}/status"), &status("Reporting", "")).await;
        self.create(&format!("{batch}/states"), "").await;
        for outcome in ["batch-completed", "batch-deleted", "batch-failed", "batch-processing"] {
            self.create(&format!("{batch}/states/{outcome}"), "").await;
        }
    }

    pub(crate) async fn create(&self, path: &str, data: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(path, data.as_bytes(), &options).await.unwrap();
    }

    /// A failed job.
    pub(crate) async fn failed_job(&self, number: u32, message: &str) {
        self.job(number, "Failed", message).await;
    }

    /// A job whose last successful state is Provisioning; it is there when the pages show it.
    pub(crate) async fn job(&self, number: u32, state: &str, message: &str) {
        let folder = state.to_lowercase();
        let outcome = if state == "Failed" { "batch-failed" } else { "batch-processing" };
        let jid = format!("jid{number:010}");
        self.create(&format!("/jobs/{jid}"), "").await;
        self.create(&format!("/jobs/{jid}/bid"), "bid0000000007").await;
        self.create(&format!("/jobs/{jid}/priority"), "5").await;
        self.create(&format!("/jobs/{jid}/space_needed"), "0").await;
        self.create(&format!("/jobs/{jid}/configuration"), r#"{"profile":"demo"}"#).await;
        self.create(&format!("/jobs/states/{folder}/05-{jid}"), "").await;
        self.create(&format!("/batches/bid0000000007/states/{outcome}/{jid}"), "").await;
        self.create(&format!("/jobs/{jid}/status"), &status(state, message)).await;
        eventually(LIMIT, "the job is shown in its state", async || {
            let page = self.get(VIEWER, &format!("/jobs?state={folder}")).await;
            page.code == 200 && page.text.contains(&format!("id=\"{jid}\""))
        })
        .await;
    }

    /// The state that a job's status names.
    pub(crate) async fn state(&self, number: u32) -> String {
        let (data, _) = self.client.get_data(&format!("/jobs/jid{number:010}/status")).await.unwrap();
        serde_json::from_slice::<Value>(&data).unwrap()["status"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn get(&self, who: &str, path: &str) -> Page {
        let ask = async || {
            let request = self.http.get(format!("{}{path}", self.base)).basic_auth(who, Some(who));
            page(request.header("accept", "text/html")).await
        };
        once_read(ask, |page: &Page| page.text.as_str()).await
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let ask = async || {
            let request = self.http.get(format!("{}{path}", self.base)).basic_auth(VIEWER, Some(VIEWER));
            page(request).await
        };
        serde_json::from_str(&once_read(ask, |page: &Page| page.text.as_str()).await.text).unwrap()
    }

    /// Sends a form as the page of that site would.
    pub(crate) async fn post(&self, who: &str, path: &str, form: &[(String, String)], site: &str) -> Page {
        let body: Vec<_> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request = self.http.post(format!("{}{path}", self.base)).basic_auth(who, Some(who)).body(body.join("&"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        page(request.header("accept", "text/html").header("sec-fetch-site", site)).await
    }

    /// Sends JSON as a program would.
    pub(crate) async fn post_json(&self, who: &str, path: &str, body: &Value) -> Page {
        let request = self.http.post(format!("{}{path}", self.base)).basic_auth(who, Some(who)).body(body.to_string());
        page(request.header("content-type", "application/json").header("sec-fetch-site", "none")).await
    }

    /// The lines of the audit file.
    pub(crate) fn audited(&self) -> Vec<Value> {
        self.audited_in("audit.jsonl")
    }

    /// Those of the whole server.
    pub(crate) fn audited_by_whole(&self) -> Vec<Value> {
        self.audited_in("audit-of-whole.jsonl")
    }

    fn audited_in(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn users_of(folder: &TempDir) -> WebFile {
    WebFile::read(&folder.path().join("web.yml")).unwrap()
}

async fn serve(
    store: &MirrorStore,
    actions: &Actions,
    users: Option<WebFile>,
    file: Option<ConfigFile>,
) -> (String, AbortOnDropHandle<()>) {
    // Nothing connects to the ZooKeeper of the server's configuration.
    let zookeeper = queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap());
    let config = Config { web: Web { file: users, ..Web::default() }, file, ..Config::new(zookeeper) };
    run(web::State::new(config, store.clone(), None, Some(actions.clone()), metrics::registry())).await
}

async fn run(state: web::State) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let run = async move { web::run(vec![listener], state, CancellationToken::new()).await.unwrap() };
    (base, AbortOnDropHandle::new(tokio::spawn(run)))
}

async fn page(request: reqwest::RequestBuilder) -> Page {
    let response = request.send().await.unwrap();
    let location = response.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
    // None leads away from us, whatever was sent.
    assert!(location.as_ref().is_none_or(|to| !to.starts_with('/') && !to.contains(':')), "{location:?}");
    Page {
        code: response.status().as_u16(),
        location: location.unwrap_or_default(),
        text: response.text().await.unwrap(),
    }
}

fn encoded(value: &str) -> String {
    let escaped =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(escaped).collect()
}

fn status(state: &str, message: &str) -> String {
    json!({
        "status": state, "last_modified": "x", "last_successful_status": "Provisioning", "retry_count": 1,
        "message": message, "by": "java",
    })
    .to_string()
}
