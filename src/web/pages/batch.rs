//! How far a deposit is.

use std::collections::BTreeSet;

use askama::Template;
use jiff::Timestamp;
use queuekeeper_ingest::parts::{number_of, uuid_of_part};
use queuekeeper_ingest::resubmit::{self, Resubmission};
use queuekeeper_ingest::spec::id_of;
use uuid::Uuid;

use super::batches::BatchHead;
use super::buttons::{Button, Buttons};
use super::faults::{Fault, fault};
use super::frame::{Frame, Section};
use super::listing::{Node, SHORT, with};
use super::log::{self, Event, by};
use super::progress::Progress;
use crate::actions::{ActionKind, Role};
use crate::insight::Forecast;
use crate::mirror::lists::BatchDetail;
use crate::views::NONE;
use crate::views::batches::{BatchChange, BatchItem, BatchStanding};
use crate::views::deposits::{may_withdraw, uuid_of};
use crate::views::diagnosis::{CauseView, DiagnosisView};
use crate::views::show::{Ago, Count, Moment, brief, counted, requested, visible};
use crate::views::warnings::{WarnedJob, WarnedJobs};
use crate::web::http::query::address;
use crate::web::state::State;
use queuekeeper_queue::record::{OperatorNote, WithdrawnNote};
use queuekeeper_queue::state::{BatchState, JobState, State as Named};

/// For how many of its jobs the actions are looked up.
const TARGETS: usize = 20;

/// One batch, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "batch.html")]
pub(super) struct BatchPage {
    frame: Frame,
    id: String,
    /// The manifest's name, and the id for a batch without one.
    name: String,
    head: BatchHead,
    since: Option<Moment>,
    created: Option<Moment>,
    progress: Progress,
    estimate: Option<String>,
    states: Vec<StateLink>,
    jobs_href: String,
    failed_href: String,
    has_one_failed: bool,
    /// Whether it was withdrawn.
    is_withdrawn: bool,
    /// Where its failed rows are submitted again; empty where that cannot be done.
    resubmit: String,
    /// The batch in which they were, and where that is.
    resubmitted: Option<(String, String)>,
    /// The batch whose failed rows these are, likewise.
    origin: Option<(String, String)>,
    /// Which part of a deposit it is that became several batches; `None` for the first part, and one that is all.
    part: Option<Part>,
    /// The further parts of its deposit that are in the queue.
    further: Further,
    /// Its jobs with warnings.
    warned: Warned,
    note: String,
    notification: String,
    why: Option<DiagnosisPanel>,
    events: Vec<Event>,
    /// What the timeline leaves out; empty for nothing.
    left_out: String,
    faults: Vec<Fault>,
    collection_href: String,
    lock: Option<Lock>,
    nodes: Vec<Node>,
    json: String,
    buttons: Vec<Button>,
}

/// The further parts of a deposit.
#[derive(Debug, Default)]
struct Further {
    /// How many parts there are, with the first; 0 where there are no others.
    count: u64,
    /// Those in the queue: number, batch, and where that is.
    parts: Vec<(u64, String, String)>,
}

/// Jobs with warnings.
#[derive(Debug)]
pub(super) struct Warned {
    /// How many, in a sentence; empty for none.
    pub(super) total: String,
    /// Each with its file and its warnings.
    pub(super) jobs: Vec<WarnedLine>,
    /// How many more jobs there are, with the noun; empty for none.
    pub(super) more: String,
}

#[derive(Debug)]
pub(super) struct WarnedLine {
    pub(super) job: String,
    /// Empty where the reader may not read it.
    pub(super) href: String,
    pub(super) filename: String,
    pub(super) warnings: String,
}

impl Warned {
    /// `root` is where pages are; `None` where the reader may not read those of jobs.
    pub(super) fn new(warned: &WarnedJobs, root: Option<&str>) -> Self {
        let line = |item: &WarnedJob| WarnedLine {
            job: item.job.clone(),
            href: root.map(|root| format!("{root}jobs/{}", item.job)).unwrap_or_default(),
            filename: brief(&item.filename, SHORT),
            warnings: visible(&item.warnings),
        };
        let more = warned.total.saturating_sub(warned.items.len() as u64);
        Self {
            total: match warned.total {
                0 => String::new(),
                1 => "1 job was accepted with warnings about its package.".to_owned(),
                total => format!("{} jobs were accepted with warnings about their packages.", Count(total)),
            },
            jobs: warned.items.iter().map(line).collect(),
            more: if more > 0 { counted(more, "more job", "more jobs") } else { String::new() },
        }
    }
}

