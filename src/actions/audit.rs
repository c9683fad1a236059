//! The audit trail: two JSON lines with one id for each action, `requested` before anything is written to ZooKeeper and
//! `outcome` before the caller gets a response.
//!
//! A line counts as written when it is synced to the disk. Concurrent actions share a sync: a record that arrives
//! during one waits for the next. If a record cannot be written, its action is refused.
//!
//! - The fields of a line: `record`.
//! - The files, whose paths are checked before each record: `file`, `sinks`.
//! - Actions that the last process left without an outcome: `unfinished`.
//! - Sums of Alertmanager calls that change nothing: `tally`.
//! - The newest actions, for the page: `recent`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

mod file;
mod recent;
mod record;
mod sinks;
mod tally;
mod unfinished;

pub use file::Rotation;
pub use recent::{AuditOrder, AuditQuery, Entry, EntryPage};
pub(super) use record::TARGETS_PER_RECORD;
pub use record::{ActionId, Counted, Decided, Finished, Record};
pub use tally::Unchanged;

use recent::Recent;
use sinks::{Sinks, Texts};
use tally::Tally;

/// How many records may wait to be written. Further callers wait until there is room.
const MAX_WAITING: usize = 4096;

/// How often the sums of calls that change nothing are written.
const SUM_INTERVAL: Duration = Duration::from_mins(1);

/// Where the audit trail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output, which is not synced; its collector has to keep it.
    StandardOutput,
    /// A file, rotated by size. Records caused by alerts go to another, with `.alerts` appended to its name.
    File(PathBuf, Rotation),
}

impl Destination {
    /// That of one queue of several, whose files have its name: `actions.prod.jsonl` for `actions.jsonl`.
    #[must_use]
    pub fn of_deployment(&self, name: &str) -> Self {
        let Self::File(path, rotation) = self else { return self.clone() };
        let mut own = path.file_stem().unwrap_or_default().to_owned();
        own.push(format!(".{name}"));
        if let Some(extension) = path.extension() {
            own.push(".");
            own.push(extension);
        }
        Self::File(path.with_file_name(own), *rotation)
    }
}

/// The audit trail could not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} {}: {why}", path.display())]
pub struct AuditError {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    pub(super) why: Arc<std::io::Error>,
}

/// A record could not be written, so that its action must not be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail cannot be written: {0}")]
pub struct NotWritten(String);

/// The sending side of the audit trail; cheap to clone.
#[derive(Clone, Debug)]
pub struct Audit {
    messages: mpsc::Sender<Message>,
    /// The name of the queue, where one server serves several.
    deployment: Option<Arc<str>>,
    recent: Arc<Recent>,
    tally: Arc<Tally>,
}

/// The writing side, awaited by its owner.
#[derive(Debug)]
pub struct AuditWriter {
    messages: mpsc::Receiver<Message>,
    deployment: Option<Arc<str>>,
    sinks: Sinks,
    tally: Arc<Tally>,
}

#[derive(Debug)]
enum Message {
    Write(Lines),
    /// Check that records caused by alerts can be written.
    CheckAlerts(oneshot::Sender<Result<(), NotWritten>>),
    Reopen,
}

#[derive(Debug)]
struct Lines {
    texts: Texts,
    written: oneshot::Sender<Result<(), NotWritten>>,
}

impl Audit {
    /// Opens the audit trail, records an outcome for actions that the last process left without one, and reads back the
    /// newest records of the files.
    ///
    /// # Errors
    /// When a file cannot be opened, read or written, or is writable by other users.
    pub fn open(destination: Destination) -> Result<(Self, AuditWriter), AuditError> {
        Self::open_of(destination, None)
    }

    /// The same for a queue of several, whose name is in each record.
    ///
    /// # Errors
    /// As [`Audit::open`].
    pub fn open_of(destination: Destination, deployment: Option<&str>) -> Result<(Self, AuditWriter), AuditError> {
        let recent = Recent::default();
        let sinks = Sinks::open(destination, deployment)?;
        sinks.last_lines()?.iter().filter_map(|line| Record::read(line)).for_each(|record| recent.add(record));
        recent.mark_unfinished_unknown();
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let tally = Arc::new(Tally::default());
        let deployment: Option<Arc<str>> = deployment.map(Into::into);
        let own = (deployment.clone(), Arc::clone(&tally));
        let writer = AuditWriter { messages: receiver, sinks, deployment: own.0, tally: own.1 };
        Ok((Self { messages: sender, deployment, recent: Arc::new(recent), tally }, writer))
    }

    /// Writes a record. It is on the disk when this returns.
    ///
    /// # Errors
    /// When it could not be written: its action must not be executed.
    pub async fn write(&self, record: Record) -> Result<(), NotWritten> {
        self.write_all(vec![record]).await
    }

