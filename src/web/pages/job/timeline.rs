//! The timeline of a job: its steps and events.

use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::{Happening, PastEvent};
use crate::views::job::Known;
use crate::views::show::Ago;
use crate::web::pages::log::{Dated, Event, by, in_order};
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::{JobState, State};

/// The timeline of a job.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) steps: Vec<Step>,
    /// The last event first.
    pub(super) events: Vec<Event>,
}

/// A state of the success path.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// `past`, `here`, `failed`, `held`, `deleted`, or nothing for what was not reached.
    pub(super) class: &'static str,
    /// How long the job was in it, or is; empty if that was not observed.
    pub(super) time: String,
    /// The class in words, for screen readers.
    pub(super) words: &'static str,
}

impl Timeline {
    /// Of what is known of a job, and the actions on it.
    pub(super) fn new(known: &Known, actions: Vec<Dated>, now: Timestamp) -> Self {
        Self { steps: steps(known, now), events: in_order(events(known, now).into_iter().chain(actions).collect()) }
    }
}

fn steps(known: &Known, now: Timestamp) -> Vec<Step> {
    let job = &known.job;
    let path: Vec<JobState> =
        std::iter::once(JobState::Pending).chain(JobState::Pending.steps_to(JobState::Completed)).collect();
    // Where it is on the path, or where it left it.
    let (at, class, words) = match job.state {
        Some(JobState::Failed) => (Some(JobState::failed_in(job.last_successful)), "failed", "failed here"),
        Some(JobState::Held) => (Some(JobState::Pending), "held", "held here"),
        Some(JobState::Deleted) => (deleted_in(known), "deleted", "deleted here"),
        None => (None, "", ""),
        Some(state) => (Some(state), "here", "is here"),
    };
    let position = at.and_then(|at| path.iter().position(|state| *state == at));
    let time = |state: JobState, is_here: bool| {
        let spent =
            if is_here { job.entered.map(|entered| now.duration_since(entered)) } else { spent_in(known, state) };
        spent.and_then(|spent| Duration::try_from(spent).ok()).map(|spent| Ago(spent).to_string()).unwrap_or_default()
    };
    let step = |(index, state): (usize, &JobState)| {
        let (class, words) = match position {
            Some(position) if index < position => ("past", "done"),
            Some(position) if index == position => (class, words),
            Some(_) if job.state == Some(JobState::Deleted) => ("", "not reached"),
            None if job.state.is_none_or(|state| state == JobState::Deleted) => ("", "unknown"),
            Some(_) | None => ("", "to come"),
        };
        // Where it failed or is held it is no more: since when, its state says.
        let is_here = position == Some(index) && *state != JobState::Completed && class == "here";
        let time = if class.is_empty() { String::new() } else { time(*state, is_here) };
        Step { name: state.name(), class, time, words }
    };
    path.iter().enumerate().map(step).collect()
}

/// Where a job was deleted, by its history or its last successful state; `None` where neither says it.
fn deleted_in(known: &Known) -> Option<JobState> {
    let deleted = known.past.iter().rev().filter_map(moved).find(|(_, _, to)| *to == Some(JobState::Deleted));
    match deleted.and_then(|(_, from, _)| from) {
        Some(JobState::Held) => Some(JobState::Pending),
        Some(JobState::Failed) => Some(JobState::failed_in(known.job.last_successful)),
        Some(from) => Some(from),
        None => known.job.last_successful.map(|last| JobState::failed_in(Some(last))),
    }
}

/// How long it was last in a state, if that was observed.
fn spent_in(known: &Known, state: JobState) -> Option<jiff::SignedDuration> {
    let moves: Vec<_> = known.past.iter().filter_map(moved).collect();
    let left = moves.iter().rposition(|(_, from, _)| *from == Some(state))?;
    let entered = match left.checked_sub(1).map(|before| moves[before]) {
        Some((at, _, to)) => Some(at).filter(|_| to == Some(state)),
        None => known.job.created.filter(|_| state == JobState::Pending),
    };
    Some(moves[left].0.duration_since(entered?))
}

