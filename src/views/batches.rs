//! Batches: lists and details.

use jiff::{SignedDuration, Timestamp, Unit};
use serde::Serialize;
use utoipa::ToSchema;

use super::diagnosis::DiagnosisView;
use super::faults::FaultItem;
use super::session_text;
use super::warnings::WarnedJobs;
use crate::insight::Forecast;
use crate::mirror::lists::{BatchDetail, Page};
use crate::mirror::{Batch, Rates, state_label};
use crate::words::moment;
use queuekeeper_queue::state::JobOutcome;

mod filter;
mod history;
mod one;

pub(crate) use filter::BatchFilter;
pub(crate) use history::BatchChange;
use history::BatchHistory;

/// A batch. Texts may hold anything and are cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchItem {
    /// Its id.
    #[schema(example = "bid0000000042")]
    pub(crate) id: String,
    /// Its state; `other` if its status is missing, unreadable or unknown.
    #[schema(example = "reporting")]
    pub(crate) state: &'static str,
    /// The text of its status, if it is not a known state in the daemons' spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_text: Option<String>,
    /// The version of its status, the precondition of actions; -1 if it has no status.
    pub(crate) status_version: i32,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// When it entered its state.
    pub(crate) entered: Option<Timestamp>,
    /// The daemons' message about the last step.
    pub(crate) message: String,
    /// Whether it is locked.
    pub(crate) locked: bool,
    /// The session that holds its lock, in the notation of ZooKeeper's log; null for none, and for a persistent
    /// lock.
    pub(crate) session: Option<String>,
    /// The UUID of its submission; empty for none.
    pub(crate) uuid: String,
    /// The mnemonic of its collection; empty for none.
    pub(crate) collection: String,
    /// The depositor.
    pub(crate) submitter: String,
    /// The manifest's name.
    pub(crate) filename: String,
    /// The title given to the submission.
    pub(crate) title: String,
    /// Whether a daemon has acquired it: before that it has no jobs.
    pub(crate) acquired: bool,
    /// The depositor's note; empty for none.
    pub(crate) note: String,
    /// The addresses that the depositor has the report mailed to; empty for those of the profile.
    pub(crate) notification: String,
    /// How many jobs it will have, while they are being created; null once they exist, and if unknown.
    pub(crate) rows: Option<u64>,
    /// Its jobs by outcome, according to its references.
    pub(crate) jobs: Outcomes,
}

/// The jobs of a batch by outcome, according to its references. Null if the folder does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Outcomes {
    /// All of them.
    pub(crate) total: u64,
    /// In progress.
    pub(crate) processing: Option<u32>,
    /// Failed.
    pub(crate) failed: Option<u32>,
    /// Completed.
    pub(crate) completed: Option<u32>,
    /// Deleted.
    pub(crate) deleted: Option<u32>,
}

/// A page of batches.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchList {
    /// How many batches match on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The batches of this page.
    pub(crate) items: Vec<BatchItem>,
}

/// One batch, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchStanding {
    /// The batch.
    pub(crate) batch: BatchItem,
    /// When its lock was created.
    pub(crate) locked_since: Option<Timestamp>,
    /// Its jobs by state, according to the jobs themselves; states without jobs are omitted.
    pub(crate) states: Vec<StateJobs>,
    /// When it ends.
    #[serde(flatten)]
    pub(crate) outlook: Outlook,
    /// Its jobs with warnings about their packages, which were not a reason to refuse them.
    pub(crate) warned: WarnedJobs,
    /// The faults of the batch itself; those of its jobs are listed with the jobs.
    pub(crate) faults: Vec<FaultItem>,
    /// Why it is not moving, or that it is moving; null if it was purged while this was computed.
    pub(crate) diagnosis: Option<DiagnosisView>,
    /// Its changes since this process started to watch, eight at most, and those of its jobs, equal ones of several
    /// jobs together; the oldest first.
    pub(crate) history: Vec<BatchChange>,
    /// Earlier changes of its jobs that are not in the history, which has at most fifty.
    pub(crate) history_more_changes: u64,
    /// Jobs whose changes are not in the history: it is made from the 500 that changed last.
    pub(crate) history_more_jobs: u64,
    /// From where the session of its lock is connected; null if unknown (see `--mirror.session-addresses`).
    #[schema(example = "10.0.0.5:40834")]
    pub(crate) address: Option<String>,
}

/// The estimated end of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Outlook {
    /// How many of its jobs finish per hour at the present rate; null if unknown.
    pub(crate) ended_per_hour: Option<f64>,
    /// When its last job ends at the higher one of two rates: that of the last minutes, and that of the last hour. Null
    /// where that is not known, where none is left, and where something stops them.
    pub(crate) ends_soonest: Option<Timestamp>,
    /// The same at the lower one.
    pub(crate) ends_latest: Option<Timestamp>,
    /// The same in words, or what it waits for: `in 12 to 40 min`, `2 jobs are Held`. Empty if no job is left.
    pub(crate) ends: String,
    #[serde(skip)]
    pub(crate) forecast: Forecast,
}

