//! What cleanup removes, and what it leaves alone.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::identifiers::Request;
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_mail::settings::Route;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{JobChange, Transaction};
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Root, Start, User};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use super::mail::{LIMIT, mailing};
use super::settings::{only, quick};
use super::world::{SESSION, World};

/// The directory of a job that is gone.
const JOB: &str = "jid-00000000-0000-0000-0000-000000000001";

/// Longer than anything takes here.
const NEVER: Duration = Duration::from_hours(1_000);

/// Cleanup alone, which looks all the time and removes nothing by its age.
fn cleaning(change: impl FnOnce(&mut CleanupSettings)) -> Settings {
    let every = Duration::from_millis(100);
    let mut cleanup = CleanupSettings {
        after: NEVER,
        share: 1.0,
        every,
        entries_after: NEVER,
        directories_every: every,
        messages_after: NEVER,
        objects_after: NEVER,
    };
    change(&mut cleanup);
    Settings { cleanup, ..only(&[Daemon::Cleanup], quick()) }
}

impl World {
    fn working(&self, name: &str) -> PathBuf {
        self.directory.path().join("working").join(name)
    }

    fn make(&self, name: &str) {
        std::fs::create_dir_all(self.working(name)).unwrap();
        std::fs::write(self.working(name).join("file"), "content").unwrap();
    }

    /// Waits until cleanup has looked through everything twice.
    async fn looked_through(&self) {
        let path = format!("/queuekeeper/volumes/{}", self.services.working.volume());
        let version = async || self.queue.client().check_stat(&path).await.unwrap().map_or(-1, |stat| stat.version);
        let first = version().await;
        eventually(LIMIT, "cleanup has looked through everything", async || version().await >= first + 3).await;
    }

    /// Waits for a whole round of cleanup, which begins with notes such as this.
    async fn round(&self) {
        for _ in 0..2 {
            let note = Path::retry(JobId::new(999_999_999));
            let mut transaction = Transaction::new();
            transaction.create(note.clone(), b"{}");
            self.queue.commit(&transaction).await.unwrap();
            eventually(LIMIT, "the note is removed", async || !self.exists(&note.to_string()).await).await;
        }
    }

