//! The audit trail: two JSON lines with one id for each action, `requested` before anything is written to ZooKeeper and
//! `outcome` before the answer is given.
//!
//! A line counts as written when it is synced to the disk. Actions that come together share a sync: whoever comes while
//! one is going on waits for the next. What cannot be written is told to whoever wants to act, and then nothing is done.
//!
//! - The files, which are looked for again before each record: `file`, `sinks`.
//! - What the last process left without an outcome: `unfinished`.
//! - Calls of Alertmanager by which nothing changes are summed up: `tally`.
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
pub use recent::{AuditQuery, Entry, EntryPage};
pub use record::{ActionId, Decided, Record};
pub use tally::{Counted, Unchanged};

use recent::Recent;
use sinks::{Sinks, Texts};
use tally::Tally;

/// How many records may wait to be written. Who comes when as many do waits until there is room.
const MOST_WAITING: usize = 4096;

/// How often sums are written of calls by which nothing changed.
const SUMS_EVERY: Duration = Duration::from_mins(1);

/// Where the audit trail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output, which is not synced: whoever collects it keeps it.
    StandardOutput,
    /// A file, which is rotated by size; and, with `.alerts` after its name, another for what alerts bring about.
    File(PathBuf, Rotation),
}

/// The audit trail could not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} {}: {why}", path.display())]
pub struct AuditError {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    pub(super) why: Arc<std::io::Error>,
}

/// A record that was not written, and so nothing may be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail cannot be written: {0}")]
pub struct NotWritten(String);

/// The way to the audit trail; cheap to clone.
#[derive(Clone, Debug)]
pub struct Audit {
    messages: mpsc::Sender<Message>,
    recent: Arc<Recent>,
    tally: Arc<Tally>,
}

/// The part that writes; awaited by whoever made it.
#[derive(Debug)]
pub struct AuditWriter {
    messages: mpsc::Receiver<Message>,
    sinks: Sinks,
    tally: Arc<Tally>,
}

#[derive(Debug)]
enum Message {
    Write(Lines),
    /// Find out whether lines of alerts can be written.
    CheckAlerts(oneshot::Sender<Result<(), NotWritten>>),
    FindAgain,
}

#[derive(Debug)]
struct Lines {
    texts: Texts,
    written: oneshot::Sender<Result<(), NotWritten>>,
}

impl Audit {
    /// Opens the audit trail, gives actions that the last process left without an outcome one, and reads back the newest
    /// records of a file.
    ///
    /// # Errors
    /// When the file cannot be opened, read or written, or is one that others could change.
    pub fn open(destination: Destination) -> Result<(Self, AuditWriter), AuditError> {
        let recent = Recent::default();
        let sinks = Sinks::open(destination)?;
        sinks.last_lines()?.iter().filter_map(|line| Record::read(line)).for_each(|record| recent.add(record));
        recent.end_all();
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let tally = Arc::new(Tally::default());
        let writer = AuditWriter { messages: receiver, sinks, tally: Arc::clone(&tally) };
        Ok((Self { messages: sender, recent: Arc::new(recent), tally }, writer))
    }

    /// Writes a record. It is on the disk when this returns.
    ///
    /// # Errors
    /// When it could not be written: nothing may be done then.
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
            texts.add(record);
        }
        let ending = || NotWritten("the server is ending".to_owned());
        self.messages.send(Message::Write(Lines { texts, written })).await.map_err(|_| ending())?;
        outcome.await.unwrap_or_else(|_| Err(ending()))?;
        for record in records {
            self.recent.add(record);
        }
        Ok(())
    }

    /// Finds out whether what alerts bring about can be written now: who decides something first could not take it back.
    ///
    /// # Errors
    /// When it cannot: nothing may be decided then.
    pub async fn check_alerts(&self) -> Result<(), NotWritten> {
        let (checked, outcome) = oneshot::channel();
        let ending = || NotWritten("the server is ending".to_owned());
        self.messages.send(Message::CheckAlerts(checked)).await.map_err(|_| ending())?;
        outcome.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Counts what a call of Alertmanager brought that changes nothing. The sums are written once a minute, and at the
    /// end.
    pub fn count(&self, unchanged: Unchanged, now: Timestamp) {
        self.tally.add(unchanged, now);
    }

    /// Opens the files at their paths at once where these are others than those that are open. It is noticed in any case
    /// before the next record is written.
    pub async fn find_again(&self) {
        // A writer that has ended writes nothing more.
        let _ = self.messages.send(Message::FindAgain).await;
    }

    /// The newest actions that a query asks for, those first that were requested last.
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
    /// Opens the file of alerts, which is made where it is not there: where there are rules, it will be needed.
    ///
    /// # Errors
    /// As [`Audit::open`].
    pub fn open_alerts(&mut self) -> Result<(), AuditError> {
        self.sinks.check_alerts()
    }

    /// Writes what comes until `shutdown`, and then what still waits.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut next_sums = Instant::now() + SUMS_EVERY;
        let mut sums = Texts::default();
        loop {
            let first = tokio::select! {
                biased;
                () = sleep_until(next_sums) => None,
                first = self.messages.recv() => first,
                () = shutdown.cancelled() => {
                    // Who is here already is served; who comes later is told.
                    self.messages.close();
                    self.messages.recv().await
                }
            };
            let is_due = Instant::now() >= next_sums;
            let is_over = first.is_none() && !is_due;
            let (mut texts, mut waiting, mut is_to_find_again) = (Texts::default(), Vec::new(), false);
            let mut checks = Vec::new();
            let mut next = first;
            while let Some(message) = next {
                match message {
                    Message::Write(lines) => {
                        texts.append(&lines.texts);
                        waiting.push((!lines.texts.actions.is_empty(), !lines.texts.alerts.is_empty(), lines.written));
                    }
                    Message::CheckAlerts(checked) => checks.push(checked),
                    Message::FindAgain => is_to_find_again = true,
                }
                next = self.messages.try_recv().ok();
            }
            if is_due || is_over {
                next_sums = Instant::now() + SUMS_EVERY;
                // Those that could not be written the last time come first.
                if sums.alerts.is_empty() {
                    self.tally.take(Timestamp::now()).iter().for_each(|record| sums.add(record));
                }
            }
            let mut sinks = self.sinks;
            let of_sums = if is_due || is_over { std::mem::take(&mut sums) } else { Texts::default() };
            let wrote = tokio::task::spawn_blocking(move || {
                if is_to_find_again && let Err(error) = sinks.find_again() {
                    tracing::error!("{error}; nothing more is done until it can be opened");
                }
                let outcomes = sinks.append(&texts);
                if !checks.is_empty() {
                    let can = sinks.check_alerts().map_err(|error| NotWritten(error.to_string()));
                    for checked in checks {
                        // Whoever does not wait any more has no use for the answer.
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
                    tracing::error!(%panicked, "writing the audit trail failed for good");
                    return;
                }
            };
            if let Some((texts, error)) = unwritten {
                tracing::error!("{error}; the sums of calls by which nothing changed are kept");
                sums = texts;
            }
            let [of_actions, of_alerts] = outcomes.map(|outcome| {
                outcome.map_err(|error| {
                    tracing::error!("{error}; nothing more is done until it can be written");
                    NotWritten(error.to_string())
                })
            });
            for (has_actions, has_alerts, written) in waiting {
                let outcome = if has_actions { of_actions.clone() } else { Ok(()) };
                let outcome = if has_alerts { outcome.and(of_alerts.clone()) } else { outcome };
                // Whoever does not wait any more has no use for the answer.
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
