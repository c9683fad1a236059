//! The pages of the mill as people use them: each with the role that they have.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{
    Decided, Decision, EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskState, TaskSubject, Tasks,
};
use queuekeeper_testkit::process::Program;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::mill_checks::checks_are_requested;
use super::mill_errors::content_that_is_wrong_is_repaired;
use super::mill_reports::reports_are_shown;
use super::program::queuekeeper;
use super::stores::command;

/// A server, and who asks it.
pub(super) struct Pages {
    base: String,
    http: reqwest::Client,
}

impl Pages {
    pub(super) async fn ask(&self, who: &str, path: &str, form: Option<&[(&str, &str)]>) -> (u16, String) {
        let method = if form.is_some() { Method::POST } else { Method::GET };
        let request = self.http.request(method, format!("{}{path}", self.base)).basic_auth(who, Some(who));
        let request = request.header("accept", "text/html,*/*").header("sec-fetch-site", "same-origin");
        let request = match form {
            Some([("json", body)]) => request.header("content-type", "application/json").body((*body).to_owned()),
            Some(form) => {
                let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
                request.header("content-type", "application/x-www-form-urlencoded").body(body)
            }
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(super) async fn get(&self, path: &str, expected: &[&str]) {
        let (code, text) = self.ask("oscar", path, None).await;
        assert_eq!(code, 200, "{path}: {text}");
        for expected in expected {
            assert!(text.contains(expected), "{path}: no {expected:?} in {text}");
        }
    }

    pub(super) async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask("oscar", path, None).await.1).unwrap()
    }
}

/// A task that failed again after an operator had retried it is a dead letter with both errors.
async fn dead_letters_show_each_failed_attempt(home: &Path, pages: &Pages) {
    let catalogue = Catalogue::open(&format!("sqlite:{}", home.join("catalogue.db").display())).await.unwrap();
    let subject = TaskSubject {
        kind: TaskKind::Duplicate,
        account: "one".to_owned(),
        space: "theses".parse().unwrap(),
        key: Some("lost".parse().unwrap()),
        destination: Some("replica".parse().unwrap()),
    };
    let main = Some("main".parse().unwrap());
    catalogue.put_tasks(&[NewTask { queue: TaskQueue::DuplicationLow, subject, source: main }]).await.unwrap();
    let dead = async || catalogue.dead_letters("one", 0, 1).await.unwrap().pop().unwrap();
    for error in ["the <i>disk</i> is full", "the disk is away"] {
        // Two of its workers die: the third has its last attempt.
        for attempt in 1..=3 {
            let low =
                Tasks { queue: TaskQueue::DuplicationLow, account: "one", kinds: &[TaskKind::Duplicate], limit: 1 };
            let lease = if attempt == 3 { Duration::from_mins(5) } else { Duration::ZERO };
            let task = catalogue.take_tasks(&low, "worker-1", lease).await.unwrap().pop().unwrap();
            if attempt == 3 {
                let (outcome, follow_ups) = (TaskOutcome::Failed(error.to_owned()), Vec::new());
                assert_eq!(
                    catalogue.end_tasks(&[EndedTask { task, outcome, follow_ups, checked: None }]).await.unwrap(),
                    [true]
                );
            }
        }
        let retry = Decision { what: Decided::Retry, of: &TaskState::ALL, user: "ada", reason: "emptied" };
        let number = dead().await.id;
        if error.contains("full") {
            assert!(catalogue.decide_task(number, &retry).await.unwrap());
        }
    }
    let attempts =
        ["2 failed attempts", "worker-1: the &#60;i&#62;disk&#60;/i&#62; is full", "worker-1: the disk is away"];
    pages.get("/mill/dead-letters", &attempts).await;
    command(home, "mill dead-letters").await.is(0, &["the <i>disk</i> is full", "the disk is away"]);
    let drop = Decision { what: Decided::Drop, of: &TaskState::ALL, user: "ada", reason: "a test" };
    assert!(catalogue.decide_task(dead().await.id, &drop).await.unwrap());
    catalogue.close().await;
}

