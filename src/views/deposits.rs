//! Deposits: how much has come, and what has become of them.

use jiff::{SignedDuration, Timestamp};
use queuekeeper_catalogue::deposits::Deposit;
use queuekeeper_ingest::resubmit::{Resubmission, made_nothing, uuids_of_failed, without_jobs};
use queuekeeper_ingest::spec::id_of;
use queuekeeper_ingest::withdrawal::{WITHDRAWN, taken_back};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

mod parts;

pub(crate) use parts::DepositPart;

use super::ViewSource;
use super::error::ViewError;
use super::page::PageQuery;
use super::warnings::WarnedJobs;
use crate::actions::deposit::{DepositRequest, Uploading, is_refused};
use crate::mirror::find::{JobCursor, JobQuery};
use crate::mirror::lists::BatchDetail;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::state::{Authority, BatchState, JobOutcome, JobState, State as _};

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
    /// `uploading`, or the state of its batch (of several, that of the first one in progress); `withdrawn` if that was
    /// withdrawn, `refused` if it never had one, `removed` once it is gone from the queue.
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
    /// How many bytes of an upload were received: the next `PATCH` continues from there. Null if nothing is being
    /// uploaded.
    pub(crate) offset: Option<u64>,
    /// How many bytes it has; null if unknown.
    pub(crate) size_bytes: Option<u64>,
    /// Its batch, of several the first one; null while it is being uploaded, and once it is gone from the queue.
    #[schema(example = "bid0000000042")]
    pub(crate) batch: Option<String>,
    /// How its batch ended: the number of jobs by outcome, or why no job was created. Null while it is in progress.
    #[schema(example = "no job was created: invalid manifest: line 4, column 9: the column has a control character")]
    pub(crate) outcome: Option<String>,
    /// Why the creation of its jobs is retried later; null if it is not.
    #[schema(example = "cannot fetch https://example.edu/all.checkm: the origin answers 503")]
    pub(crate) waiting: Option<String>,
    /// How many of its jobs are not done.
    pub(crate) processing: u64,
    /// How many have failed.
    pub(crate) failed: u64,
    /// How many are completed.
    pub(crate) completed: u64,
    /// The depositor's note; empty for none, and once its batch is gone from the queue.
    pub(crate) note: String,
    /// The addresses that the depositor has the report mailed to; empty for those of the profile, and once its batch is
    /// gone from the queue.
    pub(crate) notification: String,
    /// Its jobs with warnings, of several batches those of the first one; those of further parts are below the ids of
    /// these.
    pub(crate) warned: WarnedJobs,
    /// The batches that it became, if it has too many rows for one; otherwise empty.
    pub(crate) parts: Vec<DepositPart>,
    /// The deposit that this batch is a part of, with others; null if it is all of it, or the first one.
    #[schema(example = "bid-9c1a0b5e-0000-4000-8000-000000000001")]
    pub(crate) part_of: Option<String>,
    /// The jobs of its batch, at most a hundred; those of further parts are below the ids of these.
    pub(crate) jobs: Vec<DepositedJob>,
    /// The cursor of the jobs behind these; null if these are the last.
    pub(crate) next: Option<String>,
    /// Whether its failed rows can be submitted again.
    #[serde(skip)]
    pub(crate) may_resubmit: bool,
    /// The deposit in which its failed rows were submitted again; null for none.
    #[schema(example = "bid-9c1a0b5e-0000-4000-8000-000000000002")]
    pub(crate) resubmitted_as: Option<String>,
    /// Whether it can be withdrawn, as far as the mirror knows.
    #[serde(skip)]
    pub(crate) may_withdraw: bool,
    /// Who withdrew it, while its batch is in the queue; null for one that was not withdrawn.
    #[schema(example = "lab")]
    pub(crate) withdrawn_by: Option<String>,
    /// Why, likewise.
    pub(crate) withdrawn_because: Option<String>,
    /// When, likewise.
    pub(crate) withdrawn: Option<Timestamp>,
    /// Since when it is being withdrawn; null if it is not.
    pub(crate) withdrawing_since: Option<Timestamp>,
    /// Why its withdrawal failed and was rolled back, so that it continues. Null if that has not happened, and once its
    /// batch has ended.
    #[schema(example = "its job jid0000000042 is in Estimating; it can no longer be withdrawn")]
    pub(crate) withdrawal_refused: Option<String>,
    /// Of a dry run of a manifest at a URL: how many batches its rows become. Null otherwise.
    pub(crate) batches: Option<u64>,
    /// Of a dry run: how many URLs of the manifest were not requested, because the time was up or there are more than
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
    /// The daemons' message about a failed job, or why a job is retried later; empty for all others.
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
    pub(crate) fn uploading(upload: &Uploading, request: &DepositRequest) -> Self {
        Self {
            id: upload.id.clone(),
            state: "uploading".to_owned(),
            profile: request.profile.clone(),
            filename: request.filename.clone(),
            depositor: upload.depositor.clone(),
            note: request.note.clone().unwrap_or_default(),
            notification: request.notification.clone().unwrap_or_default(),
            offset: Some(upload.offset),
            size_bytes: upload.size,
            ..Self::default()
        }
    }
}

