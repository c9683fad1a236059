//! Trees that are missing, empty, half there, or closed to us.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeSet;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use queuekeeper::config::Config as ServerConfig;
use queuekeeper::{metrics, web};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use tower::ServiceExt as _;
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Permission};

use super::harness::{LIMIT, Mirror, SETTLES, config, connect, connect_as, create};
use super::writes::{Write, delete_all, folders, new_batch, new_job, play, status};
use queuekeeper_testkit::wait::eventually;

async fn has_problem(mirror: &Mirror, what: &str) {
    eventually(LIMIT, what, async || {
        let freshness = mirror.store.freshness();
        freshness.problem.as_ref().is_some_and(|problem| problem.contains(what) && !problem.contains('\n'))
            && freshness.is_connected()
            && freshness.stale_since.is_some()
            && !mirror.is_synced_now()
    })
    .await;
}

#[tokio::test]
async fn a_tree_is_mirrored_from_nothing_to_all_and_back() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    let at = format!("{}/merritt/queue", server.connect_string());
    let client = config(&at).connect_anywhere().await.unwrap();
    let mirror = Mirror::start(&at);
    has_problem(&mirror, "ZooKeeper has no znode /merritt/queue").await;
    has_problem(&mirror, &format!("zkCli.sh -server {} create /merritt/queue", server.connect_string())).await;
    create(&root, "/merritt", b"").await;
    has_problem(&mirror, "ZooKeeper has no znode /merritt/queue").await;

    create(&root, "/merritt/queue", b"").await;
    mirror.equals(&client).await;
    assert_eq!(mirror.store.freshness().problem, None);
    for half in [vec!["/jobs"], vec!["/jobs/jid0000000007"], vec!["/batches", "/batches/bid0000000001"], vec!["/locks"]]
    {
        for path in half {
            create(&client, path, b"").await;
        }
        mirror.equals(&client).await;
    }
    play(&client, &folders()).await;
    play(&client, &new_batch("bid0000000000")).await;
    for number in 0..20 {
        play(&client, &[new_job(number, "bid0000000000", 5)]).await;
    }
    let facts = mirror.equals(&client).await;
    assert_eq!((facts["jobs pending count"].as_str(), facts["jobs other count"].as_str()), ("19", "1"));
    assert_eq!(mirror.steps()["none->pending"], 19);

    // Without a chroot, the server's own znodes and other people's are no part of it, or one thing to count.
    for path in ["/locks", "/locks/storage", "/locks/storage/ark_1"] {
        create(&root, path, b"").await;
    }
    let whole = Mirror::with(config(&server.connect_string()), None);
    let facts = whole.equals(&root).await;
    assert_eq!((facts["znodes"].as_str(), facts["unexpected /merritt"].as_str()), ("5", "is there"));
    // What goes on below is news of a znode that has not changed for a while: it shows nothing of the servers' clock,
    // or all that is dated would be off by that while.
    let old = root.get_data("/merritt").await.unwrap().1.mtime + 300;
    eventually(LIMIT, "a while", async || jiff::Timestamp::now().as_millisecond() > old).await;
    let events = whole.count("queuekeeper_mirror_events_total");
    create(&client, "/jobs/jid0000000777", b"").await;
    eventually(LIMIT, "an event", async || whole.count("queuekeeper_mirror_events_total") > events).await;
    let reads = whole.count("queuekeeper_mirror_reads_total");
    create(&client, "/jobs/jid0000000778", b"").await;
    eventually(LIMIT, "its reading", async || whole.count("queuekeeper_mirror_reads_total") > reads).await;
    whole.equals(&root).await;

    for path in ["/jobs", "/batches", "/access", "/locks", "/batch-uuids"] {
        delete_all(&client, path).await;
    }
    let facts = mirror.equals(&client).await;
    assert_eq!(facts["znodes"], "1");
    root.delete("/merritt/queue", None).await.unwrap();
    has_problem(&mirror, "ZooKeeper has no znode /merritt/queue").await;
    // That there is no queue is not to say that nothing is in it.
    for page in ["/", "/jobs", "/batches", "/access", "/locks", "/faults", "/failures"] {
        let (_, body) = get(&mirror, &at, page).await;
        assert!(body.contains("ZooKeeper has no znode /merritt/queue"), "{page}: {body}");
        assert!(!body.contains("There are no ") && !body.contains("The queue needs no attention"), "{page}: {body}");
    }
    assert_eq!(get(&mirror, &at, "/api/v1/jobs").await.0, 503);
    create(&root, "/merritt/queue", b"").await;
    mirror.equals(&client).await;
    // Events brought all of it.
    assert_eq!(mirror.drift(), 0);
    assert_eq!((mirror.walks("start"), mirror.walks("reconnect")), (1, 0));
}

