//! The handle: what the rest of the program knows of alerts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore, watch};

use super::book::Book;
use super::foreign::Foreign;
use super::memory::{Memory, Together};
use super::metrics::Metrics;
use super::pace::Pace;
use super::rule::{Mode, Rule, Rules};
use super::run::Runner;
use super::select::Sight;
use crate::actions::audit::{ActionId, Record};
use crate::actions::{Actions, Actor, Reason, Refusal, Role, Source};
use crate::mirror::Store;
use queuekeeper_zookeeper::coordination::{self, Coordination, CoordinationError, Snapshot, Wanted, Write};

/// How many calls are looked after at once.
const MOST_CALLS: usize = 16;

/// How many bytes of working storage a job may need and not be kept back; `None` where that is not measured.
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
    pub(super) store: Store,
    pub(super) space: Space,
    pub(super) actions: Actions,
    pub(super) coordination: Coordination,
    pub(super) rules: RwLock<Arc<Rules>>,
    pub(super) metrics: Metrics,
    pub(super) book: Book,
    /// What rules in dry run would remember: only here, and only until the process ends.
    pub(super) dry: Mutex<Dry>,
    /// What stood below `/queuekeeper` when it was last looked at, and when; `None` before, and while it cannot be read.
    pub(super) seen: RwLock<Option<(Snapshot, Timestamp)>>,
    /// Why our own znodes cannot be read, as long as that is so.
    pub(super) unread: RwLock<Option<Foreign>>,
    /// What the log has said that stays so until somebody does something about it, by what it is about.
    pub(super) said: Mutex<BTreeMap<String, String>>,
    pub(super) calls: Semaphore,
    pub(super) pace: Pace,
    /// A decision was just accepted here.
    pub(super) wake: Notify,
    wanted: watch::Sender<Wanted>,
}

/// What rules in dry run would remember.
#[derive(Debug, Default)]
pub(super) struct Dry {
    pub(super) memories: BTreeMap<String, Memory>,
    pub(super) together: Together,
}

/// Why somebody could not change how rules act.
#[derive(Debug, thiserror::Error)]
pub enum NotChanged {
    /// He may not, or the action cannot be written down.
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
    /// Alerts by these rules. The returned part carries decisions out; nothing is, unless it runs.
    #[must_use]
    pub fn new(
        store: Store,
        space: impl Fn() -> Option<i64> + Send + Sync + 'static,
        actions: Actions,
        coordination: Coordination,
        rules: Rules,
        metrics: Metrics,
    ) -> (Self, Runner) {
        let shared = Shared {
            store,
            space: Arc::new(space),
            actions,
            coordination,
            wanted: watch::Sender::new(wanted_by(&rules)),
            rules: RwLock::new(Arc::new(rules)),
            metrics,
            book: Book::default(),
            dry: Mutex::default(),
            seen: RwLock::default(),
            unread: RwLock::default(),
            said: Mutex::default(),
            calls: Semaphore::new(MOST_CALLS),
            pace: Pace::default(),
            wake: Notify::new(),
        };
        let alerts = Self { shared: Arc::new(shared) };
        (alerts.clone(), Runner::new(alerts))
    }

    /// The rules as they are now.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.shared.rules.read())
    }

    /// Takes other rules. What was accepted by the ones before is carried out by these.
    pub fn set_rules(&self, rules: Rules) {
        let new = wanted_by(&rules);
        *self.shared.rules.write() = Arc::new(rules);
        // Who has acted once stays: what was accepted has to be done, and what rules that are gone hold must be seen.
        self.shared.wanted.send_if_modified(|wanted| {
            let is_more = new > *wanted;
            *wanted = new.max(*wanted);
            is_more
        });
    }

    /// Tells what our own znodes are wanted for.
    #[must_use]
    pub fn wanted(&self) -> watch::Receiver<Wanted> {
        self.shared.wanted.subscribe()
    }

    /// Counts a call of somebody who may not.
    pub fn count_unauthorized(&self) {
        self.shared.metrics.count(super::Outcome::Unauthorized);
    }

    /// Closes a rule's breaker, whoever leads, and lets it try again what it has left to a person.
    ///
    /// # Errors
    /// When there is no such rule, it has neither an open breaker nor given up on anything, the actor may not, or it cannot
    /// be written.
    pub async fn reset(&self, rule: &str, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let rules = self.rules();
        let known = rules.get(rule).ok_or_else(|| Refusal::Missing(format!("there is no rule {rule}")))?;
        let (shared, on) = (&self.shared, format!("rule:{rule}"));
        shared.written_down("reset_breaker", &on, (actor, reason, now), shared.close_breaker(known)).await?;
        shared.look_again().await;
        Ok(())
    }

    /// Stops all automatic action, of all processes, until it is unpaused.
    ///
    /// # Errors
    /// When it is paused already, there are no rules, the actor may not, or it cannot be written.
    pub async fn pause(&self, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let note = serde_json::json!({ "who": actor.name, "why": reason.as_str(), "since": now.to_string() });
        let pause = async {
            match self.shared.coordination.pause(note.to_string().into_bytes()).await {
                Err(CoordinationError::Changed { .. }) => {
                    Err(NotChanged::Already("automatic action is paused already".to_owned()))
                }
                paused => Ok(paused?),
            }
        };
        self.shared.written_down("pause_rules", "rules", (actor, reason, now), pause).await?;
        self.shared.look_again().await;
        Ok(())
    }

    /// Lets automatic action go on.
    ///
    /// # Errors
    /// When it is not paused, there are no rules, the actor may not, or it cannot be written.
    pub async fn unpause(&self, actor: &Actor, reason: &Reason, now: Timestamp) -> Result<(), NotChanged> {
        let unpause = async {
            match self.shared.coordination.unpause().await {
                Err(CoordinationError::Changed { .. }) => {
                    Err(NotChanged::Already("automatic action is not paused".to_owned()))
                }
                unpaused => Ok(unpaused?),
            }
        };
        self.shared.written_down("unpause_rules", "rules", (actor, reason, now), unpause).await?;
        self.shared.look_again().await;
        Ok(())
    }
}

