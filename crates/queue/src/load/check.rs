//! What a dump must be: each line for itself, in its place among the others, and all of it together.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::limits::{LoadLimits, SERVER_LIMIT_BYTES};
use super::nodes::DumpNode;
use super::target::KEPT;
use crate::dump::line::{self, DumpLine, InvalidLine, NodeLine, quoted};
use crate::dump::{Checksum, FORMAT, Header, NUMBERED, Trailer};
use crate::id::{BatchId, JobId, RequestId};
use crate::path::{InvalidPath, NodePath, Path};
use crate::transaction::REQUEST_LIMIT_BYTES;

/// The longest line that is read: a value of 1 MiB, each byte of it written as `\u0000`, with a long path.
const LONGEST_LINE: usize = 8 << 20;

/// How large the znodes may be together that the last transaction changes, with their paths. It also deletes those that
/// the dump does not have, and must not turn out to be too large when all else is loaded.
const KEPT_LIMIT_BYTES: usize = REQUEST_LIMIT_BYTES / 2;

/// How deep znodes may lie. The queue's own lie five deep.
const DEEPEST: usize = 200;

/// A dump that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("line {line} {problem}")]
pub struct InvalidDump {
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line of a dump.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The first line is not that of a dump.
    #[error("is not the first line of a dump: {}", quoted(.0))]
    Header(serde_json::Error),
    /// Another version wrote it.
    #[error("says that the dump has format {0}; this version reads {FORMAT}{hint}", hint = hint(*.0))]
    Format(u32),
    /// It is longer than any line may be.
    #[error("is longer than {} MiB", LONGEST_LINE >> 20)]
    Long,
    /// It is not a line of a dump.
    #[error(transparent)]
    Line(#[from] InvalidLine),
    /// Its path is not valid.
    #[error("has a path that no znode can have: {0}")]
    Path(InvalidPath),
    /// Its path lies where no dump reaches.
    #[error("has the path {}, which is not part of the queue", quoted(.0))]
    Foreign(String),
    /// Its path came before.
    #[error("has the path {} a second time", quoted(.0))]
    Twice(String),
    /// It does not follow the line before it.
    #[error("has the path {}, which should have come earlier", quoted(.0))]
    Order(String),
    /// Nothing above it can have it as a child.
    #[error("has the path {}, whose parent did not come before it", quoted(.0))]
    Parent(String),
    /// It lies too deep.
    #[error("has a path of more than {DEEPEST} parts")]
    Deep,
    /// Its number is larger than wanted.
    #[error(
        "has the number {number} for {folder}, above {largest}: the counter can only be raised one znode at a time; \
         --largest-number allows it"
    )]
    Number {
        /// The folder of the numbered znode.
        folder: String,
        /// Its number.
        number: u32,
        /// The largest one wanted.
        largest: u32,
    },
    /// ZooKeeper does not take it in one request.
    #[error(
        "has the path {}, whose value takes a request of {bytes} bytes, above {SERVER_LIMIT_BYTES}: it cannot be loaded",
        quoted(path)
    )]
    Large {
        /// The path.
        path: String,
        /// The size of the request, in bytes.
        bytes: usize,
    },
    /// The last request, which changes several znodes, becomes too large with it.
    #[error(
        "has the path {}, whose value is set in the last request, which takes {bytes} bytes with it, above \
         {KEPT_LIMIT_BYTES}: it cannot be loaded",
        quoted(path)
    )]
    LargeAtEnd {
        /// The path.
        path: String,
        /// The size of the request without its deletions, in bytes.
        bytes: usize,
    },
    /// It stands where the last line must.
    #[error("is not the last line, with the checksum, which must follow the counts")]
    NoChecksum,
    /// It is the last line, and the one before it is not there.
    #[error("has the checksum, and no line with the counts before it")]
    NoCounts,
    /// The lines are not those that were written.
    #[error(
        "says that the lines before it have the SHA-256 {}, and they have {read}: the dump was changed or damaged",
        quoted(said)
    )]
    Checksum {
        /// What the last line says.
        said: String,
        /// The checksum of the lines that were read.
        read: String,
    },
    /// There is something after the last line.
    #[error("follows the last line of the dump")]
    AfterEnd,
    /// The counts differ.
    #[error("says that there are {said} znodes, but {read} were read: lines are missing or were added")]
    Count {
        /// The number in the trailer.
        said: u64,
        /// The number of lines.
        read: u64,
    },
    /// The dump ends before its last line.
    #[error("is missing: the dump was cut off")]
    Cut,
}

/// What to do about a dump of that format.
fn hint(format: u32) -> &'static str {
    if format < FORMAT { ", and the older ones have no checksum: write the dump again with this version" } else { "" }
}

