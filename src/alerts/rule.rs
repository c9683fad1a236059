//! Rules: what may be done about an alert.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::payload::Alert;
use crate::actions::{ActionKind, Fault, JobState, State as _};

/// Whether a rule acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is as if it were not there.
    Off,
    /// It tells what it would do.
    #[default]
    DryRun,
    /// It acts.
    Enforce,
}

macro_rules! labelled {
    ($type:ident { $($value:ident $label:literal),+ $(,)? }) => {
        impl $type {
            /// Every one.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$value),+];

            /// Its name in the configuration.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$value => $label),+ }
            }

            /// The one of that name.
            #[must_use]
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.label() == label)
            }
        }
    };
}

labelled!(Mode { Off "off", DryRun "dry-run", Enforce "enforce" });

/// What a rule may do: a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Holds the collections whose jobs need most working storage, those that wait for it first. Undone when the alert is
    /// resolved, where the rule says so.
    HoldCollections,
    /// Resumes failed jobs.
    ResumeJobs,
    /// Releases Held jobs whose collection is free.
    ReleaseJobs,
    /// Repairs a fault by removing or making an entry or a reference; destructive ones need more.
    RepairFaults,
    /// Breaks leaked locks. Destructive.
    BreakLocks,
    /// Deletes failed or held jobs. Destructive.
    DeleteJobs,
    /// Purges completed or deleted jobs. Destructive.
    PurgeJobs,
}

labelled!(Remedy {
    HoldCollections "hold_collections",
    ResumeJobs "resume_jobs",
    ReleaseJobs "release_jobs",
    RepairFaults "repair_faults",
    BreakLocks "break_locks",
    DeleteJobs "delete_jobs",
    PurgeJobs "purge_jobs",
});

impl Remedy {
    /// The action that it gives for each item.
    #[must_use]
    pub fn action(self) -> ActionKind {
        match self {
            Self::HoldCollections => ActionKind::Hold,
            Self::ResumeJobs => ActionKind::Resume,
            Self::ReleaseJobs => ActionKind::Release,
            Self::RepairFaults => ActionKind::Repair,
            Self::BreakLocks => ActionKind::BreakLock,
            Self::DeleteJobs => ActionKind::Delete,
            Self::PurgeJobs => ActionKind::Purge,
        }
    }

    /// What it does, in a word.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::HoldCollections => "hold",
            Self::ResumeJobs => "resume",
            Self::ReleaseJobs => "release",
            Self::RepairFaults => "repair",
            Self::BreakLocks => "break",
            Self::DeleteJobs => "delete",
            Self::PurgeJobs => "purge",
        }
    }

    /// Whether what it does cannot be undone.
    #[must_use]
    pub fn is_destructive(self) -> bool {
        match self {
            Self::BreakLocks | Self::DeleteJobs | Self::PurgeJobs => true,
            Self::HoldCollections | Self::ResumeJobs | Self::ReleaseJobs | Self::RepairFaults => false,
        }
    }

    /// Whether its items are jobs.
    #[must_use]
    pub fn is_of_jobs(self) -> bool {
        match self {
            Self::ResumeJobs | Self::ReleaseJobs | Self::DeleteJobs | Self::PurgeJobs => true,
            Self::HoldCollections | Self::RepairFaults | Self::BreakLocks => false,
        }
    }

    /// The states that its jobs may be in: the ones that its selector may choose from.
    #[must_use]
    pub fn states(self) -> &'static [JobState] {
        match self {
            Self::HoldCollections => &[JobState::Provisioning, JobState::Estimating, JobState::Pending],
            Self::ResumeJobs => &[JobState::Failed],
            Self::ReleaseJobs => &[JobState::Held],
            Self::DeleteJobs => &[JobState::Failed, JobState::Held],
            Self::PurgeJobs => &[JobState::Completed, JobState::Deleted],
            Self::RepairFaults | Self::BreakLocks => &[],
        }
    }

    /// The faults that its selector may choose from.
    #[must_use]
    pub fn faults(self) -> &'static [Fault] {
        match self {
            Self::RepairFaults => &[
                Fault::OrphanEntry,
                Fault::StrayEntry,
                Fault::DuplicateEntry,
                Fault::MissingEntry,
                Fault::DuplicateReference,
                Fault::MissingReference,
                Fault::PriorityOutOfRange,
            ],
            Self::BreakLocks => &[Fault::LeakedLock, Fault::LeakedStorageLock],
            Self::HoldCollections | Self::ResumeJobs | Self::ReleaseJobs | Self::DeleteJobs | Self::PurgeJobs => &[],
        }
    }
}

/// To what a label of an alert may narrow a rule: the label of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Narrow {
    /// To one state.
    State,
    /// To one collection.
    Collection,
    /// To one fault.
    Fault,
}

labelled!(Narrow { State "state", Collection "collection", Fault "fault" });

/// How much may be done within how long. Every item takes a token, which comes back so much later: in no span of that
/// length are more done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many items.
    pub items: u32,
    /// Within how long.
    pub per: Duration,
}

/// On what a rule acts. What is not given is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Jobs in these states.
    pub states: Vec<JobState>,
    /// Of these collections.
    pub collections: Vec<String>,
    /// In their state for at least as long.
    pub min_age: Option<Duration>,
    /// In their state for at most as long.
    pub max_age: Option<Duration>,
    /// Locked, or not.
    pub locked: Option<bool>,
    /// Resumed at most so often.
    pub max_retries: Option<u32>,
    /// Items that show one of these faults.
    pub faults: Vec<Fault>,
    /// How many for one alert.
    pub limit: usize,
}

impl fmt::Display for Selector {
    /// As the audit trail has it: `states=failed max_age_seconds=86400 limit=20`.
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

/// What may be done about an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, which names its znode, too.
    pub name: String,
    /// The alert's name.
    pub alert: String,
    /// Labels that the alert must have.
    pub labels: BTreeMap<String, String>,
    /// Whether it acts.
    pub mode: Mode,
    /// What it does.
    pub remedy: Remedy,
    /// On what.
    pub select: Selector,
    /// What labels of the alert narrow that.
    pub narrow_by: Vec<Narrow>,
    /// How much it may do.
    pub budget: Budget,
    /// Which part of the jobs of its states it may touch within an hour, 0 to 1.
    pub max_share: Option<f64>,
    /// How long it lets the same alone after it has acted.
    pub cooldown: Duration,
    /// How often it tries the same item.
    pub attempts: u32,
    /// Whether it takes back what it did when the alert is resolved.
    pub is_undone: bool,
}

impl Rule {
    /// Whether it is about an alert.
    #[must_use]
    pub fn names(&self, alert: &Alert) -> bool {
        self.mode != Mode::Off
            && self.alert == alert.name()
            && self.labels.iter().all(|(name, value)| alert.labels.get(name) == Some(value))
    }

    /// Who acts, as the audit trail, status messages and holds name it.
    #[must_use]
    pub fn actor(&self) -> String {
        format!("rule {}", self.name)
    }
}

/// All rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Each of them, in the order of the file.
    pub rules: Vec<Rule>,
    /// Whether rules may do what cannot be undone.
    pub are_destructive_allowed: bool,
    /// How much all of them may do together.
    pub budget: Budget,
}

impl Rules {
    /// What all rules may do together, where the operator says nothing.
    pub const BUDGET: Budget = Budget { items: 100, per: Duration::from_hours(1) };

    /// The rule of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// Whether any of them acts.
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
