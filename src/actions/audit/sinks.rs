//! Where records go: what operators request and what alerts cause, actions of rules included, have separate files, so
//! that a flood of alerts cannot push the requests of operators out of the rotation.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::Log;
use super::record::Record;
use super::unfinished::Unfinished;
use super::{AuditError, Destination, Rotation};

/// How much of the files is read back at startup, in bytes.
const READ_BACK_BYTES: u64 = 8 << 20;

/// What is appended to the name of the audit file for the records caused by alerts.
const ALERTS_SUFFIX: &str = ".alerts";

/// Text for each of the two files, whole lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    pub(super) actions: String,
    pub(super) alerts: String,
}

/// Where lines go.
#[derive(Debug)]
pub(super) enum Sinks {
    StandardOutput,
    Files {
        actions: Log,
        /// Opened if it exists or is needed: without rules nothing is written to it.
        alerts: Option<Log>,
        rotation: Rotation,
    },
}

impl Texts {
    pub(super) fn add(&mut self, record: &Record, deployment: Option<&str>) {
        let text = if record.is_caused_by_alerts() { &mut self.alerts } else { &mut self.actions };
        text.push_str(&record.line(deployment));
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.actions.push_str(&other.actions);
        self.alerts.push_str(&other.alerts);
    }
}

impl Sinks {
    /// Opens the files, the one for alerts if it exists. Actions that the last process left without an outcome get one,
    /// unless another process has the file open, which may be executing them.
    pub(super) fn open(destination: Destination, deployment: Option<&str>) -> Result<Self, AuditError> {
        let (path, rotation) = match destination {
            Destination::StandardOutput => return Ok(Self::StandardOutput),
            Destination::File(path, rotation) => (path, rotation),
        };
        let actions = open_and_settle(&path, rotation, deployment, false)?;
        let path = alerts_path(actions.path());
        let is_there = path.symlink_metadata().is_ok();
        let alerts = is_there.then(|| open_and_settle(&path, rotation, deployment, true)).transpose()?;
        Ok(Self::Files { actions, alerts, rotation })
    }

    /// Writes lines. They are on the disk when this returns. Returns the result for each of the two files.
    pub(super) fn append(&mut self, texts: &Texts) -> [Result<(), AuditError>; 2] {
        let Self::Files { actions, .. } = self else {
            let mut out = io::stdout().lock();
            let text = [texts.actions.as_bytes(), texts.alerts.as_bytes()].concat();
            let wrote = out.write_all(&text).and_then(|()| out.flush());
            let outcome =
                wrote.map_err(|why| error("cannot write the audit trail to", Path::new("standard output"), why));
            return [outcome.clone(), outcome];
        };
        let write = |log: &mut Log, text: &str| {
            log.append(text).map_err(|why| error("cannot write the audit file", log.path(), why))
        };
        let of_actions = if texts.actions.is_empty() { Ok(()) } else { write(actions, &texts.actions) };
        let mut write_alerts = || match self.alerts()? {
            Some(alerts) => write(alerts, &texts.alerts),
            None => Ok(()),
        };
        [of_actions, if texts.alerts.is_empty() { Ok(()) } else { write_alerts() }]
    }

    /// Opens the file for alerts if necessary, and checks that a line can be written to it.
    pub(super) fn check_alerts(&mut self) -> Result<(), AuditError> {
        match self.alerts()? {
            Some(alerts) => alerts.check().map_err(|why| error("cannot write the audit file", alerts.path(), why)),
            None => Ok(()),
        }
    }

    /// The file for alerts, opened; `None` on standard output.
    fn alerts(&mut self) -> Result<Option<&mut Log>, AuditError> {
        let Self::Files { actions, alerts, rotation } = self else { return Ok(None) };
        let log = match alerts.take() {
            Some(log) => log,
            None => open(&alerts_path(actions.path()), *rotation)?,
        };
        Ok(Some(alerts.insert(log)))
    }

    /// Reopens the files at their paths.
    pub(super) fn reopen(&mut self) -> Result<(), AuditError> {
        let Self::Files { actions, alerts, .. } = self else { return Ok(()) };
        for log in std::iter::once(actions).chain(alerts) {
            log.reopen().map_err(|why| error("cannot open the audit file", log.path(), why))?;
        }
        Ok(())
    }

    /// The last lines about requested actions, the oldest first within each file.
    pub(super) fn last_lines(&self) -> Result<Vec<String>, AuditError> {
        let Self::Files { actions, alerts, .. } = self else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        for log in std::iter::once(actions).chain(alerts) {
            let last = log.last_lines(READ_BACK_BYTES);
            lines.extend(last.map_err(|why| error("cannot read the audit file", log.path(), why))?);
        }
        Ok(lines)
    }
}

/// Opens a file, and records an outcome for actions in it that have none.
fn open_and_settle(
    path: &Path,
    rotation: Rotation,
    deployment: Option<&str>,
    by_alert: bool,
) -> Result<Log, AuditError> {
    let mut log = open(path, rotation)?;
    if log.lock() {
        let records = find_unfinished(&log)?.end(jiff::Timestamp::now(), by_alert);
        if !records.is_empty() {
            let text: String = records.iter().map(|record| record.line(deployment)).collect();
            log.append(&text).map_err(|why| error("cannot write the audit file", log.path(), why))?;
        }
    }
    log.share();
    Ok(log)
}

fn open(path: &Path, rotation: Rotation) -> Result<Log, AuditError> {
    Log::open(path.to_owned(), rotation).map_err(|why| error("cannot open the audit file", path, why))
}

/// The actions without an outcome since the last record that all earlier ones have one.
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
            unfinished.add(&line);
        }
        if unfinished.is_settled_before() {
            break;
        }
    }
    Ok(unfinished)
}

/// The path of the file for alerts.
fn alerts_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ALERTS_SUFFIX);
    PathBuf::from(name)
}

fn error(what: &'static str, path: &Path, why: io::Error) -> AuditError {
    AuditError { what, path: path.to_owned(), why: Arc::new(why) }
}