impl Outlook {
    pub(crate) fn new(forecast: Forecast, rates: Option<Rates>, now: Timestamp) -> Self {
        let times = forecast.times();
        let at = |time| now.checked_add(SignedDuration::try_from(time).ok()?).ok();
        Self {
            ended_per_hour: rates.and_then(|rates| rates.present().per_hour()),
            ends_soonest: times.and_then(|(soonest, _)| at(soonest)),
            ends_latest: times.and_then(|(_, latest)| at(latest)),
            ends: forecast.phrase(),
            forecast,
        }
    }

    /// When it ends by the clock, `at` one instant or `between` two, to the minute: an estimate is no more exact, and
    /// the passing of time alone would change it each second. Empty if that is not known.
    pub(crate) fn instants(&self) -> String {
        let Some((soonest, latest)) = self.ends_soonest.zip(self.ends_latest) else { return String::new() };
        let to_minute = |instant: Timestamp| moment(instant.round(Unit::Minute).unwrap_or(instant));
        let (from, to) = (to_minute(soonest), to_minute(latest));
        if from == to { format!("at {to}") } else { format!("between {from} and {to}") }
    }
}

/// Jobs in a state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct StateJobs {
    /// The state; `other` for an unknown status.
    #[schema(example = "storing")]
    pub(crate) state: &'static str,
    /// How many jobs are in it.
    pub(crate) jobs: u32,
}

impl BatchItem {
    pub(crate) fn new(detail: BatchDetail) -> Self {
        let BatchDetail { batch, created, .. } = detail;
        let Batch { id, state, status_text, entered, message, lock, uuid, collection, .. } = batch;
        let [processing, failed, completed, deleted] =
            JobOutcome::ALL.map(|outcome| batch.references[outcome as usize]);
        let total = batch.references.iter().flatten().map(|jobs| u64::from(*jobs)).sum();
        Self {
            id: id.to_string(),
            state: state_label(state),
            status_text: Some(status_text.to_string()).filter(|text| !text.is_empty()),
            status_version: batch.status_version,
            created,
            entered,
            message: message.to_string(),
            locked: lock.is_some(),
            session: lock.and_then(|lock| session_text(lock.session)),
            uuid: uuid.to_string(),
            collection: collection.to_string(),
            submitter: batch.submitter.to_string(),
            filename: batch.filename.to_string(),
            title: batch.title.to_string(),
            acquired: batch.is_acquired,
            note: batch.note.to_string(),
            notification: batch.notification.to_string(),
            rows: batch.rows,
            jobs: Outcomes { total, processing, failed, completed, deleted },
        }
    }
}

impl BatchList {
    pub(crate) fn new(page: Page<BatchDetail>) -> Self {
        let Page { items, total, before, next } = page;
        let next = next.map(|next| next.to_string());
        Self { total, before, next, items: items.into_iter().map(BatchItem::new).collect() }
    }
}

impl BatchStanding {
    /// `locked_since` is by the clock of this host.
    pub(crate) fn new(
        detail: BatchDetail,
        locked_since: Option<Timestamp>,
        outlook: Outlook,
        faults: Vec<FaultItem>,
        diagnosis: Option<DiagnosisView>,
        history: BatchHistory,
        address: Option<String>,
    ) -> Self {
        let states = detail.jobs.iter().filter(|(_, jobs)| **jobs > 0);
        let states = states.map(|(state, jobs)| StateJobs { state: state_label(state), jobs: *jobs }).collect();
        let batch = BatchItem::new(detail);
        let BatchHistory { changes, more_changes, more_jobs } = history;
        Self {
            batch,
            locked_since,
            states,
            outlook,
            warned: WarnedJobs::default(),
            faults,
            diagnosis,
            history: changes,
            history_more_changes: more_changes,
            history_more_jobs: more_jobs,
            address,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_estimate_is_to_the_minute_and_the_same_while_that_lasts() {
        let at = |second: i64| Timestamp::from_second(1_772_475_300 + second).unwrap();
        let instants = |forecast, second| Outlook::new(forecast, None, at(second)).instants();
        let (soonest, latest) = (Duration::from_mins(12), Duration::from_mins(40));
        let between = "between 2026-03-02 18:27:00 UTC and 2026-03-02 18:55:00 UTC";
        for second in [0, 10, 29] {
            assert_eq!(instants(Forecast::Ends(soonest, latest), second), between);
            assert_eq!(instants(Forecast::Ends(soonest, soonest), second), "at 2026-03-02 18:27:00 UTC");
        }
        assert_eq!(instants(Forecast::Unknown, 0), "");
    }
}
