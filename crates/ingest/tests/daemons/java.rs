//! Daemons and an admin's tool as they are in production: a client that knows nothing but the tree, writes one znode
//! after another, and refuses what Java's classes refuse.

use jiff::Timestamp;
use queuekeeper_testkit::queue::{EPHEMERAL, JOB_STATES, PERSISTENT, SEQUENTIAL};
use serde_json::{Value, json};
use zookeeper_client::{Client, Error};

/// The states of a batch, as `status` has them.
const BATCH_STATES: [&str; 8] =
    ["Pending", "Held", "Processing", "Reporting", "UpdateReporting", "Completed", "Failed", "Deleted"];

/// A session of a program of the Java library.
pub(super) struct Java(pub(super) Client);

/// A job as the library loads it.
#[derive(Clone, Debug)]
pub(super) struct JavaJob {
    pub(super) id: String,
    pub(super) batch: String,
    pub(super) status: Value,
    pub(super) priority: u8,
    pub(super) space: i64,
    pub(super) configuration: Value,
    pub(super) identifiers: Value,
}

impl JavaJob {
    pub(super) fn state(&self) -> &str {
        self.status["status"].as_str().unwrap()
    }

    fn entry(&self) -> String {
        format!("/jobs/states/{}/{:02}-{}", self.state().to_lowercase(), self.priority, self.id)
    }

    fn reference(&self) -> String {
        let outcome = match self.state() {
            "Completed" => "completed",
            "Failed" => "failed",
            "Deleted" => "deleted",
            _ => "processing",
        };
        format!("/batches/{}/states/batch-{outcome}/{}", self.batch, self.id)
    }
}

