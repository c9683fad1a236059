//! Deposits over HTTP: by a program, by a form, and by those who may do nothing else.

use std::path::Path;

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::proxy::Proxy;
use queuekeeper_testkit::wait::eventually;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, LONGEST, answer, batches, says};
use super::packed::send_over;
use super::program::{queuekeeper, run};
use super::repository::Repository;

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_comes_in_parts_by_a_form_or_by_url_and_each_depositor_sees_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start(&data);
    let client = Client { address: repository.address.clone(), token: None };
    let working = data.join("working");
    let deposit = json!({"profile": "default", "filename": "a.txt", "size": 11, "title": "A title"});

    refuses_what_is_wrong(&client, &working, &deposit).await;

    // In parts, one of which is broken off, and begun twice under one key.
    let (status, begun) = client.begin(Some("one"), &deposit).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    assert_eq!((status, &begun["offset"]), (202, &0.into()));
    assert_eq!(client.upload(&id, 0, "hello").await.0, 202);
    let broken = futures::stream::iter([Ok("wo"), Err(std::io::Error::other("gone"))]);
    let request = client.request(Method::PATCH, &format!("/api/v1/deposits/{id}"));
    let request = request.header("content-type", "application/octet-stream").header("upload-offset", "5");
    assert!(request.body(reqwest::Body::wrap_stream(broken)).send().await.is_err());
    let (status, again) = client.begin(Some("one"), &deposit).await;
    assert_eq!((status, &again["id"]), (202, &begun["id"]));
    let come = again["offset"].as_u64().unwrap();
    assert!((5..=7).contains(&come), "{again}");
    // Another deposit under the key is refused, and what has come stays.
    client.refused_as_another("one", &deposit, &json!({"title": "Another"}), "title").await;
    let (status, problem) = client.upload(&id, 1, "x").await;
    assert!(status == 409 && says(&problem, &format!("{come} bytes were received")), "{problem}");
    let (status, made) = client.upload(&id, come, &"hello world"[usize::try_from(come).unwrap()..]).await;
    assert_eq!((status, &made["id"]), (201, &begun["id"]), "{made}");
    let done = client.reported(&id).await;
    assert_eq!((&done["state"], &done["completed"], &done["size_bytes"]), (&"completed".into(), &1.into(), &11.into()));
    assert!(done["jobs"][0]["ark"].as_str().unwrap().starts_with("ark:/99999/fk4"), "{done}");
    // What was stored is found, with its files.
    let ark = done["jobs"][0]["ark"].as_str().unwrap();
    let (status, objects) = client.get("/api/v1/objects?collection=default&limit=1").await;
    assert_eq!((status, &objects["items"][0]["ark"], &objects["next"]), (200, &ark.into(), &Value::Null), "{objects}");
    finds_by_title(&client, ark).await;
    let (_, object) = client.get(&format!("/api/v1/objects/{ark}")).await;
    let is_there = |path: &str| object["files"].as_array().unwrap().iter().any(|file| file["path"] == path);
    assert!(object["object"]["title"] == "A title" && is_there("producer/a.txt"), "{object}");
    let page = client.request(Method::GET, &format!("/objects/{ark}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("producer/a.txt") && page.contains("href=\"../../../batches/bid0000000000\""), "{page}");
    // Its job leads there, too.
    let job = done["jobs"][0]["job"].as_str().unwrap();
    let (_, made) = client.get(&format!("/api/v1/jobs/{job}")).await;
    assert_eq!(made["object"], json!({"ark": ark, "version": 1}));
    let page = client.request(Method::GET, &format!("/jobs/{job}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains(&format!("href=\"../objects/{ark}?version=1\"")), "{page}");
    assert_eq!(client.get("/api/v1/objects/ark:/99999/none").await.0, 404);
    assert_eq!(client.get("/api/v1/objects?ark=none").await.0, 400);
    // The same key again is the same deposit, which needs no upload.
    assert_eq!(client.begin(Some("one"), &deposit).await.1["batch"], made["batch"]);
    client.refused_as_another("one", &deposit, &json!({"title": "Another"}), "title").await;
    client.refused_as_another("one", &deposit, &json!({"size": 12}), "size").await;

    client.not_made_again("one", &deposit, done["batch"].as_str().unwrap()).await;

    // Nothing is left of what is refused or given up.
    let wrong =
        json!({"profile": "default", "filename": "b", "size": 1, "digest": format!("sha256:{}", "0".repeat(64))});
    let id = client.begin(None, &wrong).await.1["id"].as_str().unwrap().to_owned();
    let (status, problem) = client.upload(&id, 0, "x").await;
    assert!(status == 400 && says(&problem, "expected the sha256 digest"), "{problem}");
    assert_eq!(client.get(&format!("/api/v1/deposits/{id}")).await.1["outcome"].as_str().unwrap()[..8], *"refused:");
    let id = client.begin(None, &deposit).await.1["id"].as_str().unwrap().to_owned();
    let (status, problem) = client.upload(&id, 0, "more than announced").await;
    assert!(
        status == 400 && says(&problem, "more data was received than the 11 bytes that were announced"),
        "{problem}"
    );
    let give_up = || client.request(Method::DELETE, &format!("/api/v1/deposits/{id}")).send();
    assert_eq!(give_up().await.unwrap().status(), 204);
    assert_eq!(give_up().await.unwrap().status(), 404);
    eventually(LONGEST, "nothing is left", async || batches(&working).is_empty()).await;

    // By a form, whose file may come first, and as programs deposit to Merritt.
    let fields = [("profile", "default"), ("local_ids", "x; y"), ("url", "")];
    let sent = client.form("/submit", Some(("c.txt", "content")), &fields).await;
    assert!(sent.url().path().starts_with("/submit/bid-"), "{}", sent.url());
    let id = sent.url().path().rsplit('/').next().unwrap().to_owned();
    assert_eq!(client.reported(&id).await["state"], "completed");
    let page = client.request(Method::GET, &format!("/submit/{id}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Deposit c.txt") && page.contains("1 completed, 0 failed"), "{page}");
    let refused = client.form("/submit", Some(("c.txt", "content")), &[("profile", "<none>")]).await;
    assert_eq!(refused.status(), 400);
    let page = refused.text().await.unwrap();
    assert!(
        page.contains("you may not deposit for &#34;&#60;none&#62;&#34;") && page.contains("<form id=\"deposit\""),
        "{page}"
    );
    let poster = [("profile", "default"), ("type", "file"), ("localIdentifier", "x"), ("responseForm", "json")];
    let (status, queued) = answer(client.form("/poster/update", Some(("d.txt", "more")), &poster).await).await;
    assert_eq!((status, &queued["bat:batchState"]["bat:batchStatus"]), (200, &"QUEUED".into()), "{queued}");
    let id = queued["bat:batchState"]["bat:batchID"].as_str().unwrap().to_owned();
    assert_eq!(client.reported(&id).await["state"], "completed");
    client.posts_with_a_key(&poster).await;
    client.refuses_what_is_half_or_none(&poster).await;
    let (status, failed) = answer(client.form("/poster/submit", None, &poster).await).await;
    assert_eq!((status, &failed["bat:batchState"]["bat:batchStatus"]), (400, &"FAILED".into()), "{failed}");
    eventually(LONGEST, "nothing is left", async || batches(&working).is_empty()).await;

    client.shows_why_no_job_was_created(directory.path()).await;
    depositors(directory.path(), &data, &client).await;
}

