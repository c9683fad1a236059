//! The failed rows of a batch, submitted again as a batch of their own.
//!
//! Its UUID and the name of its manifest follow from the batch: it is made once, and each of the two leads to the
//! other. Rows whose objects are stored are left out: their jobs are resumed. A row whose job had got an ARK keeps it.
//! One that failed before it had jobs, or was withdrawn, has made nothing of any row: the next attempt has another
//! UUID. Of one that is not in the queue any more, the catalogue has how it ended.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_catalogue::deposits::REFUSED;
use queuekeeper_catalogue::{Catalogue, Error as CatalogueError};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Error, Job, Queue};
use uuid::Uuid;

use crate::batches::submission::BatchSpec;
use crate::deposit::NewDeposit;
use crate::manifest::{ManifestRow, Writer};
use crate::name::shown;
use crate::spec::id_of;
use crate::spec::{JobSpec, uuid_of};
use crate::withdrawal::{WITHDRAWN, taken_back};
use crate::working::WorkingStorage;
use crate::working::secret::whole_url;

/// The namespace of the UUIDs of these batches.
const AGAIN: Uuid = Uuid::from_u128(0x5b1e_93c7_02ad_4f6b_9d48_e7a1_3c60_b28f);

/// What the name of the manifest begins with, and how it ends.
const NAME: (&str, &str) = ("failed-rows-of-", ".checkm");

/// How many attempts there are at most.
const MOST_ATTEMPTS: u32 = 100;

/// How many jobs are read at a time.
const AT_A_TIME: usize = 64;

/// A batch of the failed rows of another one.
#[derive(Debug)]
pub struct FailedRows {
    /// The deposit that it is.
    pub deposit: NewDeposit,
    /// Its manifest.
    pub manifest: Vec<u8>,
}

/// Why there is none: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ResubmissionError {
    /// The batch is none whose failed rows can be submitted again.
    #[error("{0}")]
    Refused(String),
    /// The queue cannot be read.
    #[error(transparent)]
    Queue(#[from] Error),
    /// The catalogue cannot be read.
    #[error("the catalogue: {0}")]
    Catalogue(#[from] CatalogueError),
}

/// What has become of the failed rows of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resubmission {
    /// They are in this batch, which has this UUID.
    Made(Uuid, BatchId),
    /// They were in the batch of this UUID, which has ended so, and is not in the queue any more.
    Gone(Uuid, String),
    /// They are in no other batch; the next one takes this UUID, and there is none after too many attempts.
    Open(Option<Uuid>),
}

/// What the outcome of a deposit begins with whose batch failed before it had jobs.
const WITHOUT_JOBS: &str = "no job was created: ";

/// The outcome of a deposit whose batch failed before it had jobs, and why.
#[must_use]
pub fn without_jobs(why: &str) -> String {
    format!("{WITHOUT_JOBS}{why}")
}

/// Whether a batch of this state and message has ended, and has made nothing of any row: without jobs, or since it was
/// withdrawn.
#[must_use]
pub fn made_nothing(state: Option<BatchState>, message: &str, has_jobs: bool) -> bool {
    let has_ended = matches!(state, Some(BatchState::Failed | BatchState::Deleted));
    has_ended && !has_jobs || WithdrawnNote::of_batch(state, message).is_some()
}

/// What has become of the failed rows of a batch, as the queue has it, and the catalogue, where there is one.
///
/// # Errors
/// When queue or catalogue cannot be read.
pub async fn resubmission(
    queue: &Queue,
    catalogue: Option<&Catalogue>,
    batch: Uuid,
) -> Result<Resubmission, ResubmissionError> {
    for uuid in uuids_of_failed(batch) {
        if let Some(id) = queue.find_batch(&id_of(uuid)).await? {
            let found = queue.load_batch(id).await?;
            let has_jobs = !queue.batch_report(id).await?.is_empty();
            if made_nothing(found.check_loadable().ok(), &found.message(), has_jobs) {
                continue;
            }
            return Ok(Resubmission::Made(uuid, id));
        }
        let deposit = match catalogue {
            Some(catalogue) => catalogue.deposit(uuid).await?,
            None => None,
        };
        match deposit.and_then(|deposit| deposit.outcome) {
            Some((outcome, _)) if outcome == WITHDRAWN || outcome.starts_with(WITHOUT_JOBS) => {}
            Some((outcome, _)) if !outcome.starts_with(REFUSED) && taken_back(&outcome).is_none() => {
                return Ok(Resubmission::Gone(uuid, outcome));
            }
            Some(_) | None => return Ok(Resubmission::Open(Some(uuid))),
        }
    }
    Ok(Resubmission::Open(None))
}

/// The same of a batch in the queue.
///
/// # Errors
/// As [`resubmission`].
pub async fn resubmission_of(
    queue: &Queue,
    catalogue: Option<&Catalogue>,
    batch: BatchId,
) -> Result<Resubmission, ResubmissionError> {
    let batch = queue.load_batch(batch).await?;
    resubmission(queue, catalogue, uuid_of(&batch.submitted().value.uuid, "bid-")).await
}

/// The UUIDs of the batch of the failed rows of another one, one for each attempt.
pub fn uuids_of_failed(batch: Uuid) -> impl Iterator<Item = Uuid> {
    (0..MOST_ATTEMPTS).map(move |attempt| {
        let number = attempt.to_be_bytes();
        let more: &[u8] = if attempt == 0 { &[] } else { &number };
        Uuid::new_v5(&AGAIN, &[batch.as_bytes(), more].concat())
    })
}