impl Java {
    pub(super) async fn text(&self, path: &str) -> Option<String> {
        match self.0.get_data(path).await {
            Ok((data, _)) => Some(String::from_utf8(data).unwrap()),
            Err(Error::NoNode) => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// JSON, or nothing where the znode is missing or empty; anything else is refused, as by the library.
    async fn json(&self, path: &str) -> Value {
        let text = self.text(path).await.unwrap_or_default();
        if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"))
        }
    }

    pub(super) async fn children(&self, path: &str) -> Vec<String> {
        let mut children = self.0.list_children(path).await.unwrap_or_default();
        children.sort();
        children
    }

    async fn create(&self, path: &str, data: &str) {
        self.0.create(path, data.as_bytes(), &PERSISTENT).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// A folder that another may have made.
    async fn folder(&self, path: &str) {
        self.0.mkdir(path, &PERSISTENT).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    async fn status(&self, path: &str, states: &[&str]) -> Value {
        let status = self.json(&format!("{path}/status")).await;
        let state = status["status"].as_str().unwrap_or_else(|| panic!("{path}: {status}"));
        assert!(states.contains(&state), "{path}: {status}");
        let modified = status["last_modified"].as_str().unwrap();
        jiff::Zoned::strptime("%Y-%m-%d %H:%M:%S %z", modified).unwrap_or_else(|_| panic!("{path}: {status}"));
        assert!(status["message"].is_string(), "{path}: {status}");
        status
    }

    /// Loads a job and its batch; `None` where the job is gone.
    pub(super) async fn load_job(&self, id: &str) -> Option<JavaJob> {
        let path = format!("/jobs/{id}");
        self.0.check_stat(&path).await.unwrap()?;
        let status = self.status(&path, &JOB_STATES).await;
        assert!(status["retry_count"].is_i64(), "{path}: {status}");
        let last = &status["last_successful_status"];
        assert!(last.is_null() || last.as_str().is_some_and(|last| JOB_STATES.contains(&last)), "{path}: {status}");
        let number = async |name: &str| -> i64 {
            let text = self.text(&format!("{path}/{name}")).await.unwrap_or_else(|| panic!("{path} has no {name}"));
            text.parse().unwrap_or_else(|_| panic!("{path}/{name}: {text:?}"))
        };
        let (priority, space) = (number("priority").await, number("space_needed").await);
        let batch = self.text(&format!("{path}/bid")).await.unwrap_or_else(|| panic!("{path} has no bid"));
        let states = format!("/batches/{batch}/states");
        assert!(self.0.check_stat(&states).await.unwrap().is_some(), "{path}: no {states}");
        let configuration = self.json(&format!("{path}/configuration")).await;
        for name in ["metadata", "store", "inventory"] {
            let value = self.json(&format!("{path}/{name}")).await;
            assert!(value.is_null() || value.is_object(), "{path}/{name}: {value}");
        }
        let identifiers = self.json(&format!("{path}/identifiers")).await;
        let priority = priority.try_into().unwrap();
        assert!(configuration.is_object() && priority <= 99, "{path}");
        Some(JavaJob { id: id.to_owned(), batch, status, priority, space, configuration, identifiers })
    }

    /// The state of a batch.
    pub(super) async fn load_batch(&self, id: &str) -> String {
        let path = format!("/batches/{id}");
        let status = self.status(&path, &BATCH_STATES).await;
        assert!(self.json(&format!("{path}/submission")).await.is_object(), "{path}");
        status["status"].as_str().unwrap().to_owned()
    }

    /// Locks the first job of a state that nobody has.
    pub(super) async fn acquire(&self, state: &str) -> Option<JavaJob> {
        for entry in self.children(&format!("/jobs/states/{}", state.to_lowercase())).await {
            let (priority, id) = entry.split_at_checked(3).unwrap_or_else(|| panic!("{state}: {entry}"));
            assert!(priority.ends_with('-') && id.starts_with("jid"), "{state}: {entry}");
            let Some(job) = self.load_job(id).await else { continue };
            if job.state() != state {
                // Here the library throws, and the poll is over.
                return None;
            }
            match self.0.create(&format!("/jobs/{id}/lock"), b"", &EPHEMERAL).await {
                Ok(_) => return Some(job),
                Err(Error::NodeExists | Error::NoNode) => {}
                Err(error) => panic!("{id}: {error}"),
            }
        }
        None
    }

    /// Sets the state of a job by five writes.
    pub(super) async fn set_state(&self, job: &mut JavaJob, state: &str, message: &str) {
        let (entry, reference) = (job.entry(), job.reference());
        let old = job.state().to_owned();
        if ![old.as_str(), state].iter().any(|state| ["Failed", "Deleted", "Held"].contains(state)) {
            job.status["last_successful_status"] = json!(old);
        }
        job.status["status"] = json!(state);
        job.status["message"] = json!(message);
        job.status["last_modified"] = json!(now());
        let status = job.status.to_string();
        self.0.set_data(&format!("/jobs/{}/status", job.id), status.as_bytes(), None).await.unwrap();
        self.0.delete(&entry, None).await.unwrap();
        self.folder(&format!("/jobs/states/{}", state.to_lowercase())).await;
        self.create(&job.entry(), "").await;
        if job.reference() != reference {
            self.0.delete(&reference, None).await.unwrap();
            self.folder(job.reference().rsplit_once('/').unwrap().0).await;
            self.create(&job.reference(), "").await;
        }
    }

    pub(super) async fn unlock(&self, path: &str) {
        self.0.delete(&format!("{path}/lock"), None).await.unwrap();
    }

    /// Takes a job of a state to the next one, as one poll of its daemon; whether there was one.
    pub(super) async fn step(&self, from: &str, to: &str) -> bool {
        let Some(mut job) = self.acquire(from).await else { return false };
        if from == "Estimating" {
            job.space = 7;
            self.0.set_data(&format!("/jobs/{}/space_needed", job.id), b"7", None).await.unwrap();
        }
        self.set_state(&mut job, to, "Success").await;
        self.unlock(&format!("/jobs/{}", job.id)).await;
        true
    }

    /// Reports the batches that are due for it, as one poll of a report daemon; whether there was one.
    pub(super) async fn report(&self, is_again: bool) -> bool {
        let mut is_reported = false;
        for id in self.children("/batches").await {
            let states = format!("/batches/{id}/states");
            let Some(processing) = self.0.check_stat(&format!("{states}/batch-processing")).await.unwrap() else {
                continue;
            };
            let state = self.load_batch(&id).await;
            let is_due = match state.as_str() {
                "UpdateReporting" => is_again,
                "Completed" | "Failed" | "Deleted" | "Held" => false,
                _ => !is_again,
            };
            let lock = format!("/batches/{id}/lock");
            if processing.num_children > 0 || !is_due || self.0.create(&lock, b"", &EPHEMERAL).await.is_err() {
                continue;
            }
            // What it tells the depositor of.
            for outcome in ["completed", "failed"] {
                for job in self.children(&format!("{states}/batch-{outcome}")).await {
                    self.load_job(&job).await.unwrap();
                }
            }
            let is_failed = !self.children(&format!("{states}/batch-failed")).await.is_empty();
            self.set_batch(&id, if is_failed { "Failed" } else { "Completed" }).await;
            self.unlock(&format!("/batches/{id}")).await;
            is_reported = true;
        }
        is_reported
    }

    pub(super) async fn set_batch(&self, id: &str, state: &str) {
        let status = json!({"status": state, "last_modified": now(), "message": ""}).to_string();
        self.0.set_data(&format!("/batches/{id}/status"), status.as_bytes(), None).await.unwrap();
    }

    /// Resumes a job that failed, as the admin's tool does.
    pub(super) async fn resume(&self, id: &str, to: &str) {
        let mut job = self.load_job(id).await.unwrap();
        self.0.create(&format!("/jobs/{id}/lock"), b"", &EPHEMERAL).await.unwrap();
        job.status["retry_count"] = json!(job.status["retry_count"].as_i64().unwrap() + 1);
        self.set_state(&mut job, to, "").await;
        self.unlock(&format!("/jobs/{id}")).await;
    }

    /// Makes a batch in Processing and a job of it in Pending, one znode after another.
    pub(super) async fn create_job(&self, uuid: &str, configuration: &Value) -> JavaJob {
        self.folder("/batches").await;
        self.folder("/jobs/states/pending").await;
        self.folder("/batch-uuids").await;
        let (_, number) = self.0.create("/batches/bid", b"", &SEQUENTIAL).await.unwrap();
        let batch = format!("bid{number}");
        let at = format!("/batches/{batch}");
        let status = json!({"status": "Processing", "last_modified": now(), "message": ""});
        self.create(&format!("{at}/submission"), &configuration.to_string()).await;
        self.create(&format!("{at}/lock"), "").await;
        self.create(&format!("{at}/status"), &status.to_string()).await;
        self.create(&format!("/batch-uuids/{uuid}"), &batch).await;
        self.create(&format!("{at}/states"), "").await;
        for outcome in ["processing", "failed", "completed", "deleted"] {
            self.create(&format!("{at}/states/batch-{outcome}"), "").await;
        }
        let (_, number) = self.0.create("/jobs/jid", b"", &SEQUENTIAL).await.unwrap();
        let id = format!("jid{number}");
        let at = format!("/jobs/{id}");
        let status = json!({"status": "Pending", "last_successful_status": null, "last_modified": now(),
                            "retry_count": 0, "message": ""});
        self.create(&format!("{at}/bid"), &batch).await;
        self.create(&format!("{at}/configuration"), &configuration.to_string()).await;
        self.create(&format!("{at}/status"), &status.to_string()).await;
        self.create(&format!("{at}/priority"), "5").await;
        self.create(&format!("{at}/space_needed"), "0").await;
        let job = self.load_job(&id).await.unwrap();
        self.create(&job.entry(), "").await;
        self.create(&job.reference(), "").await;
        self.set_batch(&batch, "Reporting").await;
        self.unlock(&format!("/batches/{batch}")).await;
        job
    }

    /// Deletes a job with its entries and references, as the admin's tool does: not asking who works on it.
    pub(super) async fn delete_job(&self, id: &str) {
        for (folder, offset) in
            [("/jobs/states".to_owned(), 3), (format!("/batches/{}/states", self.batch_of(id).await), 0)]
        {
            for state in self.children(&folder).await {
                for name in self.children(&format!("{folder}/{state}")).await {
                    if name.get(offset..) == Some(id) {
                        let _ = self.0.delete(&format!("{folder}/{state}/{name}"), None).await;
                    }
                }
            }
        }
        self.delete_all(&format!("/jobs/{id}")).await;
    }

    async fn batch_of(&self, id: &str) -> String {
        self.text(&format!("/jobs/{id}/bid")).await.unwrap()
    }

    /// Deletes a batch with all its jobs.
    pub(super) async fn delete_batch(&self, id: &str, uuid: &str) {
        for outcome in self.children(&format!("/batches/{id}/states")).await {
            for job in self.children(&format!("/batches/{id}/states/{outcome}")).await {
                self.delete_job(&job).await;
            }
        }
        self.0.delete(&format!("/batch-uuids/{uuid}"), None).await.unwrap();
        self.delete_all(&format!("/batches/{id}")).await;
    }

    /// Deletes a znode with all below it, as often as others put something there.
    async fn delete_all(&self, path: &str) {
        loop {
            let mut found = vec![path.to_owned()];
            let mut next = 0;
            while let Some(parent) = found.get(next).cloned() {
                found.extend(self.children(&parent).await.into_iter().map(|name| format!("{parent}/{name}")));
                next += 1;
            }
            for path in found.iter().rev() {
                let _ = self.0.delete(path, None).await;
            }
            if self.0.check_stat(path).await.unwrap().is_none() {
                return;
            }
        }
    }
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%d %H:%M:%S +0000").to_string()
}
