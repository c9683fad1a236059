//! Where lines go: what operators order and what calls of Alertmanager bring about have files of their own, so that
//! nobody who can have alerts sent pushes out what others ordered.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::Log;
use super::record::Record;
use super::unfinished::Unfinished;
use super::{AuditError, Destination, Rotation};

/// How much of the files is read back at the start, in bytes.
const READ_BACK: u64 = 8 << 20;

/// What is added to the name of the audit file for the one of alerts.
const OF_ALERTS: &str = ".alerts";

/// Text for each of the two, whole lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    pub(super) orders: String,
    pub(super) alerts: String,
}

/// Where lines go.
#[derive(Debug)]
pub(super) enum Sinks {
    StandardOutput,
    Files {
        orders: Log,
        /// Opened when there is something to write.
        alerts: Option<Log>,
        rotation: Rotation,
    },
}

impl Texts {
    pub(super) fn add(&mut self, record: &Record) {
        let text = if record.is_of_alerts() { &mut self.alerts } else { &mut self.orders };
        text.push_str(&record.line());
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.orders.push_str(&other.orders);
        self.alerts.push_str(&other.alerts);
    }
}

impl Sinks {
    /// Opens the files. Orders that the last process left without an outcome get one, unless another process has the file
    /// open, whose they may be.
    pub(super) fn open(destination: Destination) -> Result<Self, AuditError> {
        let (path, rotation) = match destination {
            Destination::StandardOutput => return Ok(Self::StandardOutput),
            Destination::File(path, rotation) => (path, rotation),
        };
        let opened = Log::open(path.clone(), rotation);
        let mut orders = opened.map_err(|why| error("cannot open the audit file", &path, why))?;
        if orders.lock() {
            let unfinished = find_unfinished(&orders)?;
            let mut text = Texts::default();
            unfinished.end(jiff::Timestamp::now()).iter().for_each(|record| text.add(record));
            if !text.orders.is_empty() {
                orders.append(&text.orders).map_err(|why| error("cannot write the audit file", &path, why))?;
            }
        }
        orders.share();
        Ok(Self::Files { orders, alerts: None, rotation })
    }

    /// Writes lines. They are on the disk when this returns. Gives what came of each of the two.
    pub(super) fn append(&mut self, texts: &Texts) -> [Result<(), AuditError>; 2] {
        match self {
            Self::StandardOutput => {
                let mut out = io::stdout().lock();
                let text = [texts.orders.as_bytes(), texts.alerts.as_bytes()].concat();
                let wrote = out.write_all(&text).and_then(|()| out.flush());
                let outcome =
                    wrote.map_err(|why| error("cannot write the audit trail to", Path::new("standard output"), why));
                [outcome.clone(), outcome]
            }
            Self::Files { orders, alerts, rotation } => {
                let write = |log: &mut Log, text: &str| {
                    if text.is_empty() {
                        return Ok(());
                    }
                    log.append(text).map_err(|why| error("cannot write the audit file", log.path(), why))
                };
                let of_orders = write(orders, &texts.orders);
                let of_alerts = if texts.alerts.is_empty() {
                    Ok(())
                } else {
                    let path = of_alerts(orders.path());
                    let opened = match alerts.take() {
                        Some(log) => Ok(log),
                        None => Log::open(path.clone(), *rotation)
                            .map_err(|why| error("cannot open the audit file", &path, why)),
                    };
                    opened.and_then(|log| write(alerts.insert(log), &texts.alerts))
                };
                [of_orders, of_alerts]
            }
        }
    }

    /// Opens what is at the paths now.
    pub(super) fn find_again(&mut self) -> Result<(), AuditError> {
        let Self::Files { orders, alerts, .. } = self else { return Ok(()) };
        for log in std::iter::once(orders).chain(alerts) {
            log.find_again().map_err(|why| error("cannot open the audit file", log.path(), why))?;
        }
        Ok(())
    }

    /// The last lines of what was ordered, the oldest first.
    pub(super) fn last_lines(&self) -> Result<Vec<String>, AuditError> {
        let Self::Files { orders, .. } = self else { return Ok(Vec::new()) };
        orders.last_lines(READ_BACK).map_err(|why| error("cannot read the audit file", orders.path(), why))
    }
}

/// What was ordered since all that was ordered before had an outcome, and has none.
fn find_unfinished(log: &Log) -> Result<Unfinished, AuditError> {
    let mut unfinished = Unfinished::default();
    for path in log.paths() {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(why) if why.kind() == io::ErrorKind::NotFound => break,
            Err(why) => return Err(error("cannot read the audit file", &path, why)),
        };
        let mut lines = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        unfinished.begin_older();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            if read.map_err(|why| error("cannot read the audit file", &path, why))? == 0 {
                break;
            }
            unfinished.look_at(&line);
        }
        if unfinished.is_settled_before() {
            break;
        }
    }
    Ok(unfinished)
}

/// The file of alerts beside that of orders.
fn of_alerts(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OF_ALERTS);
    PathBuf::from(name)
}

fn error(what: &'static str, path: &Path, why: io::Error) -> AuditError {
    AuditError { what, path: path.to_owned(), why: Arc::new(why) }
}
