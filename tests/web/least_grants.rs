//! A server that only shows, which may only read: the catalogue, and the znodes.

use std::path::Path;
use std::sync::LazyLock;

use queuekeeper::actions::Role;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, Evidence, NewPage, NewReport, PageEnd, Wrong};
use queuekeeper_catalogue::comparisons::NewComparison;
use queuekeeper_catalogue::inventory::{File, NewVersion};
use queuekeeper_catalogue::loops::{Advance, Morsel};
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks};
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement, Subject};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Algorithm, Digest, Digests, Key, SpaceName, StoreName};
use queuekeeper_testkit::documentation::block;
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::tree::read_tree;
use reqwest::Method;
use uuid::Uuid;
use zookeeper_client::{Acl, AuthId, Permission};

use super::least::{Program, privileges};
use super::site::{Answer, Asker, Examples, Route, Site, mill_in, write_tokens};
use super::world::{LIMIT, World};

static SERVER: LazyLock<Postgres> = LazyLock::new(Postgres::start);

/// What a request names that changed something before, or what is in a store: there is neither.
const IS_NEITHER: [&str; 5] =
    ["/actions/{id}", "/api/v1/actions/{id}", "/api/v1/mill/reports/{id}/file", "/api/v1/objects/file", "/lists/{id}"];

const DATABASE: &str = "shown";

/// What a comparison came to.
const COMPARED: &str = r#"{"agreeing":{"items":1,"bytes":7},"differences":{},"changing":0}"#;

/// What SECURITY.md has an owner grant to a user.
fn grants(user: &str) -> &'static str {
    match user {
        "reader" => block("SECURITY.md", "GRANT USAGE ON SCHEMA public TO reader;"),
        _ => block("SECURITY.md", "GRANT USAGE ON SCHEMA public TO worker;"),
    }
}

fn main() -> StoreName {
    "main".parse().unwrap()
}

fn space() -> SpaceName {
    "theses".parse().unwrap()
}

fn key() -> Key {
    Key::new(*b"thesis").unwrap()
}

fn digests() -> Digests {
    [Digest::new(Algorithm::Sha256, &[7; 32]).unwrap()].into_iter().collect()
}

/// What the examples of routes name: an object with a file, an item with a bit error, and the report of run 4711.
async fn fill(catalogue: &Catalogue) {
    let version = NewVersion {
        ark: "ark:/99999/fk4there".to_owned(),
        owner: "owner".to_owned(),
        collection: "demo".to_owned(),
        title: Some("A title".to_owned()),
        creator: None,
        date: None,
        number: 1,
        job: Uuid::now_v7(),
        batch: None,
        submitter: "ada".to_owned(),
        message: String::new(),
        local_ids: vec!["one".to_owned()],
    };
    let file = File {
        path: "producer/a".to_owned(),
        content_path: "v1/content/producer/a".to_owned(),
        size: 7,
        digests: digests(),
        media_type: None,
        is_billable: true,
    };
    catalogue.record_version(&version, [file]).await.unwrap();
    let intent = Intent {
        id: Uuid::now_v7(),
        holder: Uuid::now_v7(),
        user: "ada".to_owned(),
        subject: Subject { store: main(), space: space(), key: Some(key()) },
        change: Change::Add,
        seen: None,
        size: None,
        digests: Digests::default(),
        source: None,
        upload: None,
        properties: None,
    };
    catalogue.begin(&intent, LIMIT).await.unwrap();
    let done = Settlement::Done { change: Change::Add, etag: None, size: Some(7), digests: digests() };
    catalogue.settle(&intent, &done).await.unwrap();
    report(catalogue).await;
    assert!(catalogue.record_policy("account1", None, "ada", "the first", "{}").await.unwrap());
    let subject = TaskSubject {
        kind: TaskKind::Duplicate,
        account: "account1".to_owned(),
        space: space(),
        key: Some(key()),
        destination: Some("replica".parse().unwrap()),
    };
    catalogue.put_tasks(&[NewTask { queue: TaskQueue::DuplicationLow, subject, source: Some(main()) }]).await.unwrap();
    catalogue.record_space_stats("account1", &main(), &space(), (1, 7)).await.unwrap();
    let (store, space) = (&main(), &space());
    let comparison = NewComparison {
        account: "account1",
        store,
        space,
        started: jiff::Timestamp::UNIX_EPOCH,
        differing: 0,
        result: COMPARED,
        place: "main/x-duracloud-admin/comparison",
    };
    catalogue.keep_comparison(&comparison).await.unwrap();
}