/// A further part of a deposit.
#[derive(Debug)]
struct Part {
    /// Which one it is, from 2 on.
    number: u64,
    /// Of how many; empty where that is not said.
    count: String,
    deposit: String,
    /// The first batch, where it is in the queue, and where that is.
    first: Option<(String, String)>,
}

/// The jobs of a state.
#[derive(Debug)]
struct StateLink {
    name: &'static str,
    class: &'static str,
    jobs: String,
    href: String,
    /// Its part of the jobs, in percent.
    width: String,
}

#[derive(Debug)]
struct DiagnosisPanel {
    headline: String,
    causes: Vec<Reason>,
}

#[derive(Debug)]
struct Reason {
    sentence: String,
    evidence: String,
    fix: &'static str,
    items: Vec<Node>,
    more: String,
}

#[derive(Debug)]
struct Lock {
    session: String,
    /// From where it is connected; empty if unknown.
    address: String,
    /// What else the session holds; empty for a persistent lock.
    href: String,
    since: Option<Moment>,
}

impl BatchPage {
    pub(super) fn new(state: &State, standing: &BatchStanding, role: Role, now: Timestamp) -> Self {
        let view = state.view(now);
        let frame = Frame::new(&view, "../".to_owned(), Section::Batches);
        let root = &*frame.root;
        let buttons = Buttons::new(root, role);
        let batch = &standing.batch;
        let head = BatchHead::new(batch);
        let moment = |at: Option<Timestamp>| at.map(|at| Moment::new(at, now));
        let jobs = |state: Option<&str>| {
            let batch = ("batch".to_owned(), batch.id.clone());
            let state = state.map(|state| ("state".to_owned(), state.to_owned()));
            address(&format!("{root}jobs"), &[batch].into_iter().chain(state).collect::<Vec<_>>())
        };
        let all: u64 = standing.states.iter().map(|state| u64::from(state.jobs)).sum();
        let link = |of: &crate::views::batches::StateJobs| {
            let state = JobState::ALL.iter().copied().find(|state| state.label() == of.state);
            StateLink {
                name: state.map_or("Other", JobState::name),
                class: match state {
                    None | Some(JobState::Failed) => "failed",
                    Some(JobState::Completed) => "done",
                    Some(JobState::Deleted) => "gone",
                    Some(_) => "work",
                },
                jobs: Count(of.jobs.into()).to_string(),
                href: jobs(Some(of.state)),
                width: format!("{:.2}", f64::from(of.jobs) / (all as f64).max(1.0) * 100.0),
            }
        };
        let lock = batch.locked.then(|| Lock {
            session: batch.session.clone().unwrap_or_else(|| "no session: it is persistent".to_owned()),
            href: batch.session.as_ref().map(|id| with(&format!("{root}locks"), "session", id)).unwrap_or_default(),
            address: standing.address.clone().unwrap_or_default(),
            since: moment(standing.locked_since),
        });
        let uuid = uuid_of(&batch.uuid);
        let known = |uuid: Uuid| {
            let id = state.shared_store().batch_of_uuid(&id_of(uuid))?.to_string();
            Some((id.clone(), format!("{root}batches/{id}")))
        };
        let may_deposit = role >= Role::Operator && state.intake().is_ok();
        let resubmission = batch.id.parse().ok().and_then(|id| state.source().resubmission(id));
        let (resubmit, resubmitted) = match resubmission {
            Some(Resubmission::Open(Some(_))) => (uuid.filter(|_| may_deposit), None),
            Some(Resubmission::Made(_, made)) => (None, Some((made.to_string(), format!("{root}batches/{made}")))),
            Some(Resubmission::Open(None) | Resubmission::Gone(..)) | None => (None, None),
        };
        let found = batch.id.parse().ok().and_then(|id| state.shared_store().batch(id));
        let path = format!("/batches/{}", batch.id);
        let nodes = ["", "/submission", "/status", "/states"].map(|node| Node::of(&format!("{path}{node}"), root));
        let collection = if batch.collection.is_empty() { NONE } else { &batch.collection };
        Self {
            name: if head.filename.is_empty() { batch.id.clone() } else { head.filename.clone() },
            since: moment(batch.entered),
            created: moment(batch.created),
            progress: Progress::new(batch),
            estimate: estimate(standing),
            states: standing.states.iter().map(link).collect(),
            jobs_href: jobs(None),
            resubmit: resubmit.map(|uuid| format!("{root}submit/{}/failed", id_of(uuid))).unwrap_or_default(),
            resubmitted,
            origin: uuid.and_then(|uuid| known(resubmit::origin(&batch.filename, uuid)?)),
            part: part_of(state, batch).map(|(number, count, first)| Part {
                number,
                count: count.map(|count| Count(count).to_string()).unwrap_or_default(),
                deposit: id_of(first),
                first: known(first),
            }),
            further: uuid.map(|uuid| further_parts(state, uuid, root)).unwrap_or_default(),
            warned: Warned::new(&standing.warned, Some(root)),
            note: visible(&batch.note),
            notification: visible(&batch.notification),
            is_withdrawn: WithdrawnNote::read(&batch.message).is_some(),
            has_one_failed: batch.jobs.failed == Some(1),
            failed_href: if batch.jobs.failed.unwrap_or(0) > 0 { jobs(Some("failed")) } else { String::new() },
            why: standing.diagnosis.as_ref().map(|diagnosis| why(diagnosis, &path, root)),
            events: events(state, standing, root, now),
            left_out: left_out(standing),
            faults: standing.faults.iter().map(|found| fault(found, buttons, now)).collect(),
            collection_href: with(&format!("{root}batches"), "collection", collection),
            lock,
            nodes: nodes.into(),
            json: format!("{root}api/v1/batches/{}", batch.id),
            buttons: buttons.batch(&batch.id, batch.state, batch.locked, &not_allowed(found.as_ref())),
            id: batch.id.clone(),
            head,
            frame,
        }
    }
}