fn moved(event: &PastEvent) -> Option<(Timestamp, Option<JobState>, Option<JobState>)> {
    match event.what {
        Happening::Moved { from, to, .. } => Some((event.at, from, to)),
        Happening::Locked { .. } | Happening::Released { .. } | Happening::Priority { .. } => None,
    }
}

/// What was seen of it, oldest first.
fn events(known: &Known, now: Timestamp) -> Vec<Dated> {
    let job = &known.job;
    let mut events = Vec::new();
    let is_created_seen = known.past.iter().filter_map(moved).any(|(_, from, _)| from.is_none());
    if let Some(created) = job.created.filter(|_| !is_created_seen) {
        let batch = job.batch.map(|batch| format!(" in batch {batch}")).unwrap_or_default();
        events.push(Event::new(created, format!("created{batch}"), now));
    }
    // From the tree itself, if no event was observed.
    if let (Some(entered), Some(state)) = (job.entered, job.state)
        && !known.past.iter().filter_map(moved).any(|(_, _, to)| to == Some(state))
    {
        let note = OperatorNote::read(&job.message).map(|note| (note.who, note.why));
        events.push(Event::new(entered, format!("entered {state}{}", by(note, None)), now));
    }
    events.extend(known.past.iter().map(|event| Event::new(event.at, text(event, known), now)));
    events
}

