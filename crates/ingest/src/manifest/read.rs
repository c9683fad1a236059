//! Reading a manifest.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead};

use hashbrown::HashMap;
use url::Url;

use super::add::name_beneath;
use super::lines::{BoundedLine, Lines};
use super::names::{Names, Warning};
use super::problem::{MOST_PROBLEMS, ManifestError, Problem, ProblemKind};
use super::profile::{self, ManifestProfile};
use super::row::{Findings, ManifestRow};

/// How many warnings are repeated as sentences.
const MOST_SENTENCES: usize = 5;

/// How many warnings are kept.
const MOST_WARNINGS: usize = 100;

/// What a manifest may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, in bytes.
    pub line_bytes: usize,
    /// The most rows: an object has at most 400,000 files. How many a batch may have is for the batch daemon.
    pub rows: u64,
    /// All of it, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line_bytes: 65_536, rows: 400_000, bytes: 256 << 20 }
    }
}

/// What a valid manifest is as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its profile.
    pub profile: ManifestProfile,
    /// The number of its rows.
    pub rows: u64,
    /// The sizes that rows state, together, in bytes.
    pub stated_bytes: u64,
    /// How many rows state no size.
    pub unstated_sizes: u64,
    /// What is odd, the first 100.
    pub warnings: Vec<Warning>,
    /// How many warnings there were beyond these.
    pub more_warnings: u64,
}

impl Summary {
    /// What is odd about the manifest: one sentence each, the first of them.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let more = (self.warnings.len().saturating_sub(MOST_SENTENCES) as u64).saturating_add(self.more_warnings);
        let more = (more > 0).then(|| format!("the manifest has {more} more warnings"));
        self.warnings.iter().take(MOST_SENTENCES).map(ToString::to_string).chain(more).collect()
    }
}

/// Reads a manifest in a stream: an iterator over the valid rows, each with the number of its line. Whether the
/// manifest is valid is known at its end: [`Reader::finish`].
pub struct Reader<R> {
    lines: Lines<R>,
    state: State,
}

struct State {
    limits: Limits,
    expected: Option<ManifestProfile>,
    base: Option<Url>,
    profile: Option<ManifestProfile>,
    line: u64,
    bytes: u64,
    rows: u64,
    stated_bytes: u64,
    unstated_sizes: u64,
    has_eof: bool,
    /// The line of the first row behind a `#%eof`.
    behind_eof: Option<u64>,
    has_ended: bool,
    names: Names,
    /// The lines of objects in a batch, by a hash of what distinguishes them.
    objects: HashMap<u64, u64, RandomState>,
    hasher: RandomState,
    problems: Vec<Problem>,
    has_more: bool,
    warnings: Vec<Warning>,
    more_warnings: u64,
    failure: Option<io::Error>,
}

impl<R: BufRead> Reader<R> {
    /// A reader of a manifest. Where a profile is expected, it need not be named, and no other one is taken.
    pub fn new(source: R, limits: Limits, expected: Option<ManifestProfile>) -> Self {
        let state = State {
            limits,
            expected,
            base: None,
            profile: None,
            line: 0,
            bytes: 0,
            rows: 0,
            stated_bytes: 0,
            unstated_sizes: 0,
            has_eof: false,
            behind_eof: None,
            has_ended: false,
            names: Names::new(),
            objects: HashMap::default(),
            hasher: RandomState::new(),
            problems: Vec::new(),
            has_more: false,
            warnings: Vec::new(),
            more_warnings: 0,
            failure: None,
        };
        Self { lines: Lines::new(source, limits.line_bytes), state }
    }

    /// A reader of the manifest of a version, all of whose files lie beneath a directory's URL, which ends with a
    /// slash. Their names are taken from the URLs: some names cannot be written in a column, see [`super::AddWriter`].
    pub fn add(source: R, limits: Limits, base: Url) -> Self {
        let mut reader = Self::new(source, limits, Some(ManifestProfile::Add));
        reader.state.base = Some(base);
        reader
    }

    /// The profile, once it was read.
    #[must_use]
    pub fn profile(&self) -> Option<ManifestProfile> {
        self.state.profile
    }

    /// Reads what is left, and says what the manifest is.
    ///
    /// # Errors
    /// When it cannot be read, or is invalid.
    pub fn finish(mut self) -> Result<Summary, ManifestError> {
        while self.next().is_some() {}
        self.state.finish()
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = (u64, ManifestRow);

    fn next(&mut self) -> Option<(u64, ManifestRow)> {
        while !self.state.has_ended {
            match self.lines.next() {
                Ok(Some(line)) => {
                    if let Some(row) = self.state.take(&line) {
                        return Some((self.state.line, row));
                    }
                }
                Ok(None) => self.state.end(),
                Err(error) => {
                    self.state.failure = Some(error);
                    self.state.has_ended = true;
                }
            }
        }
        None
    }
}

impl State {
    fn problem(&mut self, column: u64, kind: ProblemKind) {
        self.problems.push(Problem { line: self.line.max(1), column, kind });
        if self.problems.len() >= MOST_PROBLEMS {
            (self.has_more, self.has_ended) = (true, true);
        }
    }

