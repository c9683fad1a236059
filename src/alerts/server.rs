//! The handle through which the rest of the program uses alerts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore, watch};

use super::act::UnansweredEnd;
use super::foreign::Foreign;
use super::memory::{Memory, SharedBudget};
use super::metrics::Metrics;
use super::payload::Alert;
use super::rate_limit::CallLimiter;
use super::recent::RecentDecisions;
use super::rule::{Mode, Rule, Rules};
use super::select::QueueView;
use crate::actions::audit::{ActionId, Finished, Record};
use crate::actions::{Actions, Actor, Reason, Refusal, Role};
use crate::mirror::MirrorStore;
use queuekeeper_zookeeper::coordination::{self, Coordination, CoordinationError, CoordinationMode, Snapshot, Write};

/// How many calls are processed concurrently.
const MAX_CALLS: usize = 16;

/// The label with the name of a queue, where one server serves several.
const DEPLOYMENT: &str = "deployment";

/// The working storage in bytes that a job may need without having to wait; `None` if it is not measured.
pub(super) type Space = Arc<dyn Fn() -> Option<i64> + Send + Sync>;

/// Alerts that act; cheap to clone.
#[derive(Clone)]
pub struct Alerts {
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts").field("rules", &self.rules()).finish_non_exhaustive()
    }
}

pub(super) struct Shared {
    pub(super) store: MirrorStore,
    pub(super) space: Space,
    pub(super) actions: Actions,
    pub(super) coordination: Coordination,
    pub(super) rules: RwLock<Arc<Rules>>,
    pub(super) metrics: Metrics,
    pub(super) recent: RecentDecisions,
    /// The state of rules in dry run, which is kept in this process only.
    pub(super) dry: Mutex<Dry>,
    /// The znodes below `/queuekeeper` when they were last read; `None` before, and if they cannot be read.
    pub(super) seen: RwLock<Option<(Snapshot, Timestamp)>>,
    /// Why they cannot be read, if so.
    pub(super) unread: RwLock<Option<Foreign>>,
    /// The ends of decisions that were written without an answer, by decision.
    pub(super) unanswered: Mutex<BTreeMap<ActionId, UnansweredEnd>>,
    /// The conditions that were logged and persist, by their subject, so that each is logged once.
    pub(super) logged: Mutex<BTreeMap<String, String>>,
    pub(super) calls: Semaphore,
    pub(super) pace: CallLimiter,
    /// Notified when a decision was accepted here.
    pub(super) wake: Notify,
    /// The name of the queue, where one server serves several; empty where it has none.
    deployment: OnceLock<String>,
    wanted: watch::Sender<CoordinationMode>,
}

/// The state of rules in dry run.
#[derive(Debug, Default)]
pub(super) struct Dry {
    pub(super) memories: BTreeMap<String, Memory>,
    pub(super) shared_budget: SharedBudget,
}