#[expect(clippy::too_many_lines, reason = "one story, from its beginning to its end")]
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_releases_what_is_held_and_changes_policies_and_nobody_saves_over_another_change() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "copies", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let [objects, copies] = ["objects", "copies"].map(|name| home.join(name).display().to_string());
    let config = format!(
        "stores:\n  main: {{url: \"file://{objects}\"}}\n  replica: {{url: \"file://{copies}\"}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\nusers: {{ada: admin, oscar: operator, vera: viewer}}\n\
         mill:\n  accounts:\n    one: {{stores: {{\"1\": main, \"2\": replica}}}}\n  policies: {{directory: policies}}\n"
    );
    fs::write(home.join("config.yml"), config).unwrap();
    let users = ["ada", "oscar", "vera"].map(|user| format!("  {user}: {}\n", bcrypt::hash(user, 4).unwrap()));
    fs::write(home.join("web.yml"), format!("basic_auth_users:\n{}", users.concat())).unwrap();
    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    command(home, &format!("store put {content} main/theses/a/b --create-space")).await.is(0, &[]);

    let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
    let file = home.join("config.yml").display().to_string();
    let web = home.join("web.yml").display().to_string();
    let serve = ["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json", "--config.file", &file];
    let mut server = queuekeeper(home, &serve);
    server.args(["--zookeeper", &zookeeper.connect_string(), "--web.config.file", &web]);
    let trail = home.join("audit.jsonl");
    server.arg("--audit.file").arg(&trail);
    let mut server = Program(server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let base = loop {
        let line = log.next().expect("it says where it listens before it ends").unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["fields"]["message"] == "listening" {
            break format!("http://{}", line["fields"]["address"].as_str().unwrap());
        }
    };
    // A pipe that is full would stop it.
    std::thread::spawn(move || log.for_each(drop));
    let pages = Pages { base, http: reqwest::Client::builder().redirect(Policy::none()).build().unwrap() };

    // A policy is made on the page: first what it would do, then the files that Mill reads.
    pages
        .get("/mill", &["one has no policy, so none of its content is copied", "No worker process has reported"])
        .await;
    let change = [("change", "defaults"), ("pair", "1>2")];
    assert_eq!(pages.ask("oscar", "/mill/policies/one/plan", Some(&change)).await.0, 403);
    let (code, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&change)).await;
    assert!(code == 200 && plan.contains("not in the list of accounts"), "{plan}");
    let version = async || pages.json("/api/v1/mill/policies/one").await["version"].as_str().unwrap().to_owned();
    let first = version().await;
    let copied = json!({"is_listed": true, "policy": {"defaults": [{"source": "1", "destination": "2"}]}}).to_string();
    let save = async |who: &str, version: &str, policy: &str, reason: &str| {
        let form = [("version", version), ("policy", policy), ("reason", reason)];
        pages.ask(who, "/mill/policies/one", Some(&form)).await
    };
    assert_eq!(save("ada", &first, &copied, "").await.0, 400);
    assert_eq!(save("oscar", &first, &copied, "copies").await.0, 403);
    assert_eq!(save("ada", &first, &copied, "copies").await.0, 303);
    assert_eq!(fs::read_to_string(home.join("policies/duplication-accounts.json")).unwrap(), "[\n  \"one\"\n]\n");
    let (code, text) = save("ada", &first, &copied, "again").await;
    assert!(code == 409 && text.contains("was changed after this preview"), "{code}: {text}");
    assert!(!text.contains("Save it"), "{text}");
    // A change of the file that waits is named before another one brings it into force as well.
    let edited = home.join("policies/one-duplication-policy.json");
    let saved = fs::read_to_string(&edited).unwrap();
    fs::write(&edited, r#"{"defaultPolices": []}"#).unwrap();
    pages.get("/mill/policies/one", &["the key &#34;defaultPolices&#34; is unknown; use defaultPolicies"]).await;
    let ignore = [("change", "ignore"), ("space", "tmp")];
    let (_, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&ignore)).await;
    assert!(plan.contains("Saving this replaces a policy file that cannot be read"), "{plan}");
    fs::write(&edited, r#"{"owner": "ours"}"#).unwrap();
    pages.get("/mill/policies/one", &["Unknown keys in the policy file have no effect: owner"]).await;
    let (_, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&[("change", "again"), ("number", "1")])).await;
    assert!(plan.contains("saving this overwrites them: For all spaces that are not named"), "{plan}");
    let (_, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&ignore)).await;
    assert!(plan.contains("saving this puts them into force as well: For all spaces that are not named"), "{plan}");
    fs::write(&edited, saved).unwrap();
    let (_, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&ignore)).await;
    assert!(plan.contains("Save it") && !plan.contains("as well"), "{plan}");
    // What was refused for its state is on record, too, with why; what a role does not allow is only counted.
    let saves = pages.json("/api/v1/audit?action=save_policy").await;
    let outcomes: Vec<_> =
        saves["items"].as_array().unwrap().iter().map(|item| item["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["conflict", "done"], "{saves}");
    assert!(saves["items"][0]["detail"].as_str().unwrap().contains("was changed after this preview"), "{saves}");
    assert_eq!(
        (&saves["items"][1]["targets"][0], &saves["items"][1]["reason"]),
        (&json!("policy:one"), &json!("copies"))
    );
    pages.get("/mill/policies/one", &["main to replica", "ada", "copies"]).await;

    dead_letters_show_each_failed_attempt(home, &pages).await;

    // It is followed, and what the brake holds waits for an admin.
    let run = "mill run --workers 2 --brake.items 0 --brake.percent 0 --web.listen-address 127.0.0.1:0 --config.file";
    let run: Vec<_> = run.split(' ').chain([&*file]).collect();
    let mut mill = queuekeeper(home, &run);
    let _mill = Program(mill.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let minutes = Duration::from_mins(2);
    let copy = || fs::read_to_string(home.join("copies/theses/a/b")).ok();
    eventually(minutes, "it is copied", async || copy().as_deref() == Some("one\n")).await;
    fs::write(&content, "two\n").unwrap();
    command(home, &format!("store put {content} main/theses/a/b --replace")).await.is(0, &[]);
    let number = eventually_some(minutes, "the brake holds it", async || {
        pages.json("/api/v1/mill/held").await["tasks"][0]["number"].as_u64()
    });
    let number = number.await.to_string();
    pages.get("/mill/held", &["theses/a/b", "one in replica", "Only an admin can release or drop them"]).await;
    pages.get("/mill/spaces", &["one/theses", "1 item, copied from main"]).await;
    pages.get("/mill/spaces/one/theses?prefix=a%2F", &["a/b", "not up to date in replica"]).await;
    pages.get("/mill/spaces/one/theses?prefix=b", &["There is no such item"]).await;
    pages
        .get("/mill/spaces/one/theses/item?key=a/b", &["The copy in replica is held by the brake", "queuekeeper:mill"])
        .await;
    let release = [("task", &*number), ("decision", "retry"), ("reason", "a new edition")];
    assert_eq!(pages.ask("oscar", "/mill/held", Some(&release)).await.0, 403);
    assert_eq!(pages.ask("ada", "/mill/held", Some(&release)).await.0, 303);
    let (code, text) = pages.ask("ada", "/mill/held", Some(&release)).await;
    assert!(code == 409 && text.contains("nothing was done"), "{code}: {text}");
    eventually(minutes, "it is copied", async || copy().as_deref() == Some("two\n")).await;
    pages.get("/mill", &["requeued", "a new edition", "ada"]).await;
    pages.get("/audit", &["Release task", "a new edition", &format!("task:{number}"), "Held → waiting"]).await;
    pages.get("/mill/spaces/one/theses/item?key=a/b", &["Kept aside", "Cause", "overwrite", "in 30 days"]).await;
    let released = pages.json("/api/v1/audit?action=release_task&outcome=done").await["items"][0].clone();
    let action = format!("/api/v1/actions/{}", released["id"].as_str().unwrap());
    let words = pages.json(&action).await["operations"][0].as_str().unwrap().to_owned();
    assert_eq!(words, format!("task {number}: DUP one/theses/a/b from main to replica"));

    // The same by the API, which says of each task what came of it.
    fs::write(&content, "three\n").unwrap();
    command(home, &format!("store put {content} main/theses/a/b --replace")).await.is(0, &[]);
    let third = eventually_some(minutes, "the brake holds it", async || {
        pages.json("/api/v1/mill/held").await["tasks"][0]["number"].as_u64()
    });
    let third = third.await;
    let decision = json!({"decision": "drop", "tasks": [third, 9999], "reason": "by mistake"}).to_string();
    let decide = [("json", &*decision)];
    assert_eq!(pages.ask("oscar", "/api/v1/mill/held/decide", Some(&decide)).await.0, 403);
    let (code, text) = pages.ask("ada", "/api/v1/mill/held/decide", Some(&decide)).await;
    let dropped: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &dropped["outcome"], &dropped["done"]), (200, &json!("in_part"), &json!(1)), "{text}");
    assert_eq!(dropped["not_done_items"][0]["on"], "task:9999", "{text}");
    let (_, metrics) = pages.ask("oscar", "/metrics", None).await;
    for series in [
        "action=\"save_policy\",source=\"web\",outcome=\"done\"} 1",
        "action=\"save_policy\",source=\"web\",outcome=\"conflict\"} 1",
        "action=\"release_task\",source=\"web\",outcome=\"done\"} 1",
        "action=\"drop_task\",source=\"api\",outcome=\"done\"} 1",
        "action=\"drop_task\",source=\"api\",outcome=\"missing\"} 1",
        "action=\"retry_task\",source=\"api\",outcome=\"done\"} 0",
    ] {
        assert!(metrics.contains(series), "{series} is not in {metrics}");
    }
    let lines = fs::read_to_string(&trail).unwrap();
    let record = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let of: Vec<_> = lines.lines().map(record).filter(|record| record["id"] == released["id"]).collect();
    assert_eq!(
        of.iter().map(|record| record["record"].as_str().unwrap()).collect::<Vec<_>>(),
        ["requested", "outcome", "outcome"]
    );
    assert_eq!(
        (&of[0]["actor"], &of[0]["role"], &of[0]["before_each"]),
        (&json!("ada"), &json!("admin"), &json!(["held"]))
    );

    // An operator pauses a store on the page, and resumes it by the API.
    let form = |reason| [("account", ""), ("store", "replica"), ("reason", reason)];
    let (code, text) =
        pages.ask("oscar", "/mill/pause", Some(&[("account", ""), ("store", ""), ("reason", "x")])).await;
    assert!(code == 400 && text.contains("Name an account, a store, or both"), "{code}: {text}");
    assert_eq!(pages.ask("oscar", "/mill/pause", Some(&form(""))).await.0, 400);
    assert_eq!(pages.ask("vera", "/mill/pause", Some(&form("it moves"))).await.0, 403);
    assert_eq!(pages.ask("oscar", "/mill/pause", Some(&form("it moves"))).await.0, 303);
    let (code, text) = pages.ask("oscar", "/mill/pause", Some(&form("again"))).await;
    assert!(code == 409 && text.contains("Store replica is already paused; nothing was done"), "{code}: {text}");
    pages.get("/mill", &["store replica", "oscar", "it moves", "Resume", "Pause an account or a store"]).await;
    let (_, of_viewer) = pages.ask("vera", "/mill", None).await;
    assert!(of_viewer.contains("it moves") && !of_viewer.contains("Resume</button>"), "{of_viewer}");
    fs::write(&content, "new\n").unwrap();
    command(home, &format!("store put {content} main/theses/a/c")).await.is(0, &[]);
    let of_item = "/api/v1/mill/spaces/one/theses/item?key=a/c";
    eventually(minutes, "it is set aside", async || pages.json(of_item).await["tasks"][0]["state"] == "paused").await;
    pages
        .get(
            "/mill/spaces/one/theses/item?key=a/c",
            &["The copy in replica waits because oscar paused store replica at"],
        )
        .await;
    let overview = pages.json("/api/v1/mill").await;
    let pause = &overview["pauses"][0];
    assert_eq!((&pause["account"], &pause["store"], &pause["tasks"]), (&Value::Null, &json!("replica"), &json!(1)));
    let body = json!({"store": "replica", "reason": "it is there"}).to_string();
    let resume = [("json", &*body)];
    assert_eq!(pages.ask("vera", "/api/v1/mill/resume", Some(&resume)).await.0, 403);
    let (code, text) = pages.ask("oscar", "/api/v1/mill/resume", Some(&resume)).await;
    assert!(code == 200 && text.contains("resume_mill"), "{code}: {text}");
    assert_eq!(pages.ask("oscar", "/api/v1/mill/resume", Some(&resume)).await.0, 409);
    let is_there = async || fs::read_to_string(home.join("copies/theses/a/c")).is_ok();
    eventually(minutes, "it is copied", is_there).await;
    pages
        .get("/audit", &["Pause mill", "it moves", "mill:store:replica", "running → paused", "paused → running"])
        .await;

    checks_are_requested(home, &pages).await;
    content_that_is_wrong_is_repaired(home, &pages).await;
    reports_are_shown(home, &pages).await;

    // A file that was changed by hand takes nothing away before an admin agrees, who is shown what it would do.
    fs::write(home.join("policies/one-duplication-policy.json"), "{}").unwrap();
    pages.get("/mill/policies/one", &["would stop maintaining copies", "main to replica would end"]).await;
    let (code, plan) = pages.ask("ada", "/mill/policies/one/plan", Some(&[("change", "apply")])).await;
    assert!(code == 200 && plan.contains("items would no longer follow their source"), "{plan}");
    let none = json!({"is_listed": true, "policy": {}}).to_string();
    assert_eq!(save("ada", &version().await, &none, "closed").await.0, 303);
    pages.get("/mill/policies/one", &["closed", "no copy"]).await;
    command(home, "mill policies one").await.is(0, &["all other spaces: no copy", "by ada: closed"]);
}
