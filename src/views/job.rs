//! One job: its facts, its events, why it is not moving, and its znodes.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::diagnosis::DiagnosisView;
use super::error::{ViewError, quoted};
use super::objects::{MadeVersion, ObjectCopy, Objects};
use super::tree::TreeNode;
use super::{Session, ViewSource};
use crate::insight;
use crate::mirror::{self, Happening, MirrorStore, NodeError, PastEvent, Volume};
use queuekeeper_ingest::spec;
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{JobNode, NodePath, Path};
use queuekeeper_queue::record::{JobProgress, OperatorNote};
use queuekeeper_queue::state::{JobOutcome, JobState, State};

mod download;

pub(crate) use download::{Download, Fetching};

impl ViewSource<'_> {
    /// A job by its id, with its znodes, which are read from ZooKeeper.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn job(&self, name: &str, now: Timestamp) -> Result<JobDetail, ViewError> {
        let id = self.job_id(name)?;
        JobDetail::of(self.store, id, self.volume(), now).await.ok_or_else(|| no_job(name))
    }

    /// Why a job is not moving, or that it is.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn job_diagnosis(&self, name: &str, now: Timestamp) -> Result<DiagnosisView, ViewError> {
        let found = insight::why_job(self.store, self.job_id(name)?, self.volume(), now);
        found.as_ref().map(DiagnosisView::from).ok_or_else(|| no_job(name))
    }

    fn job_id(&self, name: &str) -> Result<JobId, ViewError> {
        let id = name.parse().map_err(|_| no_job(name))?;
        if self.store.freshness().last_walk.is_none() { Err(ViewError::NoMirror) } else { Ok(id) }
    }
}

fn no_job(name: &str) -> ViewError {
    ViewError::not_found(format!(
        "There is no job {}. A job's id is jid and ten digits. A purged job cannot be restored.",
        quoted(name)
    ))
}

/// All known facts about a job. Texts from znodes are unchanged, but cut to 512 bytes each.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobDetail {
    /// Its id.
    #[schema(example = "jid0000000042")]
    pub(crate) id: String,
    /// Its state; `other` for an unknown one.
    #[schema(example = "provisioning")]
    pub(crate) state: &'static str,
    /// The text of its status, if it is not a known state in the daemons' spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_text: Option<String>,
    /// When it entered that state.
    pub(crate) entered: Option<Timestamp>,
    /// The version of its status; -1 if it has none.
    pub(crate) status_version: i32,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// Its last successful state.
    pub(crate) last_successful_status: Option<&'static str>,
    /// The daemons' message about the last step.
    pub(crate) message: String,
    /// How often it was resumed; null if its status does not have it.
    pub(crate) retry_count: Option<u32>,
    /// Its priority, 0 the most urgent; null if it is missing or invalid.
    pub(crate) priority: Option<u8>,
    /// The working storage that it needs, in bytes; 0 if unknown.
    pub(crate) space_needed_bytes: u64,
    /// The progress of its download; absent while no daemon of queuekeeper is downloading it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) download: Option<Download>,
    /// Its batch.
    pub(crate) batch: Option<String>,
    /// The mnemonic of its collection.
    pub(crate) collection: String,
    /// The depositor.
    pub(crate) submitter: String,
    /// When it was submitted.
    pub(crate) submitted: Option<Timestamp>,
    /// The name of its file.
    pub(crate) filename: String,
    /// Its title.
    pub(crate) title: String,
    /// Its ARK; empty if none has been minted or given by the depositor.
    pub(crate) ark: String,
    /// Its local ids, separated by semicolons.
    pub(crate) local_ids: String,
    /// The version of an object that it made; absent until it is recorded, and where this server has no catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<MadeVersion>,
    /// The copies of that object in other stores, with all its versions; empty if there is no mill.
    pub(crate) copies: Vec<ObjectCopy>,
    /// Why it is not known whether it made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_problem: Option<String>,
    /// The lock on it.
    pub(crate) lock: Option<JobLock>,
    /// Its queue entries: one in a healthy tree, while it is not done.
    pub(crate) entries: Vec<String>,
    /// Its batch's references to it: one in a healthy tree.
    pub(crate) references: Vec<String>,
    /// Its znodes that could not be read.
    pub(crate) unreadable: Vec<String>,
    /// Why it is not moving, or that it is moving.
    pub(crate) diagnosis: DiagnosisView,
    /// Its faults.
    pub(crate) faults: Vec<JobFault>,
    /// Its events since this process started to watch, oldest first, eight at most.
    pub(crate) history: Vec<JobEvent>,
    /// Its znodes as they are in ZooKeeper: itself first, then its children, at most sixteen of them.
    pub(crate) nodes: Vec<TreeNode>,
    /// Why its znodes, or some of them, cannot be read.
    pub(crate) nodes_problem: Option<String>,
    #[serde(skip)]
    pub(crate) known: Known,
}

