//! Access requests, from a stored object to an archive that other programs unpack.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_ingest::access::{Deliveries, Extent, Format, LinkError, RequestedArchive};
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_queue::ItemChange;
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::{AccessQueue, QueueName};
use queuekeeper_queue::state::{AccessState, BatchState};
use queuekeeper_store::error::Operation;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config};
use queuekeeper_store::{Algorithm, DirectoryStore, S3Store, StoreFamilies};
use queuekeeper_testkit::faulty::{Fault, Faulty, Rule};
use queuekeeper_testkit::s3::S3Server;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::{Value, json};

use super::contents::zip;
use super::settings::{SOON, delivering, quick, watching};
use super::world::{SESSION, World, services};

pub(super) const LIMIT: Duration = Duration::from_mins(2);

pub(super) const SMALL: AccessQueue = AccessQueue::Small;
const LARGE: AccessQueue = AccessQueue::Large;

/// Reads an archive by Python's own modules, and prints the names of its files with their SHA-512.
const READ: &str = "
import hashlib, json, sys, tarfile, zipfile
path, files = sys.argv[1], {}
if path.endswith('.zip'):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            with archive.open(entry) as content:
                files[entry.filename] = hashlib.sha512(content.read()).hexdigest()
else:
    with tarfile.open(path, 'r:') as archive:
        for entry in archive:
            assert entry.isfile(), entry
            files[entry.name] = hashlib.sha512(archive.extractfile(entry).read()).hexdigest()
print(json.dumps(files))
";

impl World {
    /// Deposits files as a container, and gives the ARK of their object.
    pub(super) async fn object(&self, files: &[(&str, &str)]) -> String {
        self.origin.serve("/object.zip", zip(files));
        let url = self.origin.url("/object.zip");
        let (batch, _) = self.deposit(json!({"type": "container", "filename": "object.zip", "payload_url": url})).await;
        let (state, report) = self.ended(batch).await;
        assert_eq!(state, BatchState::Completed, "{:?}", self.jobs(batch).await);
        self.ark(report.completed[0]).await
    }

    pub(super) async fn request(&self, access: AccessQueue, token: &Value) -> RequestId {
        self.queue.create_request(access, token.to_string().as_bytes(), Timestamp::now()).await.unwrap()
    }

    /// The state of a request.
    async fn state(&self, access: AccessQueue, id: RequestId) -> Option<AccessState> {
        self.queue.load_request(access, id).await.unwrap().state()
    }

    /// Waits until a request has ended, and gives its state, message and token.
    pub(super) async fn ended_request(&self, access: AccessQueue, id: RequestId) -> (AccessState, String, Value) {
        eventually_some(LIMIT, "the request ends", async || {
            let request = self.queue.load_request(access, id).await.unwrap();
            let state =
                request.state().filter(|state| matches!(state, AccessState::Completed | AccessState::Failed))?;
            assert!(request.lock().is_none());
            let token = serde_json::from_slice(request.token.as_deref().unwrap()).unwrap();
            Some((state, request.status().value.message.into_owned(), token))
        })
        .await
    }

    async fn deliveries(&self, settings: &Settings) -> Deliveries {
        let access = settings.access.clone().unwrap();
        let top = self.directory.path().join("deliveries");
        let store = DirectoryStore::open(access.store.clone(), top).await.unwrap();
        Deliveries::new(Arc::new(store), access)
    }

    /// The names of what lies in the delivery store.
    pub(super) fn delivered(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path().join("deliveries/access"));
        let names = entries.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "signing-key").collect()
    }

    /// What an archive must have: the files of a version below a folder, with their SHA-512.
    async fn expected(&self, ark: &str, prefix: &str, folder: &str) -> Value {
        let files = self.services.catalogue.files(ark, 1, "", 1_000).await.unwrap();
        let files = files.iter().filter(|file| file.path.starts_with(prefix));
        let digest = |file: &queuekeeper_catalogue::inventory::File| file.digests.get(Algorithm::Sha512).unwrap().hex();
        Value::Object(files.map(|file| (format!("{folder}/{}", file.path), digest(file).into())).collect())
    }
}