/// Why a request about the rules failed.
#[derive(Debug, thiserror::Error)]
pub enum NotChanged {
    /// The role does not suffice, or the request cannot be recorded.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is so already, or there is no such thing.
    #[error("{0}")]
    Already(String),
    /// Our own znodes cannot be read or written.
    #[error("nothing was changed: {0}")]
    Coordination(#[from] CoordinationError),
}

impl Alerts {
    /// Alerts with these rules; [`Alerts::runner`] executes the decisions.
    #[must_use]
    pub fn new(
        store: MirrorStore,
        space: impl Fn() -> Option<i64> + Send + Sync + 'static,
        actions: Actions,
        coordination: Coordination,
        rules: Rules,
        metrics: Metrics,
    ) -> Self {
        let shared = Shared {
            store,
            space: Arc::new(space),
            actions,
            coordination,
            wanted: watch::Sender::new(wanted_by(&rules)),
            rules: RwLock::new(Arc::new(rules)),
            metrics,
            recent: RecentDecisions::default(),
            dry: Mutex::default(),
            seen: RwLock::default(),
            unread: RwLock::default(),
            unanswered: Mutex::default(),
            logged: Mutex::default(),
            calls: Semaphore::new(MAX_CALLS),
            pace: CallLimiter::default(),
            wake: Notify::new(),
            deployment: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same for one queue of several: no rule acts on an alert without its name in the label `deployment`.
    #[must_use]
    pub fn of_deployment(self, name: &str) -> Self {
        // It is new, so that there is none yet.
        let _ = self.shared.deployment.set(name.to_owned());
        self
    }

    /// The current rules.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.shared.rules.read())
    }

    /// Replaces the rules. Decisions accepted before are executed by the new ones.
    pub fn set_rules(&self, rules: Rules) {
        let new = wanted_by(&rules);
        *self.shared.rules.write() = Arc::new(rules);
        // Once a rule has enforced, this stays: accepted decisions have to be executed, and holds of removed rules
        // shown.
        self.shared.wanted.send_if_modified(|wanted| {
            let is_more = new > *wanted;
            *wanted = new.max(*wanted);
            is_more
        });
    }

    /// Which of our own znodes are needed.
    #[must_use]
    pub fn wanted(&self) -> watch::Receiver<CoordinationMode> {
        self.shared.wanted.subscribe()
    }

    /// Counts a call that was not authorized.
    pub fn count_unauthorized(&self) {
        self.shared.metrics.count(super::AlertOutcome::Unauthorized);
    }

    /// Closes a rule's breaker, whichever process is the leader, and resets the attempts on items that it has left to a
    /// user.
    ///
    /// # Errors
    /// When there is no such rule, it has neither an open breaker nor items left to a user, the role does not suffice,
    /// or the znodes cannot be written.
    pub async fn reset(&self, rule: &str, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let rules = self.rules();
        let known = rules.get(rule).ok_or_else(|| Refusal::Missing(format!("unknown rule {rule}")))?;
        let (shared, on) = (&self.shared, format!("rule:{rule}"));
        shared.recorded("reset_breaker", &on, (actor, reason, now), shared.close_breaker(known)).await?;
        shared.refresh().await;
        Ok(())
    }

    /// Pauses automatic actions of all processes.
    ///
    /// # Errors
    /// When they are paused already, there are no rules, the role does not suffice, or the znode cannot be written.
    pub async fn pause(&self, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let note = serde_json::json!({ "who": actor.name, "why": reason.as_str(), "since": now.to_string() });
        let pause = async {
            match self.shared.coordination.pause(note.to_string().into_bytes()).await {
                Err(CoordinationError::Changed { .. }) => {
                    Err(NotChanged::Already("automatic actions are already paused".to_owned()))
                }
                paused => Ok(paused?),
            }
        };
        self.shared.recorded("pause_rules", "rules", (actor, reason, now), pause).await?;
        self.shared.refresh().await;
        Ok(())
    }

    /// Resumes automatic actions.
    ///
    /// # Errors
    /// When they are not paused, there are no rules, the role does not suffice, or the znode cannot be deleted.
    pub async fn unpause(&self, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let unpause = async {
            match self.shared.coordination.unpause().await {
                Err(CoordinationError::Changed { .. }) => {
                    Err(NotChanged::Already("automatic actions are not paused".to_owned()))
                }
                unpaused => Ok(unpaused?),
            }
        };
        self.shared.recorded("unpause_rules", "rules", (actor, reason, now), unpause).await?;
        self.shared.refresh().await;
        Ok(())
    }
}

fn wanted_by(rules: &Rules) -> CoordinationMode {
    match (rules.rules.is_empty(), rules.act()) {
        (true, _) => CoordinationMode::ClockOnly,
        (false, false) => CoordinationMode::ReadOnly,
        (false, true) => CoordinationMode::Active,
    }
}

fn require_operator(actor: &Actor) -> Result<(), Refusal> {
    let needs = Role::Operator;
    if actor.role >= needs { Ok(()) } else { Err(Refusal::Forbidden { needs, has: actor.role }) }
}

impl Shared {
    async fn close_breaker(&self, rule: &Rule) -> Result<(), NotChanged> {
        let name = &rule.name;
        let closed = || {
            NotChanged::Already(format!(
                "the breaker of the rule {name} is not open, and it has left no items to an operator"
            ))
        };
        if rule.mode != Mode::Enforce {
            let mut dry = self.dry.lock();
            return dry.memories.get_mut(name).and_then(|memory| memory.breaker.take()).map(|_| ()).ok_or_else(closed);
        }
        let snapshot = self.coordination.read().await?;
        let node = snapshot.rules.get(name).ok_or_else(closed)?;
        let mut memory = Memory::read(&node.data).map_err(|_| {
            let path = coordination::rule(name);
            Refusal::Failed(format!("the state of the rule {name} is not valid; delete {path} to reset it"))
        })?;
        if memory.breaker.take().is_none() && memory.left.is_empty() {
            return Err(closed());
        }
        // The items that were left to a user may be tried again.
        memory.left.clear();
        memory.forget_attempts(None);
        Ok(self.coordination.commit(&[Write::Set(coordination::rule(name), memory.data(), node.version)]).await?)
    }