fn for_owner_only() -> [Acl; 2] {
    [Acl::new(Permission::ALL, AuthId::authed()), Acl::new(Permission::CREATE | Permission::DELETE, AuthId::anyone())]
}

/// Closes a znode to all but `owner`, for good: a change of its permissions alone is no event.
async fn create_closed(owner: &Client, path: &str, data: &[u8]) {
    owner.create(path, data, &CreateMode::Persistent.with_acls(Acls::new(&for_owner_only()))).await.unwrap();
}

#[tokio::test]
async fn what_is_closed_to_us_is_counted_and_a_closed_folder_is_a_problem() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/queue", b"").await;
    let at = format!("{}/queue", server.connect_string());
    let owner = connect_as(&at, "keeper").await;
    play(&owner, &folders()).await;
    play(&owner, &new_batch("bid0000000000")).await;
    let mirror = Mirror::start(&at);
    mirror.equals(&owner).await;

    // Of all sorts, the children of one open and of the other closed.
    for number in [1, 2] {
        play(&owner, &[new_job(number, "bid0000000000", 5)]).await;
    }
    let closed = [
        "/jobs/jid0000000003",
        "/jobs/jid0000000004",
        "/jobs/jid0000000004/status",
        "/jobs/jid0000000001/metadata",
        "/batches/bid0000000001",
        "/batches/bid0000000002",
        "/batches/bid0000000002/states",
        "/batches/bid0000000002/states/batch-failed",
        "/access/small/qid0000000001",
        "/locks/storage/ark_1",
        "/locks/queue/ingest",
    ];
    for path in closed {
        create_closed(&owner, path, b"{}").await;
    }
    let open: [(&str, &[u8]); 9] = [
        ("/jobs/jid0000000003/status", br#"{"status":"Failed","retry_count":3}"#),
        ("/jobs/jid0000000003/lock", b""),
        ("/jobs/jid0000000003/store", b"[]"),
        ("/jobs/jid0000000004/priority", b"7"),
        ("/jobs/states/failed/05-jid0000000003", b""),
        ("/batches/bid0000000001/lock", b""),
        ("/batches/bid0000000001/status-report", b"{}"),
        ("/batches/bid0000000002/states/batch-completed", b""),
        ("/access/small/qid0000000001/lock", b""),
    ];
    for (path, data) in open {
        create(&owner, path, data).await;
    }
    let closed: BTreeSet<_> = closed.map(str::to_owned).into();
    let facts = mirror.equals_within(SETTLES, &owner, &closed).await;
    assert_eq!((facts["jobs failed locked"].as_str(), facts["jobs pending count"].as_str()), ("1", "2"));
    assert_eq!(facts["unreadable"], "12");
    // What events brought, a walk finds, too.
    let new = Mirror::start(&at);
    new.equals_within(SETTLES, &owner, &closed).await;
    // With the owner's credentials, all is there.
    let mut theirs = config(&at);
    theirs.auth.push(queuekeeper_zookeeper::Auth::digest("keeper", "secret"));
    Mirror::with(theirs, None).equals(&owner).await;
    for mirror in [mirror, new] {
        mirror.is_compared_again().await;
        assert_eq!(mirror.drift(), 0);
    }

    // A folder is another thing: how much is not seen is unknown.
    create(&root, "/other", b"").await;
    let at = format!("{}/other", server.connect_string());
    let owner = connect_as(&at, "keeper").await;
    create_closed(&owner, "/jobs", b"").await;
    create(&owner, "/batches", b"").await;
    let mirror = Mirror::start(&at);
    has_problem(&mirror, "/other/jobs is not readable with these credentials (NoAuth)").await;
    assert_eq!(mirror.store.summary(jiff::Timestamp::now(), None).unwrap().unreadable, 1);
    // It stays one while other things change, and ends with the folder.
    create(&owner, "/batches/bid0000000001", b"").await;
    eventually(LIMIT, "the batch is seen", async || mirror.store.batches().is_some_and(|batches| batches.len() == 1))
        .await;
    has_problem(&mirror, "/jobs is not readable with").await;
    owner.delete("/jobs", None).await.unwrap();
    create(&owner, "/jobs", b"").await;
    mirror.equals(&owner).await;
    // So it is where no event comes, and only a comparison finds it.
    owner.set_acl("/jobs", &for_owner_only(), None).await.unwrap();
    has_problem(&mirror, "/jobs is not readable with").await;
    owner.set_acl("/jobs", &[Acl::new(Permission::ALL, AuthId::anyone())], None).await.unwrap();
    mirror.equals(&owner).await;
}