/// What is wrong is said before anything is uploaded, and a dry run leaves nothing.
async fn refuses_what_is_wrong(client: &Client, working: &Path, deposit: &Value) {
    for (change, expected) in [
        (json!({"profile": "none"}), "you may not deposit for \"none\"; your profiles: default"),
        (json!({"filename": "../a"}), "file name"),
        (json!({"url": "http://127.0.0.1:1/a"}), "url: "),
        (json!({"digest": "md5:1"}), "digest: "),
        (json!({"notification": "ada@x.example; nobody"}), "notification: \"nobody\" is not a mail address"),
    ] {
        let mut wrong = deposit.clone();
        wrong.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, problem) = client.begin(None, &wrong).await;
        assert!(status == 400 && says(&problem, expected), "{status} {problem}");
    }
    let dry =
        || client.request(Method::POST, "/api/v1/deposits?dry_run=true").header("content-type", "application/json");
    let (status, problem) = answer(dry().body("[]").send().await.unwrap()).await;
    assert!(status == 400 && says(&problem, "expected an object, found an array"), "{status} {problem}");
    assert_eq!(answer(dry().body(deposit.to_string()).send().await.unwrap()).await.0, 200);
    assert_eq!(batches(working), [""; 0]);
}

/// Finds an object by the beginning of its title, in whatever case.
async fn finds_by_title(client: &Client, ark: &str) {
    let text = async |path: &str| client.request(Method::GET, path).send().await.unwrap().text().await.unwrap();
    for path in ["/api/v1/objects?title=a%20T", "/objects?title=a+t&collection=default"] {
        assert!(text(path).await.contains(ark), "{path}");
    }
    assert_eq!(client.get("/api/v1/objects?title=title").await.1["items"], json!([]));
}