/// The actions that the jobs of a batch do not allow.
fn not_allowed(found: Option<&BatchDetail>) -> Vec<ActionKind> {
    let actions = [
        (ActionKind::Withdraw, found.is_some_and(may_withdraw)),
        (ActionKind::ReportAgain, found.is_some_and(|found| found.batch.has_jobs())),
    ];
    actions.into_iter().filter(|(_, is_allowed)| !is_allowed).map(|(action, _)| action).collect()
}

/// Which part of a deposit of several batches a batch is, and the deposit; `None` for the first part, and one that is
/// all.
fn part_of(state: &State, batch: &BatchItem) -> Option<(u64, Option<u64>, Uuid)> {
    let found = state.shared_store().batch(batch.id.parse().ok()?)?.batch;
    let first = uuid_of(&found.part_of)?;
    Some((number_of(first, uuid_of(&found.uuid)?)?, found.parts, first))
}

/// The further parts of a deposit that are in the queue, with where they are.
fn further_parts(state: &State, deposit: Uuid, root: &str) -> Further {
    let mut further = Further::default();
    for number in 2.. {
        let Some(id) = state.shared_store().batch_of_uuid(&id_of(uuid_of_part(deposit, number))) else { break };
        let said = state.shared_store().batch(id).and_then(|found| found.batch.parts);
        further.count = further.count.max(said.unwrap_or(number));
        further.parts.push((number, id.to_string(), format!("{root}batches/{id}")));
    }
    further
}

