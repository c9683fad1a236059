//! The audit trail: two JSON lines with one id for each order, `ordered` before anything is written to ZooKeeper and
//! `outcome` before the answer is given.
//!
//! A line counts as written when it is synced to the disk. Orders that come together share a sync: whoever comes while
//! one is going on waits for the next. What cannot be written is told to whoever wants to act, and then nothing is done.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

mod file;
mod recent;
mod record;

pub use file::Rotation;
pub use recent::{AuditQuery, Entry, EntryPage};
pub use record::{Decided, OrderId, Record};

use file::Sink;
use recent::Recent;

/// How many records may wait to be written. Who comes when as many do waits until there is room.
const MOST_WAITING: usize = 4096;

/// Where the audit trail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output, which is not synced: whoever collects it keeps it.
    StandardOutput,
    /// A file, which is rotated by size.
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
    lines: mpsc::Sender<Line>,
    recent: Arc<Recent>,
}

/// The part that writes; awaited by whoever made it.
#[derive(Debug)]
pub struct AuditWriter {
    lines: mpsc::Receiver<Line>,
    sink: Sink,
}

#[derive(Debug)]
struct Line {
    text: String,
    written: oneshot::Sender<Result<(), NotWritten>>,
}

impl Audit {
    /// Opens the audit trail, and reads back the newest records of a file.
    ///
    /// # Errors
    /// When the file cannot be opened, read or written.
    pub fn open(destination: Destination) -> Result<(Self, AuditWriter), AuditError> {
        let recent = Recent::default();
        let sink = match destination {
            Destination::StandardOutput => Sink::standard_output(),
            Destination::File(path, rotation) => {
                let sink = Sink::file(path, rotation)?;
                sink.last_lines()?.iter().filter_map(|line| Record::read(line)).for_each(|record| recent.add(record));
                recent.end_all();
                sink
            }
        };
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        Ok((Self { lines: sender, recent: Arc::new(recent) }, AuditWriter { lines: receiver, sink }))
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
        let (written, outcome) = oneshot::channel();
        let line = Line { text: records.iter().map(Record::line).collect(), written };
        let ending = || NotWritten("the server is ending".to_owned());
        self.lines.send(line).await.map_err(|_| ending())?;
        outcome.await.unwrap_or_else(|_| Err(ending()))?;
        for record in records {
            self.recent.add(record);
        }
        Ok(())
    }

    /// The newest orders that a query asks for, those first that were ordered last.
    #[must_use]
    pub fn find(&self, query: &AuditQuery) -> EntryPage {
        self.recent.find(query)
    }

    /// One order, if it is among the newest.
    #[must_use]
    pub fn entry(&self, id: OrderId) -> Option<Entry> {
        self.recent.entry(id)
    }
}

impl AuditWriter {
    /// Writes what comes until `shutdown`, and then what still waits.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut sink = self.sink;
        loop {
            let first = tokio::select! {
                biased;
                first = self.lines.recv() => first,
                () = shutdown.cancelled() => {
                    // Who is here already is served; who comes later is told.
                    self.lines.close();
                    self.lines.recv().await
                }
            };
            let Some(first) = first else { return };
            let mut text = first.text;
            let mut waiting = vec![first.written];
            while let Ok(line) = self.lines.try_recv() {
                text.push_str(&line.text);
                waiting.push(line.written);
            }
            let wrote = tokio::task::spawn_blocking(move || {
                let outcome = sink.append(&text);
                (sink, outcome)
            });
            let outcome;
            (sink, outcome) = match wrote.await {
                Ok(wrote) => wrote,
                Err(panicked) => {
                    tracing::error!(%panicked, "writing the audit trail failed for good");
                    return;
                }
            };
            let outcome = outcome.map_err(|error| {
                tracing::error!("{error}; nothing more is done until it can be written");
                NotWritten(error.to_string())
            });
            for written in waiting {
                // Whoever does not wait any more has no use for the answer.
                let _ = written.send(outcome.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