fn text(event: &PastEvent, known: &Known) -> String {
    let by_session = |session: Option<i64>| {
        let address = |id: i64| known.addresses.get(&id).map(|address| &**address);
        by(None, session.map(|id| (id, address(id))))
    };
    let name = |state: Option<JobState>| state.map_or("an unknown state", State::name);
    let note = event.note.as_deref().and_then(OperatorNote::read).map(|note| (note.who, note.why));
    match event.what {
        Happening::Moved { from: None, to, session, .. } => format!("created in {}{}", name(to), by_session(session)),
        Happening::Moved { from, to, .. } if note.is_some() => {
            format!("{} → {}{}", name(from), name(to), by(note, None))
        }
        Happening::Moved { from, to, session, is_resumed } => {
            let resumed = if is_resumed { ", resumed" } else { "" };
            format!("{} → {}{resumed}{}", name(from), name(to), by_session(session))
        }
        Happening::Locked { session } => format!("locked{}", by_session(session)),
        Happening::Released { session } => format!("lock released without a change{}", by_session(session)),
        Happening::Priority { from, to } => format!("priority {from} → {to}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::insight::{Diagnosis, Verdict};
    use crate::mirror::Job;
    use queuekeeper_queue::id::{BatchId, JobId};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_255_200 + seconds).unwrap()
    }

    fn known(state: JobState, last_successful: Option<JobState>, past: Vec<PastEvent>) -> Known {
        let job = Job {
            id: JobId::new(7),
            state: Some(state),
            status_text: "".into(),
            entered: Some(at(400)),
            status_version: 1,
            created: Some(at(0)),
            priority: None,
            lock: None,
            retry_count: Some(0),
            last_successful,
            is_by_operator: false,
            message: "".into(),
            space_needed_bytes: 0,
            batch: Some(BatchId::new(3)),
            collection: "".into(),
            submitter: "".into(),
            submitted: None,
            filename: String::new(),
            title: String::new(),
            ark: String::new(),
            local_ids: String::new(),
            entries: Vec::new(),
            references: Vec::new(),
            unreadable: Vec::new(),
        };
        let diagnosis = Diagnosis { verdict: Verdict::Moving, headline: String::new(), causes: Vec::new() };
        Known { job, diagnosis, faults: Vec::new(), past, addresses: HashMap::new(), nodes: Vec::new() }
    }

    fn moved(seconds: i64, from: JobState, to: JobState) -> PastEvent {
        let what = Happening::Moved { from: Some(from), to: Some(to), session: Some(0x1f), is_resumed: false };
        PastEvent { at: at(seconds), what, note: None }
    }

    fn texts(timeline: &Timeline) -> Vec<String> {
        let steps = timeline.steps.iter().filter(|step| !step.class.is_empty());
        let steps = steps.map(|step| format!("{} {} {}", step.class, step.name, step.time));
        steps.chain(timeline.events.iter().map(|event| format!("{} {}", event.at.ago, event.text))).collect()
    }

    #[test]
    fn a_way_that_was_seen_has_the_time_of_each_step() {
        let past = vec![
            moved(240, JobState::Pending, JobState::Estimating),
            moved(271, JobState::Estimating, JobState::Provisioning),
        ];
        let timeline =
            Timeline::new(&known(JobState::Provisioning, Some(JobState::Estimating), past), Vec::new(), at(1_000));
        assert_eq!(
            texts(&timeline),
            [
                "past Pending 4 min",
                "past Estimating 31 s",
                "here Provisioning 10 min",
                "12 min Estimating → Provisioning, by session 0x1f",
                "12 min Pending → Estimating, by session 0x1f",
                "16 min created in batch bid0000000003",
            ]
        );
    }

    #[test]
    fn a_failed_job_stands_where_it_failed_and_an_unseen_way_is_what_the_tree_tells() {
        let timeline =
            Timeline::new(&known(JobState::Failed, Some(JobState::Estimating), Vec::new()), Vec::new(), at(1_000));
        assert_eq!(
            texts(&timeline),
            [
                "past Pending ",
                "past Estimating ",
                "failed Provisioning ",
                "10 min entered Failed",
                "16 min created in batch bid0000000003",
            ]
        );
        let deleted = |last| Timeline::new(&known(JobState::Deleted, last, Vec::new()), Vec::new(), at(1_000)).steps;
        assert!(deleted(None).iter().all(|step| step.class.is_empty() && step.words == "unknown"));
        let steps = deleted(Some(JobState::Estimating));
        let steps: Vec<_> = steps.iter().map(|step| (step.name, step.class, step.words)).collect();
        assert_eq!(
            steps[1..4],
            [
                ("Estimating", "past", "done"),
                ("Provisioning", "deleted", "deleted here"),
                ("Downloading", "", "not reached"),
            ]
        );
        // It had begun again before it was held and deleted.
        let past = vec![moved(900, JobState::Held, JobState::Deleted)];
        let last = Some(JobState::Downloading);
        let steps = Timeline::new(&known(JobState::Deleted, last, past), Vec::new(), at(1_000)).steps;
        assert_eq!((steps[0].class, steps[1].words), ("deleted", "not reached"));
        // It failed before anything had succeeded; and behind what it had done before.
        for (last, index) in [(None, 0), (Some(JobState::Estimating), 2)] {
            let past = vec![moved(900, JobState::Failed, JobState::Deleted)];
            let steps = Timeline::new(&known(JobState::Deleted, last, past), Vec::new(), at(1_000)).steps;
            assert_eq!((steps[index].class, steps[index + 1].words), ("deleted", "not reached"), "{last:?}");
        }
    }

    #[test]
    fn a_held_job_shows_its_time_in_pending_and_who_holds_it() {
        let note = Some("By alice with queuekeeper: a court order".into());
        let what = Happening::Moved {
            from: Some(JobState::Pending),
            to: Some(JobState::Held),
            session: None,
            is_resumed: false,
        };
        let past = vec![PastEvent { at: at(400), what, note }];
        let timeline = Timeline::new(&known(JobState::Held, None, past), Vec::new(), at(1_000));
        // Created at 0, held at 400: that was 600 s ago, and it was Pending for 400.
        assert_eq!(texts(&timeline)[0], "held Pending 6 min");
        assert!(
            texts(&timeline).iter().any(|line| line.ends_with("Pending → Held, by alice: a court order")),
            "{:?}",
            texts(&timeline)
        );
    }
}
