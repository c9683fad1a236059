//! Batches that become many jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::record::ExpansionNote;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::world::{World, manifest, only, quick};

const ROWS: usize = 2_500;

const LONG: Duration = Duration::from_mins(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_whose_expansion_is_cut_off_each_row_becomes_one_job_and_one_version() {
    let world = World::with(quick()).await;
    let rows = (0..ROWS).map(|row| {
        let path = format!("/{}", row % 5);
        world.origin.serve(&path, "content");
        format!("{} | | | 7 | | f{row:04}.txt", world.origin.url(&path))
    });
    world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let say = |name: &str| {
        let url = world.origin.url(&format!("/{name}"));
        json!({"type": "single-file-batch-manifest", "filename": name, "payload_url": url})
    };
    let first = world.start_anew(only(&[Daemon::Batch], quick()), Duration::from_secs(1)).await;
    let (batch, _) = world.deposit(say("all.checkm")).await;
    let note = format!("/queuekeeper/expansions/{batch}");
    eventually(LONG, "the first jobs are created", async || {
        let Ok((data, _)) = world.queue.client().get_data(&note).await else { return false };
        ExpansionNote::decode(&data).is_some_and(|note| note.next > 0)
    })
    .await;
    first.abort().await;
    let created = world.children("/jobs").await.iter().filter(|name| name.starts_with("jid")).count();
    assert!(created > 1 && created < ROWS, "{created}: it was not cut off between chunks");
    // No report daemon may take it for a batch whose jobs are done.
    assert!(!world.queue.batch_report(batch).await.unwrap().processing.is_empty());

    let daemons = world.start_anew(quick(), Duration::from_secs(10)).await;
    let (state, report) = world.ended_within(LONG, batch).await;
    assert_eq!((state, report.completed.len(), report.len()), (BatchState::Completed, ROWS, ROWS));
    let (mut arks, mut names, mut ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for job in &report.completed {
        let job = world.job(*job).await;
        let configuration: Value = serde_json::from_slice(job.data(JobNode::Configuration).unwrap()).unwrap();
        names.insert(configuration["filename"].as_str().unwrap().to_owned());
        ids.insert(configuration["jobID"].as_str().unwrap().to_owned());
        arks.insert(job.identifiers().value.ark.into_owned());
    }
    assert_eq!([arks.len(), names.len(), ids.len()], [ROWS; 3]);
    let mut versions = 0;
    for ark in &arks {
        versions += world.services.catalogue.versions(ark, None, 10).await.unwrap().len();
    }
    assert_eq!(versions, ROWS);
    assert!(world.children("/queuekeeper/expansions").await.is_empty());
    assert_eq!(world.left(), Vec::<String>::new());

    // One that is not valid becomes no job, and says where it is wrong.
    let rows =
        [format!("{} | md5 | zz | 7 | | a.txt", world.origin.url("/0")), "gopher://x | | | | | b.txt".to_owned()];
    world.origin.serve("/wrong.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let (wrong, _) = world.deposit(say("wrong.checkm")).await;
    let (state, report) = world.ended(wrong).await;
    assert_eq!((state, report.len()), (BatchState::Failed, 0));
    let (status, _) = world.queue.client().get_data(&format!("/batches/{wrong}/status")).await.unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("line 3, column") && message.contains("line 4, column"), "{message}");
    let folder = format!("/batches/{wrong}/states");
    assert_eq!(world.children(&folder).await, ["batch-processing"]);
    assert!(world.children("/queuekeeper/expansions").await.is_empty());
    daemons.stop().await;
}
