//! The form of the bar below the list of jobs, and of the buttons for all jobs of a group.

use std::sync::Arc;

use jiff::Timestamp;

use crate::actions::{
    ActionKind, ActionParameters, ActionSpec, Actor, BulkAction, Frozen, ListOf, ListOrigin, MAX_ITEMS, Parameter,
    Refusal, Target, TargetKind, WrongValue,
};
use crate::views::jobs::JobFilter;
use crate::views::page::Limit;
use crate::views::query;
use crate::views::{PageQuery, ViewError};
use crate::web::actions::{Versions, action_kind, sentence, target};
use crate::web::http::params::pairs_of;
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, query_of, quoted};
use crate::web::pages::jobs::{Attempt, Field, Which};
use crate::web::pages::rows;
use crate::web::state::State;

/// An action on many jobs, as it was sent.
#[derive(Debug)]
pub(super) struct FreezeForm {
    kind: ActionKind,
    which: Which,
    items: Vec<String>,
    parameters: Vec<(Parameter, String)>,
    /// The list that it was sent from.
    pub(super) list: (JobFilter, PageQuery),
}

/// Why no list was made.
#[derive(Debug)]
pub(super) enum FreezeError {
    /// A field is wrong, for this reason: the form is shown again.
    Wrong(Field, String),
    /// Something that the form cannot put right.
    Problem(Problem),
}

impl<T: Into<Problem>> From<T> for FreezeError {
    fn from(problem: T) -> Self {
        Self::Problem(problem.into())
    }
}

impl FreezeForm {
    pub(super) fn read(sent: Pairs) -> Result<Self, Problem> {
        let (mut action, mut jobs, mut which) = (String::new(), String::new(), Which::default());
        let (mut items, mut parameters) = (Vec::new(), Vec::new());
        for (name, value) in sent {
            match &*name {
                "action" => action = value,
                "item" => items.push(value),
                "jobs" => jobs = value,
                "which" => which = Which::ALL.into_iter().find(|which| which.value() == value).unwrap_or_default(),
                _ => match Parameter::named(&name).filter(|parameter| parameter.spec().is_for_lists) {
                    Some(parameter) => parameters.push((parameter, value)),
                    None => return Err(Problem::bad(format!("Unknown field “{}”.", quoted(&name)))),
                },
            }
        }
        let kind = action_kind(&action)?;
        let (filter, mut page): (JobFilter, PageQuery) = query::read(&pairs_of(&jobs)?)?;
        if page.limit.get() > rows::MOST {
            page.limit = Limit::default();
        }
        Ok(Self { kind, which, items, parameters, list: (filter, page) })
    }

    /// Freezes the list that it names.
    pub(super) fn freeze(&self, state: &State, actor: &Actor, now: Timestamp) -> Result<Arc<Frozen>, FreezeError> {
        let bulk = self.bulk()?;
        let (of, items) = self.items(state, now)?;
        let (filter, page) = &self.list;
        let origin = ListOrigin {
            query: query_of(&[query::Parameters::pairs(filter), query::Parameters::pairs(page)].concat()),
            left_out: if self.which == Which::Others { self.selected()? } else { Vec::new() },
        };
        match state.actions()?.freeze_from(origin, bulk, (of, items), actor, now) {
            Err(Refusal::Invalid(why)) => Err(FreezeError::Wrong(Field::Which, sentence(&why))),
            frozen => Ok(frozen?),
        }
    }

    /// The same form to be shown again, with what is wrong with it.
    pub(super) fn attempt(self, wrong: (Field, String)) -> Attempt {
        let Self { which, items, parameters, .. } = self;
        Attempt { items, which, parameters, wrong }
    }

    /// The action with its own parameters. Those of other actions are in the form, too, and are ignored.
    fn bulk(&self) -> Result<BulkAction, FreezeError> {
        let mut parameters = ActionParameters::default();
        let taken = TargetKind::Job.actions().iter().filter(|spec| spec.kind == self.kind).flat_map(ActionSpec::offers);
        for parameter in taken.map(|takes| takes.parameter) {
            let text =
                self.parameters.iter().rfind(|(sent, _)| *sent == parameter).map_or("", |(_, text)| text.as_str());
            let wrong = |why| FreezeError::Wrong(Field::Parameter(parameter), why);
            if let (true, Some(range)) = (text.is_empty(), parameter.spec().input.range()) {
                return Err(wrong(format!("Enter the new {}: {range}.", parameter.name())));
            }
            parameters.set(parameter, text).map_err(|error| wrong(why(error)))?;
        }
        Ok(BulkAction { kind: self.kind, parameters })
    }

    fn selected(&self) -> Result<Vec<Target>, FreezeError> {
        Ok(self.items.iter().map(|item| target(item)).collect::<Result<Vec<_>, _>>()?)
    }

    /// The jobs, with the versions of their statuses.
    fn items(&self, state: &State, now: Timestamp) -> Result<(ListOf, Versions), FreezeError> {
        let wrong = |why: &str| FreezeError::Wrong(Field::Which, why.to_owned());
        match self.which {
            Which::Chosen if self.items.is_empty() => {
                return Err(wrong("Select the jobs in the list, or choose all that match."));
            }
            Which::Others if self.items.is_empty() => {
                return Err(wrong("Select the jobs to leave out, or choose all that match."));
            }
            Which::Chosen => return Ok((ListOf::ChosenJobs, state.seen_now(self.selected()?))),
            Which::All | Which::Others => {}
        }
        let found = match state.source().matching(&self.list.0, MAX_ITEMS, now) {
            Err(ViewError::Parameter(too_many)) => {
                return Err(FreezeError::Wrong(Field::Which, too_many.detail));
            }
            found => found?,
        };
        if found.is_empty() {
            return Err(wrong("No job matches now."));
        }
        Ok((ListOf::Jobs, found.into_iter().map(|(id, version)| (Target::Job(id), Some(version))).collect()))
    }
}

/// What is wrong with a value, in a sentence.
fn why(wrong: WrongValue) -> String {
    match wrong {
        WrongValue::Unknown { .. } => Problem::from(wrong).detail.into_owned(),
        WrongValue::NoNumber { noun, text, range } | WrongValue::OutOfRange { noun, text, range } => {
            format!("“{}” is not a {noun}: {range}.", quoted(&text))
        }
    }
}