/// Reads a dump line by line, and holds no more of it than a path and its parents.
#[derive(Debug)]
pub struct DumpReader {
    line: u64,
    limits: LoadLimits,
    sum: Checksum,
    /// How large the last transaction becomes without its deletions: it sets the znodes that are kept for the end.
    kept_bytes: usize,
    /// The znodes above the last one, and itself: paths, and whether they may have children.
    above: Vec<(String, bool)>,
    /// How many znodes were read; from the line with the counts on, what that says.
    read: Trailer,
    state: ReaderState,
    /// The number that comes next below each folder.
    next: BTreeMap<String, u32>,
    /// Counts the units that belong in one transaction.
    unit: u64,
    unit_path: Option<String>,
}

/// Which part of a dump has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReaderState {
    /// Lines of znodes, or none yet.
    Nodes,
    /// The line with the counts.
    Counts,
    /// All of it; this is its checksum.
    Whole(String),
}

/// The content of a line.
#[derive(Debug)]
pub(super) enum ParsedLine {
    /// Nothing that is to be loaded.
    Nothing,
    Node(DumpNode),
    End(Trailer),
}

impl DumpReader {
    /// The longest line that is read, in bytes.
    pub const LONGEST_LINE: usize = LONGEST_LINE;

    /// A reader that accepts nothing beyond these limits.
    #[must_use]
    pub fn new(limits: LoadLimits) -> Self {
        Self {
            line: 0,
            limits,
            sum: Checksum::new(),
            kept_bytes: 0,
            above: Vec::new(),
            read: Trailer::default(),
            state: ReaderState::Nodes,
            next: BTreeMap::new(),
            unit: 0,
            unit_path: None,
        }
    }

    fn bad(&self, problem: Problem) -> InvalidDump {
        InvalidDump { line: self.line, problem }
    }

    /// What to say when there are no more lines and there should be.
    pub(super) fn cut(&self) -> InvalidDump {
        InvalidDump { line: self.line + 1, problem: Problem::Cut }
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// When it is not that of a dump that this version reads.
    pub fn header(&mut self, line: &[u8]) -> Result<Header, InvalidDump> {
        #[derive(serde::Deserialize)]
        struct Format {
            queuekeeper_dump: u32,
        }
        self.line += 1;
        if line.len() > LONGEST_LINE {
            return Err(self.bad(Problem::Long));
        }
        let refuse = |error| self.bad(Problem::Header(error));
        let format: Format = serde_json::from_slice(line).map_err(refuse)?;
        if format.queuekeeper_dump != FORMAT {
            return Err(self.bad(Problem::Format(format.queuekeeper_dump)));
        }
        let header: Header = serde_json::from_slice(line).map_err(refuse)?;
        for folder in NUMBERED.iter().map(ToString::to_string) {
            // The next number is one more than the largest that there may be.
            if let Some(next) = header.next.get(&folder) {
                self.count_number(&folder, next.saturating_sub(1))?;
                self.next.insert(folder, *next);
            }
        }
        self.sum_up(line);
        Ok(header)
    }

    /// Checks any other line, and forgets it.
    ///
    /// # Errors
    /// When it is not valid at that position.
    pub fn check(&mut self, line: &[u8]) -> Result<(), InvalidDump> {
        self.line(line).map(|_| ())
    }

    /// Checks that the dump is whole, and gives what it consists of and its checksum, in hex digits.
    ///
    /// # Errors
    /// When its last line did not come.
    pub fn end(&self) -> Result<(Trailer, &str), InvalidDump> {
        match &self.state {
            ReaderState::Whole(sha256) => Ok((self.read, sha256)),
            ReaderState::Nodes | ReaderState::Counts => Err(self.cut()),
        }
    }

    fn sum_up(&mut self, line: &[u8]) {
        self.sum.add(line);
        self.sum.add(b"\n");
    }

    /// Reads any other line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<ParsedLine, InvalidDump> {
        self.line += 1;
        if line.len() > LONGEST_LINE {
            return Err(self.bad(Problem::Long));
        }
        if matches!(self.state, ReaderState::Whole(_)) {
            return if line.is_empty() { Ok(ParsedLine::Nothing) } else { Err(self.bad(Problem::AfterEnd)) };
        }
        let is_counted = self.state == ReaderState::Counts;
        let parsed = match line::read_line(line).map_err(|error| self.bad(error.into()))? {
            DumpLine::Checksum(_) if !is_counted => return Err(self.bad(Problem::NoCounts)),
            DumpLine::Checksum(said) => {
                let read = self.sum.text();
                if said != read {
                    return Err(self.bad(Problem::Checksum { said: said.into_owned(), read }));
                }
                self.state = ReaderState::Whole(read);
                return Ok(ParsedLine::End(self.read));
            }
            DumpLine::End(_) | DumpLine::Node(_) if is_counted => return Err(self.bad(Problem::NoChecksum)),
            DumpLine::End(end) => {
                if end.nodes != self.read.nodes {
                    return Err(self.bad(Problem::Count { said: end.nodes, read: self.read.nodes }));
                }
                (self.state, self.read) = (ReaderState::Counts, end);
                ParsedLine::Nothing
            }
            DumpLine::Node(node) => self.node(node)?,
        };
        self.sum_up(line);
        Ok(parsed)
    }