    /// A problem behind which nothing makes sense.
    fn fatal(&mut self, column: u64, kind: ProblemKind) {
        self.problem(column, kind);
        self.has_ended = true;
    }

    fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    fn take(&mut self, line: &BoundedLine<'_>) -> Option<ManifestRow> {
        self.line += 1;
        let bytes = match line {
            BoundedLine::Whole(bytes) => *bytes,
            BoundedLine::TooLong => {
                self.bytes += self.limits.line_bytes as u64;
                self.has_eof = false;
                self.problem(1, ProblemKind::LineTooLong(self.limits.line_bytes));
                return None;
            }
        };
        self.bytes += bytes.len() as u64 + 1;
        if self.bytes > self.limits.bytes {
            self.fatal(1, ProblemKind::TooLarge(self.limits.bytes));
            return None;
        }
        let bytes = if self.line == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        if bytes.trim_ascii().is_empty() {
            return None;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // A comment may be anything.
            Err(_) if bytes[0] == b'#' => return None,
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).chars().count() as u64;
                self.has_eof = false;
                self.problem(before + 1, ProblemKind::NoText);
                return None;
            }
        };
        if text.starts_with('#') {
            self.header(text);
            return None;
        }
        if std::mem::take(&mut self.has_eof) {
            self.behind_eof.get_or_insert(self.line);
        }
        self.row(text)
    }

    fn header(&mut self, text: &str) {
        if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("#%eof")) {
            self.has_eof = true;
        } else if let Some(uri) = profile::of_header(text) {
            let found = ManifestProfile::of_uri(uri);
            let column = text.chars().count().saturating_sub(uri.chars().count()) as u64 + 1;
            match (found, self.profile.or(self.expected)) {
                (None, _) => self.fatal(column, ProblemKind::UnknownProfile(crate::url::conceal(uri))),
                (Some(found), Some(expected)) if found != expected => {
                    self.fatal(column, ProblemKind::OtherProfile { found, expected });
                }
                (Some(_), _) => self.profile = found,
            }
        }
    }

    fn row(&mut self, text: &str) -> Option<ManifestRow> {
        self.profile = self.profile.or(self.expected);
        let Some(profile) = self.profile else {
            self.fatal(1, ProblemKind::NoProfile);
            return None;
        };
        if self.rows >= self.limits.rows {
            self.fatal(1, ProblemKind::TooManyRows(self.limits.rows));
            return None;
        }
        self.rows += 1;
        let (mut row, Findings { problems, warning, mut name_at }) = ManifestRow::parse(profile, text, self.line);
        if !problems.is_empty() {
            for (column, kind) in problems {
                if !self.has_ended {
                    self.problem(column, kind);
                }
            }
            return None;
        }
        if let (Some(base), Some(url)) = (&self.base, &row.url) {
            name_at = 1;
            match name_beneath(base, url.reveal()) {
                Ok(name) => row.name = name,
                Err(kind) => {
                    self.problem(1, kind);
                    return None;
                }
            }
        }
        let among =
            if profile.is_batch() { Ok(self.among_objects(&row)) } else { self.names.add(&row.name, self.line) };
        match among {
            Ok(other) => [warning, other].into_iter().flatten().for_each(|warning| self.warn(warning)),
            Err(kind @ ProblemKind::TooManyParts(_)) => {
                self.fatal(name_at, kind);
                return None;
            }
            Err(kind) => {
                self.problem(name_at, kind);
                return None;
            }
        }
        match row.size {
            Some(size) => self.stated_bytes = self.stated_bytes.saturating_add(size),
            None => self.unstated_sizes += 1,
        }
        Some(row)
    }

    /// Names may be there twice in a batch, where each row has a directory of its own.
    fn among_objects(&mut self, row: &ManifestRow) -> Option<Warning> {
        let hash = self.hasher.hash_one((&row.url, &row.primary_id, &row.local_ids));
        let first = *self.objects.entry(hash).or_insert(self.line);
        (first != self.line).then_some(Warning::RepeatedRow { line: self.line, first })
    }

    fn end(&mut self) {
        self.has_ended = true;
        if let Some(line) = self.behind_eof.filter(|_| !self.has_eof) {
            self.line = line;
            self.problem(1, ProblemKind::BehindEof);
        } else if !self.has_eof {
            self.problem(1, ProblemKind::CutOff);
        } else if self.rows == 0 {
            self.problem(1, ProblemKind::NoRows);
        }
    }

    fn finish(self) -> Result<Summary, ManifestError> {
        if let Some(error) = self.failure {
            return Err(ManifestError::Read(error));
        }
        match self.profile {
            Some(profile) if self.problems.is_empty() => Ok(Summary {
                profile,
                rows: self.rows,
                stated_bytes: self.stated_bytes,
                unstated_sizes: self.unstated_sizes,
                warnings: self.warnings,
                more_warnings: self.more_warnings,
            }),
            _ => Err(ManifestError::Invalid { problems: self.problems, has_more: self.has_more }),
        }
    }
}
