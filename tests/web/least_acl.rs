//! Actions by a server whose credentials have exactly the rights on znodes that SECURITY.md names, and no others.

use std::collections::BTreeSet;
use std::path::Path;

use queuekeeper::actions::{Role, Target, TargetKind};
use queuekeeper_testkit::queue::{base, job};
use queuekeeper_testkit::server::{config, connect, shared};
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::{Auth, Config};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};
use zookeeper_client::{Acl, AuthId, Client, CreateMode, Error, Permission};

use super::least::{Program, privileges};
use super::site::{Asker, JSON, write_tokens};
use super::world::LIMIT;

const FOLDERS: [&str; 4] = ["batch-completed", "batch-deleted", "batch-failed", "batch-processing"];

/// The rights by their letters.
fn permission(letters: &str) -> Permission {
    let one = |letter| match letter {
        'c' => Permission::CREATE,
        'r' => Permission::READ,
        'w' => Permission::WRITE,
        'd' => Permission::DELETE,
        'a' => Permission::ADMIN,
        other => panic!("{other} is no right"),
    };
    letters.chars().map(one).fold(Permission::NONE, |all, one| all | one)
}

/// The rights that the table of SECURITY.md has for a server with actions.
fn least() -> &'static str {
    let (acl, _) = privileges("`serve` with actions and rules, and commands that act");
    acl.strip_prefix('`').and_then(|acl| acl.strip_suffix("` on everything")).unwrap_or_else(|| panic!("{acl}"))
}

/// These rights for all clients with the same credentials.
fn acl(rights: &str) -> [Acl; 1] {
    [Acl::new(permission(rights), AuthId::new("auth", ""))]
}

/// A queue on which each action can be done.
fn nodes() -> Vec<(String, String)> {
    let mut nodes = base();
    let mut add = |path: String, data: &str| nodes.push((path, data.to_owned()));
    for path in ["/locks/storage", "/locks/inventory", "/locks/storage/ark_1_2"] {
        add(path.to_owned(), "");
    }
    for (number, state) in [(0, "Failed"), (1, "Completed"), (2, "Failed")] {
        let request = format!("/access/small/qid{number:010}");
        add(request.clone(), "");
        add(format!("{request}/status"), &json!({"status": state, "message": "m"}).to_string());
        add(format!("{request}/token"), &json!({"token": format!("t-{number}"), "cloud-content-byte": 1}).to_string());
    }
    for (number, state) in [(2, "Held"), (3, "Held"), (4, "Failed"), (5, "Held"), (6, "Completed"), (7, "Completed")] {
        let batch = format!("/batches/bid{number:010}");
        add(format!("/batch-uuids/uuid-{number}"), &format!("bid{number:010}"));
        add(batch.clone(), "");
        add(
            format!("{batch}/submission"),
            &json!({"batchID": format!("uuid-{number}"), "profile": "demo"}).to_string(),
        );
        add(format!("{batch}/status"), &json!({"status": state, "message": "m", "last_modified": "x"}).to_string());
        if state != "Held" {
            add(format!("{batch}/states"), "");
            for folder in FOLDERS {
                add(format!("{batch}/states/{folder}"), "");
            }
        }
    }
    let of_batch = |number, state, batch: &str| {
        let moved = move |text: String| text.replace("bid0000000000", batch);
        job(number, state).into_iter().map(move |(path, data)| (moved(path), moved(data))).collect::<Vec<_>>()
    };
    for (number, state) in [(1, "Failed"), (2, "Pending"), (3, "Downloading"), (4, "Failed")] {
        nodes.extend(of_batch(number, state, "bid0000000000"));
    }
    nodes.extend(of_batch(5, "Completed", "bid0000000007"));
    nodes.extend(of_batch(6, "Failed", "bid0000000004"));
    let mut without_entry = of_batch(7, "Downloading", "bid0000000000");
    without_entry.retain(|(path, _)| !path.starts_with("/jobs/states/"));
    nodes.extend(without_entry);
    nodes
}

