//! The bar below the list of jobs: an action on the selected ones, or on all that match.

use crate::actions::{AcceptedParameter, ActionKind, ActionSpec, Parameter, Role, TargetKind};
use crate::views::PageQuery;
use crate::views::jobs::{JobFilter, JobList};
use crate::views::query::Parameters as _;
use crate::views::show::Count;
use crate::web::http::query::query_of;
use crate::web::pages::inputs::{InputOf, ParameterInput};
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

/// A button, and the parameters of its action.
#[derive(Debug)]
pub(super) struct BarAction {
    pub(super) kind: ActionKind,
    /// The labels of the states in which it is offered: with scripts, it is shown where a selected job is in one.
    pub(super) fits: String,
    pub(super) inputs: Vec<ParameterInput>,
    /// Whether the form cannot be sent without a value of one of them.
    pub(super) is_required: bool,
}

/// A form of the bar that was sent, and what is wrong with it.
#[derive(Clone, Debug)]
pub(in crate::web::pages) struct Attempt {
    /// The items that were selected.
    pub(in crate::web::pages) items: Vec<String>,
    pub(in crate::web::pages) which: Which,
    /// The parameters of all actions.
    pub(in crate::web::pages) parameters: Vec<(Parameter, String)>,
    /// The field that is wrong, and why, in a sentence.
    pub(in crate::web::pages) wrong: (Field, String),
}

impl Attempt {
    /// A parameter as it was sent; empty for none.
    fn text(&self, parameter: Parameter) -> String {
        let sent = self.parameters.iter().rfind(|(sent, _)| *sent == parameter);
        sent.map(|(_, text)| text.clone()).unwrap_or_default()
    }
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
    /// A parameter.
    Parameter(Parameter),
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
            let taken = || spec.offers().filter(|takes| takes.parameter.spec().is_for_lists);
            let input = |takes: &AcceptedParameter| {
                let text = attempt.map(|attempt| attempt.text(takes.parameter)).unwrap_or_default();
                let input = ParameterInput::new(takes, InputOf::Bar, text);
                ParameterInput { wrong: wrong(Field::Parameter(takes.parameter)), ..input }
            };
            BarAction {
                kind: spec.kind,
                fits: fitting(spec),
                inputs: taken().map(input).collect(),
                is_required: taken().any(|takes| takes.parameter.spec().input.is_required()),
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
        !self.which_wrong.is_empty()
            || self.actions.iter().flat_map(|action| &action.inputs).any(|input| !input.wrong.is_empty())
    }
}
