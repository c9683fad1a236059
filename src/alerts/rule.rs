//! Rules: the response to an alert.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::payload::Alert;
use crate::actions::{ActionKind, Fault, JobState, RepairKind, State as _};

/// The mode of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is ignored.
    Off,
    /// It reports what it would do.
    #[default]
    DryRun,
    /// It acts.
    Enforce,
}

macro_rules! labelled {
    ($type:ident { $($value:ident $label:literal),+ $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$value),+];

            /// The name in the configuration.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$value => $label),+ }
            }

            /// The value with that name.
            #[must_use]
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.label() == label)
            }
        }
    };
}

labelled!(Mode { Off "off", DryRun "dry-run", Enforce "enforce" });

/// The items on which a rule acts, and which of them its selector may have.
#[derive(Clone, Copy, Debug)]
pub enum RuleItems {
    /// Collections whose jobs in these states need working storage.
    Collections(&'static [JobState]),
    /// Jobs in these states.
    Jobs(&'static [JobState]),
    /// Faults for which this is true.
    Faults(fn(Fault) -> bool),
    /// Locks that show a fault for which this is true.
    Locks(fn(Fault) -> bool),
}

macro_rules! rule_actions {
    ($( $(#[$doc:meta])* $action:ident {
        label: $label:literal, kind: $kind:ident, past: $past:literal, items: $items:expr, sentence: $sentence:literal $(,)?
    } )+) => {
        /// What a rule may do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RuleAction { $( $(#[$doc])* $action, )+ }

        labelled!(RuleAction { $($action $label),+ });

        impl RuleAction {
            /// The action on each item. Role, destructiveness and verb of the rule's action are those of this kind.
            #[must_use]
            pub fn kind(self) -> ActionKind {
                match self { $(Self::$action => ActionKind::$kind),+ }
            }

            /// What was done to the items, as a verb in the past tense.
            #[must_use]
            pub fn past(self) -> &'static str {
                match self { $(Self::$action => $past),+ }
            }

            /// The items.
            #[must_use]
            pub fn items(self) -> RuleItems {
                match self { $(Self::$action => $items),+ }
            }

            /// The beginning of the sentence on what a rule does.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$action => $sentence),+ }
            }
        }
    };
}

rule_actions! {
    /// Holds collections that wait for working storage, those whose jobs need most first. The holds are released when
    /// the alert is resolved, if the rule is configured to.
    HoldCollections {
        label: "hold_collections", kind: Hold, past: "held",
        items: RuleItems::Collections(&[JobState::Provisioning, JobState::Estimating, JobState::Pending]),
        sentence: "Holds the collections",
    }
    /// Resumes failed jobs.
    ResumeJobs {
        label: "resume_jobs", kind: Resume, past: "resumed",
        items: RuleItems::Jobs(&[JobState::Failed]),
        sentence: "Resumes jobs",
    }
    /// Releases Held jobs whose collection is not held.
    ReleaseJobs {
        label: "release_jobs", kind: Release, past: "released",
        items: RuleItems::Jobs(&[JobState::Held]),
        sentence: "Releases Held jobs of collections that are not held",
    }
    /// Repairs faults by removing or creating an entry or a reference; other repairs are destructive and not available.
    RepairFaults {
        label: "repair_faults", kind: Repair, past: "repaired",
        items: RuleItems::Faults(Fault::may_be_repaired_unattended),
        sentence: "Repairs",
    }
    /// Breaks leaked locks.
    BreakLocks {
        label: "break_locks", kind: BreakLock, past: "broke",
        items: RuleItems::Locks(|fault| fault.repair_kind() == RepairKind::BreaksLock),
        sentence: "Breaks locks that show",
    }
    /// Deletes failed or held jobs.
    DeleteJobs {
        label: "delete_jobs", kind: Delete, past: "deleted",
        items: RuleItems::Jobs(&[JobState::Failed, JobState::Held]),
        sentence: "Deletes jobs",
    }
    /// Purges completed or deleted jobs.
    PurgeJobs {
        label: "purge_jobs", kind: Purge, past: "purged",
        items: RuleItems::Jobs(&[JobState::Completed, JobState::Deleted]),
        sentence: "Purges jobs",
    }
}

impl RuleAction {
    /// The verb: the first word of the action's name.
    #[must_use]
    pub fn verb(self) -> &'static str {
        let label = self.kind().label();
        label.split_once('_').map_or(label, |(verb, _)| verb)
    }

    /// Whether its items are jobs.
    #[must_use]
    pub fn is_of_jobs(self) -> bool {
        matches!(self.items(), RuleItems::Jobs(_))
    }

    /// The states that its selector may have.
    #[must_use]
    pub fn states(self) -> &'static [JobState] {
        match self.items() {
            RuleItems::Collections(states) | RuleItems::Jobs(states) => states,
            RuleItems::Faults(_) | RuleItems::Locks(_) => &[],
        }
    }

    /// Whether its selector may have this fault.
    #[must_use]
    pub fn may_select(self, fault: Fault) -> bool {
        match self.items() {
            RuleItems::Faults(selects) | RuleItems::Locks(selects) => selects(fault),
            RuleItems::Collections(_) | RuleItems::Jobs(_) => false,
        }
    }

    /// The faults that its selector may have, in the order in which they are listed.
    #[must_use]
    pub fn faults(self) -> Vec<Fault> {
        Fault::ALL.into_iter().filter(|fault| self.may_select(*fault)).collect()
    }
}

