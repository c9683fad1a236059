//! `queuekeeper job`: one job.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;

use super::act::ActArgs;
use super::actions::{act_on_one, break_lock};
use super::client::{ClientArgs, job_id};
use super::exit::{CommandError, NOT_FOUND};
use super::output::{Screen, without_csv};
use super::verbs::{self, ParameterArgs};
use super::words::{ago, moment, number, size};
use crate::actions::{ActionKind, JobAction, LockAction, Target, TargetKind};
use crate::views::diagnosis::DiagnosisView;
use crate::views::job::JobDetail;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{JobNode, Path};

/// Show a job, diagnose why it is not moving, or execute an action on it
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
#[command(mut_arg("force", |force| force.help("Break a lock that is not a fault; its daemon may still be working")))]
pub(super) struct JobArgs {
    /// The job: jid and ten digits, or the number in it
    #[arg(value_name = "JID")]
    job: String,

    /// The action [default: show the job]
    #[arg(value_name = "ACTION", value_parser = JobVerb::parser())]
    action: Option<JobVerb>,

    #[command(flatten)]
    parameters: ParameterArgs<JobAction>,

    #[command(flatten)]
    of_lock: ParameterArgs<LockAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// The actions on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobVerb {
    Why,
    BreakLock,
    Act(ActionKind),
}

impl JobVerb {
    fn parser() -> impl TypedValueParser<Value = Self> {
        let lock = TargetKind::Lock;
        let why = PossibleValue::new(WHY).help("Show why it is not moving, or that it is moving");
        let names = [why].into_iter().chain(verbs::values(TargetKind::Job)).chain(verbs::values(lock));
        PossibleValuesParser::new(names).try_map(|name| {
            let kind = ActionKind::ALL.into_iter().find(|kind| kind.command() == name);
            match kind {
                None if name == WHY => Ok(Self::Why),
                None => Err("there is no such action"),
                Some(ActionKind::BreakLock) => Ok(Self::BreakLock),
                Some(kind) => Ok(Self::Act(kind)),
            }
        })
    }
}

const WHY: &str = "why";

impl JobArgs {
    /// Shows it, or executes an action on it.
    ///
    /// # Errors
    /// When it cannot be read, does not exist, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let id = job_id(&self.job)?;
        let is_of_lock = self.action == Some(JobVerb::BreakLock);
        self.of_lock.check(is_of_lock.then_some(ActionKind::BreakLock))?;
        match self.action {
            None => self.show(id).await,
            Some(JobVerb::Why) => self.why(id).await,
            Some(JobVerb::BreakLock) => {
                self.parameters.check(None)?;
                let lock = Path::JobNode(id, JobNode::Lock);
                break_lock(&self.client, &self.act, lock, &self.of_lock).await
            }
            Some(JobVerb::Act(kind)) => {
                let action = verbs::action(kind, Target::Job(id), self.parameters.of(kind)?)?;
                act_on_one(&self.client, &self.act, action).await
            }
        }
    }

    /// Shows the job, and why it is not moving; to a program the job alone, without reading any other.
    async fn show(&self, id: JobId) -> anyhow::Result<()> {
        self.parameters.check(None)?;
        let is_alone = self.client.output.is_json();
        let job = self.client.ask(async |link| {
            let store = if is_alone { link.job(id).await? } else { Some(link.store(true).await?) };
            let store = store.filter(|store| store.job(id).is_some()).ok_or_else(|| missing(id))?;
            let now = Timestamp::now();
            Ok((link.source(&store).job(&id.to_string(), now).await.map_err(CommandError::from)?, now))
        });
        let (job, now) = job.await?;
        self.client.output.show(&alone(&job)?, |screen| {
            card(&job, now, screen);
            screen.gap();
            explain(&job.diagnosis, now, screen);
        })
    }

    async fn why(&self, id: JobId) -> anyhow::Result<()> {
        self.parameters.check(None)?;
        let diagnosis = self.client.ask(async |link| {
            let store = link.store(true).await?;
            // After the walk: what both walks found has lasted until now.
            let now = Timestamp::now();
            Ok((link.source(&store).job_diagnosis(&id.to_string(), now).map_err(CommandError::from)?, now))
        });
        let (diagnosis, now) = diagnosis.await?;
        self.client.output.show(&diagnosis, |screen| explain(&diagnosis, now, screen))
    }
}

