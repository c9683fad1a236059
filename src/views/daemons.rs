//! Daemons: which processes of ours run, what they work on, and which states have none.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::ViewError;
use super::{Session, ViewSource};
use crate::mirror::{Grant, Process, StateSituation, Summary, state_label};
use queuekeeper_ingest::daemon::{Daemon, Takes};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::record::MailNote;
use queuekeeper_queue::state::{AccessState, JobState, State as _};

/// How many grants are listed.
const GRANTS: usize = 100;

/// How many of its jobs, and of its other locks, are named of each process.
const NAMED: usize = 20;

impl ViewSource<'_> {
    /// The daemons, by process and by state.
    ///
    /// # Errors
    /// Before the first walk.
    pub(crate) fn daemons(&self, now: Timestamp) -> Result<DaemonList, ViewError> {
        let processes = self.store.processes(NAMED).ok_or(ViewError::NoMirror)?;
        let (volume, worked_on) =
            (self.space_left(), JobState::ALL.iter().copied().filter(|state| state.is_worked_on()));
        let (grants, total) = self.store.grants(GRANTS).ok_or(ViewError::NoMirror)?;
        let states = worked_on.filter_map(|state| self.store.state_situation(state, volume, now));
        let states = states.map(|state| ServedState::new(&state, &processes));
        let summary = self.summary(now)?;
        let others = Daemon::ALL.into_iter().filter(|daemon| daemon.state().is_none());
        Ok(DaemonList {
            states: states.collect(),
            others: others.map(|daemon| OtherDaemon::new(daemon, &processes, &summary)).collect(),
            processes: processes.into_iter().map(|process| ProcessItem::new(process, |id| self.address(id))).collect(),
            grants: grants.into_iter().map(Into::into).collect(),
            grants_total: total as u64,
        })
    }
}

/// The daemons that work on the queue. Those of other programs are known only by their locks.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DaemonList {
    /// The states in which daemons work on jobs, in order.
    pub(crate) states: Vec<ServedState>,
    /// The daemons of queuekeeper that work on no state of jobs.
    pub(crate) others: Vec<OtherDaemon>,
    /// The processes of queuekeeper that have daemons, by host.
    pub(crate) processes: Vec<ProcessItem>,
    /// The grants of working storage: those of jobs that wait for more first, then the oldest; at most a hundred.
    pub(crate) grants: Vec<GrantItem>,
    /// How many grants there are.
    pub(crate) grants_total: u64,
}

/// The grant of a job on a volume of working storage.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct GrantItem {
    /// The job.
    #[schema(example = "jid0000000042")]
    pub(crate) job: String,
    /// Its state; `other` where that is not known.
    #[schema(example = "downloading")]
    pub(crate) state: &'static str,
    /// The UUID of the volume.
    pub(crate) volume: String,
    /// How many bytes it was granted.
    pub(crate) granted_bytes: u64,
    /// How many it has written; null if unknown.
    pub(crate) written_bytes: Option<u64>,
    /// How many more bytes it needs and waits for; null if it waits for none.
    pub(crate) extension_bytes: Option<u64>,
    /// Since when it has the grant.
    pub(crate) since: Timestamp,
}

impl From<Grant> for GrantItem {
    fn from(grant: Grant) -> Self {
        let Grant { job, state, volume, bytes, written, extension, since } = grant;
        Self {
            job: job.to_string(),
            state: state_label(state),
            volume,
            granted_bytes: bytes,
            written_bytes: written,
            extension_bytes: extension,
            since,
        }
    }
}

/// A state, and who takes its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ServedState {
    /// The state.
    #[schema(example = "downloading")]
    pub(crate) state: &'static str,
    /// Workers that take its jobs, in all processes of queuekeeper.
    pub(crate) workers: u64,
    /// How many processes have these.
    pub(crate) processes: u64,
    /// Jobs in it.
    pub(crate) jobs: u64,
    /// Of these, those that a daemon of any program is working on.
    pub(crate) locked: u64,
    /// When a daemon of any program last took a job of it; null if that was not observed.
    pub(crate) last_taken: Option<Timestamp>,
    /// Since when no process of queuekeeper has had workers for it and no daemon of any program has held a job of it;
    /// null while there is one. It is not earlier than when this server first read the queue.
    pub(crate) no_daemon_seen_since: Option<Timestamp>,
    /// Since when jobs have been waiting in it without any daemon taking them; null if there are none.
    pub(crate) without_daemon_since: Option<Timestamp>,
}

/// A daemon of queuekeeper that works on no state of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct OtherDaemon {
    /// Its name.
    #[schema(value_type = String, example = "batch")]
    pub(crate) daemon: Daemon,
    /// Its workers, in all processes of queuekeeper.
    pub(crate) workers: u64,
    /// How many processes have these.
    pub(crate) processes: u64,
    /// How many batches or access requests wait to be taken by it; null for a daemon that does not depend on their
    /// states.
    pub(crate) waiting: Option<u64>,
}