fn wanted_by(rules: &Rules) -> Wanted {
    match (rules.rules.is_empty(), rules.act()) {
        (true, _) => Wanted::Nothing,
        (false, false) => Wanted::Reading,
        (false, true) => Wanted::Acting,
    }
}

fn may(actor: &Actor) -> Result<(), Refusal> {
    let needs = Role::Operator;
    if actor.role >= needs { Ok(()) } else { Err(Refusal::Forbidden { needs, has: actor.role }) }
}

impl Shared {
    async fn close_breaker(&self, rule: &Rule) -> Result<(), NotChanged> {
        let name = &rule.name;
        let closed = || {
            NotChanged::Already(format!(
                "the breaker of the rule {name} is not open, and it has not given up on anything"
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
            Refusal::Failed(format!("what the rule {name} remembers cannot be read; delete {path} to begin anew"))
        })?;
        if memory.breaker.take().is_none() && memory.left.is_empty() {
            return Err(closed());
        }
        // Whoever closes it has looked: what was left to him may be tried again.
        memory.left.clear();
        memory.forget_attempts(None);
        Ok(self.coordination.commit(&[Write::Set(coordination::rule(name), memory.data(), node.version)]).await?)
    }

    /// Does what somebody requested of the rules themselves, written down before and after.
    async fn written_down(
        &self,
        action: &str,
        on: &str,
        (actor, reason, now): (&Actor, &Reason, Timestamp),
        work: impl Future<Output = Result<(), NotChanged>>,
    ) -> Result<(), NotChanged> {
        may(actor)?;
        if self.rules.read().rules.is_empty() {
            return Err(Refusal::Missing("this server has no rules".to_owned()).into());
        }
        let (id, began) = (ActionId::new(now), Instant::now());
        let requested = Record::Requested {
            id,
            at: now,
            actor: actor.name.clone(),
            role: actor.role.label().to_owned(),
            source: actor.source.label().to_owned(),
            from: actor.from.map(|from| from.to_string()),
            action: action.to_owned(),
            targets: vec![on.to_owned()],
            count: 1,
            reason: reason.to_string(),
            before: None,
            after: None,
            before_each: Vec::new(),
            to: None,
            priority: None,
            force: false,
            with_jobs: false,
            operations: Vec::new(),
        };
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
        let record = Record::Outcome {
            id,
            at: now + began.elapsed(),
            target: None,
            outcome: outcome.to_owned(),
            detail: done.as_ref().err().map(ToString::to_string),
            before: None,
            after: None,
            cancelled_by: None,
            duration_seconds: began.elapsed().as_secs_f64(),
            by_alert: actor.source == Source::Alert,
        };
        if let Err(why) = self.actions.audit().write(record).await {
            tracing::error!(action = %id, "{why}; the action was carried out, and what came of it is not recorded");
        }
        self.wake.notify_one();
        done
    }

    /// The queue as it is at this moment.
    pub(super) fn sight(&self, now: Timestamp) -> Sight<'_> {
        Sight { store: &self.store, space: (self.space)(), now }
    }

    /// Whether the image can be acted upon; if not, why.
    pub(super) fn check_synced(&self, now: Timestamp) -> Result<(), String> {
        /// How far an image may be behind that is acted upon: events under load are gathered for some 10 ms.
        const BEHIND: std::time::Duration = std::time::Duration::from_secs(2);
        let freshness = self.store.freshness();
        if !freshness.is_connected() {
            Err("ZooKeeper is not connected".to_owned())
        } else if !freshness.is_synced() || self.store.behind(now) > BEHIND {
            Err("the image of the queue is behind".to_owned())
        } else {
            Ok(())
        }
    }
}