/// A loop of checks, with a page on which something is wrong.
async fn report(catalogue: &Catalogue) {
    let (holder, item) = (Uuid::now_v7(), Item::new(space(), key()));
    let lead = catalogue.lead("bit-integrity", holder, LIMIT).await.unwrap().unwrap();
    let morsel = Morsel {
        account: "account1".to_owned(),
        space: space(),
        source: main(),
        destination: main(),
        marker: None,
        error: None,
        items: 1,
        scanned: 0,
    };
    assert!(catalogue.begin_loop(&lead, std::slice::from_ref(&morsel), LIMIT).await.unwrap());
    let lead = catalogue.lead("bit-integrity", holder, LIMIT).await.unwrap().unwrap();
    let page = NewPage { behind: None, last: None, items: 1, bytes: 7 };
    assert!(catalogue.advance_bit(&lead, &morsel, (&Advance::Done(1), "read"), &[page]).await.unwrap());
    let run = catalogue.open_bit_run("account1", &main(), &space()).await.unwrap().unwrap();
    let tasks = Tasks { queue: TaskQueue::BitIntegrity, account: "account1", kinds: &[TaskKind::BitPage], limit: 1 };
    let task = catalogue.take_tasks(&tasks, "worker", LIMIT).await.unwrap().remove(0);
    let checked = CheckedItem {
        id: catalogue.records_of_item(&main(), &item).await.unwrap().map(|records| records.id),
        item,
        bytes: 7,
        result: "failure",
        proof: None,
        seq: None,
        evidence: Evidence::default(),
        wrong: Some(Wrong { findings: vec!["content_missing"], detail: "it is gone".to_owned(), observed: None }),
        is_missing: true,
        unread: None,
    };
    let page = PageEnd { run, is_late: false, behind: None, rest: None, listed: (1, 7), alone: Vec::new() };
    let part = CheckedPart {
        run: Some(run),
        page: Some(page),
        ..CheckedPart::of("account1".to_owned(), main(), vec![checked])
    };
    let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: Some(part) };
    assert_eq!(catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
    assert!(catalogue.end_bit_run(&lead, run, std::time::Duration::ZERO, Vec::new()).await.unwrap());
    let run = catalogue.bit_run(run).await.unwrap().unwrap();
    let place = "main/x-duracloud-admin/report";
    let report = NewReport { result: "failure", place, coverage: "{}", is_complete: true, mail: None };
    catalogue.report_bit_run(&run, &report, |number, _before| number.to_string()).await.unwrap();
}

/// Lets every client only read every znode.
async fn close(world: &World) {
    let (acl, _) = privileges("`serve` that only shows");
    assert!(acl.starts_with("`r` on everything;"), "{acl}");
    for path in read_tree(&world.client, "/", &[]).await.keys().rev() {
        let reading = [Acl::new(Permission::READ, AuthId::anyone())];
        world.client.set_acl(path, &reading, None).await.unwrap();
    }
}

/// Configures a server whose database user is this one.
fn configure(home: &Path, user: &str) -> Vec<Asker> {
    SERVER.sql("postgres", &format!("CREATE ROLE {user} LOGIN PASSWORD '{user}'"));
    SERVER.sql(DATABASE, grants(user));
    let url = format!("postgres://{user}@127.0.0.1:{}/{DATABASE}", SERVER.port());
    std::fs::write(home.join("password"), user).unwrap();
    write_tokens(home, &mill_in(home, &format!("url: \"{url}\", password_file: password")))
}

