//! What is wrong with a deposit, found without making it: its name and digest, the lines of its manifest, and the URLs
//! that cannot be reached.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use queuekeeper_store::{Digest, Digests};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{DepositError, NewDeposit, blocking};
use crate::fetch::{Expected, FetchError, Fetcher};
use crate::file_root::{self, FileRoot};
use crate::kind::DepositType;
use crate::manifest::{Limits, MOST_PROBLEMS, ManifestError, Problem, Reader};
use crate::parts::{MOST_JOBS, batches_of};
use crate::url::ContentUrl;

/// How many URLs are requested at a time.
const AT_A_TIME: usize = 16;

/// How many URLs of a manifest a check requests at most.
pub const MOST_REQUESTS: u64 = 10_000;

/// How much of the content is looked at to guess the type, in bytes.
const START: u64 = 8 * 1024;

/// The name of a manifest that was fetched to be checked.
const FETCHED: &str = "manifest";

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositFinding {
    /// The line of the manifest, from 1; `None` for the deposit as a whole.
    pub line: Option<u64>,
    /// The character in the line, from 1; `None` for the row as a whole.
    pub column: Option<u64>,
    /// What is wrong, without the query of a URL.
    pub message: String,
}

/// What was found out about a deposit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// What it would be taken for; `None` for what lies at a URL, unless its type was given.
    pub kind: Option<DepositType>,
    /// How many rows its manifest has; `None` where it is invalid or there is none.
    pub rows: Option<u64>,
    /// How many batches these would become; likewise.
    pub batches: Option<u64>,
    /// How many URLs were requested, or refused by the profile's guard before that.
    pub requested: u64,
    /// How many URLs of valid rows were not, because of the bounds in number and time or the problems before them.
    pub unrequested: u64,
    /// What is odd about a valid manifest, and no reason to refuse it.
    pub warnings: Vec<String>,
    /// What is wrong, by line; at most [`MOST_PROBLEMS`].
    pub problems: Vec<DepositFinding>,
    /// Whether there may be more than these.
    pub has_more: bool,
}

impl DepositFinding {
    /// Something that is wrong with the deposit as a whole.
    pub fn whole(why: impl fmt::Display) -> Self {
        Self { line: None, column: None, message: why.to_string() }
    }
}

impl Findings {
    /// Nothing is wrong with a deposit that would be taken for this, as far as it was checked.
    #[must_use]
    pub fn new(kind: Option<DepositType>) -> Self {
        let (warnings, problems) = (Vec::new(), Vec::new());
        Self { kind, rows: None, batches: None, requested: 0, unrequested: 0, warnings, problems, has_more: false }
    }

    fn wrong(mut self, why: &dyn fmt::Display) -> Self {
        self.problems.push(DepositFinding::whole(why));
        self
    }
}

impl fmt::Display for DepositFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(to, "line {line}, column {column}: {}", self.message),
            (Some(line), None) => write!(to, "line {line}: {}", self.message),
            (None, _) => to.write_str(&self.message),
        }
    }
}

impl From<&Problem> for DepositFinding {
    fn from(problem: &Problem) -> Self {
        Self { line: Some(problem.line), column: Some(problem.column), message: problem.kind.to_string() }
    }
}

impl NewDeposit {
    /// Checks a deposit whose content is at hand. The URLs of a manifest are requested for `longest` at most; without a
    /// fetcher, none is.
    ///
    /// # Errors
    /// When the content cannot be read.
    pub async fn check_content(
        &self,
        file: File,
        fetcher: Option<&Fetcher>,
        longest: Duration,
    ) -> Result<Findings, DepositError> {
        let expected = self.digest.clone();
        let (start, found, file) = blocking("read the content", move || {
            let (mut file, mut start, mut found) = (file, Vec::new(), None);
            (&file).take(START).read_to_end(&mut start)?;
            file.rewind()?;
            if let Some(expected) = &expected {
                let (_, digests) = file_root::digests(&file, [expected.algorithm()])?;
                found = digests.get(expected.algorithm()).cloned();
                file.rewind()?;
            }
            Ok((start, found, file))
        })
        .await?;
        let kind = self.kind_of(&start);
        if let Err(error) = self.check_start(&start) {
            return Ok(Findings::new(None).wrong(&error));
        }
        if let Err(error) = self.check() {
            return Ok(Findings::new(Some(kind)).wrong(&error));
        }
        if let Some((expected, found)) = differing(self.digest.as_ref(), found) {
            return Ok(Findings::new(Some(kind)).wrong(&DepositError::Digest { expected, found }));
        }
        if kind.manifest().is_none() {
            return Ok(Findings::new(Some(kind)));
        }
        check_manifest(kind, file, fetcher, longest).await
    }

