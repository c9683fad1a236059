//! Deposits that are withdrawn, by their depositor and by an operator.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::engine::CATALOGUE;
use queuekeeper_ingest::withdrawal::record_taken_back;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob};
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::queue::World;
use queuekeeper_testkit::server::shared;
use queuekeeper_testkit::wait::eventually;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use zookeeper_client::{Acls, CreateMode};

use super::program::{queuekeeper, run};

pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// A server that takes deposits, and no daemon.
pub(super) struct Server {
    child: Child,
    address: String,
    pub(super) world: World,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A caller of it.
pub(super) struct Caller<'a> {
    pub(super) server: &'a Server,
    pub(super) token: String,
}

impl Server {
    pub(super) async fn start(home: &Path, tokens: &str, audit: &str) -> Self {
        let world = World::new(&[]).await;
        let at = |name: &str| home.join(name).display().to_string();
        for folder in ["working", "profiles"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        let profile = "name: demo\nowner: ark:/99999/owner\nstore: main\nspace: demo\n\
                       minter: {kind: noid, shoulder: ark:/99999/fk4}\n";
        std::fs::write(home.join("profiles/demo.yaml"), profile).unwrap();
        std::fs::write(home.join("tokens.yml"), tokens).unwrap();
        let config = format!(
            "tokens_file: tokens.yml\ncatalogue: {{url: \"sqlite:{}\"}}\ndepositors:\n  lab: {{profiles: [demo], \
             deposits_per_day: 5}}\n  other: {{profiles: [demo]}}\n",
            at("catalogue.db")
        );
        std::fs::write(home.join("config.yml"), config).unwrap();
        let zookeeper = format!("{}{}", shared().await.connect_string(), world.chroot);
        let address = format!("127.0.0.1:{}", free_port());
        let (working, profiles, config) = (at("working"), at("profiles"), at("config.yml"));
        let serve = ["serve", "--zookeeper", &zookeeper, "--web.listen-address", &address, "--config.file", &config];
        let more = ["--deposits.working", &working, "--deposits.profiles", &profiles, "--audit.file", audit];
        let child = queuekeeper(home, &[&serve[..], &more, &["--log.level", "error"]].concat());
        let child = { child }.stderr(Stdio::inherit()).spawn().unwrap();
        let server = Self { child, address: format!("http://{address}"), world };
        let is_ready = async || {
            let answer = reqwest::get(format!("{}/-/ready", server.address)).await;
            answer.is_ok_and(|answer| answer.status() == 200)
        };
        eventually(LONGEST, "it is ready", is_ready).await;
        server
    }

    /// Creates the jobs of the one batch that has none, as daemons do.
    pub(super) async fn expand(&self, jobs: usize) -> (BatchId, Vec<JobId>) {
        let (queue, now) = (&self.world.queue, Timestamp::now());
        let locked = queue.acquire_batch(Due::Jobs, now).await.unwrap().0.unwrap();
        let id = locked.batch.id;
        let jobs = queue.create_jobs(id, &vec![NewJob::new(r#"{"profile":"demo"}"#); jobs], now).await.unwrap();
        queue.finish_batch(&locked, &ItemChange::to(BatchState::Reporting), now).await.unwrap();
        (id, jobs)
    }
}

impl Caller<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let request = client.request(method, format!("{}{path}", self.server.address));
        request.header("authorization", format!("Bearer {}", self.token))
    }

    async fn answer(&self, request: RequestBuilder) -> (u16, Value) {
        let response = request.send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.answer(self.request(Method::GET, path)).await.1
    }

    pub(super) async fn view(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/deposits/{id}")).await
    }

    /// Deposits a file of four bytes.
    pub(super) async fn deposit(&self) -> String {
        let begin = self.request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
        let body = json!({"profile": "demo", "filename": "a.txt", "size": 4}).to_string();
        let (status, begun) = self.answer(begin.body(body)).await;
        assert_eq!(status, 202, "{begun}");
        let id = begun["id"].as_str().unwrap().to_owned();
        let send = self.request(Method::PATCH, &format!("/api/v1/deposits/{id}"));
        let send = send.header("content-type", "application/octet-stream").header("upload-offset", 0);
        assert_eq!(self.answer(send.body("good")).await.0, 201);
        let is_seen = async || self.view(&id).await["batch"].is_string();
        eventually(LONGEST, "the mirror sees it", is_seen).await;
        id
    }

    /// Checks that nothing is taken while the daemons have another catalogue: they would never see what is recorded.
    async fn needs_the_catalogue_of_the_daemons(&self) {
        let client = self.server.world.queue.client();
        let anyone = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let _ = client.create("/queuekeeper", b"", &anyone).await;
        client.create(CATALOGUE, b"2c1a62cb-70b1-4ac2-a0f0-9f3a36c1cf6a", &anyone).await.unwrap();
        let begin = self.request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
        let body = json!({"profile": "demo", "filename": "a.txt", "size": 4}).to_string();
        says(&self.answer(begin.body(body)).await, 503, "the daemons of this queue use catalogue 2c1a62cb");
        client.delete(CATALOGUE, None).await.unwrap();
    }

    pub(super) async fn withdraw(&self, id: &str, reason: Option<&str>) -> (u16, Value) {
        let request = self.request(Method::POST, &format!("/api/v1/deposits/{id}/withdraw"));
        let with = |reason| {
            let body = json!({"reason": reason}).to_string();
            self.request(Method::POST, &format!("/api/v1/deposits/{id}/withdraw"))
                .header("content-type", "application/json")
                .body(body)
        };
        self.answer(reason.map_or(request, with)).await
    }

    async fn form(&self, id: &str, reason: &str) -> (u16, Value) {
        let request = self.request(Method::POST, &format!("/submit/{id}/withdraw"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.answer(request.body(format!("reason={reason}"))).await
    }
}

pub(super) fn says(answer: &(u16, Value), status: u16, text: &str) {
    let detail = answer.1["detail"].as_str().unwrap_or_default();
    assert!(answer.0 == status && detail.to_lowercase().contains(&text.to_lowercase()), "{answer:?}");
}

/// The command withdraws a deposit of its caller, and none of another.
async fn by_command(home: &Path, lab: &Caller<'_>, other: &Caller<'_>) {
    let server = lab.server;
    let id = lab.deposit().await;
    server.expand(1).await;
    let file = |name: &str, token: &str| {
        std::fs::write(home.join(name), token).unwrap();
        home.join(name).display().to_string()
    };
    let (mine, foreign) = (file("lab", &lab.token), file("other", &other.token));
    let submit = ["submit", "--withdraw", &id, "--server", &server.address, "--token-file"];
    run(home, &[&submit[..], &[&foreign]].concat()).await.is(4, &["no deposit"]);
    let done = run(home, &[&submit[..], &[&mine, "--reason", "late", "-o", "json"]].concat()).await.json();
    assert_eq!((&done["id"], &done["state"]), (&id.clone().into(), &"withdrawn".into()));
    run(home, &[&submit[..], &[&mine]].concat()).await.is(0, &[&format!("({id}) is withdrawn")]);
    let (queued, jobs) = (lab.view(&id).await["batch"].as_str().unwrap().to_owned(), "batch-deleted");
    assert!(server.world.exists(&format!("/batches/{queued}/states/{jobs}")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_withdrawn_by_its_depositor_or_an_operator_until_a_job_of_it_leaves_pending() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let mut lines = String::new();
    let mut token = async |name: &str, role: &str| {
        let made = run(home, &["token", name, "--role", role]).await;
        lines += made.err.lines().last().unwrap();
        lines += "\n";
        made.out.trim().to_owned()
    };
    let tokens = [
        token("lab", "depositor").await,
        token("other", "depositor").await,
        token("ops", "operator").await,
        token("guest", "viewer").await,
    ];
    let audit = home.join("audit.jsonl").display().to_string();
    let server = Server::start(home, &lines, &audit).await;
    let [lab, other, ops, guest] = tokens.map(|token| Caller { server: &server, token });
    let queue = &server.world.queue;

    lab.needs_the_catalogue_of_the_daemons().await;

    // Before a daemon has taken it: its depositor, and no other.
    let id = lab.deposit().await;
    says(&other.withdraw(&id, Some("mine")).await, 404, "no deposit");
    assert_eq!(other.form(&id, "mine").await.0, 404);
    assert_eq!(guest.withdraw(&id, Some("why")).await.0, 403);
    says(&ops.withdraw(&id, None).await, 400, "reason");
    let (status, view) = lab.withdraw(&id, None).await;
    assert_eq!((status, &view["state"], &view["outcome"]), (200, &"withdrawn".into(), &"withdrawn".into()), "{view}");
    let is_shown = async || lab.view(&id).await["withdrawn_by"] == "lab";
    eventually(LONGEST, "who withdrew it is shown", is_shown).await;
    assert_eq!(lab.withdraw(&id, None).await.0, 200, "withdrawn again, it is withdrawn");
    assert_eq!(lab.withdraw("bid-00000000-0000-4000-8000-000000000000", None).await.0, 404);

    // With jobs, by the page.
    let id = lab.deposit().await;
    let (batch, jobs) = server.expand(3).await;
    let link = format!("href=\"../submit/{id}/withdraw\"");
    let page = async |caller: &Caller<'_>, path: &str| caller.get(path).await.as_str().unwrap().to_owned();
    let has_jobs = async || lab.view(&id).await["processing"] == 3;
    eventually(LONGEST, "its jobs are seen", has_jobs).await;
    assert!(page(&lab, &format!("/submit/{id}")).await.contains(&link));
    let question = page(&lab, &format!("/submit/{id}/withdraw")).await;
    assert!(question.contains("It is deleted with all its jobs, or nothing is changed"), "{question}");
    assert!(question.contains("Withdraw it with its 3 jobs</button>"), "{question}");
    assert!(question.contains("Withdraw a.txt?") && !question.contains("required"), "{question}");
    assert!(page(&ops, &format!("/batches/{batch}")).await.contains("action=withdraw&#38;on=bid"));
    assert_eq!(lab.form(&id, "the+wrong+files").await.0, 303);
    let is_shown = async || page(&lab, &format!("/submit/{id}")).await.contains("withdrawn by lab");
    eventually(LONGEST, "its page says so", is_shown).await;
    let shown = page(&lab, &format!("/submit/{id}")).await;
    assert!(shown.contains("ago: the wrong files") && !shown.contains(&link), "{shown}");
    let shown = page(&ops, &format!("/batches/{batch}")).await;
    assert!(shown.contains("It was withdrawn by “lab”") && !shown.contains("action=withdraw"), "{shown}");
    assert!(shown.contains("remain until queuekeeper's cleanup daemon removes them"), "{shown}");
    for job in jobs {
        assert_eq!(queue.load_job(job).await.unwrap().state(), Some(JobState::Deleted));
    }
    let faults = ops.get("/api/v1/faults").await;
    assert_eq!(faults["total"], 0, "{faults}");

    // A job of it has left Pending: nothing is changed, and the answer names it.
    let id = lab.deposit().await;
    let (batch, jobs) = server.expand(2).await;
    queue.change_job(jobs[1], &JobChange::success(), Timestamp::now()).await.unwrap();
    let why = format!("its job {} is in Estimating; it can no longer be withdrawn", jobs[1]);
    says(&lab.withdraw(&id, None).await, 409, &why);
    says(&ops.withdraw(&id, Some("court order")).await, 409, &why);
    let (status, refused) = lab.form(&id, "").await;
    assert!(status == 409 && refused.as_str().unwrap().contains("is in Estimating"), "{refused}");
    assert_eq!(queue.load_job(jobs[0]).await.unwrap().state(), Some(JobState::Pending));
    let is_seen = async || !page(&ops, &format!("/batches/{batch}")).await.contains("action=withdraw");
    eventually(LONGEST, "the button is gone", is_seen).await;

    // While a daemon is creating its jobs; then by an operator, as an action.
    let id = lab.deposit().await;
    let (locked, _) = queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    let locked = locked.unwrap();
    says(&lab.withdraw(&id, None).await, 409, "it is locked: its jobs are being created");
    queue.unlock_batch(&locked).await.unwrap();
    let action = json!({"action": "withdraw", "on": locked.batch.id.to_string(), "reason": "court order"}).to_string();
    let act = |caller: &Caller<'_>| {
        let request = caller.request(Method::POST, "/api/v1/actions").header("content-type", "application/json");
        request.body(action.clone())
    };
    assert_eq!(lab.answer(act(&lab)).await.0, 403);
    let (status, done) = ops.answer(act(&ops)).await;
    assert_eq!((status, &done["outcome"], &done["after"]), (200, &"done".into(), &"deleted".into()), "{done}");
    let is_shown = async || lab.view(&id).await["withdrawn_because"] == "court order";
    eventually(LONGEST, "its depositor sees why", is_shown).await;

    by_command(home, &lab, &other).await;

    // What was withdrawn counts as deposited on that day.
    let begin = lab.request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
    let body = json!({"profile": "demo", "filename": "b.txt", "size": 4}).to_string();
    says(&lab.answer(begin.body(body)).await, 429, "5 deposits were made");
    let audit = std::fs::read_to_string(&audit).unwrap();
    let withdrawals: Vec<&str> = audit.lines().filter(|line| line.contains("\"withdraw\"")).collect();
    let by = |actor: &str, role: &str| {
        let actor = format!("\"actor\":\"{actor}\",\"role\":\"{role}\"");
        withdrawals.iter().filter(|line| line.contains(&actor)).count()
    };
    assert!(by("lab", "depositor") >= 3 && by("ops", "operator") >= 1, "{withdrawals:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_deposit_is_never_made_again_by_its_key_and_one_that_goes_on_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let other = run(home, &["token", "other", "--role", "depositor"]).await;
    let made = run(home, &["token", "lab", "--role", "depositor"]).await;
    let tokens = [&made, &other].map(|made| made.err.lines().last().unwrap().to_owned()).join("\n");
    let audit = home.join("audit.jsonl").display().to_string();
    let server = Server::start(home, &tokens, &audit).await;
    let lab = Caller { server: &server, token: made.out.trim().to_owned() };
    let queue = &server.world.queue;

    let body = json!({"profile": "demo", "filename": "a.txt", "size": 4});
    let url = json!({"profile": "demo", "filename": "a.txt", "url": "https://www.example.org/a.txt", "type": "file"});
    let send = async |body: &Value, query: &str| {
        let begin = lab.request(Method::POST, &format!("/api/v1/deposits{query}"));
        let begin = begin.header("content-type", "application/json").header("idempotency-key", "of-today");
        lab.answer(begin.body(body.to_string())).await
    };
    let (status, begun) = send(&body, "").await;
    assert_eq!(status, 202, "{begun}");
    let id = begun["id"].as_str().unwrap().to_owned();
    let part = lab.request(Method::PATCH, &format!("/api/v1/deposits/{id}"));
    let part = part.header("content-type", "application/octet-stream").header("upload-offset", 0);
    assert_eq!(lab.answer(part.body("good")).await.0, 201);
    assert_eq!(send(&body, "").await.0, 201, "sent twice, it is one");
    assert_eq!(lab.withdraw(&id, None).await.0, 200);
    let is_withdrawn = async || {
        for (body, query) in [(&body, ""), (&url, ""), (&body, "?dry_run=true")] {
            let (status, view) = send(body, query).await;
            assert_eq!((status, &view["id"]), (200, &Value::from(&*id)), "{view}");
            assert_eq!([&view["state"], &view["outcome"]], [&Value::from("withdrawn"); 2], "{view}");
        }
    };
    is_withdrawn().await;
    // Its batch is removed, as by cleanup.
    let batch = queue.find_batch(&id).await.unwrap().unwrap();
    let plan = queue.plan_purge(batch).await.unwrap();
    queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await.unwrap();
    is_withdrawn().await;
    assert_eq!(queue.find_batch(&id).await.unwrap(), None);

    // A withdrawal that was begun, and taken back after its caller had its answer.
    let id = lab.deposit().await;
    let why = "its job jid0000000042 is in Estimating; it can no longer be withdrawn";
    let catalogue = Catalogue::open(&format!("sqlite:{}", home.join("catalogue.db").display())).await.unwrap();
    record_taken_back(&catalogue, &id, why).await.unwrap();
    let view = lab.view(&id).await;
    assert_eq!((&view["state"], &view["outcome"]), (&"pending".into(), &Value::Null), "{view}");
    assert_eq!(view["withdrawal_refused"], why);
    let page = lab.get(&format!("/submit/{id}")).await;
    assert!(page.as_str().unwrap().contains(&format!("failed and was rolled back: {why}")), "{page}");
    assert_eq!(lab.withdraw(&id, None).await.0, 200, "it can be tried again");
    assert_eq!(lab.view(&id).await["withdrawal_refused"], Value::Null);
    catalogue.close().await;
}
