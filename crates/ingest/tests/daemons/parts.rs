//! Deposits of more rows than a batch may have jobs.

use std::time::Instant;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_ingest::resubmit::failed_rows;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::spec::id_of;
use queuekeeper_mail::settings::{MailSettings, Route};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::record::ExpansionNote;
use queuekeeper_queue::state::{BatchState, JobOutcome};
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

use super::contents::{manifest, sha256};
use super::settings::{SOON, only, quick};
use super::world::{SESSION, WAIT_LIMIT, World};

/// Settings under which a batch has three jobs at most.
fn small() -> Settings {
    Settings { most_jobs: 3, ..quick() }
}

impl World {
    /// A manifest of so many rows, whose content is served.
    fn rows(&self, rows: usize) -> String {
        self.origin.serve("/content", "content");
        let url = self.origin.url("/content");
        manifest(ManifestProfile::SingleFileBatch, (0..rows).map(|row| format!("{url} | | | 7 | | f{row}.txt")))
    }

    /// Deposits what lies at the origin as `all.checkm`.
    async fn deposit_manifest(&self, uuid: Uuid) -> BatchId {
        let url = self.origin.url("/all.checkm");
        let say = json!({"type": "single-file-batch-manifest", "filename": "all.checkm", "payload_url": url});
        self.deposit_as(&id_of(uuid), say).await
    }

    /// The batches of the parts of a deposit that exist.
    async fn parts(&self, uuid: Uuid) -> Vec<BatchId> {
        let mut parts = Vec::new();
        while let Some(part) = self.queue.find_batch(&id_of(uuid_of_part(uuid, parts.len() as u64 + 1))).await.unwrap()
        {
            parts.push(part);
        }
        parts
    }

