//! Is it flowing, and if not, where and why?

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::held::HeldCollection;
use super::status::Status;
use crate::insight::{CauseKind, Diagnosis, Forecast};
use crate::metrics::working_storage::Space;
use crate::mirror::failures::FailureGroup;
use crate::mirror::lists::BatchDetail;
use crate::mirror::{Batch, Flow, History, LockKind, PauseSituation, Rates, Summary, state_label};
use crate::views::show::{Ago, visible};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::{AccessQueue, QueueName};
use queuekeeper_queue::record::MailNote;
use queuekeeper_queue::state::{JobState, State};

mod attention;
mod batches;
mod gather;
mod states;
mod verdict;

pub(crate) use attention::{Attention, Severity, offset};
pub(crate) use batches::BatchInProgress;
pub(crate) use states::StateFigures;
pub(crate) use verdict::{Health, OverviewVerdict, VerdictKind, rounded};

/// How many held collections are shown.
const SHOWN_HELD: usize = 10;

/// What the overview shows besides the [`Summary`]: rates, and a limited number of single items. Its size does not
/// depend on the size of the queue.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// How fast jobs leave the states.
    pub flow: Flow,
    /// The figures over the last hours.
    pub history: History,
    /// The batches in progress that have been in their state longest, each with the rate at which its jobs finish and a
    /// forecast of its end.
    pub batches: Vec<(BatchDetail, Option<Rates>, Forecast)>,
    /// How many batches are in progress.
    pub batches_in_progress: usize,
    /// The states that no job has left for as long as is configured, a minute by default, for a reason that does not
    /// end by itself.
    pub stopped: Vec<Stopped>,
    /// The fix of each fault that one item shows alone.
    pub fixes: Vec<(Fault, &'static str)>,
    /// The queues that are paused.
    pub pauses: Vec<(QueueName, PauseSituation)>,
    /// The collections that are held, those held longest first, at most 500.
    pub held: Vec<(String, PauseSituation)>,
    /// The stores that are held, by name.
    pub held_stores: Vec<(std::sync::Arc<str>, PauseSituation)>,
    /// The mail that no process has delivered yet, where it has waited for some minutes.
    pub waiting_mail: Option<MailNote>,
    /// How many Failed batches have no jobs, and the one that has been so for longest.
    pub failed_without_jobs: (u64, Option<Batch>),
    /// The largest groups of failed jobs.
    pub failures: Vec<FailureGroup>,
    /// How many groups there are.
    pub failure_groups: u64,
    /// The state of the rules; `None` for a server that accepts no alerts.
    pub automation: Option<crate::alerts::RulesStatus>,
    /// Unexpected znodes below /queuekeeper, and how many there are beyond those.
    pub foreign: (Vec<crate::alerts::Foreign>, usize),
    /// The threshold of working storage, 0 to 1, and how full the volume is; `None` where it is not measured.
    pub storage: Option<(f64, Space)>,
    /// Why working storage cannot be measured; `None` if it can be, or is not configured.
    pub storage_problem: Option<String>,
    /// The open bit errors of copies in stores.
    pub bit_errors: OpenBitErrors,
}

/// What is known of the open bit errors of copies in stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OpenBitErrors {
    /// There is no mill, or it was not asked.
    #[default]
    NotRead,
    /// How many there are, and when the oldest was found.
    Open(u64, Option<Timestamp>),
    /// Why that is not known: one sentence without a full stop.
    Unknown(String),
}

/// A stuck state.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The state.
    pub state: JobState,
    /// Since when nothing has left it, as far as that is known.
    pub since: Option<Timestamp>,
    /// Why nothing leaves it.
    pub diagnosis: Diagnosis,
}

impl Stopped {
    /// Whether it is stopped because no daemon takes its jobs.
    fn is_without_daemon(&self) -> bool {
        self.diagnosis.causes.iter().any(|cause| is_without_daemon(cause.kind))
    }
}

/// Whether a cause is that no daemon takes the jobs of a state.
fn is_without_daemon(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::Fault(Fault::NoDaemon) | CauseKind::NoWorkers)
}

