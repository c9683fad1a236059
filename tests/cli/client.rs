//! A client of a server that takes deposits.

use std::path::Path;
use std::time::Duration;

use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_testkit::sqlite;
use queuekeeper_testkit::wait::eventually;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::program::run;

/// How long anything may take.
pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// A client of a server that takes deposits.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: String,
    pub(super) token: Option<String>,
}

impl Client {
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = reqwest::Client::new().request(method, format!("{}{path}", self.address));
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request.header("sec-fetch-site", "same-origin"),
        }
    }

    pub(super) async fn begin(&self, key: Option<&str>, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        answer(request.body(body.to_string()).send().await.unwrap()).await
    }

    pub(super) async fn upload(&self, id: &str, offset: u64, content: impl Into<reqwest::Body>) -> (u16, Value) {
        let request = self.request(Method::PATCH, &format!("/api/v1/deposits/{id}"));
        let request = request.header("content-type", "application/octet-stream").header("upload-offset", offset);
        answer(request.body(content).send().await.unwrap()).await
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path).send().await.unwrap()).await
    }

    /// Of an operator, who sends nothing else. A form has no key, so that nothing could go on with what came of it.
    pub(super) async fn leaves_nothing_without_a_queue(&self, queue: &Proxy, data: &Path) {
        let rows = |sql: &str| sqlite::rows(&data.join("catalogue.db"), sql);
        let open = "SELECT COUNT(*) FROM deposits WHERE outcome IS NULL AND depositor = 'ops'";
        let refused =
            "SELECT COUNT(*) FROM deposits WHERE outcome LIKE 'refused: %nothing was done%' AND depositor = 'ops'";
        let (before, open_before) = (batches(&data.join("working")), rows(open));
        let form = || self.form("/submit", Some(("f.txt", "content")), &[("profile", "default")]);
        // The connection is lost behind the upload, and before it.
        queue.stall(Direction::Both);
        assert_eq!(form().await.status(), 503);
        queue.cut(Newcomers::Refuse);
        eventually(LONGEST, "the server knows that there is no connection", async || {
            let answer = reqwest::get(format!("{}/-/ready", self.address)).await;
            answer.is_ok_and(|answer| answer.status() == 503)
        })
        .await;
        assert_eq!(form().await.status(), 503);
        assert_eq!(batches(&data.join("working")), before);
        // What was recorded before that was found is no deposit that will ever be made. Where it is found at once,
        // nothing is recorded.
        assert_eq!(rows(open), open_before);
        let refused = rows(refused);
        assert!(refused == [json!([1])] || refused == [json!([0])], "{refused:?}");
        queue.restore();
    }

    /// Sends a form with these fields and, where there is one, a file before them.
    pub(super) async fn form(&self, path: &str, file: Option<(&str, &str)>, fields: &[(&str, &str)]) -> Response {
        self.form_of(None, path, file, fields).await
    }

    /// The same with a key.
    pub(super) async fn form_of(
        &self,
        key: Option<&str>,
        path: &str,
        file: Option<(&str, &str)>,
        fields: &[(&str, &str)],
    ) -> Response {
        let part = |head: String, content: &str| {
            format!("--edge\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
        };
        let file = file.map(|(name, content)| part(format!("name=\"file\"; filename=\"{name}\""), content));
        let fields = fields.iter().map(|(name, value)| part(format!("name=\"{name}\""), value));
        let body: Vec<String> = file.into_iter().chain(fields).chain(["--edge--\r\n".to_owned()]).collect();
        let body = body.concat();
        let request = self.request(Method::POST, path).header("content-type", "multipart/form-data; boundary=edge");
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        request.body(body).send().await.unwrap()
    }

    /// Checks that a deposit with a change is refused under a key, by the field that differs.
    pub(super) async fn refused_as_another(&self, key: &str, deposit: &Value, change: &Value, what: &str) {
        let mut other = deposit.clone();
        other.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, problem) = self.begin(Some(key), &other).await;
        let expected = format!("is a different deposit: its {what} differs");
        assert!(status == 422 && says(&problem, &expected), "{status} {problem}");
    }

    /// Purges the batch of a key, and checks that nothing is made of the key any more: neither the same deposit, nor
    /// another one.
    pub(super) async fn not_made_again(&self, key: &str, deposit: &Value, batch: &str) {
        let purge = json!({"action": "purge", "on": batch, "reason": "it is done"});
        let request = self.request(Method::POST, "/api/v1/actions").header("content-type", "application/json");
        let (status, purged) = answer(request.body(purge.to_string()).send().await.unwrap()).await;
        assert_eq!(status, 200, "{purged}");
        let is_gone = async || self.get(&format!("/api/v1/batches/{batch}")).await.0 == 404;
        eventually(LONGEST, "the batch is gone", is_gone).await;
        for change in [json!({}), json!({"title": "Another", "size": 3})] {
            let mut again = deposit.clone();
            again.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let (status, problem) = self.begin(Some(key), &again).await;
            assert!(
                status == 409 && says(&problem, "its batch has since been removed from the queue"),
                "{status} {problem}"
            );
        }
    }

    /// Checks that what is posted twice with a key is one deposit, and that another one is refused.
    pub(super) async fn posts_with_a_key(&self, fields: &[(&str, &str)]) {
        let post = async |file: (&str, &str)| {
            let (status, state) = answer(self.form_of(Some("two"), "/poster/submit", Some(file), fields).await).await;
            (status, state["bat:batchState"].clone())
        };
        let (status, first) = post(("e.txt", "even more")).await;
        let id = first["bat:batchID"].as_str().unwrap().to_owned();
        assert_eq!((status, self.reported(&id).await["state"].as_str()), (200, Some("completed")), "{first}");
        assert_eq!(post(("e.txt", "even more")).await.1["bat:batchID"], id);
        for (file, what) in [(("f.txt", "even more"), "filename"), (("e.txt", "even"), "size")] {
            let (status, other) = post(file).await;
            assert_eq!((status, &other["bat:batchStatus"]), (422, &"FAILED".into()), "{other}");
            assert!(says_message(&other, &format!("its {what} differs")), "{other}");
        }
    }

    /// Checks that half a digest, two files, and what is no form are refused, in the form that was requested.
    pub(super) async fn refuses_what_is_half_or_none(&self, fields: &[(&str, &str)]) {
        let half = [("digestValue", "d41d8cd98f00b204e9800998ecf8427e")];
        let sent = self.form("/poster/submit", Some(("g.txt", "x")), &[fields, &half].concat()).await;
        let (status, state) = answer(sent).await;
        assert!(status == 400 && says_message(&state["bat:batchState"], "digestValue has no digestType"), "{state}");
        let part = |name: &str| {
            format!("--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\nx\r\n")
        };
        let form = "--edge\r\nContent-Disposition: form-data; name=\"responseForm\"\r\n\r\nxml\r\n--edge--\r\n";
        let two = format!("{}{}{form}", part("a"), part("b"));
        for (kind, body, expected, why) in [
            ("multipart/form-data; boundary=edge", two, 400, "One file can be deposited at a time."),
            ("text/plain", "x".to_owned(), 415, "The body must be multipart/form-data"),
        ] {
            let is_form = kind.starts_with("multipart");
            let request = self.request(Method::POST, "/poster/submit").header("content-type", kind);
            let request = if is_form { request } else { request.header("accept", "text/xml") };
            let (status, text) = answer(request.body(body).send().await.unwrap()).await;
            let text = text.as_str().unwrap_or_default();
            assert!(status == expected && text.starts_with("<?xml") && text.contains(why), "{status} {text}");
        }
    }

    /// Checks that the depositor of a manifest that is refused sees why: in the API, on the page, and by the
    /// command.
    pub(super) async fn shows_why_no_job_was_created(&self, home: &Path) {
        let profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
        let wrong = format!("#%checkm_0.7\n#%profile | {profile}\nno url\n#%eof\n");
        let why = "no job was created: invalid manifest: line 3, column 1: ";
        let sent = self.form("/submit", Some(("wrong.checkm", &wrong)), &[("profile", "default")]).await;
        let id = sent.url().path().rsplit('/').next().unwrap().to_owned();
        let found = self.reported(&id).await;
        assert!(found["state"] == "failed" && found["outcome"].as_str().unwrap().starts_with(why), "{found}");
        let page = self.request(Method::GET, &format!("/submit/{id}")).send().await.unwrap().text().await.unwrap();
        assert!(page.contains(&format!("failed: {why}")), "{page}");
        let path = home.join("wrong.checkm").display().to_string();
        std::fs::write(&path, wrong).unwrap();
        let submit = ["submit", &path, "--profile", "default", "--server", &self.address, "--wait"];
        run(home, &submit).await.is(1, &[&format!(" failed: {why}")]);
    }

    /// The deposit once its batch is reported.
    pub(super) async fn reported(&self, id: &str) -> Value {
        let path = format!("/api/v1/deposits/{id}");
        let is_over = async || ["completed", "failed"].contains(&self.get(&path).await.1["state"].as_str().unwrap());
        eventually(LONGEST, "its batch is reported", is_over).await;
        self.get(&path).await.1
    }
}

pub(super) async fn answer(response: Response) -> (u16, Value) {
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Whether a problem says this, in whatever case its sentence begins.
pub(super) fn says(problem: &Value, text: &str) -> bool {
    problem["detail"].as_str().unwrap().to_lowercase().contains(&text.to_lowercase())
}

fn says_message(state: &Value, text: &str) -> bool {
    state["bat:batchStatusMessage"].as_str().unwrap().contains(text)
}

pub(super) fn batches(working: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(working).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.starts_with("bid-")).collect()
}