/// Each action on each kind of target, in an order in which each can be done.
const ACTIONS: [(&str, &str); 25] = [
    ("resume", "jid0000000001"),
    ("hold", "jid0000000002"),
    ("release", "jid0000000002"),
    ("fail", "jid0000000003"),
    ("set_priority", "jid0000000004"),
    ("delete", "jid0000000004"),
    ("purge", "jid0000000005"),
    ("release", "bid0000000002"),
    ("withdraw", "bid0000000003"),
    ("report_again", "bid0000000004"),
    ("delete", "bid0000000005"),
    ("purge", "bid0000000006"),
    ("resume", "small/qid0000000000"),
    ("purge", "small/qid0000000001"),
    ("delete", "small/qid0000000002"),
    ("pause", "queue:ingest"),
    ("unpause", "queue:ingest"),
    ("hold", "collection:other"),
    ("release", "collection:other"),
    ("hold", "store:main"),
    ("release", "store:main"),
    ("break_lock", "lock:/locks/storage/ark_1_2"),
    ("repair", "fault:missing_entry:/jobs/jid0000000007"),
    ("clean_up", "batches"),
    ("pause", "queue:accessLarge"),
];

/// A rule that resumes what has failed.
const RULE: &str = "alerts:
  budget: {items: 100, per: 1h}
  rules:
    - name: again
      alert: MerrittJobsFailed
      action: resume_jobs
      mode: enforce
      select: {limit: 5}
      budget: {items: 8, per: 1h}
      cooldown: 1s
";

/// The tree, and who acts on it.
struct Acting {
    /// With the credentials of the server.
    client: Client,
    program: Program,
    askers: Vec<Asker>,
}

