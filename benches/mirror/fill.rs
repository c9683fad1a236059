//! A queue of any size, written straight to ZooKeeper: what the mirror reads must not come from code that it shares.

use futures::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode};

/// The state folders over which the jobs are spread, with the share of each in percent.
const STATES: [(&str, &str, usize); 5] = [
    ("Pending", "pending", 30),
    ("Provisioning", "provisioning", 10),
    ("Downloading", "downloading", 2),
    ("Failed", "failed", 3),
    ("Completed", "completed", 55),
];

/// How many jobs a batch has.
const BATCH: usize = 2_000;

/// How many jobs go into one transaction.
const CHUNK: usize = 200;

/// The state of the job of that number: status text and folder.
pub(crate) fn state_of(job: usize) -> (&'static str, &'static str) {
    let mut share = job % 100;
    for (status, folder, percent) in STATES {
        if share < percent {
            return (status, folder);
        }
        share -= percent;
    }
    unreachable!("the shares add up to 100")
}

/// How many batches that many jobs have.
pub(crate) fn batches_of(jobs: usize) -> usize {
    jobs.div_ceil(BATCH)
}

/// The batch that [`fill`] puts the job of that number in.
pub(crate) fn batch_of(job: usize) -> usize {
    job / BATCH
}

/// Writes `jobs` jobs of ten znodes each (the job, its seven children, a queue entry and a batch reference), and gives
/// the paths of all znodes.
pub(crate) async fn fill(client: &Client, jobs: usize) -> anyhow::Result<Vec<String>> {
    fill_batches(client, jobs, batches_of(jobs)).await
}

/// The same with so many batches: if these are more than the jobs would fill, the first one has half of the jobs.
pub(crate) async fn fill_batches(client: &Client, jobs: usize, batches: usize) -> anyhow::Result<Vec<String>> {
    let batch_of = |job: usize| {
        if batches <= batches_of(jobs) {
            batch_of(job)
        } else if job < jobs / 2 {
            0
        } else {
            1 + job % (batches - 1)
        }
    };
    let mut folders: Vec<String> =
        ["/batches", "/batch-uuids", "/jobs", "/jobs/states", "/access", "/locks"].map(str::to_owned).into();
    folders.extend(STATES.iter().map(|(_, folder, _)| format!("/jobs/states/{folder}")));
    for batch in 0..batches.max(batches_of(jobs)) {
        let bid = format!("/batches/bid{batch:010}");
        folders.extend([bid.clone(), format!("{bid}/submission"), format!("{bid}/status"), format!("{bid}/states")]);
        folders.extend(["processing", "failed", "completed"].map(|name| format!("{bid}/states/batch-{name}")));
    }
    let persistent = &CreateMode::Persistent.with_acls(Acls::anyone_all());
    for chunk in folders.chunks(CHUNK) {
        let mut writer = client.new_multi_writer();
        for path in chunk {
            let data = match path.rsplit('/').next() {
                Some("status") => r#"{"status":"Reporting","last_modified":"2026-03-02 10:16:00 -0800","message":""}"#,
                Some("submission") => r#"{"batchID":"bid-9c1a0b5e","profile":"merritt_demo_content"}"#,
                _ => "",
            };
            writer.add_create(path, data.as_bytes(), persistent)?;
        }
        writer.commit().await?;
    }
    let numbers: Vec<usize> = (0..jobs).collect();
    let chunks = numbers.chunks(CHUNK).map(|chunk| {
        let nodes: Vec<(String, String)> = chunk.iter().flat_map(|job| job_nodes(*job, batch_of(*job))).collect();
        async move {
            let mut writer = client.new_multi_writer();
            for (path, data) in &nodes {
                writer.add_create(path, data.as_bytes(), persistent)?;
            }
            writer.commit().await?;
            anyhow::Ok(nodes.into_iter().map(|(path, _)| path).collect::<Vec<_>>())
        }
    });
    let paths: Vec<Vec<String>> = stream::iter(chunks).buffered(8).try_collect().await?;
    folders.extend(paths.into_iter().flatten());
    Ok(folders)
}

/// The znodes of one job as they are found in production: about 1.2 KB.
fn job_nodes(job: usize, batch: usize) -> Vec<(String, String)> {
    let jid = format!("jid{job:010}");
    let bid = format!("bid{batch:010}");
    let (status, folder) = state_of(job);
    let outcome = match status {
        "Completed" => "batch-completed",
        "Failed" => "batch-failed",
        _ => "batch-processing",
    };
    let message = if status == "Failed" { "404 for https://deposit.example.edu/files" } else { "Success" };
    let ark = format!("ark:/99999/fk4{job:08x}");
    vec![
        (format!("/jobs/{jid}"), String::new()),
        (format!("/jobs/{jid}/bid"), bid.clone()),
        (
            format!("/jobs/{jid}/configuration"),
            format!(
                r#"{{"batchID":"bid-9c1a0b5e-0000-4000-8000-{job:012}","jobID":"jid-0c2d1e3f-0000-4000-8000-{job:012}","profile":"merritt_demo_content","type":"container","submitter":"uc3user/UC3 User","submissionDate":"2026-03-02T10:15:40-08:00","filename":"rbn_{job:06}.zip","title":"Robbins papers, box {}","creator":"Robbins","objectID":"{ark}","localID":"rbn-{job:06}","update":false,"responseForm":"xml","digestType":"sha-256","digestValue":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}"#,
                job / 50
            ),
        ),
        (
            format!("/jobs/{jid}/status"),
            format!(
                r#"{{"status":"{status}","last_modified":"2026-03-02 10:17:05 -0800","last_successful_status":"Provisioning","retry_count":0,"message":"{message}"}}"#
            ),
        ),
        (format!("/jobs/{jid}/priority"), "5".into()),
        (format!("/jobs/{jid}/space_needed"), (1_000_000 + job).to_string()),
        (format!("/jobs/{jid}/identifiers"), format!(r#"{{"primary_id":"{ark}","local_id":["rbn-{job:06}"]}}"#)),
        (
            format!("/jobs/{jid}/metadata"),
            r#"{"erc_who":"Robbins","erc_what":"Robbins papers","erc_when":"1961","erc_where":"(:unkn)"}"#.into(),
        ),
        (format!("/jobs/states/{folder}/05-{jid}"), String::new()),
        (format!("/batches/{bid}/states/{outcome}/{jid}"), String::new()),
    ]
}