/// The same in types.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) job: mirror::Job,
    pub(crate) diagnosis: insight::Diagnosis,
    pub(crate) faults: Vec<mirror::FoundFault>,
    pub(crate) past: Vec<PastEvent>,
    /// From where the sessions of its past and of its lock are connected, as far as that is known.
    pub(crate) addresses: HashMap<i64, Arc<str>>,
    pub(crate) nodes: Vec<mirror::Node>,
}

/// The lock on a job.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct JobLock {
    /// The session that holds it; null for a persistent lock.
    #[schema(value_type = Option<String>)]
    pub(crate) session: Option<Session>,
    /// When it was created.
    pub(crate) created: Timestamp,
}

/// A fault of a job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobFault {
    /// Which fault.
    #[schema(example = "missing_entry")]
    pub(crate) fault: &'static str,
    /// What it is called.
    pub(crate) title: &'static str,
    /// Since when the job has shown it.
    pub(crate) since: Timestamp,
    /// The symptom.
    pub(crate) how: &'static str,
    /// Its effect.
    pub(crate) effect: &'static str,
    /// How to repair it.
    pub(crate) fix: &'static str,
    /// The znodes involved, including missing ones.
    pub(crate) nodes: Vec<String>,
}

/// An event of a job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobEvent {
    /// When, to the second.
    pub(crate) at: Timestamp,
    /// `moved`, `resumed`, `locked`, `released` or `priority_changed`.
    pub(crate) event: &'static str,
    /// The state before; absent for none, and for events of other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<&'static str>,
    /// The state after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<&'static str>,
    /// The operator who made the change, with queuekeeper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    /// The reason that they gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The session of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) session: Option<Session>,
    /// From where the session is connected; absent if unknown (see `--mirror.session-addresses`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.0.5:40834 (worker1.example.org)")]
    pub(crate) address: Option<String>,
    /// The priority before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority_from: Option<u8>,
    /// The priority after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority_to: Option<u8>,
}

impl JobDetail {
    /// What is known of a job; `None` where there is none.
    pub(crate) async fn of(store: &MirrorStore, id: JobId, volume: Option<Volume>, now: Timestamp) -> Option<Self> {
        let job = store.job(id)?;
        let diagnosis = insight::why_job(store, id, volume, now)?;
        let space = volume.map(|volume| volume.left_bytes);
        let faults = store.faults_of(&Path::Job(id), now, space).unwrap_or_default();
        let past = store.past(id);
        let (nodes, nodes_problem) = match store.nodes().item(&NodePath::from(&Path::Job(id))).await {
            Ok(item) => {
                let (own, children) = &*item;
                let mut problem = None;
                let mut nodes = vec![own.clone()];
                for child in children {
                    match child {
                        Ok(child) => nodes.push(child.clone()),
                        Err(error) => problem = problem.or(Some(said(error))),
                    }
                }
                (nodes, problem)
            }
            Err(error) => (Vec::new(), Some(said(&error))),
        };
        let holder = job.lock.map(|lock| lock.session);
        let sessions = past.iter().filter_map(|event| event.what.session()).chain(holder);
        let addresses = sessions.filter_map(|session| Some((session, store.address(session)?))).collect();
        let known = Known { job, diagnosis, faults, past, addresses, nodes };
        Some(Self::new(known, nodes_problem, store.lock_created(id), store.progress(id)))
    }

    /// The same with the version that it made, as the catalogue has it.
    #[must_use]
    pub(crate) async fn with_object(mut self, objects: &Objects) -> Self {
        let is_configuration =
            |node: &&mirror::Node| node.path.known() == Path::JobNode(self.known.job.id, JobNode::Configuration);
        let configuration = self.known.nodes.iter().find(is_configuration);
        // Without an ARK it has stored nothing.
        let uuid = configuration.filter(|_| !self.ark.is_empty()).and_then(|node| spec::job_uuid(&node.data));
        let Some(uuid) = uuid else { return self };
        match objects.made_by(uuid).await {
            Ok(Some(made)) => {
                match objects.copies_of(&made.ark).await {
                    Ok(copies) => self.copies = copies,
                    Err(error) => self.object_problem = Some(error.to_string()),
                }
                self.object = Some(made);
            }
            Ok(None) => {}
            Err(error) => self.object_problem = Some(error.to_string()),
        }
        self
    }