/// What has happened to it, the latest first.
fn events(state: &State, standing: &BatchStanding, root: &str, now: Timestamp) -> Vec<Event> {
    let batch = &standing.batch;
    let mut events = Vec::new();
    let is_seen =
        |from: bool| standing.history.iter().any(|change| change.job.is_none() && change.from.is_some() == from);
    if let Some(created) = batch.created.filter(|_| !is_seen(false)) {
        events.push(Event::new(created, "created".to_owned(), now));
    }
    if let Some(entered) = batch.entered.filter(|_| !is_seen(true)) {
        let withdrawn = WithdrawnNote::read(&batch.message).map(|note| (note.who, note.why));
        let note = OperatorNote::read(&batch.message).map(|note| (note.who, note.why)).or(withdrawn);
        let text = format!("entered {}{}", name::<BatchState>(batch.state), by(note, None));
        events.push(Event::new(entered, text, now));
    }
    let jobs = |batch: &str| with(&format!("{root}jobs"), "batch", batch);
    let page_of = |job: &str| (job.to_owned(), format!("{root}jobs/{job}"));
    events.extend(standing.history.iter().map(|change| {
        let event = Event::new(change.at, moved(change), now);
        match (&change.job, change.jobs) {
            (Some(job), _) => Event::about(event, page_of(job)),
            (None, 0) => event,
            (None, many) => Event::about(event, (counted(many, "job", "jobs"), jobs(&batch.id))),
        }
    }));
    // What made its jobs go on again, and what was tried.
    let at_rest = [JobState::Failed, JobState::Held].map(Named::label);
    let left = standing.history.iter().filter(|change| change.from.is_some_and(|from| at_rest.contains(&from)));
    let jobs: BTreeSet<&String> = left.rev().flat_map(|change| &change.examples).take(TARGETS).collect();
    let targets = jobs.into_iter().map(|job| (&**job, Some(page_of(job)))).chain([(&*batch.id, None)]);
    events.extend(log::actions_on(state, targets, root, now));
    log::in_order(events)
}

/// How the batch or jobs of it changed, and by whom.
fn moved(change: &BatchChange) -> String {
    let title = if change.jobs > 0 { name::<JobState> } else { name::<BatchState> };
    let what = match change.from {
        Some(from) => format!("{} → {}", title(from), title(change.to)),
        None if change.jobs > 0 => format!("entered {}", title(change.to)),
        None => format!("created in {}", title(change.to)),
    };
    let took = change.first_at.map(|first| change.at.duration_since(first)).filter(|took| took.as_secs() > 0);
    let within = took.map(|took| format!(" within {}", Ago(took.unsigned_abs()))).unwrap_or_default();
    let hold = change.hold.as_ref().map(|hold| {
        let requested = requested(&hold.by, &hold.reason);
        let by = if requested.is_empty() { String::new() } else { format!(" {requested}") };
        format!(", with its collection {}, held{by}", brief(&hold.collection, SHORT))
    });
    let operator = change.actor.as_deref().zip(change.reason.as_deref());
    let session = change.session.map(|session| (session.id(), change.address.as_deref()));
    format!("{what}{within}{}{}", by(operator, session), hold.unwrap_or_default())
}

/// What the timeline leaves out; empty for nothing.
fn left_out(standing: &BatchStanding) -> String {
    let changes = match standing.history_more_changes {
        0 => None,
        changes => Some(counted(changes, "earlier change", "earlier changes")),
    };
    let jobs = match standing.history_more_jobs {
        0 => None,
        jobs => Some(format!("all changes of {}", counted(jobs, "job", "jobs"))),
    };
    let all: Vec<_> = changes.into_iter().chain(jobs).collect();
    if all.is_empty() { String::new() } else { format!("Not shown: {}.", all.join(" and ")) }
}

/// The name of a state of this label.
fn name<S: Named>(label: &str) -> &'static str {
    S::ALL.iter().copied().find(|state| state.label() == label).map_or("an unknown state", Named::name)
}

/// When the last job ends, in words; `None` where none is left.
fn estimate(standing: &BatchStanding) -> Option<String> {
    let open = u64::from(standing.batch.jobs.processing.unwrap_or(0));
    if open == 0 {
        return None;
    }
    let (left, outlook) = (counted(open, "job is", "jobs are"), &standing.outlook);
    Some(match &*outlook.instants() {
        "" if outlook.forecast == Forecast::Stale => {
            format!("{left} left. No estimate while the figures are not current.")
        }
        "" => format!("{left} left. No estimate of when the last one finishes: {}.", outlook.ends),
        at => format!("{left} left. The last one finishes {}, {at}.", outlook.ends),
    })
}

fn why(diagnosis: &DiagnosisView, own: &str, root: &str) -> DiagnosisPanel {
    let reason = |cause: &CauseView| Reason {
        sentence: cause.sentence.clone(),
        evidence: cause.evidence.clone(),
        fix: cause.fix.unwrap_or_default(),
        // The page need not lead to itself.
        items: cause.items.iter().filter(|path| *path != own).map(|path| Node::item(path, root)).collect(),
        more: if cause.more_items > 0 { format!("and {} more", Count(cause.more_items)) } else { String::new() },
    };
    DiagnosisPanel { headline: diagnosis.headline.clone(), causes: diagnosis.causes.iter().map(reason).collect() }
}