/// A way to the queue of a repository that can be cut, and its connect string.
async fn beside_queue(data: &Path) -> (Proxy, String) {
    let connect = std::fs::read_to_string(data.join("zookeeper.connect")).unwrap();
    let proxy = Proxy::start(connect.rsplit(':').next().unwrap().parse().unwrap()).await;
    let connect = proxy.connect_string();
    (proxy, connect)
}

/// A depositor may use what belongs to deposits, and nothing else.
async fn goes_nowhere_else(lab: &Client, zookeeper: &str) {
    for path in
        ["/", "/jobs", "/batches", "/audit", "/tree", "/metrics", "/events?page=jobs", "/api/v1/jobs", "/search?text=a"]
    {
        assert_eq!(lab.request(Method::GET, path).send().await.unwrap().status(), 403, "{path}");
    }
    let page = lab.request(Method::GET, "/submit").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<option>default</option>"), "{page}");
    // No link leads where a depositor may not go, and the queue's own address is none of theirs.
    for href in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let status =
            lab.request(Method::GET, &format!("/{}", href.trim_start_matches("./"))).send().await.unwrap().status();
        assert!(href.starts_with('#') || status == 200, "{href}: {status}");
    }
    assert!(!page.contains(zookeeper) && !page.contains("action=\"./search\""), "{page}");
    // What is refused before it is read has the form of the program's answers, too.
    let nobody = Client { token: Some("qk_none".to_owned()), ..lab.clone() };
    let refused = nobody
        .request(Method::POST, "/poster/submit")
        .header("accept", "application/xml")
        .header("content-type", "multipart/form-data; boundary=edge")
        .send()
        .await
        .unwrap();
    let (status, text) = answer(refused).await;
    assert!(status == 401 && text.as_str().unwrap().contains("<bat:batchStatus>FAILED<"), "{status} {text}");
}