/// A label of an alert that narrows a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Narrow {
    /// By state.
    State,
    /// By collection.
    Collection,
    /// By fault.
    Fault,
}

labelled!(Narrow { State "state", Collection "collection", Fault "fault" });

/// A budget: a number of items within a period. Each item takes a token, which is returned after the period; so no
/// period of that length has more items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number of items.
    pub items: u32,
    /// The period.
    pub per: Duration,
}

/// The items on which a rule acts. Fields that are not set match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Jobs in these states.
    pub states: Vec<JobState>,
    /// Of these collections.
    pub collections: Vec<String>,
    /// In their state for at least this long.
    pub min_age: Option<Duration>,
    /// In their state for at most this long.
    pub max_age: Option<Duration>,
    /// Locked, or not.
    pub locked: Option<bool>,
    /// Retried at most this often.
    pub max_retries: Option<u32>,
    /// Items that show one of these faults.
    pub faults: Vec<Fault>,
    /// The maximum number of items for one alert.
    pub limit: usize,
}

impl fmt::Display for Selector {
    /// As in audit records: `states=failed max_age_seconds=86400 limit=20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |names: Vec<&str>| names.join(",");
        if !self.states.is_empty() {
            write!(f, "states={} ", joined(self.states.iter().map(|state| state.label()).collect()))?;
        }
        if !self.faults.is_empty() {
            write!(f, "faults={} ", joined(self.faults.iter().map(|fault| fault.label()).collect()))?;
        }
        if !self.collections.is_empty() {
            write!(f, "collections={} ", joined(self.collections.iter().map(String::as_str).collect()))?;
        }
        for (name, age) in [("min_age_seconds", self.min_age), ("max_age_seconds", self.max_age)] {
            age.map_or(Ok(()), |age| write!(f, "{name}={} ", age.as_secs_f64()))?;
        }
        self.locked.map_or(Ok(()), |locked| write!(f, "locked={locked} "))?;
        self.max_retries.map_or(Ok(()), |most| write!(f, "max_retries={most} "))?;
        write!(f, "limit={}", self.limit)
    }
}

/// The response to an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, which is also the name of its znode.
    pub name: String,
    /// The alert's name.
    pub alert: String,
    /// Labels that the alert must have.
    pub labels: BTreeMap<String, String>,
    /// The mode.
    pub mode: Mode,
    /// The action.
    pub action: RuleAction,
    /// The items.
    pub select: Selector,
    /// The labels of the alert that narrow the selection.
    pub narrow_by: Vec<Narrow>,
    /// The budget.
    pub budget: Budget,
    /// The maximum share of the jobs in its states that it may touch within an hour, 0 to 1.
    pub max_share: Option<f64>,
    /// How long it does not act on the same scope again.
    pub cooldown: Duration,
    /// The maximum number of attempts on the same item.
    pub attempts: u32,
    /// Whether it releases its holds when the alert is resolved.
    pub is_undone: bool,
}

impl Rule {
    /// Whether it matches an alert.
    #[must_use]
    pub fn names(&self, alert: &Alert) -> bool {
        self.mode != Mode::Off
            && self.alert == alert.name()
            && self.labels.iter().all(|(name, value)| alert.labels.get(name) == Some(value))
    }

    /// The actor's name in audit records, status messages and holds.
    #[must_use]
    pub fn actor(&self) -> String {
        actor_of(&self.name)
    }
}

/// The actor's name of the rule of this name.
pub(super) fn actor_of(rule: &str) -> String {
    format!("rule {rule}")
}

/// All rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The rules, in the order of the configuration file.
    pub rules: Vec<Rule>,
    /// Whether rules may execute destructive actions.
    pub are_destructive_allowed: bool,
    /// The shared budget of all rules.
    pub budget: Budget,
}

impl Rules {
    /// The default for the shared budget.
    pub const BUDGET: Budget = Budget { items: 100, per: Duration::from_hours(1) };

    /// The rule with that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// Whether any rule enforces.
    #[must_use]
    pub fn act(&self) -> bool {
        self.rules.iter().any(|rule| rule.mode == Mode::Enforce)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self { rules: Vec::new(), are_destructive_allowed: false, budget: Self::BUDGET }
    }
}