fn missing(id: JobId) -> CommandError {
    CommandError::new(NOT_FOUND, format!("there is no job {id}; a purged job cannot be restored"))
}

/// The job with the API's field names, without the fields that depend on the whole queue.
fn alone(job: &JobDetail) -> serde_json::Result<serde_json::Value> {
    let mut job = serde_json::to_value(job)?;
    if let Some(fields) = job.as_object_mut() {
        for field in ["diagnosis", "faults", "history"] {
            fields.shift_remove(field);
        }
    }
    Ok(job)
}

fn card(job: &JobDetail, now: Timestamp, screen: &mut Screen) {
    let odd = job.status_text.as_ref().map(|text| format!(", by its status “{text}”")).unwrap_or_default();
    screen.fact("Job", &job.id);
    screen.fact("State", &format!("{}{odd}", job.state));
    screen.fact("Since", &moment(job.entered, now));
    screen.fact("Message", &job.message);
    screen.fact("Last success", job.last_successful_status.unwrap_or_default());
    screen.fact("Retries", &number(job.retry_count));
    screen.fact("Priority", &number(job.priority));
    screen.fact("Space needed", &size(job.space_needed_bytes));
    if let Some(download) = &job.download {
        screen.fact("Downloaded", &download.whole());
        for file in &download.fetching {
            screen.fact("Downloading", &format!("{}, {}", file.name, file.words()));
        }
    }
    let lock = job.lock.map(|lock| {
        let session = lock.session.map_or("no session".to_owned(), |session| format!("session {session}"));
        format!("by {session}, for {}", ago(Some(lock.created), now))
    });
    screen.fact("Locked", &lock.unwrap_or_default());
    screen.fact("Batch", &number(job.batch.as_ref()));
    screen.fact("Collection", &job.collection);
    screen.fact("Submitter", &job.submitter);
    screen.fact("Submitted", &moment(job.submitted, now));
    screen.fact("File", &job.filename);
    screen.fact("Title", &job.title);
    screen.fact("ARK", &job.ark);
    screen.fact("Local ids", &job.local_ids);
    for entry in &job.entries {
        screen.fact("Queue entry", entry);
    }
    for reference in &job.references {
        screen.fact("Reference", reference);
    }
    for path in &job.unreadable {
        screen.fact("Unreadable", path);
    }
    screen.fact("Znodes", &job.nodes_problem.clone().unwrap_or_default());
}

/// What only the diagnosis of a running server includes.
const UNSEEN: &str = "Not included: working storage, and how fast jobs move. A running server (queuekeeper serve) \
                      knows both.";

/// Shows why something is not moving, or that it is moving.
pub(super) fn explain(diagnosis: &DiagnosisView, now: Timestamp, screen: &mut Screen) {
    screen.say(&diagnosis.headline);
    for cause in &diagnosis.causes {
        screen.gap();
        screen.item("- ", &cause.sentence);
        if !cause.evidence.is_empty() {
            screen.beneath(&cause.evidence);
        }
        if cause.since.is_some() {
            screen.beneath(&format!("Since {}.", moment(cause.since, now)));
        }
        if let Some(fix) = cause.fix {
            screen.beneath(&format!("Fix: {fix}"));
        }
        for item in &cause.items {
            screen.entry_beneath(item);
        }
        if cause.more_items > 0 {
            screen.beneath(&format!("and {} more", cause.more_items));
        }
    }
    screen.gap();
    screen.say(UNSEEN);
}