/// The batch whose failed rows a batch has, by the name of its manifest and its own UUID; `None` for any other batch.
#[must_use]
pub fn origin(file_name: &str, batch: Uuid) -> Option<Uuid> {
    let id = file_name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?;
    let origin = id.strip_prefix("bid-")?.parse().ok()?;
    uuids_of_failed(origin).any(|uuid| uuid == batch).then_some(origin)
}

/// The failed rows of a batch that has been reported, made again from its jobs.
///
/// # Errors
/// When the batch has none, is at work, is one object, or what a row was is not known any more; then nothing is made.
pub async fn failed_rows(
    queue: &Queue,
    working: &WorkingStorage,
    catalogue: &Catalogue,
    batch: BatchId,
) -> Result<FailedRows, ResubmissionError> {
    let refused = |why: String| ResubmissionError::Refused(why);
    let loaded = queue.load_batch(batch).await?;
    if loaded.check_loadable().ok() != Some(BatchState::Failed) {
        return Err(refused(format!(
            "{batch} has not failed; its rows can be submitted again once it is reported as Failed"
        )));
    }
    let spec = BatchSpec::of(loaded.submission.as_deref().unwrap_or_default()).map_err(refused)?;
    let Some(profile) = spec.kind.manifest().filter(|_| spec.kind.is_batch()) else {
        return Err(refused(format!("{batch} has no rows: it is one object; resume its job, or deposit it again")));
    };
    let report = queue.batch_report(batch).await?;
    match (report.failed.len(), report.processing.len()) {
        _ if report.is_empty() => {
            let why = loaded.message();
            return Err(refused(format!("{batch} has no jobs ({why}); correct that, and deposit all of it again")));
        }
        (0, 0) => return Err(refused(format!("{batch} no longer has failed jobs"))),
        (_, 0) => {}
        (failed, left) => {
            let why = format!("{batch} has {failed} failed jobs and {left} in progress");
            return Err(refused(format!("{why}; failed rows can be submitted again when no job is in progress")));
        }
    }
    let failed = report.failed.len();
    let jobs = stream::iter(report.failed.into_iter().map(|job| queue.load_job(job))).buffered(AT_A_TIME);
    // What is stored would become another version, or another object.
    let mut jobs = std::pin::pin!(jobs);
    let mut rows = Vec::new();
    while let Some(job) = jobs.try_next().await? {
        let uuid = JobSpec::of(&job).ok().map(|spec| spec.uuid);
        let is_recorded = match uuid {
            Some(uuid) => catalogue.version_of_job(uuid).await?.is_some(),
            None => false,
        };
        if !is_recorded && job.data(JobNode::Inventory).is_none() {
            rows.push(row(working, &job).map_err(refused)?);
        }
    }
    if rows.is_empty() {
        return Err(refused(format!(
            "the objects of all {failed} failed jobs of {batch} are stored: resume the jobs, or delete them"
        )));
    }
    let mut writer = Writer::new(Vec::new(), profile).map_err(|error| refused(error.to_string()))?;
    for row in &rows {
        writer.write(row).map_err(|error| refused(format!("row {:?}: {error}", shown(&row.name))))?;
    }
    let manifest = writer.finish().map_err(|error| refused(error.to_string()))?;
    let text = |key: &str| Some(spec.text(key).to_owned()).filter(|text| !text.is_empty());
    let deposit = NewDeposit {
        profile: spec.profile.clone(),
        kind: Some(spec.kind),
        file_name: format!("{}{}{}", NAME.0, id_of(spec.uuid), NAME.1),
        submitter: spec.text("submitter").to_owned(),
        title: text("title"),
        creator: text("creator"),
        date: text("date"),
        note: text("note"),
        notification: text("notification"),
        is_update: spec.is_update(),
        more: spec.passed_on(),
        ..NewDeposit::default()
    };
    Ok(FailedRows { deposit, manifest })
}

/// The row that a job was made of.
fn row(working: &WorkingStorage, job: &Job) -> Result<ManifestRow, String> {
    let spec = JobSpec::of(job).map_err(|why| format!("{}: {why}", job.id))?;
    let known = spec.url.clone().ok_or_else(|| format!("{} has no URL to fetch it from again", job.id))?;
    let url = whole_url(working.job(&spec).path(), &known).map_err(|why| format!("{}: {why}", job.id))?;
    let text = |key: &str| Some(spec.text(key).to_owned()).filter(|text| !text.is_empty());
    let (creator, title, date) = (text("creator"), text("title"), text("date"));
    let ark = job.identifiers().value.ark;
    Ok(ManifestRow {
        url: Some(url),
        digest: spec.digest,
        size: spec.size,
        name: spec.file_name,
        primary_id: spec.primary_id.or_else(|| Some(ark.into_owned()).filter(|ark| !ark.is_empty())),
        local_ids: spec.local_ids,
        creator,
        title,
        date,
        ..ManifestRow::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_failed_rows_is_known_by_its_name_and_its_uuid_together() {
        let batch = Uuid::from_u128(7);
        let mut attempts = uuids_of_failed(batch);
        let (again, second) = (attempts.next().unwrap(), attempts.next().unwrap());
        let name = format!("failed-rows-of-bid-{batch}.checkm");
        assert_eq!([again, second].map(|uuid| origin(&name, uuid)), [Some(batch); 2]);
        // The failed rows of an attempt are others than those of the next attempt.
        assert!(uuids_of_failed(again).all(|uuid| uuid != second));
        // A name that any client may choose leads nowhere.
        assert_eq!((origin(&name, batch), origin("a.checkm", again)), (None, None));
        assert_eq!(origin(&format!("failed-rows-of-bid-{again}.checkm"), again), None);
    }
}
