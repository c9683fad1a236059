//! Our own znodes that are shown with the queue: they explain what the queue's own do not say.
//!
//! Whatever a client leaves there is taken in a form that is bounded, or left out; nothing of it is counted.

mod grants;
mod processes;

use std::collections::BTreeMap;

use hashbrown::HashMap;
use jiff::Timestamp;
use zookeeper_client::Stat;

pub use grants::{Grant, Granted};
#[cfg(test)]
pub(crate) use processes::EXCHANGED_TOGETHER;

use super::Image;
use super::notes::Note;
use super::row::JobRow;
use crate::mirror::clock::Offset;
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use crate::mirror::text::cut;
use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::{AccessQueue, OwnNode, Path};
use queuekeeper_queue::record::{
    DaemonNote, ExpansionNote, GrantsNote, JobProgress, MailNote, PauseNote, ProgressNote, Retry, WithdrawalNote,
};
use queuekeeper_queue::state::JobState;

/// How many notes of jobs are kept; as many jobs may wait for one host that is away.
const MOST_RETRIES: usize = 50_000;

/// How many znodes of each other kind are kept.
const MOST_OTHERS: usize = 1_000;

/// Our own znodes, as far as they are shown.
#[derive(Debug, Default)]
pub(super) struct Own {
    retries: HashMap<JobId, Retry>,
    requests: BTreeMap<(AccessQueue, RequestId), Retry>,
    expansions: BTreeMap<BatchId, ExpansionNote>,
    withdrawals: BTreeMap<BatchId, WithdrawalNote>,
    daemons: BTreeMap<i64, DaemonNote>,
    spaces: BTreeMap<Box<str>, GrantsNote>,
    progress: BTreeMap<i64, ProgressNote>,
    holds: BTreeMap<Box<str>, StoreHold>,
}

/// The hold on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreHold {
    pub(super) since: Option<Timestamp>,
    /// When its znode was created, in milliseconds by the servers' clock.
    pub(super) created_ms: i64,
    pub(super) note: Note,
}

/// A process in which daemons of ours run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its session.
    pub session: i64,
    /// What it says of itself.
    pub note: DaemonNote,
    /// The jobs that it works on, each with its state and since when, as many as are named; those that it holds longest
    /// come first.
    pub jobs: Vec<(JobId, Option<JobState>, Timestamp)>,
    /// How many jobs it works on.
    pub locked: u64,
    /// The other locks that it holds, some of them.
    pub others: Vec<Path>,
}

impl Own {
    /// Takes note of what a read found at a znode of ours. Gives whether something has changed.
    pub(super) fn apply(&mut self, path: &Path, found: &Found) -> bool {
        let data = found.node().map(|(data, _)| data);
        match path.own_node() {
            Some(OwnNode::Retry(job)) => match data.and_then(retry) {
                Some(retry) if self.retries.len() < MOST_RETRIES || self.retries.contains_key(&job) => {
                    self.retries.insert(job, retry.clone()) != Some(retry)
                }
                _ => self.retries.remove(&job).is_some(),
            },
            Some(OwnNode::RequestRetry(queue, request)) => {
                put(&mut self.requests, (queue, request), data.and_then(retry))
            }
            Some(OwnNode::Expansion(batch)) => put(&mut self.expansions, batch, data.and_then(ExpansionNote::decode)),
            Some(OwnNode::Withdrawal(batch)) => {
                put(&mut self.withdrawals, batch, data.and_then(WithdrawalNote::decode))
            }
            Some(OwnNode::Daemon(session)) => put(&mut self.daemons, session, data.and_then(DaemonNote::decode)),
            Some(OwnNode::Progress(session)) => put(&mut self.progress, session, data.and_then(ProgressNote::decode)),
            Some(OwnNode::Space(volume)) => {
                put(&mut self.spaces, volume, data.and_then(|data| GrantsNote::decode(data).ok()))
            }
            Some(OwnNode::StoreHold(store)) => put(&mut self.holds, store, found.node().map(hold)),
            None => false,
        }
    }

    /// The stores that are held, by name: since when, and what the holds say.
    pub(super) fn holds(&self) -> impl Iterator<Item = (&str, &StoreHold)> {
        self.holds.iter().map(|(store, hold)| (&**store, hold))
    }

    /// The hold on a store, where it is held.
    pub(super) fn hold(&self, store: &str) -> Option<&StoreHold> {
        self.holds.get(store)
    }

    /// How far the creation of a batch's jobs is; `None` where none are being created.
    pub(super) fn expansion(&self, batch: BatchId) -> Option<&ExpansionNote> {
        self.expansions.get(&batch)
    }

    /// The batches whose jobs are being created.
    pub(super) fn expanding(&self) -> impl Iterator<Item = BatchId> {
        self.expansions.keys().copied()
    }

