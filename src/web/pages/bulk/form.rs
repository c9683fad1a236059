//! The form of the bar below the list of jobs, and of the buttons for all jobs of a group.

use std::sync::Arc;

use jiff::Timestamp;

use crate::actions::{
    ActionKind, ActionParameters, Actor, BulkAction, Frozen, ListOf, ListOrigin, MAX_ITEMS, Refusal, Target,
};
use crate::views::jobs::JobFilter;
use crate::views::page::Limit;
use crate::views::query;
use crate::views::{PageQuery, ViewError};
use crate::web::actions::{Versions, action_kind, job_state, priority, sentence, target};
use crate::web::http::params::pairs_of;
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, number, query_of, quoted};
use crate::web::pages::jobs::{Attempt, Field, Which};
use crate::web::pages::rows;
use crate::web::state::State;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::JobState;

/// An action on many jobs, as it was sent.
#[derive(Debug)]
pub(super) struct FreezeForm {
    kind: ActionKind,
    which: Which,
    items: Vec<String>,
    to: String,
    priority: String,
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
        let (mut items, mut to, mut priority) = (Vec::new(), String::new(), String::new());
        for (name, value) in sent {
            match &*name {
                "action" => action = value,
                "item" => items.push(value),
                "jobs" => jobs = value,
                "to" => to = value,
                "priority" => priority = value,
                "which" => which = Which::ALL.into_iter().find(|which| which.value() == value).unwrap_or_default(),
                _ => return Err(Problem::bad(format!("Unknown field “{}”.", quoted(&name)))),
            }
        }
        let kind = action_kind(&action)?;
        let (filter, mut page): (JobFilter, PageQuery) = query::read(&pairs_of(&jobs)?)?;
        if page.limit.get() > rows::MOST {
            page.limit = Limit::default();
        }
        Ok(Self { kind, which, items, to, priority, list: (filter, page) })
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
        let Self { which, items, to, priority, .. } = self;
        Attempt { items, which, to, priority, wrong }
    }

    /// The action with its own parameter. Those of other actions are in the form, too, and are ignored.
    fn bulk(&self) -> Result<BulkAction, FreezeError> {
        let parameters = ActionParameters {
            to: if self.kind == ActionKind::Resume { self.state()? } else { None },
            priority: if self.kind == ActionKind::SetPriority { Some(self.urgency()?) } else { None },
            ..ActionParameters::default()
        };
        Ok(BulkAction { kind: self.kind, parameters })
    }

    fn state(&self) -> Result<Option<JobState>, FreezeError> {
        job_state(Some(&self.to)).map_err(|problem| FreezeError::Wrong(Field::To, problem.detail.into_owned()))
    }

    fn urgency(&self) -> Result<Priority, FreezeError> {
        let wrong = |what: &str| FreezeError::Wrong(Field::Priority, format!("{what}: 0, the most urgent, to 99."));
        if self.priority.is_empty() {
            return Err(wrong("Enter the new priority"));
        }
        let number = number("priority", &self.priority, 0, 99).ok().and_then(|number| u8::try_from(number).ok());
        let urgency = priority(number).ok().flatten();
        urgency.ok_or_else(|| wrong(&format!("“{}” is not a priority", quoted(&self.priority))))
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