/// Answers of the web server over a mirror.
async fn get(mirror: &Mirror, at: &str, page: &str) -> (StatusCode, String) {
    let mut config = ServerConfig::new(config(at));
    config.web.external_url = Some("http://localhost/".parse().unwrap());
    let mut registry = metrics::registry();
    let (store, drop_after) = (mirror.store.clone(), config.mirror.drop_after);
    metrics::queue::QueueMetrics { store: store.clone(), storage: None, drop_after, collections: 0 }
        .register(&mut registry);
    let router = web::router(web::State::new(config, store, None, None, registry));
    let request = Request::get(page).header("host", "localhost").body(Body::empty()).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status();
    (status, String::from_utf8(to_bytes(answer.into_body(), 4 << 20).await.unwrap().into()).unwrap())
}

#[tokio::test]
async fn a_status_that_becomes_unreadable_is_shown_as_that_and_not_as_it_was() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let owner = connect_as(&server.connect_string(), "keeper").await;
    let at = server.connect_string();
    play(&owner, &folders()).await;
    play(&owner, &new_batch("bid0000000000")).await;
    for number in [1, 2, 3] {
        play(&owner, &[new_job(number, "bid0000000000", 5)]).await;
    }
    for (path, data) in [("", Vec::new()), ("/token", br#"{"token":"a"}"#.to_vec()), ("/status", status("Pending", 0))]
    {
        create(&owner, &format!("/access/small/qid0000000001{path}"), &data).await;
    }
    // One that compares, and one that must notice by itself.
    let (comparing, mirror) = (Mirror::start(&at), Mirror::with(config(&at), None));
    for mirror in [&comparing, &mirror] {
        mirror.equals(&owner).await;
    }

    let status_of = |job: u32| format!("/jobs/jid{job:010}/status");
    let (of_batch, of_request) = ("/batches/bid0000000000/status", "/access/small/qid0000000001/status");
    let reported = [status_of(1), of_batch.to_owned(), of_request.to_owned()];
    for path in reported.iter().chain([&status_of(2)]) {
        owner.set_acl(path, &for_owner_only(), None).await.unwrap();
    }
    let closed: BTreeSet<_> = reported.iter().cloned().chain([status_of(2)]).collect();
    comparing.equals_within(SETTLES, &owner, &closed).await;
    // Daemons move one of the jobs, and with it the batch, and a request. Of each status the server says nothing to us,
    // only of what lies beside it.
    let moves = |from: [&str; 2], to: [&str; 2]| {
        let entry = |state: &str| format!("/jobs/states/{state}/05-jid0000000001");
        let reference = |folder: &str| format!("/batches/bid0000000000/states/{folder}/jid0000000001");
        vec![
            Write::Delete(entry(from[0])),
            Write::Create(entry(to[0]), Vec::new()),
            Write::Delete(reference(from[1])),
            Write::Create(reference(to[1]), Vec::new()),
            Write::Set("/access/small/qid0000000001/token".to_owned(), br#"{"token":"b"}"#.to_vec()),
        ]
    };
    let (pending, failed) = (["pending", "batch-processing"], ["failed", "batch-failed"]);
    let mut writes = vec![
        Write::Set(status_of(1), status("Failed", 1)),
        Write::Set(of_batch.to_owned(), status("Reporting", 0)),
        Write::Set(of_request.to_owned(), status("Processing", 0)),
    ];
    writes.extend(moves(pending, failed));
    play(&owner, &[Write::Multi(writes)]).await;
    let facts = comparing.equals_within(SETTLES, &owner, &closed).await;
    assert_eq!((facts["jobs other count"].as_str(), facts["unreadable"].as_str()), ("2", "4"));
    // To the other one nothing has happened to the second job, of which it knows all there is to know.
    let facts = mirror.equals_within(SETTLES, &owner, &reported.clone().into()).await;
    assert_eq!((facts["jobs other count"].as_str(), facts["jobs pending count"].as_str()), ("1", "2"));
    assert_eq!((facts["batches other count"].as_str(), facts["requests small other count"].as_str()), ("1", "1"));

    // It says so, and is ready: everything else is as it should be.
    for (page, code, says) in [
        ("/-/ready", 200, ""),
        ("/metrics", 200, "queuekeeper_mirror_unreadable_znodes 3\n"),
        ("/api/v1/jobs/jid0000000001", 200, r#""unreadable":["/jobs/jid0000000001/status"]"#),
        ("/api/v1/jobs/jid0000000001", 200, r#""state":"other""#),
        ("/api/v1/batches/bid0000000000", 200, r#""state":"other""#),
        ("/", 200, "3 znodes cannot be read"),
        ("/", 200, r#"href="./faults#unreadable""#),
        ("/faults", 200, "3 znodes cannot be read"),
        ("/faults", 200, r#"href="./tree/access/small/qid0000000001/status""#),
        (
            "/api/v1/faults",
            200,
            r#""unreadable_znodes":3,"unreadable":["/batches/bid0000000000/status","/access/small/qid0000000001/status","/jobs/jid0000000001/status"]"#,
        ),
    ] {
        let (status, body) = get(&mirror, &at, page).await;
        assert!(status == code && body.contains(says), "{page}: {status} {body}");
    }

    // What was closed to us is no drift, and neither is it when it is ours to read again. That alone is no event
    // either: it is noticed with the next change beside it, or by comparing.
    assert_eq!(comparing.drift(), 0);
    let open = [Acl::new(Permission::ALL, AuthId::anyone())];
    for path in &closed {
        owner.set_acl(path, &open, None).await.unwrap();
    }
    comparing.equals(&owner).await;
    assert_eq!(comparing.drift(), 0);
    play(&owner, &[Write::Multi(moves(failed, pending))]).await;
    let facts = mirror.equals(&owner).await;
    assert_eq!((facts.get("unreadable"), facts["batches reporting count"].as_str()), (None, "1"));

    // With its last znodes an item goes, although no event comes for those that are closed.
    owner.set_acl(&status_of(1), &for_owner_only(), None).await.unwrap();
    delete_all(&owner, "/jobs/jid0000000001").await;
    mirror.equals(&owner).await;
}
