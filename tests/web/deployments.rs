//! Several queues behind one address.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use jiff::Timestamp;
use queuekeeper::actions::Role;
use queuekeeper::actions::audit::{Destination, Rotation};
use queuekeeper::config::{Config, ConfigFile, Secret, TokenLine};
use queuekeeper::server::{self, deployments};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob, Queue};
use queuekeeper_testkit::readers::{promtool_is_content, python_reads};
use queuekeeper_testkit::server::{config, connect};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Auth, PrivateServer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, CreateMode};

use super::harness::IN_TIME;
use super::world::LIMIT;

const RULES: &str = "alerts:\n  rules:\n    - {name: again, alert: MerrittJobsFailed, mode: enforce, action: resume_jobs, \
                     select: {limit: 10}, budget: {items: 10, per: 1h}, cooldown: 1m}\n";

/// Two queues of one ensemble, and a third whose ensemble cannot be reached, behind one server.
struct World {
    base: String,
    files: TempDir,
    tokens: [String; 2],
    /// A job of `prod`, and one of `stage`, which have failed.
    failed: [JobId; 2],
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
    _zookeeper: PrivateServer,
}

struct Answer {
    status: StatusCode,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

/// A queue below a chroot, with some jobs, the first of which has failed.
async fn queue(zookeeper: &str, name: &str, jobs: usize) -> JobId {
    let root = connect(zookeeper).await;
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    root.create(&format!("/{name}"), b"", &open).await.unwrap();
    let daemon = Queue::new(connect(&format!("{zookeeper}/{name}")).await);
    let now = Timestamp::now;
    let batch = daemon.create_batch(br#"{"batchID":"bid-1","filename":"a.checkm"}"#, now()).await.unwrap();
    let taken = daemon.acquire_batch(Due::Jobs, now()).await.unwrap().0.unwrap();
    let file = format!(r#"{{"filename":"of-{name}.zip","primaryID":"ark:/1/{name}"}}"#);
    daemon.create_jobs(batch, &vec![NewJob::new(&*file); jobs], now()).await.unwrap();
    daemon.finish_batch(&taken, &ItemChange::success(), now()).await.unwrap();
    let taken = daemon.acquire_job(JobState::Pending, now()).await.unwrap().0.unwrap();
    daemon.finish_job(&taken, &JobChange::success(), now()).await.unwrap();
    let taken = daemon.acquire_job(JobState::Estimating, now()).await.unwrap().0.unwrap();
    let failed = taken.job.id;
    daemon.finish_job(&taken, &JobChange::failure("404"), now()).await.unwrap();
    failed
}

/// A file with the rules, and the tokens of an operator and of Alertmanager.
fn config_file(folder: &Path) -> (ConfigFile, [String; 2]) {
    let (mut lines, roles) = (String::new(), [Role::Operator, Role::Alertmanager]);
    let tokens = roles.map(|role| {
        let secret = Secret::make();
        lines.push_str(&TokenLine::new(role.label(), role, None, &secret).unwrap().to_string());
        lines.push('\n');
        secret.reveal().to_owned()
    });
    std::fs::write(folder.join("tokens.yml"), lines).unwrap();
    let path = folder.join("config.yml");
    std::fs::write(&path, format!("tokens_file: tokens.yml\n{RULES}")).unwrap();
    (ConfigFile::read(&path).unwrap(), tokens)
}

impl World {
    async fn start(prefix: &str) -> Self {
        let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
        let at = zookeeper.connect_string();
        let failed_in_prod = queue(&at, "prod", 3).await;
        let failed_in_stage = queue(&at, "stage", 5).await;
        let files = tempfile::tempdir().unwrap();
        let (file, tokens) = config_file(files.path());
        let mut config = Config::new(config(&at));
        config.web.route_prefix = prefix.parse().unwrap();
        config.file = Some(file);
        config.audit = Destination::File(files.path().join("audit.jsonl"), Rotation::default());
        let queues =
            [("prod", format!("{at}/prod")), ("stage", format!("{at}/stage")), ("gone", "127.0.0.1:1".to_owned())];
        let queues = queues.map(|(name, at)| (name.parse().unwrap(), at.parse().unwrap())).into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}{prefix}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let ended = shutdown.clone();
        let running =
            tokio::spawn(async move { deployments::serve(config, queues, vec![listener], None, &ended).await });
        let failed = [failed_in_prod, failed_in_stage];
        let world = Self { base, files, tokens, failed, shutdown, running, _zookeeper: zookeeper };
        eventually(LIMIT, "both queues are read", async || {
            let unready = world.get("/-/ready").await;
            unready.status == StatusCode::SERVICE_UNAVAILABLE && unready.text.lines().count() == 1
        })
        .await;
        world
    }

    async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: &Value) -> Answer {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let mut request = client.request(method.clone(), format!("{}{path}", self.base));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if method == Method::POST {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        Answer { status: response.status(), text: response.text().await.unwrap() }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None, &Value::Null).await
    }

    /// Sends something that takes effect in ZooKeeper. What does that has a session of its own, which may be later than
    /// the mirror's.
    async fn post(&self, path: &str, token: Option<&str>, body: &Value) -> Answer {
        eventually_some(LIMIT, path, async || {
            let answer = self.ask(Method::POST, path, token, body).await;
            (answer.status != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
        })
        .await
    }

    async fn jobs(&self, name: &str, state: &str) -> u64 {
        self.get(&format!("/{name}/api/v1/jobs?state={state}")).await.json()["total"].as_u64().unwrap()
    }

    fn audited(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.files.path().join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn stop(self) {
        let asked = std::time::Instant::now();
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
        assert!(asked.elapsed() < IN_TIME, "{:?}", asked.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_queue_has_its_own_pages_and_the_overview_has_all() {
    let world = Box::pin(World::start("/ops")).await;
    let unready = world.get("/-/ready").await.text;
    assert!(unready.starts_with("not ready: gone: the queue has not been read yet, not connected"), "{unready}");
    assert_eq!(world.get("/prod/-/ready").await.text, "ready\n");
    assert_eq!(world.get("/-/healthy").await.text, "healthy\n");

    let overview = world.get("/").await.text;
    for said in [
        r#"<a href="./prod/">prod</a>"#,
        r#"href="./prod/failures">Failed <b>1</b>"#,
        r#"href="./stage/jobs">Jobs under way <b>4</b>"#,
        r#"<a href="./gone/">gone</a>"#,
        "The queue has not been read yet. ",
    ] {
        assert!(overview.contains(said), "{said} is not in {overview}");
    }
    assert!(!overview.contains("role=\"search\"") && !overview.contains("openapi.json"), "{overview}");

    for (name, other, jobs) in [("prod", "stage", 2), ("stage", "prod", 4)] {
        assert_eq!(world.jobs(name, "pending").await, jobs, "{name}");
        let page = world.get(&format!("/{name}/jobs")).await.text;
        assert!(page.contains(&format!("of-{name}.zip")) && !page.contains(&format!("of-{other}.zip")), "{page}");
        // In the same order on all pages.
        let way = |of: &str| {
            if of == name {
                format!("<b aria-current=\"true\">{of}</b>")
            } else {
                format!("<a href=\"./../{of}/jobs\">{of}</a>")
            }
        };
        let switch = ["prod", "stage"].map(way).concat();
        let switch = format!("<nav class=\"switch\" aria-label=\"Queues\"><a href=\"./../\">All queues</a>{switch}");
        assert!(page.contains(&switch), "{switch} is not in {page}");
        assert!(page.contains(&format!(" · {name} · queuekeeper</title>")), "{page}");
        let job = world.get(&format!("/{name}/jobs/{}", world.failed[0])).await.text;
        assert!(job.contains(&format!("<a href=\"../../{other}/jobs\">{other}</a>")), "{job}");
    }
    let unread = world.get("/gone/").await;
    assert!(unread.status.is_success() && unread.text.contains("The queue has not been read yet"), "{}", unread.text);
    assert_eq!(world.get("/gone/api/v1/jobs").await.status, StatusCode::SERVICE_UNAVAILABLE);

    for path in ["/jobs", "/other/jobs", "/api/v1/jobs", "/prods/"] {
        let lost = world.get(path).await;
        assert_eq!(lost.status, StatusCode::NOT_FOUND, "{path}");
        assert!(lost.text.contains("This server has several queues") && lost.text.contains("prod"), "{}", lost.text);
    }
    let client = reqwest::Client::new();
    let lost = client.get(format!("{}/prod/jobs/jid9", world.base)).header("accept", "text/html").send().await.unwrap();
    assert_eq!(lost.status(), StatusCode::NOT_FOUND);
    let lost = lost.text().await.unwrap();
    let switch = "<nav class=\"switch\" aria-label=\"Queues\"><a href=\"../../\">All queues</a>\
                  <b aria-current=\"true\">prod</b><a href=\"../../stage/\">stage</a>";
    assert!(lost.contains("<title>Not Found · prod · queuekeeper</title>") && lost.contains(switch), "{lost}");
    assert_eq!(world.get("/prod").await.status, StatusCode::FOUND);

    // The files for other programs have the addresses of the queue, and of the metrics of all.
    let scraping = world.get("/prod/dashboards/prometheus.yml").await.text;
    assert!(scraping.contains("metrics_path: /ops/metrics\n"), "{scraping}");
    let alerts = world.get("/prod/dashboards/alerts.yml").await.text;
    let runbook = "http://{{ $labels.instance }}/ops/{{ or $labels.deployment \"prod\" }}/runbook#a-stuck-state";
    assert!(alerts.contains(runbook), "{alerts}");
    let call = world.get("/stage/dashboards/alertmanager.yml").await.text;
    assert!(call.contains("http://127.0.0.1:12181/ops/stage/api/v1/alerts"), "{call}");
    let file = world.files.path().join("alertmanager.yml");
    std::fs::write(&file, call).unwrap();
    for (deployment, receivers) in [("stage", "queuekeeper,people\n"), ("prod", "people\n")] {
        let labels = ["alertname=MerrittJobsFailed", &format!("deployment={deployment}")];
        let config = format!("--config.file={}", file.display());
        let routed = Command::new("amtool").args(["config", "routes", "test", &config]).args(labels).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&routed.stdout), receivers, "{deployment}: {routed:?}");
    }

    // The links of alerts by the command lead to the address of all.
    let runbook = world.get("/runbook").await;
    assert_eq!(runbook.status, StatusCode::OK);
    for said in ["id=\"a-stuck-state\"", "<a href=\"./prod/\">prod", "<a href=\"./-/ready\">", " data-still"] {
        assert!(runbook.text.contains(said), "{said} is not in {}", runbook.text);
    }
    assert!(!runbook.text.contains("href=\"./jobs") && overview.contains("href=\"./runbook\""), "{}", runbook.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_all_are_one_exposition_with_the_queue_of_each_series() {
    let world = Box::pin(World::start("")).await;
    assert!(world.get("/prod/jobs").await.status.is_success() && world.get("/stage/jobs").await.status.is_success());
    let text = world.get("/metrics").await.text;
    promtool_is_content(&text);
    let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(types.iter().collect::<BTreeSet<_>>().len(), types.len(), "a family stands twice: {types:#?}");
    let has = |series: &str| text.lines().any(|line| line == series);
    for series in [
        r#"merritt_jobs{deployment="prod",state="pending"} 2"#,
        r#"merritt_jobs{deployment="stage",state="pending"} 4"#,
        r#"queuekeeper_zookeeper_connected{deployment="prod"} 1"#,
        r#"queuekeeper_zookeeper_connected{deployment="gone"} 0"#,
        r#"queuekeeper_http_requests_total{route="/jobs",method="GET",code="200"} 2"#,
    ] {
        assert!(has(series), "{series} is not in {text}");
    }
    assert!(!text.contains(r#"merritt_jobs{deployment="gone""#), "{text}");
    let samples = python_reads(&text, false);
    let of_process = |sample: &str| {
        let name = sample.split(' ').nth(1).unwrap_or_default();
        ["process_", "queuekeeper_http_", "queuekeeper_build_info", "queuekeeper_tasks", "queuekeeper_login"]
            .iter()
            .any(|start| name.starts_with(start))
            || name.starts_with("queuekeeper_config_last_reload")
    };
    for sample in &samples {
        assert_ne!(of_process(sample), sample.contains(r#""deployment": ""#), "{sample}");
    }
    // Its own pages have the series of one queue alone.
    let own = world.get("/prod/metrics").await.text;
    promtool_is_content(&own);
    assert!(own.contains("{deployment=\"prod\"") && !own.contains("stage") && !own.contains("process_"), "{own}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_and_an_alert_are_of_one_queue() {
    let world = Box::pin(World::start("")).await;
    let [operator, alertmanager] = world.tokens.each_ref().map(|token| Some(&**token));
    let resume = json!({"action": "resume", "on": world.failed[0].to_string(), "reason": "it is there now"});
    let done = world.post("/prod/api/v1/actions", operator, &resume).await;
    // The latter of an action that takes long.
    assert!([StatusCode::OK, StatusCode::ACCEPTED].contains(&done.status), "{}", done.text);
    eventually(LIMIT, "the job is resumed", async || world.jobs("prod", "failed").await == 0).await;
    assert_eq!(world.jobs("stage", "failed").await, 1);
    eventually(LIMIT, "its outcome is recorded", async || world.audited("audit.prod.jsonl").len() >= 2).await;
    let records = world.audited("audit.prod.jsonl");
    assert_eq!(records.len(), 2, "{records:?}");
    assert!(records.iter().all(|record| record["deployment"] == "prod"), "{records:?}");
    assert!(world.audited("audit.stage.jsonl").is_empty());
    let listed = async |name: &str| world.get(&format!("/{name}/api/v1/audit")).await.json()["total"].clone();
    assert_eq!((listed("prod").await, listed("stage").await), (json!(1), json!(0)));
    // The outer address takes none.
    assert_eq!(world.ask(Method::POST, "/api/v1/actions", operator, &resume).await.status, StatusCode::NOT_FOUND);

    let alert = |labels: Value| {
        json!({"version": "4", "receiver": "queuekeeper", "alerts": [{"status": "firing", "labels": labels,
               "startsAt": Timestamp::now().to_string(), "fingerprint": "0f1e2d3c4b5a6978"}]})
    };
    let call = async |labels: Value| {
        let answer = world.post("/stage/api/v1/alerts", alertmanager, &alert(labels)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.json()["decisions"][0].clone()
    };
    for (labels, why) in [
        (
            json!({"alertname": "MerrittJobsFailed", "deployment": "prod"}),
            "its label deployment names another queue than stage",
        ),
        (json!({"alertname": "MerrittJobsFailed"}), "it has no label deployment"),
    ] {
        let decision = call(labels).await;
        assert_eq!(decision["outcome"], "no_match", "{decision}");
        assert!(decision["detail"].as_str().unwrap().contains(why), "{decision}");
    }
    assert_eq!(world.jobs("stage", "failed").await, 1, "neither was about it");
    let decision = call(json!({"alertname": "MerrittJobsFailed", "deployment": "stage"})).await;
    assert_eq!(decision["outcome"], "accepted", "{decision}");
    eventually(LIMIT, "the rule resumes the job", async || world.jobs("stage", "failed").await == 0).await;
    let caused = world.audited("audit.stage.jsonl.alerts");
    assert!(!caused.is_empty() && caused.iter().all(|record| record["deployment"] == "stage"), "{caused:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_servers_refuse_the_credentials_leaves_the_others_served_whenever_they_do() {
    let provider = "org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider";
    let knows = PrivateServer::start(Options { auth_providers: vec![provider], ..Options::default() }).await.unwrap();
    let mut refuses = PrivateServer::start(Options::default()).await.unwrap();
    refuses.kill().unwrap();
    let files = tempfile::tempdir().unwrap();
    let auth_file = files.path().join("auth");
    std::fs::write(&auth_file, "ensemble:ours\n").unwrap();
    let mut config = Config::new(config(&refuses.connect_string()));
    config.zookeeper.auth = Auth::read_file(&auth_file).unwrap();
    config.audit = Destination::File(files.path().join("audit.jsonl"), Rotation::default());
    let queues = [("prod", knows.connect_string()), ("stage", refuses.connect_string())];
    let queues = queues.map(|(name, at)| (name.parse().unwrap(), at.parse().unwrap())).into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (shutdown, of_all) = (CancellationToken::new(), config.clone());
    let ended = shutdown.clone();
    let running = tokio::spawn(async move { deployments::serve(of_all, queues, vec![listener], None, &ended).await });
    let get = async |path: &str| reqwest::get(format!("{base}{path}")).await.unwrap().text().await.unwrap();
    eventually(LIMIT, "prod is read", async || get("/prod/-/ready").await == "ready\n").await;

    refuses.restart().await.unwrap();
    let why = format!("ZooKeeper at {} refused the credentials of --zookeeper.auth-file", refuses.connect_string());
    eventually(LIMIT, "stage is refused", async || get("/-/ready").await.contains(&why)).await;
    let unready = get("/-/ready").await;
    assert!(unready.starts_with("not ready: stage: ") && unready.contains("(schemes: ensemble)"), "{unready}");
    assert_eq!(unready.lines().count(), 1, "{unready}");
    let banner = get("/stage/").await;
    assert!(banner.contains(&why) && banner.contains("have providers for. Retrying. "), "{banner}");
    assert_eq!(get("/prod/-/ready").await, "ready\n");
    assert!(!running.is_finished());
    shutdown.cancel();
    running.await.unwrap().unwrap();

    // A server of that queue alone ends.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ended = server::serve(config, vec![listener], &CancellationToken::new()).await.unwrap_err();
    assert!(format!("{ended:#}").contains(&why), "{ended:#}");
}