/// How many workers a daemon has, and in how many processes.
fn workers_of(name: &str, processes: &[Process]) -> (u64, u64) {
    let workers = processes.iter().filter_map(|process| process.note.workers.get(name));
    workers.filter(|workers| **workers > 0).fold((0, 0), |(sum, count), workers| (sum + u64::from(*workers), count + 1))
}

impl OtherDaemon {
    fn new(daemon: Daemon, processes: &[Process], summary: &Summary) -> Self {
        let (workers, processes) = workers_of(daemon.name(), processes);
        let takes = daemon.spec().takes;
        let batches = |state| summary.batches.get(Some(state)).count;
        let requests = |queue: &AccessQueue| summary.access(*queue).get(Some(AccessState::Pending)).count;
        let waiting = match takes {
            Takes::Batches(_) => takes.batch_state().map(batches),
            Takes::Requests => Some(AccessQueue::ALL.iter().map(requests).sum()),
            Takes::Jobs(_) | Takes::JobsByGrant(_) | Takes::Leftovers => None,
        };
        Self { daemon, workers, processes, waiting }
    }
}

/// A process of queuekeeper that has daemons.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ProcessItem {
    /// Its session, in the notation of ZooKeeper's log.
    #[schema(value_type = Option<String>, example = "0x100005a3c2e0001")]
    pub(crate) session: Option<Session>,
    /// From where it is connected, if known, and the process.
    pub(crate) address: Option<String>,
    /// The name of its host.
    #[schema(example = "worker1")]
    pub(crate) host: String,
    /// Its process number.
    pub(crate) pid: u32,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub(crate) version: String,
    /// Since when it has been working with this session.
    pub(crate) since: Timestamp,
    /// The UUID of its working storage.
    pub(crate) volume: String,
    /// How many workers each of its daemons has.
    pub(crate) workers: BTreeMap<String, u32>,
    /// The mail that no process has delivered yet; null if none has waited for some minutes.
    pub(crate) mail: Option<WaitingMail>,
    /// How many jobs it is working on.
    pub(crate) locked: u64,
    /// The jobs that it is working on, those it holds longest first, at most twenty.
    pub(crate) jobs: Vec<JobAtWork>,
    /// The other locks that it holds, at most twenty.
    pub(crate) locks: Vec<String>,
}

/// Mail that waits to be delivered.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct WaitingMail {
    /// How many mails.
    pub(crate) waiting: u64,
    /// Since when the oldest waits.
    pub(crate) since: Timestamp,
    /// How the last attempt of this process failed; empty if it has made none.
    pub(crate) why: String,
}

impl From<MailNote> for WaitingMail {
    fn from(mail: MailNote) -> Self {
        let MailNote { waiting, since, why } = mail;
        Self { waiting, since, why }
    }
}

/// A job that a process is working on.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct JobAtWork {
    /// The job.
    #[schema(example = "jid0000000042")]
    pub(crate) job: String,
    /// Its state; `other` for an unknown one.
    #[schema(example = "downloading")]
    pub(crate) state: &'static str,
    /// Since when it has been locked.
    pub(crate) since: Timestamp,
}

impl ServedState {
    fn new(state: &StateSituation, processes: &[Process]) -> Self {
        let without = state.faults.iter().find(|found| found.fault == Fault::NoDaemon);
        Self {
            state: state.state.label(),
            workers: state.workers,
            processes: workers_of(state.state.label(), processes).1,
            jobs: state.jobs,
            locked: state.locked,
            last_taken: state.taken.max(state.flow.seen_passed),
            no_daemon_seen_since: state.unserved,
            without_daemon_since: without.map(|found| found.since),
        }
    }
}

impl ProcessItem {
    fn new(process: Process, address: impl Fn(i64) -> Option<String>) -> Self {
        let Process { session, note, jobs, locked, others } = process;
        let at_work = |(job, state, since): (_, _, _)| JobAtWork {
            job: queuekeeper_queue::id::JobId::to_string(&job),
            state: state_label(state),
            since,
        };
        Self {
            session: Session::of(session),
            address: address(session),
            host: note.host,
            pid: note.pid,
            version: note.version,
            since: note.since,
            volume: note.volume,
            workers: note.workers,
            mail: note.mail.map(Into::into),
            locked,
            jobs: jobs.into_iter().map(at_work).collect(),
            locks: others.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_ingest::daemon::Exchange;

    use super::*;

    #[test]
    fn the_mirror_knows_which_daemons_replace_those_of_other_programs_together_only() {
        let together = Daemon::ALL.into_iter().filter(|daemon| daemon.spec().exchange == Exchange::Together);
        let states: Vec<_> = together.filter_map(Daemon::state).collect();
        assert_eq!(crate::mirror::EXCHANGED_TOGETHER.to_vec(), states);
    }
}
