//! The failed rows of a batch, submitted again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use queuekeeper_ingest::resubmit::uuids_of_failed;
use queuekeeper_testkit::origin::Origin;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use super::program::run;
use super::repository::Repository;
use super::standalone::submit;

const LONGEST: Duration = Duration::from_mins(1);

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.header("sec-fetch-site", "same-origin").send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn manifest(rows: &[String]) -> String {
    let form = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
    format!("#%checkm_0.7\n#%profile | {form}\n{}\n#%eof\n", rows.join("\n"))
}

/// A manifest of which the end is missing.
fn cut_off(directory: &Path) -> String {
    let path = directory.join("cut.checkm").display().to_string();
    std::fs::write(&path, manifest(&[]).replace("#%eof", "")).unwrap();
    path
}

/// The command submits the failed rows of a deposit as the batch that there is, and not those of one that has not
/// failed.
async fn by_command(home: &Path, address: &str, (id, new): (&str, &str)) {
    let again =
        async |id: &str| run(home, &["submit", "--failed-of", id, "--server", address, "--wait", "-o", "json"]).await;
    let receipt = again(id).await.json();
    assert_eq!((&receipt["id"], &receipt["completed"]), (&new.into(), &2.into()), "{receipt}");
    again(new).await.is(3, &["has not failed"]);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn resume_of(job: &Value) -> String {
    json!({"action": "resume", "on": job["job"], "reason": "the server is back"}).to_string()
}

async fn is_refused(request: RequestBuilder, status: u16, why: &str) {
    let (found, problem) = answer(request).await;
    assert!(found == status && text(&problem["detail"]).contains(why), "{found} {problem}");
}

/// A batch that failed before it had jobs says why, and offers nothing that needs jobs.
async fn shows_why_no_job_was_created(request: &impl Fn(Method, &str) -> RequestBuilder, id: &str, other: &str) {
    let found = answer(request(Method::GET, &format!("/api/v1/batches/{id}"))).await.1;
    let batch = text(&found["batch"]["id"]).to_owned();
    assert_ne!(batch, other);
    let again = request(Method::POST, &format!("/api/v1/deposits/{id}/failed"));
    is_refused(again, 409, " has no jobs (invalid manifest").await;
    let report = json!({"action": "report_again", "on": batch, "reason": "again"}).to_string();
    let report = request(Method::POST, "/api/v1/actions").header("content-type", "application/json").body(report);
    is_refused(report, 409, "it has no jobs").await;
    let page = async |path: &str| text(&answer(request(Method::GET, path)).await.1).to_owned();
    let shown = page(&format!("/batches/{batch}")).await;
    assert!(shown.contains("It has no jobs.") && shown.contains("as a new deposit"), "{shown}");
    assert!(
        !shown.contains("action=report_again")
            && page(&format!("/batches/{other}")).await.contains("action=report_again")
    );
    let overview = page("/").await;
    assert!(overview.contains("1 batch failed before a job was created") && overview.contains(&batch), "{overview}");
    assert!(overview.contains("the manifest does not end with"), "{overview}");
}

/// Whether each of the four rows is one object.
fn has_each_once(objects: &Value) {
    let titles: Vec<_> = objects["items"].as_array().unwrap().iter().map(|item| text(&item["title"])).collect();
    for title in ["Title a", "Title b", "Title c", "Title d"] {
        assert_eq!(titles.iter().filter(|found| **found == title).count(), 1, "{titles:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failed_rows_of_a_batch_become_one_new_batch_however_often_they_are_submitted_again() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start_beside_origins(&data);
    let origin = Origin::start().await;
    origin.serve("/a", "content");
    origin.serve("/c", "content");

    let client = Client::new();
    let request = |method: Method, path: &str| client.request(method, format!("{}{path}", repository.address));
    let deposit = async |body: Value| {
        let begin = request(Method::POST, "/api/v1/deposits").header("content-type", "application/json");
        answer(begin.body(body.to_string())).await
    };
    let view = async |id: &str| answer(request(Method::GET, &format!("/api/v1/deposits/{id}"))).await.1;
    let again = async |id: &str| answer(request(Method::POST, &format!("/api/v1/deposits/{id}/failed"))).await;
    let page = async |path: String| {
        let (status, page) = answer(request(Method::GET, &path)).await;
        assert_eq!(status, 200, "{path}");
        page.as_str().unwrap().to_owned()
    };
    let reported = async |id: &str, state: &str| {
        let is_over = async || ["completed", "failed"].contains(&view(id).await["state"].as_str().unwrap());
        eventually(LONGEST, "it is reported", is_over).await;
        let found = view(id).await;
        assert_eq!(found["state"], state, "{found}");
    };

    // Two of four rows cannot be had. One has a query that no znode shows.
    let manifest = manifest(&["a", "b", "c", "d?key=secret"].map(|path| {
        let (name, url) = (&path[..1], origin.url(&format!("/{path}")));
        format!("{url} | | | 7 | | {name}.txt | | id-{name} | A creator | Title {name}")
    }));
    let described = json!({"profile": "internal", "filename": "all.checkm", "size": manifest.len(), "title": "All", "note": "With care"});
    let begun = async || {
        let (status, begun) = deposit(described.clone()).await;
        (status == 202).then_some(begun)
    };
    let begun = eventually_some(LONGEST, "the new profile is known", begun).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    let send = request(Method::PATCH, &format!("/api/v1/deposits/{id}")).header("upload-offset", "0");
    let (status, made) = answer(send.header("content-type", "application/octet-stream").body(manifest)).await;
    assert_eq!(status, 201, "{made}");
    reported(&id, "failed").await;
    let first = view(&id).await;
    assert_eq!((&first["completed"], &first["failed"]), (&2.into(), &2.into()), "{first}");
    let batch = first["batch"].as_str().unwrap();
    let form = format!("action=\"../submit/{id}/failed\"");
    let has_button = async || page(format!("/batches/{batch}")).await.contains(&form);
    eventually(LONGEST, "the page has a button", has_button).await;
    assert!(page(format!("/submit/{id}")).await.contains(&form), "so has that of the deposit");

    // A batch of them that failed before it had jobs is no reason against the next one.
    let void = uuids_of_failed(id.trim_start_matches("bid-").parse().unwrap()).next().unwrap().to_string();
    let cut = cut_off(directory.path());
    submit(&data, &[&cut, "--profile", "internal", "--uuid", &void]).await.is(1, &["failed"]);
    eventually(LONGEST, "the button is there again", has_button).await;
    shows_why_no_job_was_created(&request, &format!("bid-{void}"), text(&first["batch"])).await;

    // What they failed by is repaired, and nothing but these rows is fetched.
    origin.serve("/b", "content");
    origin.serve("/d?key=secret", "content");
    drop(origin.take_requests());
    let (status, made) = again(&id).await;
    assert_eq!(status, 201, "{made}");
    let new = made["id"].as_str().unwrap().to_owned();
    assert_ne!(new, format!("bid-{void}"));
    reported(&new, "completed").await;
    let second = view(&new).await;
    assert_eq!((&second["completed"], &second["failed"]), (&2.into(), &0.into()), "{second}");
    let requests = format!("{:?}", origin.take_requests());
    assert!(requests.contains("/b") && requests.contains("/d") && !requests.contains("/a"), "{requests}");
    // It is the same batch by a form, by the API, and by the command line.
    let sent = request(Method::POST, &format!("/submit/{id}/failed")).header("sec-fetch-site", "same-origin");
    let sent = sent.header("content-type", "application/x-www-form-urlencoded").body("").send().await.unwrap();
    assert_eq!((sent.status().as_u16(), sent.url().path()), (200, &*format!("/submit/{new}")));
    assert_eq!(again(&id).await.1["batch"], second["batch"]);
    by_command(directory.path(), &repository.address, (&id, &new)).await;
    let tree =
        answer(request(Method::GET, &format!("/api/v1/tree/batches/{}/submission", made["batch"].as_str().unwrap())));
    assert!(tree.await.1.to_string().contains("With care"));
    // A job whose row is there by now is not resumed: its object would be made twice.
    let failed = first["jobs"].as_array().unwrap().iter().find(|job| job["state"] == "failed").unwrap();
    let resume = request(Method::POST, "/api/v1/actions").header("content-type", "application/json");
    is_refused(resume.body(resume_of(failed)), 409, &format!("submitted again as {}", text(&second["batch"]))).await;
    let objects = answer(request(Method::GET, "/api/v1/objects?collection=internal")).await.1;
    has_each_once(&objects);
    // Each leads to the other, and the button is gone.
    let (old_page, new_batch) = (page(format!("/batches/{batch}")).await, second["batch"].as_str().unwrap());
    assert!(old_page.contains(&format!("href=\"../batches/{new_batch}\"")) && !old_page.contains(&form), "{old_page}");
    assert!(old_page.contains("only jobs whose objects are stored can still be resumed"), "{old_page}");
    let deposit_page = page(format!("/submit/{id}")).await;
    assert!(deposit_page.contains(&format!("href=\"../submit/{new}\"")) && !deposit_page.contains(&form));
    let new_page = page(format!("/batches/{new_batch}")).await;
    assert!(new_page.contains(&format!("These are the failed rows of <a href=\"../batches/{batch}\"")), "{new_page}");
    assert!(!old_page.contains("secret") && !new_page.contains("secret"));

    // What cannot be made again is said, and nothing is made.
    let single = json!({"profile": "internal", "url": origin.url("/none"), "filename": "e.txt", "type": "file"});
    let single = deposit(single).await.1["id"].as_str().unwrap().to_owned();
    reported(&single, "failed").await;
    for (id, status, why) in [
        (&*new, 409, "has not failed"),
        (&*single, 409, "it is one object"),
        ("bid-00000000-0000-4000-8000-000000000000", 404, "There is no deposit"),
    ] {
        is_refused(request(Method::POST, &format!("/api/v1/deposits/{id}/failed")), status, why).await;
    }
    let batches = answer(request(Method::GET, "/api/v1/batches")).await.1;
    assert_eq!(batches["total"], 4, "{batches}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_server_has_the_arks_of_all_objects() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start_beside_origins(&data);
    let origin = Origin::start().await;
    let rows: Vec<_> = (0..120)
        .map(|at| {
            origin.serve(&format!("/{at}"), "content");
            format!("{} | | | 7 | | {at}.txt | | | | ", origin.url(&format!("/{at}")))
        })
        .collect();
    let path = directory.path().join("many.checkm").display().to_string();
    std::fs::write(&path, manifest(&rows)).unwrap();
    let arguments = ["submit", &path, "--profile", "internal", "--server", &repository.address, "--wait", "-o", "json"];
    let sent = async || {
        let sent = run(directory.path(), &arguments).await;
        // Until the server has read the new profile.
        (sent.code != 3).then_some(sent)
    };
    let receipt = eventually_some(LONGEST, "the new profile is known", sent).await.json();
    let arks: BTreeSet<_> = receipt["arks"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!((&receipt["completed"], arks.len()), (&120.into(), 120), "{receipt}");
}

/// Deposits of one row each, which has failed and can be had by now.
struct OfOneRow<'a> {
    repository: &'a Repository,
    client: Client,
}

impl OfOneRow<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.repository.address));
        request.header("content-type", "application/json")
    }

    async fn view(&self, id: &str) -> Value {
        answer(self.request(Method::GET, &format!("/api/v1/deposits/{id}"))).await.1
    }

    async fn act(&self, action: Value) -> (u16, Value) {
        answer(self.request(Method::POST, "/api/v1/actions").body(action.to_string())).await
    }

    async fn again(&self, id: &str) -> (u16, Value) {
        answer(self.request(Method::POST, &format!("/api/v1/deposits/{id}/failed"))).await
    }

    async fn reported(&self, id: &str, state: &str) {
        let is_over = async || self.view(id).await["state"] == state;
        eventually(LONGEST, &format!("{id} is {state}"), is_over).await;
    }

    /// Deposits a row that fails, and serves it from then on; the answer is the deposit, and its job.
    async fn failed(&self, origin: &Origin, name: &str) -> (String, Value) {
        let row = format!("{} | | | 7 | | {name}.txt | | {name} | A creator | {name}", origin.url(&format!("/{name}")));
        origin.serve(&format!("/{name}.checkm"), manifest(&[row]));
        let url = origin.url(&format!("/{name}.checkm"));
        let body =
            json!({"profile": "internal", "url": url, "filename": "one.checkm", "type": "single-file-batch-manifest"});
        let begun = async || {
            let (status, begun) = answer(self.request(Method::POST, "/api/v1/deposits").body(body.to_string())).await;
            (status == 201).then_some(begun)
        };
        let begun = eventually_some(LONGEST, "the new profile is known", begun).await;
        let id = text(&begun["id"]).to_owned();
        self.reported(&id, "failed").await;
        origin.serve(&format!("/{name}"), "content");
        let job = self.view(&id).await["jobs"][0].clone();
        (id, job)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_batch_that_was_withdrawn_can_be_made_again_and_of_one_that_ended_and_is_gone_they_cannot() {
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::start_beside_origins(&directory.path().join("data"));
    let (origin, client) = (Origin::start().await, Client::new());
    let of = OfOneRow { repository: &repository, client };

    // One row is as many as any: there is a button for it.
    let (id, job) = of.failed(&origin, "first").await;
    let page = async |path: String| answer(of.request(Method::GET, &path)).await.1.as_str().unwrap().to_owned();
    let form = format!("/submit/{id}/failed\"");
    let has_button = async || page(format!("/submit/{id}")).await.contains(&form);
    eventually(LONGEST, "its page has a button", has_button).await;

    // While nothing is taken, its row is submitted again, and that is withdrawn.
    let (status, paused) = of.act(json!({"action": "pause", "on": "queue:ingest", "reason": "a test"})).await;
    assert_eq!(status, 200, "{paused}");
    let mut attempts = BTreeSet::new();
    for _ in 0..2 {
        let (status, made) = of.again(&id).await;
        assert_eq!(status, 201, "{made}");
        let new = text(&made["id"]).to_owned();
        is_refused(
            of.request(Method::POST, "/api/v1/actions").body(resume_of(&job)),
            409,
            &format!("submitted again as {}", text(&made["batch"])),
        )
        .await;
        let (status, withdrawn) =
            answer(of.request(Method::POST, &format!("/api/v1/deposits/{new}/withdraw")).body("")).await;
        assert_eq!((status, &withdrawn["state"]), (200, &"withdrawn".into()), "{withdrawn}");
        assert!(attempts.insert(new));
    }
    // Both ways are open again, and one of them is gone.
    eventually(LONGEST, "the button is there again", has_button).await;
    let (status, resumed) = of.act(serde_json::from_str(&resume_of(&job)).unwrap()).await;
    assert_eq!(status, 200, "{resumed}");
    let (status, resumed) = of.act(json!({"action": "unpause", "on": "queue:ingest", "reason": "a test"})).await;
    assert_eq!(status, 200, "{resumed}");
    let is_made = async || of.view(&id).await["completed"] == 1;
    eventually(LONGEST, "the old job is completed", is_made).await;

    // Another row is made by the new batch, which is purged: the old job is not resumed, whatever the queue has.
    let (id, job) = of.failed(&origin, "second").await;
    let (status, made) = of.again(&id).await;
    assert_eq!(status, 201, "{made}");
    let (new, batch) = (text(&made["id"]).to_owned(), text(&made["batch"]).to_owned());
    of.reported(&new, "completed").await;
    let (status, purged) = of.act(json!({"action": "purge", "on": batch, "reason": "it is done"})).await;
    assert_eq!(status, 200, "{purged}");
    let why =
        format!("submitted again as {new}, which has ended (1 completed, 0 failed) and is no longer in the queue");
    is_refused(of.request(Method::POST, "/api/v1/actions").body(resume_of(&job)), 409, &why).await;
    is_refused(of.request(Method::POST, &format!("/api/v1/deposits/{id}/failed")), 409, &why).await;
    let objects = answer(of.request(Method::GET, "/api/v1/objects?collection=internal")).await.1;
    let titles: Vec<_> = objects["items"].as_array().unwrap().iter().map(|item| text(&item["title"])).collect();
    assert_eq!(titles.iter().collect::<BTreeSet<_>>().len(), 2, "{titles:?}");
    assert_eq!(titles.len(), 2, "{titles:?}");
}
