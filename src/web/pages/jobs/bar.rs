//! The bar below the list of jobs: an action on the selected ones, or on all that match.

use crate::actions::{ActionKind, ActionSpec, Role, TargetKind};
use crate::views::PageQuery;
use crate::views::jobs::{JobFilter, JobList};
use crate::views::query::Parameters as _;
use crate::views::show::Count;
use crate::web::actions::resumable;
use crate::web::http::query::query_of;
use crate::web::pages::listing::{Choice, choices};
use queuekeeper_queue::state::{JobState, State as _};

/// What the reader may do to many jobs at once.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) actions: Vec<BarAction>,
    /// How many jobs there are by the filter.
    pub(super) count: String,
    /// The list: its filter, its order and its page.
    pub(super) query: String,
    /// Which jobs are chosen.
    pub(super) which: Which,
    /// Selected jobs that are not on the page any more.
    pub(super) kept: Vec<String>,
    /// What is wrong with which jobs were chosen; empty for nothing.
    pub(super) which_wrong: String,
}

/// A button, and the parameter of its action.
#[derive(Debug)]
pub(super) struct BarAction {
    pub(super) kind: ActionKind,
    /// The labels of the states in which it is offered: with scripts, it is shown where a selected job is in one.
    pub(super) fits: String,
    /// The states that jobs may be resumed in; empty where that is no parameter of the action.
    pub(super) states: Vec<Choice>,
    /// The priority as it was sent; `None` where that is no parameter of the action.
    pub(super) priority: Option<String>,
    /// What is wrong with the parameter; empty for nothing.
    pub(super) wrong: String,
}

/// A form of the bar that was sent, and what is wrong with it.
#[derive(Clone, Debug)]
pub(in crate::web::pages) struct Attempt {
    /// The items that were selected.
    pub(in crate::web::pages) items: Vec<String>,
    pub(in crate::web::pages) which: Which,
    pub(in crate::web::pages) to: String,
    pub(in crate::web::pages) priority: String,
    /// The field that is wrong, and why, in a sentence.
    pub(in crate::web::pages) wrong: (Field, String),
}

/// Which jobs of a list an action is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::web::pages) enum Which {
    /// The selected ones.
    #[default]
    Chosen,
    /// All that match.
    All,
    /// All that match but the selected ones.
    Others,
}

impl Which {
    /// Each of them.
    pub(in crate::web::pages) const ALL: [Self; 3] = [Self::Chosen, Self::All, Self::Others];

    /// Its value in the form.
    pub(in crate::web::pages) fn value(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::All => "all",
            Self::Others => "others",
        }
    }
}

/// A field of the bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web::pages) enum Field {
    /// Which jobs.
    Which,
    /// The state to resume in.
    To,
    /// The priority to set.
    Priority,
}

/// The labels of the states in which an action is offered.
fn fitting(spec: &ActionSpec) -> String {
    let states = JobState::ALL.iter().filter(|state| spec.fits_job(**state));
    states.map(|state| state.label()).collect::<Vec<_>>().join(" ")
}

impl Bar {
    /// What a reader of that role may do; `None` for nothing.
    pub(super) fn new(
        (filter, page): &(JobFilter, PageQuery),
        list: Option<&JobList>,
        role: Role,
        attempt: Option<&Attempt>,
    ) -> Option<Self> {
        let wrong = |field: Field| {
            let wrong = attempt.map(|attempt| &attempt.wrong).filter(|(wrong, _)| *wrong == field);
            wrong.map(|(_, why)| why.clone()).unwrap_or_default()
        };
        let specs = TargetKind::Job.actions().iter().filter(|spec| role >= spec.role);
        let actions = specs.map(|spec| {
            let (takes_to, takes_priority) = (spec.takes("to"), spec.takes("priority"));
            let to = attempt.map(|attempt| attempt.to.clone());
            BarAction {
                kind: spec.kind,
                fits: fitting(spec),
                states: if takes_to { choices(to.as_ref(), resumable()) } else { Vec::new() },
                priority: takes_priority.then(|| attempt.map_or_else(String::new, |attempt| attempt.priority.clone())),
                wrong: if takes_to {
                    wrong(Field::To)
                } else if takes_priority {
                    wrong(Field::Priority)
                } else {
                    String::new()
                },
            }
        });
        let actions: Vec<_> = actions.collect();
        let is_shown = |item: &String| list.is_some_and(|list| list.items.iter().any(|job| job.id == *item));
        let kept = attempt.into_iter().flat_map(|attempt| &attempt.items).filter(|item| !is_shown(item));
        (!actions.is_empty()).then(|| Self {
            actions,
            count: Count(list.map_or(0, |list| list.total) as u64).to_string(),
            query: query_of(&[filter.pairs(), page.pairs()].concat()),
            which: attempt.map(|attempt| attempt.which).unwrap_or_default(),
            kept: kept.cloned().collect(),
            which_wrong: wrong(Field::Which),
        })
    }

    /// Whether something is wrong with what was sent.
    pub(super) fn is_wrong(&self) -> bool {
        !self.which_wrong.is_empty() || self.actions.iter().any(|action| !action.wrong.is_empty())
    }
}