    /// Executes a request about the rules themselves, recorded before and after.
    async fn recorded(
        &self,
        action: &str,
        on: &str,
        (actor, reason, now): (&Actor, &Reason, Timestamp),
        work: impl Future<Output = Result<(), NotChanged>>,
    ) -> Result<(), NotChanged> {
        require_operator(actor)?;
        if self.rules.read().rules.is_empty() {
            return Err(Refusal::Missing("this server has no rules".to_owned()).into());
        }
        let (id, began) = (ActionId::new(now), Instant::now());
        let requested = Record::requested(id, now, actor, action, reason).on(vec![on.to_owned()]);
        let unwritten = |why| Refusal::Unavailable(format!("{why}; nothing was done"));
        self.actions.audit().write(requested).await.map_err(unwritten)?;
        let done = work.await;
        let outcome = match &done {
            Ok(()) => "done",
            Err(NotChanged::Already(_)) => "conflict",
            Err(NotChanged::Refused(refusal)) => refusal.label(),
            Err(NotChanged::Coordination(CoordinationError::Unanswered(_))) => "unknown",
            Err(NotChanged::Coordination(_)) => "failed",
        };
        let detail = done.as_ref().err().map(ToString::to_string);
        let (finished, duration) = (Finished { outcome, detail, ..Finished::default() }, began.elapsed());
        let record = Record::outcome(id, now + duration, actor.source, duration, finished);
        if let Err(why) = self.actions.audit().write(record).await {
            tracing::error!(action = %id, "{why}; the action was executed, but its outcome was not recorded");
        }
        self.wake.notify_one();
        done
    }

    /// Why an alert is not about this queue; `None` if it is.
    pub(super) fn other_queue(&self, alert: &Alert) -> Option<String> {
        let own = self.deployment.get()?;
        match alert.labels.get(DEPLOYMENT) {
            Some(name) if name == own => None,
            Some(_) => Some(format!("its label {DEPLOYMENT} names another queue than {own}")),
            None => Some(format!("it has no label {DEPLOYMENT}, so it may be about another queue than {own}")),
        }
    }

    /// The queue at this moment.
    pub(super) fn queue_view(&self, now: Timestamp) -> QueueView<'_> {
        QueueView { store: &self.store, space: (self.space)(), now }
    }

    /// Whether the mirror is current enough to act on; if not, why.
    pub(super) fn check_synced(&self, now: Timestamp) -> Result<(), String> {
        /// The maximum lag: under load the mirror collects events for some 10 ms.
        const MAX_LAG: std::time::Duration = std::time::Duration::from_secs(2);
        let freshness = self.store.freshness();
        if !freshness.is_connected() {
            Err("ZooKeeper is not connected".to_owned())
        } else if !freshness.is_synced() || self.store.behind(now) > MAX_LAG {
            Err("the mirror is behind".to_owned())
        } else {
            Ok(())
        }
    }
}