    fn new(
        known: Known,
        nodes_problem: Option<String>,
        locked: Option<Timestamp>,
        progress: Option<JobProgress>,
    ) -> Self {
        let job = &known.job;
        Self {
            id: job.id.to_string(),
            state: mirror::state_label(job.state),
            status_text: Some(&job.status_text).filter(|text| !text.is_empty()).map(ToString::to_string),
            entered: job.entered,
            status_version: job.status_version,
            created: job.created,
            last_successful_status: job.last_successful.map(JobState::label),
            message: job.message.to_string(),
            retry_count: job.retry_count,
            priority: job.priority.map(Priority::number),
            space_needed_bytes: job.space_needed_bytes,
            download: progress.map(Download::from),
            batch: job.batch.map(|batch| batch.to_string()),
            collection: job.collection.to_string(),
            submitter: job.submitter.to_string(),
            submitted: job.submitted,
            filename: job.filename.clone(),
            title: job.title.clone(),
            ark: job.ark.clone(),
            local_ids: job.local_ids.clone(),
            object: None,
            copies: Vec::new(),
            object_problem: None,
            lock: job.lock.zip(locked).map(|(lock, created)| JobLock { session: Session::of(lock.session), created }),
            entries: job
                .entries
                .iter()
                .map(|(folder, entry)| Path::Entry(folder.clone(), *entry).to_string())
                .collect(),
            references: job.references.iter().map(|(batch, outcome)| reference(*batch, *outcome, job.id)).collect(),
            unreadable: job.unreadable.iter().map(|node| node_path(job.id, *node).to_string()).collect(),
            diagnosis: DiagnosisView::from(&known.diagnosis),
            faults: known.faults.iter().map(JobFault::from).collect(),
            history: known.past.iter().map(|event| JobEvent::new(event, &known.addresses)).collect(),
            nodes: known.nodes.iter().map(TreeNode::from).collect(),
            nodes_problem,
            known,
        }
    }
}

/// An error as a sentence.
fn said(error: &NodeError) -> String {
    let text = error.to_string();
    let mut characters = text.chars();
    let first: String = characters.next().map(char::to_uppercase).into_iter().flatten().collect();
    format!("{first}{}.", characters.as_str())
}

fn reference(batch: BatchId, outcome: JobOutcome, job: JobId) -> String {
    Path::Reference(batch, outcome, job).to_string()
}

fn node_path(job: JobId, node: Option<JobNode>) -> Path {
    node.map_or(Path::Job(job), |node| Path::JobNode(job, node))
}

impl From<&mirror::FoundFault> for JobFault {
    fn from(found: &mirror::FoundFault) -> Self {
        Self {
            fault: found.fault.label(),
            title: found.fault.title(),
            since: found.since,
            how: found.how,
            effect: found.effect,
            fix: found.fix,
            nodes: found.nodes.iter().map(ToString::to_string).collect(),
        }
    }
}

impl JobEvent {
    fn new(event: &PastEvent, addresses: &HashMap<i64, Arc<str>>) -> Self {
        let note = event.note.as_deref().and_then(OperatorNote::read);
        let mut view = Self {
            at: event.at,
            event: "moved",
            from: None,
            to: None,
            actor: note.map(|note| note.who.to_owned()),
            reason: note.map(|note| note.why.to_owned()),
            session: event.what.session().and_then(Session::of),
            address: event.what.session().and_then(|session| addresses.get(&session)).map(ToString::to_string),
            priority_from: None,
            priority_to: None,
        };
        match event.what {
            Happening::Moved { from, to, is_resumed, .. } => {
                view.event = if is_resumed { "resumed" } else { "moved" };
                (view.from, view.to) = (from.map(State::label), Some(mirror::state_label(to)));
            }
            Happening::Locked { .. } => view.event = "locked",
            Happening::Released { .. } => view.event = "released",
            Happening::Priority { from, to } => {
                view.event = "priority_changed";
                (view.priority_from, view.priority_to) = (Some(from), Some(to));
            }
        }
        view
    }
}