    /// How far the withdrawal of a batch is; `None` where it is not being withdrawn.
    pub(super) fn withdrawal(&self, batch: BatchId) -> Option<&WithdrawalNote> {
        self.withdrawals.get(&batch)
    }

    /// Whether a job is the last one of a batch whose jobs are being created.
    pub(super) fn is_last_of_expansion(&self, job: JobId, batch: Option<BatchId>) -> bool {
        batch.and_then(|batch| self.expansions.get(&batch)).is_some_and(|expansion| expansion.last == Some(job))
    }

    /// Whether any job waits for another attempt.
    pub(super) fn has_retries(&self) -> bool {
        !self.retries.is_empty()
    }
}

impl Image {
    /// What a process says of itself whose session this is.
    pub(in crate::mirror) fn process_note(&self, session: i64) -> Option<&DaemonNote> {
        self.own.daemons.get(&session)
    }

    /// The processes in which daemons of ours run, by host and process number, each with at most `named` of its jobs.
    pub(in crate::mirror) fn processes(&self, named: usize, offset: Offset) -> Vec<Process> {
        let process = |(session, note): (&i64, &DaemonNote)| {
            let rows = self.jobs.beside.sessions.of(*session).map(|row| self.jobs.at(row));
            let mut jobs: Vec<_> =
                rows.filter_map(|row| Some((row.lock.as_deref()?.created_ms, row.id(), row.standing.state))).collect();
            jobs.sort_unstable_by_key(|(at, job, _)| (*at, *job));
            let (others, _) = self.held_by(*session, jobs.len() + named);
            Process {
                session: *session,
                note: note.clone(),
                locked: jobs.len() as u64,
                jobs: jobs.into_iter().take(named).map(|(at, job, state)| (job, state, offset.to_own(at))).collect(),
                others: others.into_iter().filter(|path| !matches!(path, Path::JobNode(..))).take(named).collect(),
            }
        };
        let mut processes: Vec<_> = self.own.daemons.iter().map(process).collect();
        processes.sort_by(|a, b| (&a.note.host, a.note.pid, a.session).cmp(&(&b.note.host, b.note.pid, b.session)));
        processes
    }

    /// The mail that no process has delivered yet.
    pub(in crate::mirror) fn waiting_mail(&self) -> Option<MailNote> {
        self.own.waiting_mail().cloned()
    }

    /// How many workers take the jobs of each state, in all processes.
    pub(super) fn workers(&self) -> ByState<JobState, u64> {
        let mut workers = ByState::default();
        for (state, count) in workers.iter_mut() {
            *count = state.map_or(0, |state| self.own.workers(state));
        }
        workers
    }

    /// How far the download of a job is, as the process says that has locked it.
    pub(in crate::mirror) fn progress(&self, job: JobId) -> Option<JobProgress> {
        let row = self.jobs.get(job).filter(|row| row.standing.state == Some(JobState::Downloading))?;
        self.own.progress.get(&row.lock.as_deref()?.session)?.jobs.get(&job).cloned()
    }

    /// How far the withdrawal of a batch is.
    pub(in crate::mirror) fn withdrawal(&self, batch: BatchId) -> Option<WithdrawalNote> {
        self.own.withdrawal(batch).cloned()
    }

    /// The znodes of ours of which another image has something else.
    pub(in crate::mirror) fn differing_own(&self, other: &Self) -> Vec<Path> {
        let (own, others) = (&self.own, &other.own);
        let mut paths = Vec::new();
        let jobs = own.retries.keys().chain(others.retries.keys());
        paths.extend(jobs.filter(|job| own.retries.get(*job) != others.retries.get(*job)).copied().map(Path::retry));
        let requests = own.requests.keys().chain(others.requests.keys());
        let requests = requests.filter(|request| own.requests.get(*request) != others.requests.get(*request));
        paths.extend(requests.map(|(queue, request)| Path::request_retry(*queue, *request)));
        let batches = own.expansions.keys().chain(others.expansions.keys());
        let batches = batches.filter(|batch| own.expansions.get(batch) != others.expansions.get(batch));
        paths.extend(batches.copied().map(Path::expansion));
        let batches = own.withdrawals.keys().chain(others.withdrawals.keys());
        let batches = batches.filter(|batch| own.withdrawals.get(batch) != others.withdrawals.get(batch));
        paths.extend(batches.copied().map(Path::withdrawal));
        let sessions = own.daemons.keys().chain(others.daemons.keys());
        let sessions = sessions.filter(|session| own.daemons.get(session) != others.daemons.get(session));
        paths.extend(sessions.copied().map(Path::daemon));
        let sessions = own.progress.keys().chain(others.progress.keys());
        let sessions = sessions.filter(|session| own.progress.get(session) != others.progress.get(session));
        paths.extend(sessions.copied().map(Path::progress));
        let volumes = own.spaces.keys().chain(others.spaces.keys());
        let volumes = volumes.filter(|volume| own.spaces.get(*volume) != others.spaces.get(*volume));
        paths.extend(volumes.filter_map(|volume| Path::space(volume)));
        let stores = own.holds.keys().chain(others.holds.keys());
        let stores = stores.filter(|store| own.holds.get(*store) != others.holds.get(*store));
        paths.extend(stores.filter_map(|store| Path::store_hold(store)));
        paths
    }