/// The three parts of a link.
fn parts(url: &Value) -> (String, String, String) {
    let rest = url.as_str().unwrap().strip_prefix("http://host/access/download/").unwrap();
    let [expires, signature, name] = rest.split('/').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    (expires, signature, name)
}

/// Follows a link and reads the archive; its name, and its files.
async fn follow(deliveries: &Deliveries, url: &Value, to: &Path) -> (String, Value) {
    let (expires, signature, name) = parts(url);
    let opened = deliveries.open((&expires, &signature, &name), None, Timestamp::now()).await.unwrap();
    let bytes: Vec<bytes::Bytes> = opened.content.chunks.try_collect().await.unwrap();
    let path = to.join(&opened.name);
    std::fs::write(&path, bytes.concat()).unwrap();
    let output = Command::new("python3").args(["-c", READ]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let is_zip = Path::new(&name).extension().is_some_and(|extension| extension == "zip");
    let tool = if is_zip { ["unzip", "-tqq"] } else { ["tar", "-tf"] };
    let tested = Command::new(tool[0]).arg(tool[1]).arg(&path).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    (opened.name, serde_json::from_slice(&output.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_delivered_as_archives_that_other_programs_read_file_by_file() {
    let settings = delivering(quick());
    let world = World::with(settings.clone()).await;
    let daemons = world.start();
    let (long, much) = (format!("{}/{}.txt", "folder".repeat(20), "name".repeat(30)), "much content ".repeat(300_000));
    let files = [("a.txt", "alpha"), ("b c/Größe €.txt", "beta"), ("empty", ""), (&long, "gamma"), ("much", &much)];
    let ark = world.object(&files).await;
    let name = ark.strip_prefix("ark:/99999/").unwrap();
    let folder = format!("ark_99999_{name}_v1");

    // As another program may make it, and as ours does.
    let token = json!({"status": 201, "token": "t-1", "object": ark, "by": {"another": [1]}});
    let small = world.request(SMALL, &token).await;
    let wanted = RequestedArchive {
        token: "t-2".to_owned(),
        ark: ark.parse().unwrap(),
        version: Some(1),
        format: Format::Tar,
        extent: Extent::Producer,
    };
    let token = wanted.token(5, 7001, Timestamp::now());
    let large = world.queue.create_request(LARGE, &token, Timestamp::now()).await.unwrap();

    let (state, message, token) = world.ended_request(SMALL, small).await;
    assert_eq!((state, message.as_str()), (AccessState::Completed, ""), "{token}");
    let version = &world.services.catalogue.versions(&ark, None, 1).await.unwrap()[0];
    assert_eq!(
        (&token["status"], &token["delivery-node"], &token["cloud-content-byte"]),
        (&json!(200), &json!(7001), &json!(version.byte_count))
    );
    assert_eq!(
        (&token["token"], &token["by"], &token["version"]),
        (&json!("t-1"), &json!({"another": [1]}), &json!(1))
    );
    let instant = |key: &str| token[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    let lasts = instant("expiration-time").duration_since(instant("anticipated-availability-time"));
    assert!((3_300..=3_600).contains(&lasts.as_secs()), "{token}");
    let deliveries = world.deliveries(&settings).await;
    let (shown, found) = follow(&deliveries, &token["url"], world.directory.path()).await;
    assert_eq!(shown, format!("{folder}.zip"));
    let expected = world.expected(&ark, "", &folder).await;
    assert!(expected.as_object().unwrap().len() > files.len());
    assert_eq!(found, expected);

    let (state, _, token) = world.ended_request(LARGE, large).await;
    assert_eq!(state, AccessState::Completed, "{token}");
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    assert_eq!(token["cloud-content-byte"], json!(bytes));
    let (shown, found) = follow(&deliveries, &token["url"], world.directory.path()).await;
    assert_eq!(shown, format!("{folder}.tar"));
    assert_eq!(found, world.expected(&ark, "producer/", &folder).await);
    assert_eq!(found.as_object().unwrap().len(), files.len());

    // Cleanup removes them when their time is over, and the requests once they are as old as batches are.
    let (expires, signature, name) = parts(&token["url"]);
    daemons.stop().await;
    let mut soon = settings.clone();
    soon.access.as_mut().unwrap().lifetime = Duration::ZERO;
    (soon.cleanup.every, soon.cleanup.after, soon.cleanup.directories_every) =
        (Duration::from_millis(100), Duration::ZERO, Duration::ZERO);
    let daemons = world.start_anew(soon, SESSION).await;
    eventually(LIMIT, "all is removed", async || {
        let requests = [world.children("/access/small").await, world.children("/access/large").await].concat();
        world.delivered().is_empty() && requests.is_empty()
    })
    .await;
    let gone = deliveries.open((&expires, &signature, &name), None, Timestamp::now()).await;
    assert!(matches!(gone, Err(LinkError::Expired)), "{gone:?}");
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_delivered_fails_with_one_sentence_and_leaves_nothing() {
    let settings = delivering(quick());
    let world = World::with(settings.clone()).await;
    let daemons = world.start();
    let content = "to be damaged ".repeat(100_000);
    let ark = world.object(&[("a.txt", "alpha"), ("z.txt", &content)]).await;

    for (token, status, why) in [
        (json!({"token": "t", "object": "ark:/99999/fk4none"}), 404, "there is no object ark:/99999/fk4none"),
        (json!({"token": "t", "object": ark, "version": 2}), 404, "has no version 2; its newest is 1"),
        (
            json!({"status": 201, "token": "t", "cloud-content-byte": 5, "delivery-node": 7001}),
            400,
            "does not name its object",
        ),
        (json!({"token": "t", "object": "../../etc/passwd"}), 400, "is not an ARK"),
    ] {
        let id = world.request(SMALL, &token).await;
        let (state, message, after) = world.ended_request(SMALL, id).await;
        assert_eq!(
            (state, &after["status"], &after["url"]),
            (AccessState::Failed, &json!(status), &json!("")),
            "{token}"
        );
        assert!(message.contains(why) && after["message"] == message, "{token}: {message}");
    }

    // One byte of the last file changed on the disk: all the others were in the archive before.
    let files = world.services.catalogue.files(&ark, 1, "", 100).await.unwrap();
    let damaged = files.iter().find(|file| file.path == "producer/z.txt").unwrap();
    let place = find(&world.directory.path().join("objects"), &damaged.content_path);
    std::fs::write(&place, content.replacen('d', "D", 1)).unwrap();
    let broken = world.request(LARGE, &json!({"token": "u", "object": ark, "content": "producer"})).await;
    let (state, message, token) = world.ended_request(LARGE, broken).await;
    assert_eq!((state, &token["status"]), (AccessState::Failed, &json!(500)), "{message}");
    assert!(message.contains("\"producer/z.txt\" of ark:") && message.contains("the content is damaged"), "{message}");
    std::fs::remove_file(&place).unwrap();
    let gone = world.request(SMALL, &json!({"token": "u", "object": ark})).await;
    let (state, message, _) = world.ended_request(SMALL, gone).await;
    assert!(state == AccessState::Failed && message.contains("there is no such item"), "{message}");
    assert_eq!(world.delivered(), Vec::<String>::new());
    let temporary = world.directory.path().join("deliveries/.queuekeeper/temporary");
    assert_eq!(std::fs::read_dir(temporary).unwrap().count(), 0);

    // Put right, and resumed by an operator, it is delivered.
    std::fs::write(&place, &content).unwrap();
    let resume = ItemChange::to(AccessState::Pending).by_operator();
    world.queue.change_request((LARGE, broken), &resume, Timestamp::now()).await.unwrap();
    let resumed = eventually_some(LIMIT, "the request is completed", async || {
        let request = world.queue.load_request(LARGE, broken).await.unwrap();
        let is_done = request.state() == Some(AccessState::Completed);
        is_done.then(|| serde_json::from_slice::<Value>(request.token.as_deref().unwrap()).unwrap())
    });
    let token = resumed.await;
    let deliveries = world.deliveries(&settings).await;
    let (_, found) = follow(&deliveries, &token["url"], world.directory.path()).await;
    assert_eq!(found.as_object().unwrap().len(), 2);

    // A catalogue that has lost a row makes no archive that only looks whole.
    world.sql("DELETE FROM files WHERE path = 'producer/a.txt'");
    let partial = world.request(SMALL, &json!({"token": "v", "object": ark})).await;
    let (state, message, _) = world.ended_request(SMALL, partial).await;
    assert!(state == AccessState::Failed && message.contains("the catalogue lists"), "{message}");
    assert_eq!(world.delivered().len(), 1);
    daemons.stop().await;
}

/// The file below a folder whose path ends so.
fn find(folder: &Path, end: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with(end) && !path.to_string_lossy().contains(".queuekeeper") {
                return path;
            }
        }
    }
    panic!("there is no file {end}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_stops_its_own_queue_only_and_its_end_is_noticed_at_once() {
    let world = World::with(delivering(quick())).await;
    let daemons = world.start();
    let ark = world.object(&[("a.txt", "alpha")]).await;
    daemons.stop().await;
    let now = Timestamp::now();
    world.queue.pause(QueueName::AccessSmall, "tester", "a test", now).await.unwrap();
    world.queue.pause(QueueName::Ingest, "tester", "a test", now).await.unwrap();
    // It is the watches that wake these.
    let daemons = world.start_anew(delivering(watching()), SESSION).await;
    let token = json!({"token": "t", "object": ark});
    let (small, large) = (world.request(SMALL, &token).await, world.request(LARGE, &token).await);
    let began = Instant::now();
    assert_eq!(world.ended_request(LARGE, large).await.0, AccessState::Completed);
    assert_eq!(world.state(SMALL, small).await, Some(AccessState::Pending));
    let unpause = world.queue.plan_unpause(QueueName::AccessSmall, None).await.unwrap();
    world.queue.commit(&unpause).await.unwrap();
    assert_eq!(world.ended_request(SMALL, small).await.0, AccessState::Completed);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_request_never_waits_for_large_ones_and_what_was_interrupted_is_begun_again() {
    let world = World::with(delivering(quick())).await;
    let daemons = world.start();
    let ark = world.object(&[("a.txt", "alpha")]).await;
    daemons.stop().await;

    let mut settings = delivering(quick());
    settings.workers.insert(Daemon::Access, 2);
    settings.shutdown = Duration::from_millis(200);
    let mut stalling = services(world.directory.path(), settings).await;
    let all = Arc::get_mut(&mut stalling).unwrap();
    let store = all.stores.get_mut(&"out".parse().unwrap()).unwrap();
    let (faulty, faults) = Faulty::new(Arc::clone(store));
    *store = Arc::new(faulty);
    faults.add(Rule::new(Fault::Stall).on(Operation::Put));
    let daemons = world.start_with(stalling, SESSION);
    let request = async |access, token: &str| world.request(access, &json!({"token": token, "object": ark})).await;
    let (first, second) = (request(LARGE, "t-1").await, request(LARGE, "t-2").await);
    eventually(LIMIT, "a large archive is being written", async || faults.calls(Operation::Put) == 1).await;
    // What is stalled stays so.
    faults.clear();
    let small = request(SMALL, "t-3").await;
    assert_eq!(world.ended_request(SMALL, small).await.0, AccessState::Completed);
    assert_eq!(world.state(LARGE, first).await, Some(AccessState::Processing));
    assert_eq!(world.state(LARGE, second).await, Some(AccessState::Pending));

    // They are stopped while the first is in Processing, and do not wait for it; others begin it again, also behind a
    // store that fails for a while.
    daemons.stop().await;
    assert_eq!(world.state(LARGE, first).await, Some(AccessState::Processing));
    eventually(LIMIT, "the session ends", async || world.children("/queuekeeper/held").await.is_empty()).await;
    let mut failing = services(world.directory.path(), delivering(quick())).await;
    let store = Arc::get_mut(&mut failing).unwrap().stores.get_mut(&"out".parse().unwrap()).unwrap();
    let (faulty, faults) = Faulty::new(Arc::clone(store));
    *store = Arc::new(faulty);
    faults.add(Rule::new(Fault::Temporary).on(Operation::Put).times(3));
    let daemons = world.start_with(failing, SESSION);
    for request in [first, second] {
        let (state, message, _) = world.ended_request(LARGE, request).await;
        assert_eq!(state, AccessState::Completed, "{message}");
    }
    assert!(faults.faults(Operation::Put) == 3, "{}", faults.faults(Operation::Put));
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_the_store_has_signed_is_answered_by_it_for_as_long_as_the_archive_is_kept() {
    let mut settings = delivering(quick());
    settings.access.as_mut().unwrap().is_presigned = true;
    let world = World::with(settings.clone()).await;
    let server = S3Server::start(queuekeeper_testkit::s3::Settings::default()).await.unwrap();
    server.create_bucket("deliveries");
    let mut config = S3Config::new("out".parse().unwrap(), "s3://deliveries/given".parse().unwrap());
    config.endpoint = Some(server.endpoint());
    config.credentials = Credentials::Key(AccessKey::new(server.access_key(), server.secret_key()));
    let metrics = StoreFamilies::default().store(&config.name);
    let store = S3Store::new(config, metrics).await.unwrap();
    let mut services = Arc::into_inner(services(world.directory.path(), settings).await).unwrap();
    services.stores.insert("out".parse().unwrap(), Arc::new(store));
    let daemons = world.start_with(Arc::new(services), SESSION);
    let ark = world.object(&[("a.txt", "alpha")]).await;
    let folder = format!("{}_v1", ark.replace(":/", "_").replace('/', "_"));

    let began = Timestamp::now();
    let id = world.request(SMALL, &json!({"token": "t", "object": ark, "format": "zip"})).await;
    let (state, message, token) = world.ended_request(SMALL, id).await;
    assert_eq!(state, AccessState::Completed, "{message}");
    let url: url::Url = token["url"].as_str().unwrap().parse().unwrap();
    let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(query["response-content-disposition"], format!("attachment; filename=\"{folder}.zip\""));
    let seconds: i64 = query["X-Amz-Expires"].parse().unwrap();
    let expires: Timestamp = token["expiration-time"].as_str().unwrap().parse().unwrap();
    let lasts = expires.duration_since(began).as_secs();
    assert!((lasts - 60..=lasts).contains(&seconds) && seconds > 3_000, "{seconds} s, and {lasts} s");
    let response = reqwest::get(url.clone()).await.unwrap().error_for_status().unwrap();
    let path = world.directory.path().join("given.zip");
    std::fs::write(&path, response.bytes().await.unwrap()).unwrap();
    let output = Command::new("python3").args(["-c", READ]).arg(&path).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found, world.expected(&ark, "", &folder).await);
    // Nothing of it can be changed.
    for (from, to) in [("X-Amz-Expires=3", "X-Amz-Expires=4"), (".zip?", ".tar?"), ("attachment", "inline")] {
        let changed = url.as_str().replacen(from, to, 1);
        assert_eq!(reqwest::get(&changed).await.unwrap().status(), 403, "{changed}");
    }
    assert_eq!(reqwest::get(url.as_str().split_once('?').unwrap().0).await.unwrap().status(), 403);
    daemons.stop().await;
}
