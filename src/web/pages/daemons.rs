//! Which daemons run, on which host, and what they work on.

use askama::Template;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::listing::{if_walked, with};
use crate::views::daemons::{DaemonList, GrantItem, OtherDaemon, ProcessItem, ServedState};
use crate::views::show::{Count, Moment, counted, visible};
use crate::web::http::problem::Problem;
use crate::web::state::State;
use crate::words::size;
use queuekeeper_queue::state::{JobState, State as _};

/// The daemons, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "daemons.html")]
pub(super) struct DaemonsPage {
    frame: Frame,
    /// `None` before the first walk.
    list: Option<DaemonTable>,
}

#[derive(Debug)]
struct DaemonTable {
    states: Vec<Served>,
    others: Vec<Other>,
    processes: Vec<Process>,
    grants: Vec<Grant>,
    /// How many more grants there are; empty for none.
    more_grants: String,
}

/// What a job was granted.
#[derive(Debug)]
struct Grant {
    job: String,
    href: String,
    state: &'static str,
    volume: String,
    granted: String,
    /// Empty where it is not known.
    written: String,
    /// What it waits for; empty for nothing.
    extension: String,
    since: Moment,
}

/// A state, and who takes its jobs.
#[derive(Debug)]
struct Served {
    name: &'static str,
    href: String,
    workers: String,
    jobs: String,
    locked: String,
    last_taken: Option<Moment>,
    /// Since when jobs wait that no daemon takes.
    without: Option<Moment>,
    /// Since when there is no daemon as far as is known.
    unseen: Option<Moment>,
    /// Where its daemons are otherwise.
    by: String,
}

/// A daemon that works on no state.
#[derive(Debug)]
struct Other {
    name: &'static str,
    does: &'static str,
    workers: String,
    /// What waits for it; empty where its jobs are not those of states.
    waiting: String,
    /// Where it runs.
    by: String,
}

/// A process with daemons.
#[derive(Debug)]
struct Process {
    host: String,
    pid: u32,
    version: String,
    since: Moment,
    session: String,
    session_href: String,
    volume: String,
    /// Each daemon, and how many workers it has.
    workers: Vec<(String, String)>,
    mail: Option<Mail>,
    /// How many jobs it works on, in words.
    locked: String,
    jobs: Vec<Job>,
    locks: Vec<String>,
    /// How many more jobs there are; empty for none.
    more: String,
}

/// Mail that waits.
#[derive(Debug)]
struct Mail {
    /// How much, in words.
    waiting: String,
    since: Moment,
    why: String,
}

#[derive(Debug)]
struct Job {
    id: String,
    href: String,
    state: &'static str,
    since: Moment,
}

impl DaemonsPage {
    pub(super) fn new(state: &State, now: Timestamp) -> Result<Self, Problem> {
        let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Daemons);
        let list = if_walked(state.source().daemons(now))?;
        Ok(Self { list: list.map(|list| DaemonTable::new(&list, &frame.root, now)), frame })
    }
}

impl DaemonTable {
    fn new(list: &DaemonList, root: &str, now: Timestamp) -> Self {
        Self {
            others: list.others.iter().map(Other::new).collect(),
            states: list.states.iter().map(|state| Served::new(state, root, now)).collect(),
            processes: list.processes.iter().map(|process| Process::new(process, root, now)).collect(),
            grants: list.grants.iter().map(|grant| Grant::new(grant, root, now)).collect(),
            more_grants: match list.grants_total.saturating_sub(list.grants.len() as u64) {
                0 => String::new(),
                more => Count(more).to_string(),
            },
        }
    }
}

/// The name of a state by its label, as pages write it.
fn state_name(label: &'static str) -> &'static str {
    JobState::ALL.iter().find(|state| state.label() == label).map_or(label, |state| state.name())
}

impl Served {
    fn new(state: &ServedState, root: &str, now: Timestamp) -> Self {
        Self {
            name: state_name(state.state),
            href: with(&format!("{root}jobs"), "state", state.state),
            workers: Count(state.workers).to_string(),
            jobs: Count(state.jobs).to_string(),
            locked: Count(state.locked).to_string(),
            last_taken: state.last_taken.map(|at| Moment::new(at, now)),
            unseen: state.no_daemon_seen_since.map(|at| Moment::new(at, now)),
            by: match (state.processes, state.locked) {
                (0, 0) => "none seen".to_owned(),
                (0, _) => "of another program".to_owned(),
                (processes, _) => in_processes(processes),
            },
            without: state.without_daemon_since.map(|at| Moment::new(at, now)),
        }
    }
}

fn in_processes(processes: u64) -> String {
    match processes {
        0 => "none".to_owned(),
        processes => format!("in {}", counted(processes, "process", "processes")),
    }
}

impl Other {
    fn new(other: &OtherDaemon) -> Self {
        let spec = other.daemon.spec();
        let [one, many] = spec.takes.nouns();
        let waiting = other.waiting.map(|waiting| counted(waiting, one, many)).unwrap_or_default();
        let workers = Count(other.workers).to_string();
        Self { name: spec.name, does: spec.does, workers, waiting, by: in_processes(other.processes) }
    }
}

impl Grant {
    fn new(grant: &GrantItem, root: &str, now: Timestamp) -> Self {
        Self {
            job: grant.job.clone(),
            href: format!("{root}jobs/{}", grant.job),
            state: state_name(grant.state),
            volume: grant.volume.clone(),
            granted: size(grant.granted_bytes),
            written: grant.written_bytes.map(size).unwrap_or_default(),
            extension: grant.extension_bytes.map(size).unwrap_or_default(),
            since: Moment::new(grant.since, now),
        }
    }
}

impl Process {
    fn new(process: &ProcessItem, root: &str, now: Timestamp) -> Self {
        let session = process.session.map(|session| session.to_string()).unwrap_or_default();
        let more = process.locked.saturating_sub(process.jobs.len() as u64);
        let job = |job: &crate::views::daemons::JobAtWork| Job {
            href: format!("{root}jobs/{}", job.job),
            id: job.job.clone(),
            state: state_name(job.state),
            since: Moment::new(job.since, now),
        };
        Self {
            host: process.host.clone(),
            pid: process.pid,
            version: process.version.clone(),
            since: Moment::new(process.since, now),
            session_href: with(&format!("{root}locks"), "session", &session),
            session,
            volume: process.volume.clone(),
            workers: process
                .workers
                .iter()
                .map(|(daemon, workers)| (daemon.clone(), Count((*workers).into()).to_string()))
                .collect(),
            mail: process.mail.as_ref().map(|mail| Mail {
                waiting: counted(mail.waiting, "mail waits", "mails wait"),
                since: Moment::new(mail.since, now),
                why: visible(&mail.why),
            }),
            locked: counted(process.locked, "job", "jobs"),
            jobs: process.jobs.iter().map(job).collect(),
            locks: process.locks.clone(),
            more: if more > 0 { Count(more).to_string() } else { String::new() },
        }
    }
}