impl Acting {
    /// One with these rights on each znode of a queue of its own.
    async fn start(home: &Path, name: &str, rights: &str) -> Self {
        let servers = shared().await.connect_string();
        let auth_file = home.join("auth");
        std::fs::write(&auth_file, "digest:keeper:a secret\n").unwrap();
        let connect_to = async |address: &str| {
            let auth = Auth::read_file(&auth_file).unwrap();
            Config { auth, ..config(address) }.connect().await.unwrap()
        };
        let (top, address) = (format!("/{name}"), format!("{servers}/{name}"));
        let all = acl("crwda");
        let options = CreateMode::Persistent.with_acls(all.as_slice().into());
        connect_to(&servers).await.create(&top, b"", &options).await.unwrap();
        let client = connect_to(&address).await;
        for (path, data) in nodes() {
            client.create(&path, data.as_bytes(), &options).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        for path in read_tree(&client, "/", &[]).await.keys() {
            client.set_acl(path, &acl(rights), None).await.unwrap();
        }
        // Without the credentials nothing is shown.
        assert_eq!(connect(&servers).await.get_data(&top).await.unwrap_err(), Error::NoAuth);

        let askers = write_tokens(home, RULE);
        let acl = format!("auth::{}", least());
        let flags = ["--zookeeper.auth-file", auth_file.to_str().unwrap(), "--zookeeper.acl", &acl];
        Self { client, program: Program::start(home, &address, &flags).await, askers }
    }

    async fn act(&self, action: &str, on: &str) -> (u16, Value) {
        let mut body = json!({"action": action, "on": on, "reason": "tried"});
        if action == "set_priority" {
            body["priority"] = json!(9);
        }
        if action == "break_lock" {
            body["force"] = json!(true);
        }
        self.post(Role::Admin, "actions", &body).await
    }

    async fn post(&self, role: Role, path: &str, body: &Value) -> (u16, Value) {
        let request = reqwest::Client::new().post(format!("{}/api/v1/{path}", self.program.base));
        let request = request.header(AUTHORIZATION, self.header(role)).header(CONTENT_TYPE, JSON);
        let answer = request.body(body.to_string()).send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    /// The same once the server has a session for actions, which may be later than that of its mirror.
    async fn answered(&self, action: &str, on: &str) -> (u16, Value) {
        eventually_some(LIMIT, &format!("{action} {on} is answered"), async || {
            Some(self.act(action, on).await).filter(|(code, _)| *code != 503)
        })
        .await
    }

    /// The same once the mirror has seen what it is about.
    async fn done(&self, action: &str, on: &str) {
        eventually(LIMIT, &format!("{action} {on} is done"), async || {
            let (code, answer) = self.answered(action, on).await;
            assert!([200, 202, 404, 409].contains(&code), "{action} {on}: {code} {answer}");
            match code {
                200 => answer["outcome"] == "done",
                202 => self.ends(answer["id"].as_str().unwrap()).await == "done",
                _ => false,
            }
        })
        .await;
    }

    /// The outcome of an action that is answered before it ends, as one that takes long.
    async fn ends(&self, id: &str) -> Value {
        let url = format!("{}/api/v1/actions/{id}", self.program.base);
        eventually_some(LIMIT, "the action ends", async || {
            let request = reqwest::Client::new().get(&url).header(AUTHORIZATION, self.header(Role::Admin));
            let answer = request.send().await.unwrap().text().await.unwrap();
            let mut answer: Value = serde_json::from_str(&answer).unwrap();
            Some(answer["outcome"].take()).filter(|outcome| outcome != "running")
        })
        .await
    }

    fn header(&self, role: Role) -> &str {
        self.askers.iter().find(|asker| asker.role == Some(role)).unwrap().header.as_ref().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_action_is_done_with_exactly_the_rights_that_the_table_names() {
    let known: BTreeSet<_> =
        ACTIONS.iter().map(|(action, on)| (on.parse::<Target>().unwrap().kind(), *action)).collect();
    let targets = ACTIONS.iter().map(|(_, on)| on.parse::<Target>().unwrap());
    let all = targets.flat_map(|target| {
        let kind = target.kind();
        target.actions().map(move |spec| (kind, spec.kind.label())).collect::<Vec<_>>()
    });
    assert_eq!(known, all.collect(), "each action on each kind of target");
    assert_eq!(known.iter().map(|(kind, _)| *kind).collect::<BTreeSet<_>>(), BTreeSet::from(TargetKind::ALL));

    let directory = tempfile::tempdir().unwrap();
    let acting = Box::pin(Acting::start(directory.path(), "least", least())).await;
    for (action, on) in ACTIONS {
        acting.done(action, on).await;
    }
    // And what a rule does.
    let alert = json!({"status": "firing", "labels": {"alertname": "MerrittJobsFailed"},
        "startsAt": "2026-11-21T10:00:00Z", "fingerprint": "0f1e2d3c4b5a6978"});
    let alerts = json!({"version": "4", "groupKey": "x", "status": "firing", "receiver": "r", "alerts": [alert]});
    eventually(LIMIT, "the job that has failed is resumed", async || {
        let (code, answer) = acting.post(Role::Alertmanager, "alerts", &alerts).await;
        assert!([200, 503].contains(&code), "{code} {answer}");
        let (status, _) = acting.client.get_data("/jobs/jid0000000003/status").await.unwrap();
        let status: Value = serde_json::from_slice(&status).unwrap();
        status["status"] != "Failed"
    })
    .await;
    assert_eq!(acting.program.failures(""), [""; 0]);
    // No znode gives more, neither those of before nor those that the server has made.
    let tree = read_tree(&acting.client, "/", &[]).await;
    for path in ["/queuekeeper/clock", "/queuekeeper/rules", "/locks/queue/accessLarge"] {
        assert!(tree.contains_key(path), "{path}: {tree:?}");
    }
    for path in tree.keys() {
        let (found, _) = acting.client.get_acl(path).await.unwrap();
        assert!(found.len() == 1 && found[0].permission() == permission(least()), "{path}: {found:?}");
        assert_eq!(acting.client.set_acl(path, &acl("r"), None).await.unwrap_err(), Error::NoAuth, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_of_these_rights_an_action_is_refused_and_changes_nothing() {
    // Without the right to read, there is no queue to act on.
    assert_eq!(least(), "crwd");
    for (right, action, on) in [
        ("c", "hold", "collection:other"),
        ("w", "set_priority", "jid0000000004"),
        ("d", "purge", "small/qid0000000001"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let rest = least().replace(right, "");
        let acting = Box::pin(Acting::start(directory.path(), &format!("without_{right}"), &rest)).await;
        let tree = async || read_tree(&acting.client, "/", &["/queuekeeper"]).await;
        let before = tree().await;
        let (code, answer) = acting.answered(action, on).await;
        // One that takes long is answered before it ends.
        match code {
            202 => assert_eq!(acting.ends(answer["id"].as_str().unwrap()).await, "failed", "without {right}"),
            code => assert_eq!(code, 502, "without {right}: {answer}"),
        }
        assert_eq!(tree().await, before, "without {right}");
    }
}