impl ViewSource<'_> {
    /// A deposit that was made, with what the queue knows of its batch, and of those of its further parts.
    pub(crate) fn deposit(&self, deposit: &Deposit, parts: &[Deposit], now: Timestamp) -> DepositView {
        let mut view = self.batch_of_deposit(deposit, now);
        if !parts.is_empty() {
            let part =
                |part: &Deposit| (part.part_of.map_or(0, |(_, number)| number), self.batch_of_deposit(part, now));
            view.add_parts(parts.iter().map(part));
        }
        if let Some(id) = view.batch.as_ref().and_then(|batch| batch.parse().ok()) {
            self.list_jobs(&mut view, id, None);
        }
        view
    }

    fn batch_of_deposit(&self, deposit: &Deposit, now: Timestamp) -> DepositView {
        let id = id_of(deposit.deposit.batch);
        let outcome = deposit.outcome.as_ref().map(|(outcome, _)| outcome.clone());
        let withdrawal_refused = outcome.as_deref().and_then(taken_back).map(str::to_owned);
        let outcome = outcome.filter(|_| withdrawal_refused.is_none());
        let is_refused = outcome.as_deref().is_some_and(is_refused);
        let is_withdrawn = outcome.as_deref() == Some(WITHDRAWN);
        let view = DepositView {
            state: if is_refused {
                "refused"
            } else if is_withdrawn {
                WITHDRAWN
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
            withdrawal_refused,
            part_of: deposit.part_of.map(|(first, _)| id_of(first)),
            id: id.clone(),
            ..DepositView::default()
        };
        match self.store.batch_of_uuid(&id) {
            Some(batch) => self.with_batch(view, batch, now),
            None => view,
        }
    }

    fn with_batch(&self, mut view: DepositView, id: BatchId, now: Timestamp) -> DepositView {
        let Some(found) = self.store.batch(id) else { return view };
        found.batch.state.map_or("other", |state| state.label()).clone_into(&mut view.state);
        view.filename = found.batch.filename.to_string();
        view.note = found.batch.note.to_string();
        view.notification = found.batch.notification.to_string();
        view.warned = self.warned(id, now);
        let references = |outcome: JobOutcome| u64::from(found.batch.references[outcome as usize].unwrap_or(0));
        view.processing = references(JobOutcome::Processing);
        view.failed = references(JobOutcome::Failed);
        view.completed = references(JobOutcome::Completed);
        view.batch = Some(id.to_string());
        match self.resubmission(id) {
            Some(Resubmission::Made(uuid, _)) => view.resubmitted_as = Some(id_of(uuid)),
            Some(Resubmission::Open(next)) => view.may_resubmit = next.is_some(),
            Some(Resubmission::Gone(..)) | None => {}
        }
        if let Some(note) = WithdrawnNote::of_batch(found.batch.state, &found.batch.message) {
            WITHDRAWN.clone_into(&mut view.state);
            (view.withdrawn_by, view.withdrawn) = (Some(note.who.to_owned()), found.batch.entered);
            view.withdrawn_because = Some(note.why.to_owned()).filter(|why| !why.is_empty());
            view.outcome.get_or_insert_with(|| WITHDRAWN.to_owned());
        }
        if found.batch.state == Some(BatchState::Failed) && !found.batch.has_jobs() {
            // One that another program has refused has no outcome in the catalogue.
            view.outcome.get_or_insert_with(|| without_jobs(&found.batch.message));
        }
        view.waiting = self.store.batch_wait(id).map(|wait| match wait.full {
            Some(_) => "the queue has no room for more jobs now".to_owned(),
            None => wait.why,
        });
        view.withdrawing_since = self.store.withdrawal(id).map(|note| note.since);
        view.may_withdraw = view.withdrawing_since.is_none() && may_withdraw(&found);
        view
    }

    /// Lists the jobs of a deposit that are behind a cursor.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn page_jobs(&self, view: &mut DepositView, cursor: Option<String>) -> Result<(), ViewError> {
        let cursor = PageQuery { cursor, ..PageQuery::default() }.after::<JobCursor>()?;
        if let (Some(cursor), Some(id)) = (cursor, view.batch.as_ref().and_then(|batch| batch.parse().ok())) {
            self.list_jobs(view, id, Some(cursor));
        }
        Ok(())
    }

    fn list_jobs(&self, view: &mut DepositView, id: BatchId, cursor: Option<JobCursor>) {
        let query = JobQuery { batch: Some(id), limit: JOBS, cursor, ..JobQuery::default() };
        let Some(page) = self.store.find_jobs(&query, Timestamp::now()) else { return };
        view.next = page.next;
        view.jobs = page
            .items
            .into_iter()
            .map(|job| DepositedJob {
                job: job.id.to_string(),
                state: crate::mirror::state_label(job.state),
                filename: job.filename.clone(),
                ark: job.ark.clone(),
                message: match job.state {
                    Some(JobState::Failed) => job.message.to_string(),
                    _ => self.store.job_retry(job.id).map(|retry| retry.why).unwrap_or_default(),
                },
            })
            .collect();
    }
}

