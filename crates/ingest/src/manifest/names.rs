//! Names of files that cannot be beside each other, found in time linear in their bytes.

use std::fmt;
use std::hash::RandomState;

use hashbrown::{Equivalent, HashMap};
use unicode_normalization::UnicodeNormalization as _;

use super::problem::ProblemKind;

/// How many parts of names are held at most: some hundred megabytes, ten for each file that an object may have.
const MOST_PARTS: usize = 4_000_000;

/// What is odd about a manifest, and no reason to refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Two names differ only by Unicode normalization. Both files are kept; some file systems show them as one.
    Normalization {
        /// The line of the second name.
        line: u64,
        /// The line of the first one.
        first: u64,
        /// The second name.
        name: String,
        /// The first one.
        other: String,
    },
    /// A row of a batch has the URL and identifiers of another one: the same object, twice.
    RepeatedRow {
        /// The line.
        line: u64,
        /// The line of the first one.
        first: u64,
    },
    /// A row has an algorithm without a digest, or a digest without an algorithm: it is not checked.
    HalfDigest {
        /// The line.
        line: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normalization { line, first, name, other } => write!(
                to,
                "line {line}: the file name \"{}\" differs from that of line {first}, \"{}\", by Unicode normalization only",
                crate::name::shown(name),
                crate::name::shown(other)
            ),
            Self::RepeatedRow { line, first } => {
                write!(to, "line {line}: URL and identifiers are those of line {first}")
            }
            Self::HalfDigest { line } => {
                write!(to, "line {line}: an algorithm without a digest or a digest without an algorithm is ignored")
            }
        }
    }
}

/// The names of an object's files, as a tree of their parts.
pub(crate) struct Names {
    parts: HashMap<Part, Node, RandomState>,
    /// The names that are not ASCII, by normal form.
    normal: HashMap<Box<str>, First, RandomState>,
}

/// The first name of a normal form.
struct First {
    line: u64,
    /// As it is; `None` where it is the normal form.
    name: Option<Box<str>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Part {
    folder: u32,
    name: Box<str>,
}

#[derive(Hash)]
struct PartRef<'a> {
    folder: u32,
    name: &'a str,
}

impl Equivalent<Part> for PartRef<'_> {
    fn equivalent(&self, part: &Part) -> bool {
        self.folder == part.folder && *self.name == *part.name
    }
}

#[derive(Clone, Copy)]
struct Node {
    number: u32,
    /// The line that it came with.
    line: u64,
    is_file: bool,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { parts: HashMap::default(), normal: HashMap::default() }
    }

    /// Adds a valid name; what comes back is the warning that it deserves.
    pub(crate) fn add(&mut self, name: &str, line: u64) -> Result<Option<Warning>, ProblemKind> {
        let mut folder = 0;
        let mut parts = name.split('/').peekable();
        while let Some(part) = parts.next() {
            let is_file = parts.peek().is_none();
            match self.parts.get(&PartRef { folder, name: part }) {
                Some(node) if node.is_file && is_file => return Err(ProblemKind::Repeated(node.line)),
                Some(node) if node.is_file || is_file => return Err(ProblemKind::Conflict(node.line)),
                Some(node) => folder = node.number,
                None => {
                    if self.parts.len() >= MOST_PARTS {
                        return Err(ProblemKind::TooManyParts(MOST_PARTS));
                    }
                    let number =
                        u32::try_from(self.parts.len() + 1).map_err(|_| ProblemKind::TooManyParts(MOST_PARTS))?;
                    self.parts.insert(Part { folder, name: part.into() }, Node { number, line, is_file });
                    folder = number;
                }
            }
        }
        if name.is_ascii() {
            return Ok(None);
        }
        let normal: String = name.nfc().collect();
        if let Some(First { line: first, name: other }) = self.normal.get(&*normal) {
            let other = other.as_deref().unwrap_or(&normal).to_owned();
            return Ok(Some(Warning::Normalization { line, first: *first, name: name.to_owned(), other }));
        }
        let as_it_is = (normal != name).then(|| name.into());
        self.normal.insert(normal.into(), First { line, name: as_it_is });
        Ok(None)
    }

    /// Whether a path is a folder (or a file) of those names; `None` where it is none of them.
    pub(crate) fn is_folder(&self, path: &str) -> Option<bool> {
        let mut found: Option<Node> = None;
        for part in path.split('/') {
            let folder = found.map_or(0, |node| node.number);
            found = Some(*self.parts.get(&PartRef { folder, name: part })?);
        }
        found.map(|node| !node.is_file)
    }
}