    /// The files of a batch's jobs with an outcome.
    async fn files(&self, batch: BatchId, outcome: JobOutcome) -> Vec<String> {
        let mut files = Vec::new();
        for job in self.queue.batch_report(batch).await.unwrap().of(outcome) {
            let job = self.job(*job).await;
            let configuration: Value = serde_json::from_slice(job.data(JobNode::Configuration).unwrap()).unwrap();
            assert!(configuration.get("partOf").is_none(), "{configuration}");
            files.push(configuration["filename"].as_str().unwrap().to_owned());
        }
        files.sort();
        files
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_of_many_rows_becomes_several_batches_that_have_each_row_once() {
    let world = World::with(small()).await;
    let mails = world.directory.path().join("mails");
    let mail = MailSettings { route: Route::Directory(mails.clone()), ..MailSettings::default() };
    let daemons = world.start_anew(Settings { mail, ..small() }, SESSION).await;
    let uuid = Uuid::new_v4();
    world.record(uuid, "demo", 7).await;
    // It was uploaded. A row of the second part fails.
    let all = world.rows(8).replacen(
        &format!("{} | | | 7 | | f4.txt", world.origin.url("/content")),
        &format!("{} | | | 7 | | f4.txt", world.origin.url("/missing")),
        1,
    );
    let folder = world.directory.path().join("working").join(id_of(uuid));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("all.checkm"), all).unwrap();
    let say = json!({"type": "single-file-batch-manifest", "filename": "all.checkm", "title": "Many"});
    let first = world.deposit_as(&id_of(uuid), say).await;
    assert_eq!(world.ended(first).await.0, BatchState::Completed);
    let parts = world.parts(uuid).await;
    assert_eq!(parts.len(), 3);
    let mut objects = 0;
    for (part, (state, files)) in parts.iter().zip([
        (BatchState::Completed, &["f0.txt", "f1.txt", "f2.txt"][..]),
        (BatchState::Failed, &["f3.txt", "f5.txt"]),
        (BatchState::Completed, &["f6.txt", "f7.txt"]),
    ]) {
        let (found, report) = world.ended(*part).await;
        assert_eq!(
            (found, world.files(*part, JobOutcome::Completed).await),
            (state, files.iter().map(ToString::to_string).collect())
        );
        for job in report.completed {
            world.check_object(&world.ark(job).await, 1).await;
            objects += 1;
        }
    }
    assert_eq!((objects, world.sql("SELECT COUNT(*) FROM versions")[0][0].as_u64()), (7, Some(7)));
    let recorded = world.services.catalogue.parts(uuid).await.unwrap();
    let recorded: Vec<_> =
        recorded.iter().map(|part| (part.deposit.objects, &*part.outcome.as_ref().unwrap().0)).collect();
    assert_eq!(recorded, [(3, "2 completed, 1 failed"), (2, "2 completed, 0 failed")]);
    // Only the part with a failed job still has its files, of which the failed row is submitted again.
    assert_eq!(world.left(), [id_of(uuid_of_part(uuid, 2))]);
    let again = failed_rows(&world.queue, &world.services.working, &world.services.catalogue, parts[1]).await.unwrap();
    let rows = String::from_utf8(again.manifest).unwrap();
    assert!(
        rows.contains("f4.txt") && !rows.contains("f3.txt") && again.deposit.more.is_empty(),
        "{:?}",
        again.deposit
    );
    let said = async || {
        let mails = std::fs::read_dir(&mails).into_iter().flatten();
        let texts: String = mails.map(|mail| std::fs::read_to_string(mail.unwrap().path()).unwrap()).collect();
        let of = format!("of 3, of {}", id_of(uuid)).replace('=', "=3D");
        texts.contains("1 of 3; each further part") && texts.replace("=\r\n", "").contains(&of)
    };
    eventually(WAIT_LIMIT, "the mails say which part they are of", said).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_whose_files_are_gone_fetches_the_manifest_again_and_takes_no_other() {
    let world = World::with(small()).await;
    let (deposit, all) = (Uuid::new_v4(), world.rows(5));
    world.origin.serve("/all.checkm", all.clone());
    let daemons = world.start_anew(only(&[Daemon::Batch], small()), SESSION).await;
    let url = world.origin.url("/all.checkm");
    // As in a tree that was loaded where nothing of the deposit lies.
    let part = async |number: u64, digest: &str| {
        let say = json!({
            "type": "single-file-batch-manifest", "filename": "all.checkm", "payload_url": url, "partOf": id_of(deposit),
            "part": number.to_string(), "parts": "3", "partRows": "2", "manifestSHA256": digest,
        });
        world.deposit_as(&id_of(uuid_of_part(deposit, number)), say).await
    };
    let (right, wrong) = (part(2, &sha256(&all)).await, part(3, &sha256("another")).await);
    let is_expanded = async || !world.files(right, JobOutcome::Processing).await.is_empty();
    eventually(WAIT_LIMIT, "its jobs are created", is_expanded).await;
    assert_eq!(world.files(right, JobOutcome::Processing).await, ["f2.txt", "f3.txt"]);
    let (state, report) = world.ended(wrong).await;
    assert_eq!((state, report.len()), (BatchState::Failed, 0));
    let message = world.queue.load_batch(wrong).await.unwrap().message();
    assert!(message.contains("differs from the one of the deposit"), "{message}");
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_jobs_are_created_while_a_folder_has_as_many_children_as_others_can_list() {
    let world = World::with(quick()).await;
    let few = Settings { most_children: 4, shutdown: SOON * 5, ..only(&[Daemon::Batch], quick()) };
    world.origin.serve("/all.checkm", world.rows(5));
    let daemons = world.start_anew(few.clone(), SESSION).await;
    let first = world.deposit_manifest(Uuid::new_v4()).await;
    let jobs = async |batch| world.queue.batch_report(batch).await.unwrap().processing.len();
    eventually(WAIT_LIMIT, "the first one has its jobs", async || jobs(first).await == 5).await;
    let second = world.deposit_manifest(Uuid::new_v4()).await;
    let note = format!("/queuekeeper/expansions/{second}");
    let is_begun = async || world.queue.client().get_data(&note).await.is_ok();
    eventually(WAIT_LIMIT, "it is begun", is_begun).await;
    let third = world.deposit_manifest(Uuid::new_v4()).await;
    let third_note = format!("/queuekeeper/expansions/{third}");
    eventually(WAIT_LIMIT, "another one is begun, too", async || {
        world.queue.client().get_data(&third_note).await.is_ok()
    })
    .await;
    let (data, _) = world.queue.client().get_data(&note).await.unwrap();
    assert_eq!((ExpansionNote::decode(&data), jobs(second).await), (Some(ExpansionNote::default()), 0));
    // Its jobs have ended, and are cleaned up.
    let report = world.queue.batch_report(first).await.unwrap();
    for job in report.processing {
        let name = format!("/jobs/{job}");
        for node in world.children(&name).await {
            world.queue.client().delete(&format!("{name}/{node}"), None).await.unwrap();
        }
        world.queue.client().delete(&name, None).await.unwrap();
        let entries = world.children("/jobs/states/pending").await;
        for entry in entries.iter().filter(|entry| entry.ends_with(&job.to_string())) {
            world.queue.client().delete(&format!("/jobs/states/pending/{entry}"), None).await.unwrap();
        }
    }
    eventually(WAIT_LIMIT, "it has its jobs", async || jobs(second).await + jobs(third).await >= 5).await;
    let began = Instant::now();
    daemons.stop().await;
    assert!(began.elapsed() < SOON, "one that waits holds up no stop: {:?}", began.elapsed());
    let unbounded = Settings { java_readers: false, ..few };
    let daemons = world.start_anew(unbounded, SESSION).await;
    eventually(WAIT_LIMIT, "all have their jobs", async || jobs(second).await + jobs(third).await == 10).await;
    daemons.stop().await;
}