impl ViewSource<'_> {
    /// What has become of the failed rows of a batch; `None` where it has none that can be submitted again.
    pub(crate) fn resubmission(&self, id: BatchId) -> Option<Resubmission> {
        let found = self.store.batch(id)?.batch;
        let of = |outcome: JobOutcome| found.references[outcome as usize];
        let has_failed = found.has_rows && of(JobOutcome::Failed) > Some(0) && of(JobOutcome::Processing) == Some(0);
        let is_over = found.state == Some(BatchState::Failed) && has_failed;
        for uuid in uuids_of_failed(uuid_of(&found.uuid)?) {
            let Some(next) = self.store.batch_of_uuid(&id_of(uuid)) else {
                return is_over.then_some(Resubmission::Open(Some(uuid)));
            };
            let made = self.store.batch(next).map(|made| made.batch);
            if !made.is_some_and(|made| made_nothing(made.state, &made.message, made.has_jobs())) {
                return Some(Resubmission::Made(uuid, next));
            }
        }
        Some(Resubmission::Open(None))
    }
}

/// Whether a batch can be withdrawn: no job of it has left Pending, as far as is known.
pub(crate) fn may_withdraw(found: &BatchDetail) -> bool {
    let is_waiting =
        |state: Option<JobState>| matches!(state, Some(JobState::Pending | JobState::Held | JobState::Deleted));
    let may = |state: BatchState| state.allows(BatchState::Deleted, Authority::Withdrawal);
    found.batch.state.is_some_and(may) && found.jobs.iter().all(|(state, jobs)| *jobs == 0 || is_waiting(state))
}

/// The UUID in the id of a deposit; `None` for what is no such id.
pub(crate) fn uuid_of(id: &str) -> Option<Uuid> {
    id.strip_prefix("bid-").unwrap_or(id).parse().ok()
}
