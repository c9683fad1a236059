//! A frozen list as it is confirmed: what it touches, what is written, and what is skipped.

use std::collections::BTreeMap;

use askama::Template;
use jiff::Timestamp;

use super::gone;
use crate::actions::audit::ActionId;
use crate::actions::{
    ActionKind, Actor, BulkAction, Frozen, LIST_LIFETIME, ListOf, Prepared, Refusal, Skip, Target, TargetKind,
};
use crate::views::show::{Ago, Count, Moment, brief, counted, visible};
use crate::web::http::problem::Problem;
use crate::web::pages::about::About;
use crate::web::pages::action::{state_name, target_in_words};
use crate::web::pages::frame::{Frame, Section};
use crate::web::pages::listing::SHORT;
use crate::web::state::State;
use queuekeeper_queue::state::{JobState, State as _};

/// The maximum number of items of a list that are shown.
const SAMPLE: usize = 10;

/// A frozen list, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "list.html")]
pub(super) struct ListPage {
    frame: Frame,
    id: String,
    title: String,
    /// Empty where nothing would be changed.
    button: String,
    is_destructive: bool,
    at: Moment,
    /// For how long it is kept.
    lifetime: Ago,
    /// How many items are skipped, in words; empty for none.
    skipping: String,
    /// Why, in groups.
    skipped: Vec<String>,
    /// The collections that keep jobs from staying released, each in a sentence with a link to its lock.
    still_held: Vec<(String, String)>,
    /// What is written for the first item that is changed; empty where none of the sample is.
    written: Vec<String>,
    written_for: String,
    /// The list that it was made from.
    back: String,
    /// Which jobs of that list were left out; empty for none.
    left_out: String,
    count: String,
    sample: Vec<Item>,
    more: String,
    refused: Option<String>,
    reason: String,
    actor: String,
    role: &'static str,
}

/// An item of the list, and what would be done to it now.
#[derive(Debug)]
struct Item {
    name: String,
    href: String,
    about: About,
    before: String,
    after: String,
    /// Whether it cannot be said, because ZooKeeper is away.
    is_unknown: bool,
    /// Why it would be refused; empty if it would not be.
    against: String,
    warnings: Vec<String>,
}

/// Why an item is skipped: as the mirror shows it, or for another reason that planning the action found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Known(Skip),
    Other,
}

