//! What people do to the mill: decisions on tasks that wait for them, repairs, pauses, and changes of policies.
//!
//! Each is recorded before anything is changed and afterwards, with its reason and what came of it, and counted as the
//! actions on the queue are. They need no ZooKeeper.

mod adoptions;
mod checks;
mod kind;
mod pauses;
mod policies;
mod repairs;
mod resolution;
mod stops;
mod tasks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::PolicySource;
use tokio_util::task::TaskTracker;

pub use kind::MillActionKind;
pub use pauses::{PauseChange, pause_scope};
pub use queuekeeper_catalogue::tasks::{Decided, TaskState};
pub use repairs::WrongCopy;
pub use resolution::Resolution;
pub use stops::StopChange;
pub use tasks::{MOST_TASKS, TaskDecision};

use super::accept::Actions;
use super::actor::{Actor, Role};
use super::audit::{ActionId, Audit, Entry, Finished, Record};
use super::metrics::Metrics;
use super::reason::Reason;
use super::refusal::Refusal;
use super::shared::Shared;

/// Opens the place of the policies for changes in the name of a user, which are recorded.
pub type OpenPolicies = Arc<dyn Fn(String) -> BoxFuture<'static, anyhow::Result<PolicySource>> + Send + Sync>;

/// What of the mill is changed.
#[derive(Clone)]
pub struct MillParts {
    /// Its tasks, and the policies in force.
    pub catalogue: Catalogue,
    /// Its accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The files of their policies.
    pub open: OpenPolicies,
}

/// The actions on the mill; cheap to clone.
#[derive(Clone)]
pub struct MillActions {
    mill: Arc<MillParts>,
    audit: Audit,
    metrics: Metrics,
    tasks: TaskTracker,
}

impl fmt::Debug for MillActions {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("MillActions").field("accounts", &self.mill.accounts).finish_non_exhaustive()
    }
}

/// What is requested, as it is recorded.
struct Requested {
    kind: MillActionKind,
    targets: Vec<String>,
    /// The state of each target; empty where it has none.
    before_each: Vec<String>,
    /// The state of the only target, before and after, where there is one and it is to be changed.
    change: (Option<String>, Option<String>),
    /// What is to be done, in words.
    operations: Vec<String>,
    actor: Actor,
    reason: Reason,
}

/// What came of it.
struct Ended {
    /// For each target, where there may be several.
    items: Vec<Finished>,
    /// The label of the outcome of the whole and what was done; or why nothing or not all was.
    whole: Result<(&'static str, Option<String>), Refusal>,
}

impl MillActions {
    /// Those of a server, recorded and counted with its other actions.
    #[must_use]
    pub fn new(actions: &Actions, mill: MillParts) -> Self {
        let Shared { audit, metrics, tasks, .. } = &*actions.shared;
        metrics.begin(MillActionKind::ALL.map(MillActionKind::label));
        Self { mill: Arc::new(mill), audit: audit.clone(), metrics: metrics.clone(), tasks: tasks.clone() }
    }

    /// Those of the command line.
    #[must_use]
    pub fn recorded_by(audit: Audit, mill: MillParts) -> Self {
        Self { mill: Arc::new(mill), audit, metrics: Metrics::default(), tasks: TaskTracker::new() }
    }

    /// Refuses who may not, and counts that.
    fn check_role(&self, kind: MillActionKind, actor: &Actor) -> Result<(), Refusal> {
        self.check_given_role(kind, actor, kind.role())
    }

    fn check_given_role(&self, kind: MillActionKind, actor: &Actor, needs: Role) -> Result<(), Refusal> {
        Shared::require_role(actor, needs).map_err(|refusal| self.refused(kind, actor, refusal))
    }

    /// Counts what is refused before it is recorded.
    fn refused(&self, kind: MillActionKind, actor: &Actor, refusal: Refusal) -> Refusal {
        self.metrics.count(kind.label(), actor.source, refusal.label());
        refusal
    }

    /// Records a request, carries it out, and records what came of it. It goes on where its caller does not wait for
    /// it.
    async fn run(
        &self,
        requested: Requested,
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<Entry, Refusal> {
        if self.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is shutting down; nothing was done".to_owned()));
        }
        let actions = self.clone();
        let task = self.tasks.spawn(async move { actions.record(requested, work).await });
        task.await.unwrap_or_else(|error| Err(Refusal::Unknown(format!("the action was interrupted: {error}"))))
    }

    async fn record(&self, requested: Requested, work: impl Future<Output = Ended>) -> Result<Entry, Refusal> {
        let Requested { kind, targets, before_each, change, operations, actor, reason } = requested;
        let (began, now) = (Instant::now(), Timestamp::now());
        let id = ActionId::new(now);
        let record = Record::requested(id, now, &actor, kind.label(), &reason).on(targets);
        if let Err(why) = self.audit.write(record.with(before_each, operations).between(change.0, change.1)).await {
            return Err(self.refused(kind, &actor, why.into()));
        }
        let Ended { items, whole } = work.await;
        let duration = began.elapsed();
        let (outcome, detail) = match &whole {
            Ok((outcome, detail)) => (*outcome, detail.clone()),
            Err(refusal) => (refusal.label(), Some(refusal.to_string())),
        };
        if items.is_empty() {
            self.metrics.count(kind.label(), actor.source, outcome);
        }
        for item in &items {
            self.metrics.count(kind.label(), actor.source, item.outcome);
        }
        let finished = items.into_iter().chain([Finished { outcome, detail, ..Finished::default() }]);
        let finished = finished.map(|finished| Record::outcome(id, now + duration, actor.source, duration, finished));
        if let Err(why) = self.audit.write_all(finished.collect()).await {
            tracing::error!(action = %id, "{why}; the action was executed, but its outcome was not recorded");
        }
        whole?;
        self.audit.entry(id).ok_or_else(|| Refusal::Unknown("the action is no longer among the newest".to_owned()))
    }
}