/// A server beside the daemons, for a depositor who may do little, and for an operator.
async fn depositors(home: &Path, data: &Path, local: &Client) {
    let at = |name: &str| home.join(name).display().to_string();
    let mut lines = String::new();
    let mut token = async |name: &str, role: &str| {
        let made = run(home, &["token", name, "--role", role]).await;
        lines += made.err.lines().last().unwrap();
        lines += "\n";
        made.out.trim().to_owned()
    };
    let (lab, other, operator) =
        (token("lab", "depositor").await, token("other", "depositor").await, token("ops", "operator").await);
    let busy = token("busy", "depositor").await;
    std::fs::write(at("tokens.yml"), lines).unwrap();
    let catalogue = data.join("catalogue.db").display().to_string();
    let text = format!(
        "tokens_file: tokens.yml\ncatalogue: {{url: \"sqlite:{catalogue}\"}}\ndepositors:\n  lab: {{profiles: [default], \
         deposits_per_day: 1, bytes_per_day: 100}}\n  other: {{profiles: [unknown]}}\n  \
         busy: {{profiles: [default], objects_per_day: 4, bytes_per_day: 1000, deposits_per_minute: 2}}\n"
    );
    std::fs::write(at("config.yml"), text).unwrap();
    let (queue, zookeeper) = beside_queue(data).await;
    let port = free_port();
    let (web, config, audit) = (format!("127.0.0.1:{port}"), at("config.yml"), at("audit.jsonl"));
    let [working, profiles] = ["working", "profiles"].map(|name| data.join(name).display().to_string());
    // So short that a stalled connection is given up before a request is.
    let short = ["--zookeeper.session-timeout", "20s"];
    let serve = ["serve", "--zookeeper", &zookeeper, "--web.listen-address", &web, "--config.file", &config];
    let serve = [&serve[..], &short].concat();
    let proxy = Proxy::start(port).await;
    let external = format!("http://{}", proxy.connect_string());
    let serve =
        [&serve[..], &["--log.level", "error", "--audit.file", &audit, "--web.external-url", &external]].concat();
    let without = [serve.as_slice(), &["--deposits.working", &working]].concat();
    run(home, &without).await.is(2, &["--deposits.profiles"]);
    let serve = [serve.as_slice(), &["--deposits.working", &working, "--deposits.profiles", &profiles]].concat();
    let log = std::fs::File::create(at("log")).unwrap();
    let mut child = queuekeeper(home, &serve).stderr(log).spawn().unwrap();
    let client = |token: &str| Client { address: format!("http://{web}"), token: Some(token.to_owned()) };
    let (lab, other, operator) = (client(&lab), client(&other), client(&operator));
    let ready = async || Some(reqwest::get(format!("http://{web}/-/ready")).await.ok()?.status().as_u16());
    eventually(LONGEST, "it is ready", async || ready().await == Some(200)).await;

    goes_nowhere_else(&lab, &zookeeper).await;
    let deposit = json!({"profile": "default", "filename": "e.txt", "size": 4});
    let (status, begun) = lab.begin(None, &deposit).await;
    assert_eq!(status, 202, "{begun}");
    let id = begun["id"].as_str().unwrap();
    let path = format!("/api/v1/deposits/{id}");
    // Whoever looks at it, it is the depositor's.
    let (_, seen) = operator.get(&path).await;
    assert_eq!((&seen["state"], &seen["depositor"]), (&"uploading".into(), &"lab".into()), "{seen}");
    assert_eq!((other.get(&path).await.0, other.upload(id, 0, "evil").await.0), (404, 404));
    assert_eq!(lab.upload(id, 0, "good").await.0, 201);
    let done = lab.reported(id).await;
    assert_eq!((&done["state"], &done["depositor"]), (&"completed".into(), &"lab".into()));
    assert_eq!((other.get(&path).await.0, operator.get(&path).await.0, local.get(&path).await.0), (404, 200, 200));
    // Nor does one submit what the other deposited again. A request that is let through is told that nothing failed.
    let again =
        async |client: &Client, path: &str| answer(client.request(Method::POST, path).send().await.unwrap()).await.0;
    let failed = format!("{path}/failed");
    let found = (again(&other, &failed).await, again(&lab, &failed).await, again(&operator, &failed).await);
    assert_eq!(found, (404, 409, 409));
    assert_eq!(lab.get("/api/v1/deposits").await.1["items"].as_array().unwrap().len(), 1);
    assert_eq!(other.get("/api/v1/deposits").await.1["items"], json!([]));
    let (status, problem) = lab.begin(None, &deposit).await;
    assert!(
        status == 429
            && says(
                &problem,
                "1 deposit was made in the last 24 hours, and your limit is 1 in 24 hours; try again in 24 h"
            ),
        "{problem}"
    );
    let (status, problem) = other.begin(None, &deposit).await;
    assert!(status == 400 && says(&problem, "your profiles: none"), "{problem}");
    refuses_what_is_too_much(&client(&busy), &data.join("working")).await;
    // The same by the command line, whose token is in a file.
    std::fs::write(at("token"), operator.token.as_ref().unwrap()).unwrap();
    std::fs::write(at("wrong"), "qk_0123456789012345678901234567890123456789").unwrap();
    let (url, file, token) = (operator.address.clone(), at("tokens.yml"), at("token"));
    let submit = ["submit", &file, "--profile", "default", "--server", &url];
    let more = ["--token-file", &token, "--key", "mine", "--note", "for ada", "--notification", "ada@x.example"];
    let sent = run(home, &[&submit[..], &more, &["--wait", "-o", "json"]].concat()).await.json();
    let (_, node) = local.get(&format!("/api/v1/tree/batches/{}/submission", sent["batch"].as_str().unwrap())).await;
    let node = node.to_string();
    assert!(node.contains("for ada") && node.contains("ada@x.example"), "{node}");
    let other = [&submit[..], &more, &["--title", "Another"]].concat();
    run(home, &other).await.is(3, &["is a different deposit: its title differs"]);
    run(home, &[&submit[..], &["--notification", "nobody"]].concat())
        .await
        .is(2, &["\"nobody\" is not a mail address"]);
    assert_eq!((&sent["state"], &sent["type"], &sent["completed"]), (&"Completed".into(), &"file".into(), &1.into()));
    run(home, &[&submit[..], &["--token-file", &at("wrong")]].concat()).await.is(3, &["token"]);
    run(home, &[&submit[..], &["--token-file", &file]].concat()).await.is(2, &["--token-file", "a token must"]);
    run(home, &submit).await.is(3, &[]);
    send_over(&proxy, &local.address, data, &token).await;
    operator.leaves_nothing_without_a_queue(&queue, data).await;
    let audit = std::fs::read_to_string(&audit).unwrap();
    assert!(audit.contains("\"actor\":\"lab\",\"role\":\"depositor\"") && audit.contains(id), "{audit}");

    // Until then it may wait for the answer to what it has sent, which delays its end.
    eventually(LONGEST, "it is ready again", async || ready().await == Some(200)).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", std::fs::read_to_string(at("log")).unwrap());
}