impl ListPage {
    pub(super) async fn new(
        state: &State,
        id: ActionId,
        actor: &Actor,
        refused: Option<(String, Problem)>,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let actions = state.actions()?;
        let frozen = actions.frozen(id, now).filter(|frozen| frozen.actor == actor.name).ok_or_else(gone)?;
        let Frozen { bulk, items, of, at, origin, .. } = &*frozen;
        let frame = Frame::new(&state.view(now), "../".to_owned(), section(*of));
        let mut why: Vec<_> = actions.skips(&frozen).into_iter().map(|skip| skip.map(Why::Known)).collect();
        let (mut sample, mut written, mut unavailable) = (Vec::new(), None, None::<String>);
        // Those that are changed come first.
        let (changed, unchanged): (Vec<_>, Vec<_>) = (0..items.len()).partition(|at| why[*at].is_none());
        for at in changed.into_iter().chain(unchanged).take(SAMPLE) {
            let ((target, version), why) = (&items[at], &mut why[at]);
            let planned = match (bulk.on(target, *version), &unavailable) {
                // Asking for the next one would take as long again, and the page longer than a reader waits.
                (Ok(_), Some(why)) => Err(Refusal::Unavailable(why.clone())),
                (Ok(action), None) => actions.plan(&action, actor, "", now).await,
                (Err(refusal), _) => Err(refusal),
            };
            match &planned {
                Ok(prepared) if why.is_none() && written.is_none() => written = Some((target, prepared.operations())),
                Ok(_) => {}
                // That is true of each item, not of this one alone.
                Err(refusal @ Refusal::Unavailable(_)) => unavailable = Some(refusal.to_string()),
                // The mirror does not show all that an action needs.
                Err(_) => *why = why.or(Some(Why::Other)),
            }
            sample.push(Item::new(state, target, planned, &frame.root));
        }
        let mut groups = BTreeMap::<Why, usize>::new();
        why.iter().flatten().for_each(|why| *groups.entry(*why).or_default() += 1);
        // Who has given a reason already keeps it, with the button to try again.
        let is_away = unavailable.is_some() && refused.is_none();
        if is_away {
            groups.clear();
        }
        let skipped: usize = groups.values().sum();
        let many = items.len();
        let changed = if is_away { 0 } else { many - skipped };
        let noun = of.words(many);
        let all = format!("{} {noun}", Count(many as u64));
        let unnamed = many - sample.len();
        let (reason, refused) = match refused {
            Some((reason, problem)) => (reason, Some(visible(&problem.detail))),
            None => (String::new(), unavailable),
        };
        let (written_for, written) =
            written.map_or_else(Default::default, |(target, lines)| (target_in_words(target), lines));
        let counted = |count: usize| format!("{} {}", Count(count as u64), of.words(count));
        let some = format!("{} of {all}", Count(changed as u64));
        Ok(Self {
            id: id.to_string(),
            title: format!("{}?", sentence(*bulk, if [0, many].contains(&skipped) { &all } else { &some })),
            button: if changed > 0 { sentence(*bulk, &counted(changed)) } else { String::new() },
            is_destructive: bulk.kind.is_destructive(),
            at: Moment::new(*at, now),
            lifetime: Ago(LIST_LIFETIME),
            skipping: match (skipped, changed) {
                (0, _) => String::new(),
                (1, 0) if many == 1 => "It will be skipped".to_owned(),
                (_, 0) => "All of them will be skipped".to_owned(),
                (skipped, _) => format!("{} of them will be skipped", Count(skipped as u64)),
            },
            skipped: groups.into_iter().map(|(why, count)| why.words(*bulk, count)).collect(),
            still_held: if changed > 0 { still_held(state, &frozen, &frame.root) } else { Vec::new() },
            written: written.iter().map(|line| visible(line)).collect(),
            written_for: if many > 1 { written_for } else { String::new() },
            back: super::back(&frame.root, &origin.query),
            left_out: left_out_in_words(&origin.left_out),
            count: all,
            sample,
            more: if unnamed > 0 { format!("and {} more", Count(unnamed as u64)) } else { String::new() },
            refused,
            reason,
            actor: visible(&actor.name),
            role: actor.role.label(),
            frame,
        })
    }
}

/// The part of the page that a list was made in.
fn section(of: ListOf) -> Section {
    match of {
        ListOf::Jobs | ListOf::ChosenJobs => Section::Jobs,
        ListOf::Faults => Section::Faults,
        ListOf::ChosenItems => Section::Audit,
    }
}

/// The held collections whose jobs a list releases, each in a sentence, with the page of its lock.
fn still_held(state: &State, frozen: &Frozen, root: &str) -> Vec<(String, String)> {
    if frozen.bulk.kind != ActionKind::Release {
        return Vec::new();
    }
    let job = |target: &Target| if let Target::Job(id) = target { Some(*id) } else { None };
    let jobs: Vec<_> = frozen.items.iter().filter_map(|(target, _)| job(target)).collect();
    let held = state.shared.store.held_collections_of(&jobs);
    let shown = held.iter().take(SAMPLE).map(|(collection, jobs)| {
        let name = brief(collection, SHORT);
        let (jobs, them) = (counted(*jobs, "job belongs", "jobs belong"), if *jobs == 1 { "it" } else { "them" });
        let why = format!("{jobs} to the collection {name}, which is still held: a daemon will hold {them} again.");
        (why, format!("{root}locks?kind=collection"))
    });
    let mut shown: Vec<_> = shown.collect();
    if held.len() > SAMPLE {
        let more = counted((held.len() - SAMPLE) as u64, "more collection is", "more collections are");
        shown.push((format!("{more} still held."), format!("{root}locks?kind=collection")));
    }
    shown
}

/// The jobs that were left out of a list, the first of them by name.
fn left_out_in_words(targets: &[Target]) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let mut names: Vec<_> = targets.iter().take(SAMPLE).map(ToString::to_string).collect();
    let more = targets.len() - names.len();
    if more > 0 {
        names.push(format!("and {} more", Count(more as u64)));
    }
    format!("Left out: {}.", names.join(", "))
}