fn is_of_catalogue(route: &Route) -> bool {
    let path = route.pattern.trim_start_matches("/api/v1");
    path.starts_with("/mill") || path.starts_with("/objects")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_only_shows_shows_all_of_it_with_the_right_to_read_alone() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let owner = SERVER.create(DATABASE);
    let catalogue = Catalogue::open(&owner).await.unwrap();
    SERVER.sql(DATABASE, "SELECT setval(pg_get_serial_sequence('bit_runs', 'id'), 4710)");
    Box::pin(fill(&catalogue)).await;
    assert_eq!(privileges("`serve` that only shows").1, "`SELECT`");
    close(&world).await;

    let directory = tempfile::tempdir().unwrap();
    let askers = configure(directory.path(), "reader");
    let program = Program::start(directory.path(), &world.zookeeper(), &[]).await;
    let site = Site::at(&world, program.base.clone(), askers);
    // Who may see the forms of actions, too.
    let admin = site.asker(Role::Admin).clone();
    let get = async |path: &str| site.ask(&admin, &Method::GET, path, &[("accept", "text/html")], "").await;
    let home = get("/").await;
    let asset = home.text.split("static/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let examples = Examples { action: "none".to_owned(), list: "none".to_owned(), asset };
    let routes = site.routes(&examples).await;
    let shown: Vec<_> = routes.iter().filter(|route| route.takes(&Method::GET)).collect();
    let of_catalogue = shown.iter().filter(|route| is_of_catalogue(route)).count();
    assert!(of_catalogue > 25, "{of_catalogue} of {}", shown.len());
    for route in &shown {
        let Answer { code, text, .. } = get(&route.path).await;
        let expected = if IS_NEITHER.contains(&&*route.pattern) { [404, 404] } else { [200, 303] };
        assert!(expected.contains(&code), "{} {}: {code} {text}", route.pattern, route.path);
    }
    // It cannot measure the clock of ZooKeeper's servers.
    assert_eq!(program.failures("/queuekeeper/clock"), [""; 0]);
    let status = get("/api/v1/status").await;
    assert!(status.text.contains("clock_problem\":\""), "{status:?}");

    // What this role may not is refused, and it is seen where it may not read.
    let pause = routes.iter().find(|route| route.pattern == "/api/v1/mill/pause").unwrap();
    let refused = site.send(&admin, &Method::POST, pause).await;
    assert!(refused.code == 409 && refused.text.contains("permission denied for table mill_pauses"), "{refused:?}");
    assert_eq!(catalogue.pauses().await.unwrap(), []);
    SERVER.sql(DATABASE, "REVOKE SELECT ON files FROM reader");
    let object = "/objects/ark:/99999/fk4there";
    let unreadable = get(object).await;
    assert!(unreadable.code == 503 && unreadable.text.contains("permission denied for table files"), "{unreadable:?}");
    SERVER.sql(DATABASE, grants("reader"));
    assert_eq!(get(object).await.code, 200);
    drop(program);
    actions_are_done(&world, &routes, &catalogue).await;
    catalogue.close().await;
}

/// Sends what each route of the mill takes to a server whose user of the database has the grants of daemons.
async fn actions_are_done(world: &World, routes: &[Route], catalogue: &Catalogue) {
    let directory = tempfile::tempdir().unwrap();
    let askers = configure(directory.path(), "worker");
    let program = Program::start(directory.path(), &world.zookeeper(), &[]).await;
    let site = Site::at(world, program.base.clone(), askers);
    for route in routes.iter().filter(|route| is_of_catalogue(route) && route.takes(&Method::POST)) {
        let Answer { code, text, .. } = site.send(site.asker(Role::Admin), &Method::POST, route).await;
        // Nothing is held, and no bit error has the number of the example.
        assert!([200, 201, 202, 303, 404, 409].contains(&code), "{}: {code} {text}", route.pattern);
        assert!(!text.contains("permission denied"), "{}: {code} {text}", route.pattern);
    }
    assert_eq!(program.failures("/queuekeeper/clock"), [""; 0]);
    assert!(!catalogue.repair_stops().await.unwrap().is_empty(), "repairs were stopped");
    assert!(!catalogue.requested_checks("account1", None, 10).await.unwrap().is_empty(), "checks were requested");
}