    async fn exists(&self, path: &str) -> bool {
        self.queue.client().check_stat(path).await.unwrap().is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_is_removed_after_its_time_and_what_has_not_is_left() {
    let world = World::with(quick()).await;
    let reports = world.directory.path().join("reports");
    world.add_profile("mailed", "");
    let daemons = world.start_anew(mailing(Route::Directory(reports)), SESSION).await;
    let (completed, completed_id) = world.deposit_file(&json!({})).await;
    let (failed, failed_id) = world.deposit_file(&json!({"payload_url": world.origin.url("/missing")})).await;
    let (resumed, resumed_id) = world.deposit_file(&json!({"payload_url": world.origin.url("/missing")})).await;
    let mut jobs = Vec::new();
    for batch in [completed, failed, resumed] {
        let (_, report) = world.ended(batch).await;
        jobs.extend(report.completed.into_iter().chain(report.failed));
    }
    eventually(LIMIT, "all mails are files", async || {
        world.sql("SELECT COUNT(*) FROM outbox WHERE ended > 0") == [json!([3])]
    })
    .await;
    daemons.stop().await;
    // Nobody works on it, but somebody may.
    world.queue.change_job(jobs[2], &JobChange::resume(), Timestamp::now()).await.unwrap();
    let (pending, pending_id) = world.deposit_file(&json!({})).await;
    let (gone, upload) = (format!("bid-{}", Uuid::new_v4()), format!("bid-{}", Uuid::new_v4()));
    for name in [&completed_id, &failed_id, &resumed_id, &pending_id, &gone] {
        world.make(&format!("{name}/{JOB}/producer"));
    }
    world.make("lost+found");
    world.make("backup-2024/photos");
    let mut transaction = Transaction::new();
    transaction.create(Path::expansion(BatchId::new(9_999)), b"{}");
    world.queue.commit(&transaction).await.unwrap();
    let objects = walk(&world.directory.path().join("objects"));

    // Before their time all stays as it is, but for what is gone.
    let daemons = world.start_anew(cleaning(|_| {}), SESSION).await;
    world.looked_through().await;
    daemons.stop().await;
    assert!(world.children("/queuekeeper/expansions").await.is_empty());
    assert_eq!(world.left().len(), 7);
    assert_eq!(world.children("/jobs/states/completed").await.len(), 1);

    // The time is measured in seconds. A busy machine writes what is being uploaded more often than that.
    let after = Duration::from_secs(15);
    tokio::time::sleep(after + Duration::from_millis(100)).await;
    world.make(&upload);
    let uploading = world.working(&upload).join("file");
    let upload_goes_on = tokio::spawn(async move {
        loop {
            std::fs::write(&uploading, "more").unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let settings =
        cleaning(|cleanup| (cleanup.after, cleanup.entries_after, cleanup.messages_after) = (after, after, after));
    let daemons = world.start_anew(settings, SESSION).await;
    eventually(LIMIT, "the batch is removed", async || !world.exists(&Path::Batch(completed).to_string()).await).await;
    world.looked_through().await;
    daemons.stop().await;
    upload_goes_on.abort();
    let mut left = world.left();
    left.sort_unstable();
    // Of a batch whose jobs are at work, the directories of its jobs stay.
    assert!(!world.working(&resumed_id).join(JOB).exists());
    // A failed one has what was uploaded, for who resumes it.
    let mut expected =
        vec![failed_id, resumed_id, pending_id, upload, "lost+found".to_owned(), "backup-2024".to_owned()];
    expected.sort_unstable();
    assert_eq!(left, expected);
    // A failed batch waits for an operator, one that is at work for its daemons.
    for batch in [failed, resumed, pending] {
        assert!(world.exists(&Path::Batch(batch).to_string()).await, "{batch}");
    }
    assert!(!world.exists(&Path::Job(jobs[0]).to_string()).await);
    assert!(world.children("/jobs/states/completed").await.is_empty());
    // The row of a batch that may be reported again is kept.
    let kept = world.sql("SELECT batch FROM outbox");
    assert_eq!(kept, [json!([world.queue.load_batch(resumed).await.unwrap().submitted().value.uuid])]);
    // Its object is where it was.
    assert_eq!(walk(&world.directory.path().join("objects")), objects);
    assert!(!objects.is_empty());
}

/// All files below a directory, but for the one that says when a store was looked through.
fn walk(path: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| !path.ends_with("swept"));
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_job_loses_its_entry_and_keeps_everything_else() {
    let world = World::with(quick()).await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let (batch, _) = world.deposit_file(&json!({"profile": "demo"})).await;
    let (_, report) = world.ended(batch).await;
    daemons.stop().await;
    assert_eq!(world.children("/jobs/states/completed").await.len(), 1);
    let settings = cleaning(|cleanup| cleanup.entries_after = Duration::ZERO);
    let daemons = world.start_anew(settings, SESSION).await;
    eventually(LIMIT, "its entry is removed", async || world.children("/jobs/states/completed").await.is_empty()).await;
    daemons.stop().await;
    let (state, after) = world.ended(batch).await;
    assert_eq!((state, &after), (BatchState::Completed, &report));
    assert_eq!(world.job(report.completed[0]).await.state(), Some(JobState::Completed));
    // It can be purged all the same.
    let plan = world.queue.plan_purge(batch).await.unwrap();
    world.queue.execute(&plan, 0, |_| std::ops::ControlFlow::Continue(())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_removes_more_than_its_share_and_no_tree_removes_what_is_anothers() {
    let world = World::with(quick()).await;
    for number in 0..30 {
        world.make(&format!("bid-{}", Uuid::from_u128(number)));
    }
    let left = || world.left().len();
    let volume = format!("/queuekeeper/volumes/{}", world.services.working.volume());
    let claim = async || {
        let mut transaction = Transaction::new();
        transaction.create(Path::own(&volume).unwrap(), b"{}");
        world.queue.commit(&transaction).await.unwrap();
    };
    let all = |cleanup: &mut CleanupSettings| cleanup.after = Duration::ZERO;
    // A volume that nobody has claimed may be another tree's: it has batches that this one does not know.
    let daemons = world.start_anew(cleaning(all), SESSION).await;
    world.round().await;
    assert_eq!((left(), world.exists(&volume).await), (30, false));
    daemons.stop().await;
    claim().await;
    // One run in the time of this test: a tenth of 30.
    let once = |cleanup: &mut CleanupSettings| {
        (cleanup.after, cleanup.share, cleanup.directories_every) = (Duration::ZERO, 0.1, NEVER);
    };
    let daemons = world.start_anew(cleaning(once), SESSION).await;
    eventually(LIMIT, "the share is removed", async || left() == 27).await;
    daemons.stop().await;
    // Nor does a process that begins anew.
    let daemons = world.start_anew(cleaning(once), SESSION).await;
    world.round().await;
    assert_eq!(left(), 27);
    daemons.stop().await;

    // A tree that has lost its memory is not believed.
    world.queue.client().delete(&volume, None).await.unwrap();
    let daemons = world.start_anew(cleaning(all), SESSION).await;
    world.round().await;
    assert_eq!((left(), world.exists(&volume).await), (27, false));
    daemons.stop().await;
    // Nor is one that has another catalogue, although it knows the volume.
    claim().await;
    let tree = world.working(".queuekeeper-tree");
    let own = std::fs::read_to_string(&tree).unwrap();
    assert_eq!(own, world.services.catalogue.id().to_string());
    std::fs::write(&tree, Uuid::new_v4().to_string()).unwrap();
    let daemons = world.start_anew(cleaning(all), SESSION).await;
    world.round().await;
    assert_eq!(left(), 27);
    daemons.stop().await;
    std::fs::write(&tree, own).unwrap();
    let daemons = world.start_anew(cleaning(all), SESSION).await;
    eventually(LIMIT, "all are removed", async || left() == 0).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_writer_left_of_a_version_is_removed_once_it_has_long_been_still_and_its_object_stays() {
    let world = World::with(quick()).await;
    world.origin.serve("/there", "content");
    let file =
        json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/there"), "localID": "obj"});
    let daemons = world.start();
    let (batch, _) = world.deposit(file).await;
    let (_, report) = world.ended(batch).await;
    daemons.stop().await;
    let ark = world.ark(report.completed[0]).await;
    assert!(world.services.catalogue.object_intents(Duration::ZERO, None, 9).await.unwrap().is_empty());

    // Writers of two more objects, one of which exists, stop before their versions are made.
    let store = std::sync::Arc::clone(world.services.stores.values().next().unwrap());
    let root = Root::open(store, "demo".parse().unwrap()).await.unwrap();
    let other = "ark:/99999/fk4other".to_owned();
    for (ark, local_id) in [(&ark, "obj"), (&other, "another")] {
        let job = Uuid::now_v7();
        let new = NewVersion {
            job,
            content: job,
            user: User { name: "x".to_owned(), address: None },
            message: String::new(),
            created: Timestamp::now(),
            start: Start::Empty,
        };
        let Begun::Writer(mut writer) = root.object(ark).unwrap().begin(new).await.unwrap() else {
            panic!("it is new")
        };
        let content = || futures::stream::iter([Ok(bytes::Bytes::from_static(b"left"))]).boxed();
        let files = futures::stream::iter([("producer/left.txt".to_owned(), NewFile::new(content))]);
        writer.put_all(files, 1).await.unwrap();
        let request = Request {
            job,
            owner: "ark:/99999/owner".to_owned(),
            local_ids: vec![local_id.to_owned()],
            candidate: other.clone(),
            is_registered: true,
            place: ("main".to_owned(), "demo".to_owned()),
        };
        world.services.catalogue.reserve(&request).await.unwrap();
    }
    let left = || {
        let files = walk(&world.directory.path().join("objects"));
        files.iter().filter(|path| path.ends_with("left.txt")).count()
    };
    assert_eq!(left(), 2);

    // Where they wrote not long ago, they may go on.
    let daemons = world.start_anew(cleaning(|_| {}), SESSION).await;
    world.looked_through().await;
    daemons.stop().await;
    assert_eq!(left(), 2);
    let now = |cleanup: &mut CleanupSettings| (cleanup.objects_after, cleanup.after) = (Duration::ZERO, Duration::ZERO);
    let daemons = world.start_anew(cleaning(now), SESSION).await;
    eventually(LIMIT, "nothing is intended any more", async || {
        world.services.catalogue.object_intents(Duration::ZERO, None, 9).await.unwrap().is_empty()
    })
    .await;
    daemons.stop().await;
    assert_eq!(left(), 0);
    world.check_object(&ark, 1).await;
}
