//! The JSON output of the program equals that of a server's API.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use super::program::queuekeeper;
use super::world::World;
use queuekeeper_testkit::wait::eventually;

/// A server process, killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    async fn start(world: &World) -> Self {
        Self::start_with(world, &[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn start_with(world: &World, more: &[&str]) -> Self {
        let arguments =
            ["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json", "--zookeeper", &world.address];
        let mut child = queuekeeper(world.home.path(), &[&arguments, more].concat()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = log.next().expect("it says where it listens before it ends").unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["fields"]["message"] == "listening" {
                break line["fields"]["address"].as_str().unwrap().to_owned();
            }
        };
        // The log must be read, or the server blocks.
        std::thread::spawn(move || log.for_each(drop));
        let server = Self { child, address };
        eventually(Duration::from_mins(1), "it is ready", async || {
            let ready = reqwest::get(format!("http://{}/-/ready", server.address)).await;
            ready.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
        server
    }

    pub(crate) async fn ask(&self, path: &str) -> Value {
        let answer = reqwest::get(format!("http://{}/api/v1/{path}", self.address)).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of all fields, nested ones included.
fn fields(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => {
            let own = object.keys().cloned();
            let below = object
                .iter()
                .flat_map(|(name, value)| fields(value).into_iter().map(move |field| format!("{name}.{field}")));
            own.chain(below).collect()
        }
        Value::Array(items) => items.first().map(fields).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn json_output_is_the_same_as_in_the_api() {
    let world = World::new("api").await;
    world.ephemeral("/jobs/jid0000000003/lock").await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    let server = Server::start(&world).await;
    for (line, path) in [
        (
            "jobs --state failed,held --sort priority --direction desc",
            "jobs?state=failed,held&sort=priority&direction=desc",
        ),
        ("jobs --limit 5", "jobs?limit=5"),
        ("batches", "batches"),
        ("access", "access"),
        ("locks --kind job", "locks?kind=job"),
        ("failures", "failures"),
    ] {
        let (ours, theirs) = (world.run(&format!("{line} --output json")).await.json(), server.ask(path).await);
        assert_eq!(ours, theirs, "{line}");
    }
    // Some of these figures depend on the time of the request, or on how long the server has been watching.
    for (line, path) in [("status", "overview"), ("batch uuid-0", "batches/uuid-0")] {
        let (ours, theirs) = (world.run(&format!("{line} -o json")).await.json(), server.ask(path).await);
        assert_eq!(fields(&ours), fields(&theirs), "{line}");
    }
    let faults = async || server.ask("faults").await["total"] == 1;
    eventually(Duration::from_secs(20), "the server confirms the fault", faults).await;
    assert_eq!(world.run("faults -o json").await.json()["items"], server.ask("faults").await["items"]);
    let ours = world.run("job jid0000000001 why -o json").await.json();
    assert_eq!(ours["causes"][0]["kind"], server.ask("jobs/jid0000000001/diagnosis").await["causes"][0]["kind"]);

    let (ours, mut theirs) = (world.run("job 3 -o json").await.json(), server.ask("jobs/jid0000000003").await);
    let whole = theirs.as_object_mut().unwrap();
    assert!(["diagnosis", "faults", "history"].into_iter().all(|field| whole.remove(field).is_some()));
    assert_eq!(ours, theirs);
    // More than the server reads at once.
    world.batch(1, "Reporting").await;
    for number in 100..620 {
        world.job(number, 1, "Failed", "=1+1").await;
    }
    eventually(Duration::from_secs(20), "the server has seen them", async || server.ask("jobs").await["total"] == 532)
        .await;
    for (line, path) in [
        ("jobs --sort id", "jobs.csv?sort=id"),
        ("jobs --state failed --sort id", "jobs.csv?state=failed&sort=id"),
        ("batches", "batches.csv"),
        ("access", "access.csv"),
        ("locks", "locks.csv"),
        ("failures", "failures.csv"),
        ("faults orphan_entry", "faults.csv?fault=orphan_entry"),
    ] {
        let ours = world.run(&format!("{line} --all -o csv")).await;
        let theirs = reqwest::get(format!("http://{}/api/v1/{path}", server.address)).await.unwrap();
        assert_eq!(theirs.headers()["content-type"], "text/csv; charset=utf-8");
        let theirs = theirs.text().await.unwrap();
        // Which of many jobs of the same age are named in a group of failures is left to chance.
        let cut =
            |text: &str| if line == "failures" { text.lines().next().unwrap().to_owned() } else { text.to_owned() };
        assert_eq!((ours.code, cut(&ours.out)), (0, cut(&theirs)), "{line}");
        let list = world.run(&format!("{line} --all -o json")).await.json();
        is_same(&ours.out, list["items"].as_array().unwrap());
    }
    let audit = reqwest::get(format!("http://{}/api/v1/audit.csv", server.address)).await.unwrap();
    assert!(audit.text().await.unwrap().starts_with("id,decision,actions,at,actor,role,source,"));
    let refused = reqwest::get(format!("http://{}/api/v1/jobs.csv?limit=5", server.address)).await.unwrap();
    assert_eq!(refused.status(), 400, "a part of a list would look like the whole");
}

/// Compares a list with its items as JSON: every field has a column, and a text that would be a formula has an
/// apostrophe.
fn is_same(text: &str, items: &[Value]) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), items.len());
    assert!(!items.is_empty());
    for (record, item) in records.iter().zip(items) {
        for field in item.as_object().unwrap().keys() {
            assert!(names.iter().any(|name| name.split('.').next() == Some(field)), "{field} is not in {names:?}");
        }
        for (name, cell) in names.iter().zip(record) {
            match name.split('.').try_fold(item, |value, name| value.get(name)) {
                None | Some(Value::Null) => assert_eq!(cell, "", "{name}"),
                Some(Value::String(text)) if text.starts_with('=') => assert_eq!(cell, format!("'{text}")),
                Some(Value::String(text)) => assert_eq!(cell, text),
                Some(Value::Array(_)) => {}
                Some(other) => assert_eq!(cell, other.to_string()),
            }
        }
    }
}
