//! Deposits: how much has come, and what has become of them.

use jiff::{SignedDuration, Timestamp};
use queuekeeper_catalogue::deposits::Deposit;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Source;
use crate::actions::deposit::{DepositRequest, Uploading};
use crate::mirror::find::JobQuery;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{JobState, Outcome, State as _};

/// How long the mirror may not have seen the batch of a deposit that was just made.
const UNSEEN: SignedDuration = SignedDuration::from_mins(1);

/// How many jobs are listed of a deposit.
const JOBS: usize = 100;

/// A deposit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct DepositView {
    /// Its id: `bid-` and a UUID.
    #[schema(example = "bid-9c1a0b5e-0000-4000-8000-000000000001")]
    pub(crate) id: String,
    /// `uploading`, or the state of its batch; `refused` where there never was one, `removed` once it is gone from the
    /// queue.
    #[schema(example = "completed")]
    pub(crate) state: String,
    /// The collection's profile.
    pub(crate) profile: String,
    /// The name of the file, as far as it is known.
    pub(crate) filename: String,
    /// Who made it.
    pub(crate) depositor: String,
    /// When it was made; null while it is being uploaded.
    pub(crate) received: Option<Timestamp>,
    /// How many bytes have come of an upload: the next `PATCH` goes on from there. Null where nothing is uploaded.
    pub(crate) offset: Option<u64>,
    /// How many bytes it has; null where that is not known.
    pub(crate) size_bytes: Option<u64>,
    /// Its batch; null while it is being uploaded, and once it is gone from the queue.
    #[schema(example = "bid0000000042")]
    pub(crate) batch: Option<String>,
    /// How its batch ended; null while it is at work.
    pub(crate) outcome: Option<String>,
    /// How many of its jobs are not done.
    pub(crate) processing: u64,
    /// How many have failed.
    pub(crate) failed: u64,
    /// How many are completed.
    pub(crate) completed: u64,
    /// Its jobs, at most a hundred.
    pub(crate) jobs: Vec<DepositedJob>,
    /// Of a dry run: how many URLs of the manifest were not requested, because its time was over or there are more than
    /// 10,000. Null otherwise.
    pub(crate) urls_not_requested: Option<u64>,
}

/// A job of a deposit.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DepositedJob {
    /// Its id.
    #[schema(example = "jid0000000042")]
    pub(crate) job: String,
    /// Its state.
    #[schema(example = "completed")]
    pub(crate) state: &'static str,
    /// The name of its file.
    pub(crate) filename: String,
    /// Its ARK; empty while it has none.
    #[schema(example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// What the daemons said of a failed job; empty for any other.
    pub(crate) message: String,
}

/// The deposits of the caller, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DepositList {
    /// At most a hundred of them.
    pub(crate) items: Vec<DepositView>,
}

impl DepositView {
    /// An upload under way.
    pub(crate) fn uploading(upload: &Uploading, request: &DepositRequest, depositor: &str) -> Self {
        Self {
            id: upload.id.clone(),
            state: "uploading".to_owned(),
            profile: request.profile.clone(),
            filename: request.filename.clone(),
            depositor: depositor.to_owned(),
            offset: Some(upload.offset),
            size_bytes: upload.size,
            ..Self::default()
        }
    }
}

impl Source<'_> {
    /// A deposit that was made, with what the queue knows of its batch.
    pub(crate) fn deposit(&self, deposit: &Deposit, now: Timestamp) -> DepositView {
        let id = queuekeeper_ingest::deposit::id_of(deposit.deposit.batch);
        let outcome = deposit.outcome.as_ref().map(|(outcome, _)| outcome.clone());
        let is_refused = outcome.as_ref().is_some_and(|outcome| outcome.starts_with("refused: "));
        let view = DepositView {
            state: if is_refused {
                "refused"
            } else if outcome.is_none() && now.duration_since(deposit.received) < UNSEEN {
                "pending"
            } else {
                "removed"
            }
            .to_owned(),
            profile: deposit.deposit.profile.clone(),
            depositor: deposit.deposit.depositor.clone(),
            received: Some(deposit.received),
            size_bytes: Some(deposit.deposit.bytes).filter(|bytes| *bytes > 0),
            outcome,
            id: id.clone(),
            ..DepositView::default()
        };
        match self.store.batch_of_uuid(&id) {
            Some(batch) => self.with_batch(view, batch),
            None => view,
        }
    }

    fn with_batch(&self, mut view: DepositView, id: BatchId) -> DepositView {
        let Some(found) = self.store.batch(id) else { return view };
        found.batch.state.map_or("other", |state| state.label()).clone_into(&mut view.state);
        view.filename = found.batch.filename.to_string();
        let references = |outcome: Outcome| u64::from(found.batch.references[outcome as usize].unwrap_or(0));
        view.processing = references(Outcome::Processing);
        view.failed = references(Outcome::Failed);
        view.completed = references(Outcome::Completed);
        view.batch = Some(id.to_string());
        let query = JobQuery { batch: Some(id), limit: JOBS, ..JobQuery::default() };
        let jobs = self.store.find_jobs(&query, Timestamp::now()).map(|page| page.items).unwrap_or_default();
        view.jobs = jobs
            .into_iter()
            .map(|job| DepositedJob {
                job: job.id.to_string(),
                state: crate::mirror::state_label(job.state),
                filename: job.filename.clone(),
                ark: job.ark.clone(),
                message: if job.state == Some(JobState::Failed) { job.message.to_string() } else { String::new() },
            })
            .collect();
        view
    }
}

/// The UUID in the id of a deposit; `None` for what is no such id.
pub(crate) fn uuid_of(id: &str) -> Option<Uuid> {
    id.strip_prefix("bid-").unwrap_or(id).parse().ok()
}