/// The whole queue at one moment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    /// Whether the figures are current.
    pub(crate) status: Status,
    /// Whether the queue is moving.
    pub(crate) verdict: OverviewVerdict,
    /// Jobs in all.
    pub(crate) jobs: u64,
    /// Batches in all.
    pub(crate) batches: u64,
    /// Every state of jobs, those of the success path first; `other` last.
    pub(crate) states: Vec<StateFigures>,
    /// Jobs that entered Completed in the last hour, as far as it was watched.
    pub(crate) completed_1h: u64,
    /// Jobs that entered Failed in the last hour, as far as it was watched.
    pub(crate) failed_1h: u64,
    /// For how long of the last hour the queue has been watched.
    pub(crate) watched_seconds: u64,
    /// Jobs under way: from Pending to Notify.
    pub(crate) under_way: u64,
    /// The working storage that jobs under way need together.
    pub(crate) space_needed_bytes: u64,
    /// Jobs in Provisioning that are kept back by the threshold of working storage; null if it is not measured.
    pub(crate) waiting_for_space: Option<u64>,
    /// Working storage; null if it is not measured.
    pub(crate) storage: Option<StorageFigures>,
    /// What needs attention, the most urgent first.
    pub(crate) attention: Vec<Attention>,
    /// The queues that can be paused.
    pub(crate) queues: Vec<QueueState>,
    /// Collections that are held.
    pub(crate) collections_held: u64,
    /// Those held longest, at most ten.
    pub(crate) held: Vec<HeldCollection>,
    /// Batches in progress, at most ten: those that have been in their state longest.
    pub(crate) batches_in_progress: Vec<BatchInProgress>,
    /// How many batches are in progress.
    pub(crate) batches_in_progress_count: u64,
    /// Batches by state.
    pub(crate) batch_states: Vec<ItemFigures>,
    /// Access requests by queue and state.
    pub(crate) access: Vec<AccessFigures>,
    /// Locks by kind.
    pub(crate) locks: Vec<LockFigures>,
    /// Znodes in the mirror.
    pub(crate) znodes: u64,
    /// How many of these cannot be decoded, are not readable with these credentials, or have an unexpected name.
    pub(crate) unreadable_znodes: u64,
    /// Unknown states, at most 20; their items are counted as `other`.
    pub(crate) unknown_states: Vec<String>,
}

/// The volume that the daemons work on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StorageFigures {
    /// The size of the volume in bytes.
    pub(crate) size_bytes: u64,
    /// The free space in bytes.
    pub(crate) free_bytes: u64,
    /// The used fraction, 0 to 1.
    pub(crate) used_ratio: f64,
    /// The used fraction, 0 to 1, above which the daemons hold back jobs.
    pub(crate) threshold_ratio: f64,
}

/// A queue that can be paused.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct QueueState {
    /// `ingest`, `access_small` or `access_large`.
    pub(crate) queue: &'static str,
    /// Since when it is paused; null while it is not.
    pub(crate) paused_since: Option<Timestamp>,
    /// Who paused it; empty if that is not recorded, and while it is not paused.
    #[schema(example = "anna")]
    pub(crate) by: String,
    /// Why it is paused; empty if that is not recorded, and while it is not paused.
    pub(crate) reason: String,
    #[serde(skip)]
    pub(crate) name: &'static str,
}

/// The items of one state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ItemFigures {
    /// The state.
    pub(crate) state: &'static str,
    /// Items in it.
    pub(crate) count: u64,
    /// When the one longest in it entered it.
    pub(crate) oldest_entered: Option<Timestamp>,
    #[serde(skip)]
    pub(crate) name: &'static str,
}

/// The access requests of one queue in one state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AccessFigures {
    /// `small` or `large`.
    pub(crate) queue: &'static str,
    /// What is in the state.
    #[serde(flatten)]
    pub(crate) items: ItemFigures,
    /// The total size of the requested objects in bytes.
    pub(crate) requested_bytes: u64,
}

/// The locks of one kind.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LockFigures {
    /// The kind, as in the metrics.
    pub(crate) kind: &'static str,
    /// Locks held.
    pub(crate) count: u64,
    /// When the oldest was created.
    pub(crate) oldest_created: Option<Timestamp>,
    #[serde(skip)]
    pub(crate) title: &'static str,
}

impl Overview {
    /// The period that the counts of the last hour cover, in words: `last hour`, or less if the queue has been watched
    /// for less.
    pub(crate) fn watched(&self) -> String {
        match Duration::from_secs(self.watched_seconds) {
            watched if watched >= Duration::from_mins(59) => "last hour".to_owned(),
            watched => format!("in {}", Ago(watched)),
        }
    }

