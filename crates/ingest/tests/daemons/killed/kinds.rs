//! What is deposited, and when it is done.

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::NewDeposit;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState};
use queuekeeper_queue::{ItemChange, JobChange};
use queuekeeper_store::store::{Item, PROBE_SPACE, Put};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::contents::{manifest, sha256, zip};
use super::super::world::{SESSION, World};

/// The id of the batch that is watched, and of one before it.
const BATCH: Uuid = Uuid::from_u128(0xb1d);
const BEFORE: Uuid = Uuid::from_u128(0xbef);

/// Where a store has what is not whole yet.
const TEMPORARY: &str = "objects/.queuekeeper/temporary";

/// A kind of deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum DepositKind {
    /// A file, by daemons that never ran before: they make the catalogue, too.
    File,
    /// A zip.
    Container,
    /// An object of two files that a manifest names.
    Manifest,
    /// Two objects that a manifest names.
    Batch,
    /// The same where a batch has one job at most.
    Parts,
    /// The next version of an object.
    Update,
    /// A file that cannot be fetched.
    Failure,
    /// A job that had failed, and is resumed.
    Resumed,
    /// What has ended is removed.
    Cleanup,
    /// An object is requested as an archive.
    Access,
}

impl DepositKind {
    pub(super) const ALL: [Self; 10] = [
        Self::File,
        Self::Container,
        Self::Manifest,
        Self::Batch,
        Self::Parts,
        Self::Update,
        Self::Failure,
        Self::Resumed,
        Self::Cleanup,
        Self::Access,
    ];

    pub(super) fn name(self) -> String {
        format!("{self:?}")
    }

    pub(super) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap()
    }

    /// How its batch ends.
    fn end(self) -> BatchState {
        if self == Self::Failure { BatchState::Failed } else { BatchState::Completed }
    }
}

fn id(batch: Uuid) -> String {
    format!("bid-{batch}")
}