    fn node(&mut self, node: NodeLine<'_>) -> Result<ParsedLine, InvalidDump> {
        let text = node.path.into_owned();
        NodePath::parse(&text).map_err(|error| self.bad(Problem::Path(error)))?;
        let path = Path::parse_whole(&text);
        if path == Path::Foreign {
            return Err(self.bad(Problem::Foreign(text)));
        }
        let order = self.above.last().map_or(Ordering::Less, |(before, _)| line::compare(before, &text));
        match order {
            Ordering::Less => {}
            Ordering::Equal => return Err(self.bad(Problem::Twice(text))),
            Ordering::Greater => return Err(self.bad(Problem::Order(text))),
        }
        let parent = match text.rsplit_once('/') {
            _ if text == "/" => None,
            Some(("", _)) | None => Some("/"),
            Some((parent, _)) => Some(parent),
        };
        while self.above.last().is_some_and(|(above, _)| Some(above.as_str()) != parent) {
            self.above.pop();
        }
        if self.above.last().map_or(parent.is_some(), |(_, may_have_children)| !may_have_children) {
            return Err(self.bad(Problem::Parent(text)));
        }
        if self.above.len() > DEEPEST {
            return Err(self.bad(Problem::Deep));
        }
        self.number(&path)?;
        if !node.is_ephemeral {
            let bytes = self.limits.request_bytes(&text, &node.data);
            if KEPT.contains(&path) {
                self.kept_bytes += bytes;
                if self.kept_bytes > KEPT_LIMIT_BYTES {
                    return Err(self.bad(Problem::LargeAtEnd { path: text, bytes: self.kept_bytes }));
                }
            } else if bytes > SERVER_LIMIT_BYTES {
                return Err(self.bad(Problem::Large { path: text, bytes }));
            }
        }
        self.read.nodes += 1;
        let unit = self.unit_of(&path, &text);
        self.above.push((text, !node.is_ephemeral));
        if node.is_ephemeral {
            return Ok(ParsedLine::Nothing);
        }
        Ok(ParsedLine::Node(DumpNode { path, data: node.data, unit }))
    }

    /// The znodes of a job, batch or request have one number, any other has one of its own.
    fn unit_of(&mut self, path: &Path, text: &str) -> u64 {
        let is_below = self
            .unit_path
            .as_ref()
            .is_some_and(|item| text.strip_prefix(item.as_str()).is_some_and(|rest| rest.starts_with('/')));
        if !is_below {
            let is_item = matches!(path, Path::Job(_) | Path::Batch(_) | Path::Request(..));
            self.unit_path = is_item.then(|| text.to_owned());
        }
        // References lie below their batch, of which there may be more than fit a transaction.
        if !is_below || matches!(path, Path::Reference(..)) {
            self.unit += 1;
        }
        self.unit
    }

    fn number(&mut self, path: &Path) -> Result<(), InvalidDump> {
        let number = match path {
            Path::Job(id) => JobId::number(*id),
            Path::Batch(id) => BatchId::number(*id),
            Path::Request(_, id) => RequestId::number(*id),
            _ => return Ok(()),
        };
        let folder = path.parent().unwrap_or(Path::Root).to_string();
        self.count_number(&folder, number)?;
        let next = self.next.entry(folder).or_default();
        *next = (*next).max(number + 1);
        Ok(())
    }

    fn count_number(&self, folder: &str, number: u32) -> Result<(), InvalidDump> {
        let largest = self.limits.largest_number();
        if number > largest {
            return Err(self.bad(Problem::Number { folder: folder.to_owned(), number, largest }));
        }
        Ok(())
    }

    /// The number that must come next below each folder whose children ZooKeeper numbers.
    pub(super) fn next_numbers(&self) -> impl Iterator<Item = (Path, u32)> {
        NUMBERED.iter().filter_map(|folder| Some((folder.clone(), *self.next.get(&folder.to_string())?)))
    }
}

#[cfg(test)]
mod tests;