    /// The overview at `now`.
    pub(crate) fn new(status: Status, summary: &Summary, recent: &Recent, now: Timestamp) -> Self {
        let states = states::all(summary, recent);
        let under_way = || states.iter().filter(|state| state.is_on_path && !state.is_final);
        // Finished jobs have freed their space, and failed or held jobs need none. The sum saturates: a znode may claim
        // any number of bytes.
        let space = under_way().map(|state| state.space_needed_bytes);
        let completed = recent.flow.completed_1h;
        Self {
            jobs: states.iter().map(|state| state.count).sum(),
            batches: summary.batches.iter().map(|(_, batches)| batches.count).sum(),
            completed_1h: completed.count,
            failed_1h: recent.flow.failed_1h.count,
            watched_seconds: completed.over.min(Duration::from_hours(1)).as_secs(),
            under_way: under_way().map(|state| state.count).sum(),
            space_needed_bytes: space.fold(0, u64::saturating_add),
            waiting_for_space: recent.storage.is_some().then_some(summary.waiting_for_space),
            storage: recent.storage.map(|(threshold, space)| StorageFigures {
                size_bytes: space.size_bytes,
                free_bytes: space.free_bytes,
                used_ratio: 1.0 - space.free_bytes as f64 / (space.size_bytes as f64).max(1.0),
                threshold_ratio: threshold,
            }),
            verdict: verdict::verdict(&status, summary, &states, recent, now),
            attention: attention::all(&status, summary, recent, now),
            queues: queues(summary, &recent.pauses),
            collections_held: summary.collections_held,
            held: recent.held.iter().take(SHOWN_HELD).map(|(name, pause)| HeldCollection::new(name, pause)).collect(),
            batches_in_progress: batches::in_progress(recent, now),
            batches_in_progress_count: recent.batches_in_progress as u64,
            batch_states: items(&summary.batches, |_| true),
            access: AccessQueue::ALL.iter().flat_map(|queue| access(summary, *queue)).collect(),
            locks: LockKind::ALL.into_iter().map(|kind| locks(summary, kind)).collect(),
            znodes: summary.znodes,
            unreadable_znodes: summary.unreadable,
            unknown_states: summary.unknown_states.iter().map(|name| visible(name)).collect(),
            states,
            status,
        }
    }
}

fn queues(summary: &Summary, pauses: &[(QueueName, PauseSituation)]) -> Vec<QueueState> {
    let pause = |queue| pauses.iter().find(|(of, _)| *of == queue).map(|(_, pause)| pause);
    let state = |&queue: &QueueName| QueueState {
        queue: queue.label(),
        paused_since: summary.paused(queue),
        by: pause(queue).map(|pause| pause.who.to_string()).unwrap_or_default(),
        reason: pause(queue).map(|pause| pause.why.to_string()).unwrap_or_default(),
        name: queue.in_words(),
    };
    QueueName::ALL.iter().map(state).collect()
}

/// The states that have items, and the others only where they are on the way of every item and wanted.
fn items<S: State>(
    items: &crate::mirror::ByState<S, crate::mirror::ItemFigures>,
    is_wanted: impl Fn(S) -> bool,
) -> Vec<ItemFigures> {
    let is_shown = |state: Option<S>| state.is_some_and(|state| state.success().is_some() && is_wanted(state));
    let items = items.iter().filter(|(state, figures)| figures.count > 0 || is_shown(*state));
    items
        .map(|(state, figures)| ItemFigures {
            state: state_label(state),
            count: figures.count,
            oldest_entered: figures.oldest,
            name: state.map_or("Other", State::name),
        })
        .collect()
}

fn access(summary: &Summary, queue: AccessQueue) -> Vec<AccessFigures> {
    let figures = summary.access(queue);
    let bytes = |label: &str| {
        let of_state = figures.iter().find(|(state, _)| state_label(*state) == label);
        of_state.map_or(0, |(_, figures)| figures.requested_bytes)
    };
    let items = items(figures, |_| true).into_iter();
    items.map(|items| AccessFigures { queue: queue.name(), requested_bytes: bytes(items.state), items }).collect()
}

fn locks(summary: &Summary, kind: LockKind) -> LockFigures {
    let locks = summary.locks(kind);
    LockFigures { kind: kind.label(), count: locks.count, oldest_created: locks.oldest, title: kind.title() }
}