    /// Writes records, all of them or none. They are on the disk when this returns.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_all(&self, records: Vec<Record>) -> Result<(), NotWritten> {
        if records.is_empty() {
            return Ok(());
        }
        let (written, outcome) = oneshot::channel();
        let mut texts = Texts::default();
        for record in &records {
            texts.add(record, self.deployment.as_deref());
        }
        let ending = || NotWritten("the server is shutting down".to_owned());
        self.messages.send(Message::Write(Lines { texts, written })).await.map_err(|_| ending())?;
        outcome.await.unwrap_or_else(|_| Err(ending()))?;
        for record in records {
            self.recent.add(record);
        }
        Ok(())
    }

    /// Checks that records caused by alerts can be written now, since a decision cannot be withdrawn later.
    ///
    /// # Errors
    /// When they cannot be written: nothing may be decided.
    pub async fn check_alerts(&self) -> Result<(), NotWritten> {
        let (checked, outcome) = oneshot::channel();
        let ending = || NotWritten("the server is shutting down".to_owned());
        self.messages.send(Message::CheckAlerts(checked)).await.map_err(|_| ending())?;
        outcome.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Counts the decisions of an Alertmanager call that change nothing. The sums are written once a minute and at
    /// shutdown.
    pub fn count(&self, unchanged: Unchanged, now: Timestamp) {
        self.tally.add(unchanged, now);
    }

    /// Reopens the files if other files are at their paths now. The same check precedes each record.
    /// before the next record is written.
    pub async fn reopen(&self) {
        // A writer that has stopped writes nothing more.
        let _ = self.messages.send(Message::Reopen).await;
    }

    /// The newest actions that match a query, most recent first.
    #[must_use]
    pub fn find(&self, query: &AuditQuery) -> EntryPage {
        self.recent.find(query)
    }

    /// One action, if it is among the newest.
    #[must_use]
    pub fn entry(&self, id: ActionId) -> Option<Entry> {
        self.recent.entry(id)
    }
}

impl AuditWriter {
    /// Opens the file for records caused by alerts, and creates it if it does not exist. Called when there are rules.
    ///
    /// # Errors
    /// As [`Audit::open`].
    pub fn open_alerts(&mut self) -> Result<(), AuditError> {
        self.sinks.check_alerts()
    }

    /// Writes records until `shutdown`, and then those that still wait.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut next_sums = Instant::now() + SUM_INTERVAL;
        let mut sums = Texts::default();
        loop {
            let first = tokio::select! {
                biased;
                () = sleep_until(next_sums) => None,
                first = self.messages.recv() => first,
                () = shutdown.cancelled() => {
                    // Callers that already wait are served; later ones get an error.
                    self.messages.close();
                    self.messages.recv().await
                }
            };
            let is_due = Instant::now() >= next_sums;
            let is_over = first.is_none() && !is_due;
            let (mut texts, mut waiting, mut is_to_reopen) = (Texts::default(), Vec::new(), false);
            let mut checks = Vec::new();
            let mut next = first;
            while let Some(message) = next {
                match message {
                    Message::Write(lines) => {
                        texts.append(&lines.texts);
                        waiting.push((!lines.texts.actions.is_empty(), !lines.texts.alerts.is_empty(), lines.written));
                    }
                    Message::CheckAlerts(checked) => checks.push(checked),
                    Message::Reopen => is_to_reopen = true,
                }
                next = self.messages.try_recv().ok();
            }
            if is_due || is_over {
                next_sums = Instant::now() + SUM_INTERVAL;
                // Sums that could not be written before come first.
                if sums.alerts.is_empty() {
                    let deployment = self.deployment.as_deref();
                    self.tally.take(Timestamp::now()).iter().for_each(|record| sums.add(record, deployment));
                }
            }
            let mut sinks = self.sinks;
            let of_sums = if is_due || is_over { std::mem::take(&mut sums) } else { Texts::default() };
            let wrote = tokio::task::spawn_blocking(move || {
                if is_to_reopen && let Err(error) = sinks.reopen() {
                    tracing::error!("{error}; all actions are refused until it can be opened");
                }
                let outcomes = sinks.append(&texts);
                if !checks.is_empty() {
                    let can = sinks.check_alerts().map_err(|error| NotWritten(error.to_string()));
                    for checked in checks {
                        // The caller may have stopped waiting.
                        let _ = checked.send(can.clone());
                    }
                }
                let unwritten = sinks.append(&of_sums).into_iter().find_map(Result::err).map(|error| (of_sums, error));
                (sinks, outcomes, unwritten)
            });
            let (outcomes, unwritten);
            (self.sinks, outcomes, unwritten) = match wrote.await {
                Ok(wrote) => wrote,
                Err(panicked) => {
                    tracing::error!(%panicked, "the audit trail writer panicked");
                    return;
                }
            };
            if let Some((texts, error)) = unwritten {
                tracing::error!("{error}; the counts of repeated calls are kept for the next attempt");
                sums = texts;
            }
            let [of_actions, of_alerts] = outcomes.map(|outcome| {
                outcome.map_err(|error| {
                    tracing::error!("{error}; all actions are refused until it can be written");
                    NotWritten(error.to_string())
                })
            });
            for (has_actions, has_alerts, written) in waiting {
                let outcome = if has_actions { of_actions.clone() } else { Ok(()) };
                let outcome = if has_alerts { outcome.and(of_alerts.clone()) } else { outcome };
                // The caller may have stopped waiting.
                let _ = written.send(outcome);
            }
            if is_over {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