/// What is done to so many items, in the imperative.
fn sentence(bulk: BulkAction, items: &str) -> String {
    let question = bulk.kind.question(items);
    let action = question.trim_end_matches('?');
    match (bulk.parameters.to, bulk.parameters.priority) {
        (Some(to), _) => format!("{action} in {}", to.name()),
        (None, Some(priority)) => format!("{action} to {}", priority.number()),
        (None, None) => action.to_owned(),
    }
}

impl Why {
    /// The reason for so many items.
    fn words(self, bulk: BulkAction, count: usize) -> String {
        let number = Count(count as u64);
        let is = if count == 1 { "is" } else { "are" };
        match self {
            Self::Known(Skip::State(state)) => format!("{number} {is} {}: {}", state.name(), not_in(bulk, state)),
            Self::Known(Skip::Changed) if count == 1 => "1 has changed since the list was made".to_owned(),
            Self::Known(Skip::Changed) => format!("{number} have changed since the list was made"),
            Self::Known(Skip::Locked) => {
                format!("{number} {is} locked: a daemon is working on {}", if count == 1 { "it" } else { "them" })
            }
            Self::Known(Skip::Unreported) => {
                format!("{number} {is} in a batch that is not reported yet: its report needs the job")
            }
            Self::Known(Skip::Unreadable) => format!("{number} {is} in no known state"),
            Self::Known(Skip::Gone) if count == 1 => "1 does not exist any more".to_owned(),
            Self::Known(Skip::Gone) => format!("{number} do not exist any more"),
            Self::Other => format!("{number} cannot be changed, for the reason that is shown below"),
        }
    }
}

/// Why an action is not offered in a state.
fn not_in(bulk: BulkAction, state: JobState) -> String {
    let spec = TargetKind::Job.actions().iter().find(|spec| spec.kind == bulk.kind);
    let why = spec.and_then(|spec| spec.refuses_job(state)).map(str::to_owned);
    why.unwrap_or_else(|| format!("“{}” is not possible in this state", bulk.kind.title()))
}

impl Item {
    fn new(state: &State, target: &Target, planned: Result<Prepared, Refusal>, root: &str) -> Self {
        let label = |label: Option<&str>| label.map(state_name).unwrap_or_default();
        let is_unknown = matches!(planned, Err(Refusal::Unavailable(_)));
        let (before, after, against, warnings) = match planned {
            Ok(prepared) => {
                let (before, after) = match prepared.priority {
                    Some((before, after)) => (
                        before.map(|before| format!("priority {before}")).unwrap_or_default(),
                        format!("priority {after}"),
                    ),
                    None => (label(prepared.before), label(prepared.after)),
                };
                let warnings = prepared.warnings.iter().map(|warning| visible(warning)).collect();
                (before, after, String::new(), warnings)
            }
            Err(refusal) => {
                let against = visible(&Problem::from(refusal).detail);
                (String::new(), String::new(), against, Vec::new())
            }
        };
        Self {
            name: target_in_words(target),
            href: target.page().map(|page| format!("{root}{page}")).unwrap_or_default(),
            about: About::new(state, target, root),
            before,
            after,
            is_unknown,
            against,
            warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::ActionParameters;
    use queuekeeper_queue::id::Priority;

    #[test]
    fn what_is_done_and_what_is_skipped_is_said_of_one_and_of_many() {
        let resume = BulkAction::new(ActionKind::Resume);
        let hold = BulkAction::new(ActionKind::Hold);
        let parameters = ActionParameters { priority: Priority::new(5), ..ActionParameters::default() };
        let urgent = BulkAction { kind: ActionKind::SetPriority, parameters };
        assert_eq!(sentence(resume, "38 jobs"), "Resume 38 jobs");
        assert_eq!(sentence(urgent, "1 selected job"), "Set the priority of 1 selected job to 5");
        for (why, bulk, one, many) in [
            (
                Skip::State(JobState::Completed),
                resume,
                "1 is Completed: only a failed job can be resumed",
                "2 are Completed: only a failed job can be resumed",
            ),
            (
                Skip::State(JobState::Storing),
                hold,
                "1 is Storing: “Hold” is not possible in this state",
                "2 are Storing: “Hold” is not possible in this state",
            ),
            (Skip::Gone, hold, "1 does not exist any more", "2 do not exist any more"),
        ] {
            assert_eq!([1, 2].map(|count| Why::Known(why).words(bulk, count)), [one, many]);
        }
    }
}