    /// Why a job waits for another attempt. A note counts only while the job's status has the version that it had when
    /// the note was written.
    pub(super) fn retry(&self, row: JobRow<'_>) -> Option<&Retry> {
        self.own.retries.get(&row.id()).filter(|retry| row.status_version() == retry.version)
    }

    /// The same of an access request whose status has this version.
    pub(super) fn request_retry(&self, queue: AccessQueue, request: RequestId, version: i32) -> Option<&Retry> {
        self.own.requests.get(&(queue, request)).filter(|retry| retry.version == version)
    }
}

/// Why something waits for another attempt, as its znode says it.
fn retry(data: &[u8]) -> Option<Retry> {
    Retry::decode(data).map(|retry| Retry { why: cut(&retry.why).into(), ..retry })
}

/// A hold as its znode says it, and since when that is there where it does not say.
fn hold((data, stat): (&[u8], &Stat)) -> StoreHold {
    let note = PauseNote::decode(data).value;
    let since = note.since.or_else(|| Timestamp::from_millisecond(stat.ctime).ok());
    let note = Note { who: cut(&note.who).into(), why: cut(&note.why).into() };
    StoreHold { since, created_ms: stat.ctime, note }
}

fn put<K: Ord, V: PartialEq + Clone>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> bool {
    match value {
        Some(value) if map.len() < MOST_OTHERS || map.contains_key(&key) => {
            map.insert(key, value.clone()).as_ref() != Some(&value)
        }
        _ => map.remove(&key).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::image::Change;
    use crate::mirror::image::tests::{empty, new_stat};
    use queuekeeper_queue::path::JobNode;
    use queuekeeper_queue::record::{BatchWait, WithdrawnNote};

    fn node(data: impl Into<Vec<u8>>, version: i32) -> Found {
        Found::Node { data: data.into(), stat: Stat { version, ..new_stat(1) } }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_processes_say_of_themselves_is_shown_together() {
        let (mut image, batch) = (empty(), BatchId::new(7));
        for session in [1, 2] {
            let note = DaemonNote {
                host: format!("host{session}"),
                pid: 7,
                version: String::new(),
                since: at(1),
                volume: String::new(),
                workers: BTreeMap::from([("downloading".to_owned(), 4), ("odd".to_owned(), 9)]),
                mail: Some(MailNote {
                    waiting: 5,
                    since: at(90 - session),
                    why: if session == 1 { "x".to_owned() } else { String::new() },
                }),
                waits: vec![BatchWait {
                    batch,
                    since: at(20 - session),
                    attempts: 1,
                    full: None,
                    why: "503".to_owned(),
                }],
            };
            image.apply(Path::daemon(session), &node(note.encode(), 0));
        }
        image.apply(Path::own("/queuekeeper/daemons/none").unwrap(), &node("{}", 0));
        assert_eq!(*image.workers().get(Some(JobState::Downloading)), 8);
        assert_eq!(*image.workers().get(Some(JobState::Storing)), 0);
        assert_eq!(image.waiting_mail().map(|mail| mail.why), Some("x".to_owned()), "that of one that has tried");
        let processes = image.processes(5, Offset::default());
        assert_eq!(processes.iter().map(|process| process.session).collect::<Vec<_>>(), [1, 2]);
        assert!(image.own.has_daemons() && image.own.wait(batch).is_none(), "its jobs have been created");
        image.apply(Path::expansion(batch), &node(ExpansionNote::default().encode(), 0));
        assert_eq!(image.own.wait(batch).map(|wait| wait.since), Some(at(18)), "the one that has waited longest");

        let grants = r#"{"grants":{"jid0000000001":{"bytes":10,"since":2000}}}"#;
        image.apply(Path::space("volume").unwrap(), &node(grants, 0));
        let unseen = |state| image.own.unseen_volume(JobId::new(1), state).map(ToOwned::to_owned);
        assert_eq!(unseen(JobState::Downloading).as_deref(), Some("volume"));
        assert_eq!(unseen(JobState::Storing), None, "daemons in Java may see it");
    }

    #[test]
    fn a_note_counts_for_the_job_as_it_was_then_and_garbage_for_nothing() {
        let (mut image, job) = (empty(), JobId::new(1));
        image.apply(Path::Job(job), &node("", 0));
        let status = |version| node(r#"{"status":"Downloading","retry_count":0}"#, version);
        image.apply(Path::JobNode(job, JobNode::Status), &status(3));
        let retry = Retry {
            version: 3,
            since: at(1),
            attempts: 2,
            not_before: at(60),
            waits_since: None,
            why: "503 from host".to_owned(),
        };
        let of = |image: &Image| image.retry(image.jobs.get(job).unwrap()).map(|retry| retry.why.clone());
        assert_eq!(image.apply(Path::retry(job), &node(retry.encode(), 0)), Change::Quiet);
        assert_eq!(image.apply(Path::retry(job), &node(retry.encode(), 0)), Change::Nothing);
        assert_eq!(of(&image).as_deref(), Some("503 from host"));
        image.apply(Path::JobNode(job, JobNode::Status), &status(4));
        assert_eq!(of(&image), None);
        image.apply(Path::JobNode(job, JobNode::Status), &status(3));
        assert_eq!(image.apply(Path::retry(job), &node("{}", 1)), Change::Quiet);
        assert_eq!(of(&image), None);

        let (queue, request) = (AccessQueue::Small, RequestId::new(1));
        let waits = |image: &Image| image.request_retry(queue, request, 3).map(|retry| retry.why.clone());
        image.apply(Path::request_retry(queue, request), &node(retry.encode(), 0));
        assert_eq!((waits(&image).as_deref(), image.request_retry(queue, request, 4)), (Some("503 from host"), None));
        assert!(image.differing_own(&empty()).contains(&Path::request_retry(queue, request)));
        image.apply(Path::request_retry(queue, request), &Found::Nothing);
        assert_eq!(waits(&image), None);

        let batch = BatchId::new(7);
        let note = ExpansionNote { next: 900, rows: Some(1_000), digest: String::new(), last: Some(job) };
        image.apply(Path::expansion(batch), &node(note.encode(), 0));
        assert!(image.own.is_last_of_expansion(job, Some(batch)) && !image.own.is_last_of_expansion(job, None));
        let differing = image.differing_own(&empty());
        assert_eq!(differing, [Path::expansion(batch)]);
        image.apply(Path::expansion(batch), &Found::Nothing);
        let note = WithdrawalNote::new(WithdrawnNote { who: "alice", why: "" }, at(5), None);
        image.apply(Path::withdrawal(batch), &node(note.encode(), 0));
        assert_eq!(image.own.withdrawal(batch), Some(&note));
        assert_eq!(image.differing_own(&empty()), [Path::withdrawal(batch)]);
        image.apply(Path::withdrawal(batch), &Found::Nothing);
        assert!(image.differing_own(&empty()).is_empty());

        let hold = Path::store_hold("main").unwrap();
        image.apply(hold.clone(), &node(r#"{"who":"anna","why":"disks"}"#, 0));
        let held = image.held_stores();
        assert_eq!((&*held[0].0, &*held[0].1.who, held[0].1.since.is_some()), ("main", "anna", true));
        assert_eq!(image.apply(hold.clone(), &node("garbage", 1)), Change::Quiet);
        assert_eq!((image.held_stores().len(), &*image.held_stores()[0].1.who), (1, ""));
        assert_eq!(image.apply(hold, &Found::Nothing), Change::Quiet);
        assert!(image.held_stores().is_empty());

        assert_eq!(image.own.granted(), None);
        let grants = br#"{"grants":{"jid0000000001":{"bytes":10,"since":2000},"x":{"bytes":18446744073709551615,"since":1000}}}"#;
        image.apply(Path::space("volume").unwrap(), &node(*grants, 0));
        let expected = Granted { jobs: 2, bytes: u64::MAX, since: Some(at(1)) };
        assert_eq!(image.own.granted(), Some(expected));

        // One that waits for more comes first, and what a failed job keeps is none.
        let grants = r#"{"grants":{"jid0000000001":{"bytes":10,"since":2000},"jid0000000002":{"bytes":5,"since":3000,"extension":7},
            "jid0000000003":{"bytes":0,"since":1000}}}"#;
        image.apply(Path::space("volume").unwrap(), &node(grants, 0));
        let (listed, total) = image.grants(1);
        let grant = Grant {
            job: JobId::new(2),
            state: None,
            volume: "volume".to_owned(),
            bytes: 5,
            written: None,
            extension: Some(7),
            since: at(3),
        };
        assert_eq!((listed, total), (vec![grant], 2));
        assert_eq!(image.own.granted().map(|granted| (granted.jobs, granted.bytes)), Some((2, 15)));
    }
}