/// Of a depositor with four objects a day and two deposits a minute.
async fn refuses_what_is_too_much(busy: &Client, working: &Path) {
    let rows = [1, 2, 3, 4, 5].map(|at| format!("http://a.example/{at} | | | 1 | | {at}\n")).concat();
    let profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
    let manifest = format!("#%checkm_0.7\n#%profile | {profile}\n{rows}#%eof\n");
    let fields = |kind| [("profile", "default"), ("type", kind), ("responseForm", "json")];
    let before = batches(working);
    let manifest =
        busy.form("/poster/submit", Some(("m.checkm", &manifest)), &fields("single-file-batch-manifest")).await;
    // At no time is it taken.
    assert_eq!(manifest.headers().get("retry-after"), None);
    let (status, text) = answer(manifest).await;
    let why = "It has 5 objects, and your limit is 4 in 24 hours; divide it.";
    assert!(status == 413 && text.to_string().contains(why), "{text}");
    // Nor is an upload that does not say how large it is.
    let large = "x".repeat(2_000);
    let large = busy.form("/poster/submit", Some(("large.txt", &large)), &fields("file")).await;
    let (status, text) = answer(large).await;
    let why = "It has more than 1,000 bytes, your limit for uploads in 24 hours.";
    assert!(status == 413 && text.to_string().contains(why), "{text}");
    assert_eq!(batches(working), before, "what came is removed");

    for name in ["a.txt", "b.txt"] {
        let made = busy.form("/poster/submit", Some((name, "content")), &fields("file")).await;
        assert_eq!(made.status(), 200, "{}", made.text().await.unwrap());
    }
    let body = json!({"profile": "default", "filename": "c.txt", "size": 7}).to_string();
    let begin = busy.request(Method::POST, "/api/v1/deposits").header("content-type", "application/json").body(body);
    let more = [
        busy.form("/poster/submit", Some(("c.txt", "content")), &fields("file")).await,
        busy.form("/submit", Some(("c.txt", "content")), &[&fields("file")[..], &[("title", "<Kept>")]].concat()).await,
        begin.send().await.unwrap(),
    ];
    for refused in more {
        let after = refused.headers().get("retry-after").map(|after| after.to_str().unwrap().parse::<u64>().unwrap());
        let is_page = refused.url().path() == "/submit";
        let (status, text) = (refused.status(), refused.text().await.unwrap());
        let why = "made in the last minute, and your limit is 2 a minute; try again in ";
        assert!(status == 429 && text.contains(why), "{status} {text}");
        assert!(!is_page || text.contains("value=\"&#60;Kept&#62;\""), "what was typed is there again: {text}");
        assert!(after.is_some_and(|after| (1..=60).contains(&after)), "{after:?}");
    }
}