/// Makes the deposit, and all that comes before it.
pub(super) async fn set_up(world: &mut World, kind: DepositKind) {
    let url = |path: &str| world.origin.url(path);
    for batch in [BATCH, BEFORE, uuid_of_part(BATCH, 2)] {
        for row in 0..2u64 {
            let job = Uuid::new_v5(&batch, &row.to_be_bytes());
            world.origin.serve(&format!("/callback/mc/jid-{job}"), "");
        }
    }
    let keys =
        format!("callback: {}\nnotification: {{addresses: [staff@library.example], queued: true}}\n", url("/callback"));
    world.add_profile("called", &keys);
    for (path, content) in [("/a", "alpha"), ("/b", "beta")] {
        world.origin.serve(path, content);
    }
    world.origin.serve("/one.zip", zip(&[("a.txt", "alpha"), ("b/c.txt", "gamma")]));
    world.origin.serve("/two.zip", zip(&[("d.txt", "delta"), ("mrt-delete.txt", "producer/b/c.txt\n")]));
    let row = |path: &str, content: &str, name: &str| {
        format!("{} | sha256 | {} | {} | | {name} | text/plain", url(path), sha256(content), content.len())
    };
    let rows = [row("/a", "alpha", "a.txt"), row("/b", "beta", "b/b.txt")];
    world.origin.serve("/all.checkm", manifest(ManifestProfile::Ingest, rows));
    let rows = ["/a", "/b"].map(|path| format!("{} | | | | | {}.txt", url(path), &path[1..]));
    world.origin.serve("/rows.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let say = |kind: &str, name: &str, path: &str| json!({"profile": "called", "type": kind, "filename": name, "payload_url": url(path), "localID": "obj-1"});
    let file = || say("file", "a.txt", "/a");
    match kind {
        DepositKind::File => {
            world.deposit_as(&id(BATCH), file()).await;
            world.services.catalogue.close().await;
            if let Some(remote) = &world.remote {
                remote.forget_catalogue();
            }
            let directory = world.directory.path();
            for entry in
                std::fs::read_dir(directory).unwrap().chain(std::fs::read_dir(directory.join("working")).unwrap())
            {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
        }
        DepositKind::Container => {
            world.deposit_as(&id(BATCH), say("container", "one.zip", "/one.zip")).await;
        }
        DepositKind::Manifest => {
            world.deposit_as(&id(BATCH), say("object-manifest", "all.checkm", "/all.checkm")).await;
        }
        DepositKind::Batch | DepositKind::Parts => {
            let deposit = NewDeposit {
                batch: BATCH,
                depositor: "tester".to_owned(),
                idempotency_key: None,
                profile: "called".to_owned(),
                objects: 1,
                bytes: 0,
            };
            world.services.catalogue.record_deposit(&deposit).await.unwrap();
            let say = say("single-file-batch-manifest", "rows.checkm", "/rows.checkm");
            world.deposit_as(&id(BATCH), say).await;
        }
        DepositKind::Update => {
            before(world, say("container", "one.zip", "/one.zip")).await;
            let mut next = say("container", "two.zip", "/two.zip");
            next["update"] = true.into();
            world.deposit_as(&id(BATCH), next).await;
        }
        DepositKind::Failure => drop(world.deposit_as(&id(BATCH), say("file", "a.txt", "/missing")).await),
        DepositKind::Resumed => {
            let batch = world.deposit_as(&id(BATCH), say("file", "a.txt", "/missing")).await;
            let daemons = start(world).await;
            let (_, report) = world.ended(batch).await;
            daemons.stop().await;
            world.origin.serve("/missing", "content");
            world.queue.change_job(report.failed[0], &JobChange::resume(), Timestamp::now()).await.unwrap();
            let again = ItemChange::to(BatchState::UpdateReporting).by_operator();
            world.queue.change_batch(batch, &again, Timestamp::now()).await.unwrap();
        }
        DepositKind::Access => {
            before(world, say("container", "one.zip", "/one.zip")).await;
            let object = world.sql("SELECT ark FROM objects")[0][0].clone();
            let token = json!({"token": "a-token", "object": object, "delivery-node": 7001}).to_string();
            world.queue.create_request(AccessQueue::Small, token.as_bytes(), Timestamp::now()).await.unwrap();
        }
        DepositKind::Cleanup => {
            before(world, file()).await;
            let orphan = world.directory.path().join(format!("working/bid-{0}/jid-{0}", Uuid::from_u128(0xdead)));
            std::fs::create_dir_all(&orphan).unwrap();
            std::fs::write(orphan.join("file"), "of nobody").unwrap();
            // What writers left in the store that were killed.
            let store = world.services.stores.values().next().unwrap();
            let probe = Item::new(PROBE_SPACE.parse().unwrap(), "probe".parse().unwrap());
            store.create_space(&probe.space).await.unwrap();
            let content = futures::stream::iter([Ok("probe".into())]);
            store.put(&probe, Box::pin(content), Put::default()).await.unwrap();
            if world.remote.is_none() {
                std::fs::write(world.directory.path().join(TEMPORARY).join("some"), "of nobody").unwrap();
            }
        }
    }
}

/// Daemons that nothing disturbs, with the same settings.
async fn start(world: &World) -> super::super::world::Daemons {
    let settings = super::settings(DepositKind::File, world.directory.path());
    world.start_anew(settings, SESSION).await
}

/// A deposit that is done.
async fn before(world: &World, say: Value) {
    let batch = world.deposit_as(&id(BEFORE), say).await;
    let daemons = start(world).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    daemons.stop().await;
}

/// Whether nothing is in the store that writers left.
fn is_swept(world: &World) -> bool {
    if let Some(remote) = &world.remote {
        return !remote.keys().iter().any(|key| key.contains(PROBE_SPACE));
    }
    let directory = world.directory.path();
    !directory.join("objects").join(PROBE_SPACE).exists()
        && std::fs::read_dir(directory.join(TEMPORARY)).unwrap().count() == 0
}

/// Whether all is done that is to be done.
pub(super) async fn is_done(world: &World, kind: DepositKind) -> bool {
    if kind == DepositKind::Cleanup {
        let has = |names: Vec<String>, start: &str| names.iter().any(|name| name.starts_with(start));
        return !has(world.children("/batches").await, "bid")
            && !has(world.children("/jobs").await, "jid")
            && world.left().is_empty()
            && is_swept(world)
            && world.sql("SELECT 1 FROM outbox").is_empty();
    }
    if kind == DepositKind::Access {
        let request = world.queue.load_request(AccessQueue::Small, RequestId::new(0)).await;
        let is_held = !world.children("/queuekeeper/held").await.is_empty();
        return request.is_ok_and(|request| request.state() == Some(AccessState::Completed)) && !is_held;
    }
    for part in 1..=if kind == DepositKind::Parts { 2 } else { 1 } {
        let Ok(Some(batch)) = world.queue.find_batch(&id(uuid_of_part(BATCH, part))).await else { return false };
        let Ok(batch) = world.queue.load_batch(batch).await else { return false };
        if batch.state() != Some(kind.end()) || batch.lock().is_some() {
            return false;
        }
    }
    for folder in ["expansions", "retry", "held"] {
        if !world.children(&format!("/queuekeeper/{folder}")).await.is_empty() {
            return false;
        }
    }
    for volume in world.children("/queuekeeper/space").await {
        let grants = world.queue.client().get_data(&format!("/queuekeeper/space/{volume}")).await;
        if grants.is_ok_and(|(data, _)| data != br#"{"grants":{}}"#) {
            return false;
        }
    }
    world.children("/queuekeeper/volumes").await.len() == 1
        && world.directory.path().join("working/.queuekeeper-tree").exists()
        && world.sql("SELECT 1 FROM outbox WHERE ended IS NULL").is_empty()
}