    /// Checks a deposit of what lies at a URL. Where its type says that it is a manifest, it is fetched to `scratch`,
    /// an empty directory, and checked; its URLs are requested for `longest` at most.
    ///
    /// # Errors
    /// When `scratch` cannot be used.
    pub async fn check_url(
        &self,
        url: &ContentUrl,
        fetcher: &Fetcher,
        scratch: &Path,
        longest: Duration,
    ) -> Result<Findings, DepositError> {
        let findings = Findings { requested: 1, ..Findings::new(self.kind) };
        if let Err(error) = self.check() {
            return Ok(Findings::new(self.kind).wrong(&error));
        }
        if self.kind.and_then(DepositType::manifest).is_none() {
            return Ok(match fetcher.size(url).await {
                Ok(_) => findings,
                Err(error) => findings.wrong(&error),
            });
        }
        let disk = |error| DepositError::Disk { what: "keep the manifest", error };
        let file_root = Arc::new(FileRoot::open(scratch, scratch).map_err(disk)?);
        let digests: Digests = self.digest.iter().cloned().collect();
        let expected = Expected { size: None, most_bytes: Limits::default().bytes, digests };
        if let Err(error) = fetcher.fetch(url, &expected, &file_root, FETCHED, &Arc::default()).await {
            return Ok(findings.wrong(&error));
        }
        let file = file_root.file(FETCHED).and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()));
        let checked = self.check_content(file.map_err(disk)?, Some(fetcher), longest).await?;
        Ok(Findings { requested: checked.requested + 1, ..checked })
    }
}

/// The URLs that cannot be reached, by host and reason; where that is not of the host, by line too.
#[derive(Default)]
struct Unreachable(BTreeMap<(String, String, Option<u64>), Alike>);

/// URLs that cannot be reached for the same reason.
struct Alike {
    /// The first line of these, and what is wrong with it.
    line: u64,
    message: String,
    count: u64,
}

impl Unreachable {
    fn add(&mut self, line: u64, error: &FetchError) {
        // What is wrong with one file is said of each.
        let own = if error.is_of_host() { None } else { Some(line) };
        let alike = self.0.entry((error.host().to_owned(), error.reason(), own));
        let alike = alike.or_insert_with(|| Alike { line, message: error.to_string(), count: 0 });
        alike.count += 1;
        if line < alike.line {
            (alike.line, alike.message) = (line, error.to_string());
        }
    }

    fn findings(self) -> impl Iterator<Item = DepositFinding> {
        self.0.into_iter().map(|((host, ..), Alike { line, message, count })| {
            let message = match count - 1 {
                0 => message,
                1 => format!("{message}; the same holds for 1 other URL of {host}"),
                others => format!("{message}; the same holds for {others} other URLs of {host}"),
            };
            DepositFinding { line: Some(line), column: None, message }
        })
    }
}

fn differing(expected: Option<&Digest>, found: Option<Digest>) -> Option<(Digest, Digest)> {
    expected.cloned().zip(found).filter(|(expected, found)| expected != found)
}

/// Reads a manifest to its end, and requests the URLs of its valid rows meanwhile.
async fn check_manifest(
    kind: DepositType,
    file: File,
    fetcher: Option<&Fetcher>,
    longest: Duration,
) -> Result<Findings, DepositError> {
    let (send, rows) = mpsc::channel(AT_A_TIME);
    let reading = tokio::task::spawn_blocking(move || {
        let mut reader = Reader::new(BufReader::new(file), Limits::default(), kind.manifest());
        let (mut send, mut urls) = (Some(send), 0u64);
        for (line, row) in reader.by_ref() {
            let Some(url) = row.url.filter(|url| !url.is_file()) else { continue };
            urls += 1;
            // Where no more are requested, the rest is still read: what is wrong with it is to be known.
            send = send.filter(|send| urls <= MOST_REQUESTS && send.blocking_send((line, url)).is_ok());
        }
        drop(send);
        (urls, reader.finish())
    });
    let mut findings = Findings::new(Some(kind));
    let mut unreachable = Unreachable::default();
    if let Some(fetcher) = fetcher {
        let rows = stream::unfold(rows, |mut rows| async move { rows.recv().await.map(|row| (row, rows)) });
        let answers = rows.map(|(line, url): (u64, ContentUrl)| async move { (line, fetcher.size(&url).await.err()) });
        let mut answers = pin!(answers.buffer_unordered(AT_A_TIME).take_until(sleep(longest)));
        while unreachable.0.len() <= MOST_PROBLEMS
            && let Some((line, error)) = answers.next().await
        {
            findings.requested += 1;
            if let Some(error) = error {
                unreachable.add(line, &error);
            }
        }
    } else {
        drop(rows);
    }
    findings.problems.extend(unreachable.findings());
    let failed = |error: tokio::task::JoinError| DepositError::Disk {
        what: "read the manifest",
        error: io::Error::other(error),
    };
    let (urls, finished): (u64, _) = reading.await.map_err(failed)?;
    findings.unrequested = urls - findings.requested;
    match finished {
        Ok(summary) => {
            findings.rows = Some(summary.rows);
            findings.warnings = summary.sentences();
            findings.batches = Some(if kind.is_batch() { batches_of(summary.rows, MOST_JOBS) } else { 1 });
        }
        Err(ManifestError::Read(error)) => return Err(DepositError::Disk { what: "read the manifest", error }),
        Err(ManifestError::Invalid { problems, has_more }) => {
            findings.problems.extend(problems.iter().map(DepositFinding::from));
            findings.has_more = has_more;
        }
    }
    findings.problems.sort_by_key(|problem| (problem.line, problem.column));
    findings.has_more |= findings.problems.len() > MOST_PROBLEMS;
    findings.problems.truncate(MOST_PROBLEMS);
    Ok(findings)
}
