//! Finding the files of a pack, and what of it cannot be deposited.

use std::fmt;
use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path};

use super::Pack;
use crate::file_root::FileRoot;
use crate::name::{self, shown};
use crate::unpack::Limits;

/// How many problems are listed.
const MOST_PROBLEMS: usize = 100;

/// Why files and directories cannot be packed.
#[derive(Debug, Default)]
pub struct PackError {
    /// A sentence for each problem, in the order of the names; at most a hundred.
    pub problems: Vec<String>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl PackError {
    fn of(why: impl fmt::Display) -> Self {
        Self { problems: vec![why.to_string()], has_more: false }
    }

    fn add(&mut self, why: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(why);
        } else {
            self.has_more = true;
        }
    }
}

impl fmt::Display for PackError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.problems.first().map_or("", String::as_str))?;
        match (self.problems.len().saturating_sub(1), self.has_more) {
            (0, _) => Ok(()),
            (1, false) => to.write_str(" (and one more problem)"),
            (more, false) => write!(to, " (and {more} more problems)"),
            (more, true) => write!(to, " (and more than {more} other problems)"),
        }
    }
}

impl std::error::Error for PackError {}

/// A file as it was when it was found, or a directory without files.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) file: Option<Stamp>,
}

/// What changes with a file's content: how many bytes it has, and when it was changed last (`st_ctime`, which cannot be
/// set back).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(facts: &fs::Metadata) -> Self {
        Self { size: facts.len(), changed: (facts.ctime(), facts.ctime_nsec()) }
    }
}

struct Walk<'a> {
    base: &'a Path,
    found: Vec<Found>,
    wrong: PackError,
    most: usize,
}

/// Packs what is at these paths beneath a directory.
pub(super) fn pack<P: AsRef<Path>>(base: &Path, paths: &[P]) -> Result<Pack, PackError> {
    let cannot_open = |error| PackError::of(format_args!("cannot read {}: {error}", base.display()));
    let file_root = FileRoot::open(base, base).map_err(cannot_open)?;
    let most = usize::try_from(Limits::bytes(0).entries).unwrap_or(usize::MAX);
    let mut walk = Walk { base, found: Vec::new(), wrong: PackError::default(), most };
    for path in paths.iter().map(AsRef::as_ref) {
        if let Some(name) = relative(path) {
            walk.one(&name);
        } else {
            let path = shown(&path.to_string_lossy());
            let how = "give paths relative to the directory in which the command runs, without \"..\"";
            walk.wrong.add(format!("{path}: {how}"));
        }
    }
    let Walk { mut found, mut wrong, .. } = walk;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in found.windows(2).filter(|pair| pair[0].name == pair[1].name) {
        wrong.add(format!("{} is named twice", shown(&pair[0].name)));
    }
    if wrong.problems.is_empty() && found.iter().all(|found| found.file.is_none()) {
        wrong.add("there is no file".to_owned());
    }
    if !wrong.problems.is_empty() {
        return Err(wrong);
    }
    Pack::new(file_root, found).map_err(PackError::of)
}

/// A path as a name, empty for the directory itself; `None` for one that leads out of it.
fn relative(path: &Path) -> Option<String> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let names: Option<Vec<_>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    Some(names?.join("/"))
}

impl Walk<'_> {
    /// Takes what is at a name, and all beneath it.
    fn one(&mut self, name: &str) {
        let mut left = vec![name.to_owned()];
        while let Some(name) = left.pop() {
            if self.found.len() >= self.most {
                return self.wrong.add(format!("there are more than {} files", self.most));
            }
            let path = self.base.join(&name);
            let of = |error: std::io::Error| format!("{}: {error}", shown(&name));
            // The directory itself may be reached by a link, as by `cd`.
            let facts = if name.is_empty() { fs::metadata(&path) } else { fs::symlink_metadata(&path) };
            match facts {
                Err(error) => self.wrong.add(of(error)),
                Ok(facts) if facts.is_file() => self.found.push(Found { name, file: Some(Stamp::of(&facts)) }),
                Ok(facts) if facts.is_dir() => match self.inside(&path, &name) {
                    Err(error) => self.wrong.add(of(error)),
                    Ok((names, 0)) if names.is_empty() && !name.is_empty() => {
                        self.found.push(Found { name, file: None });
                    }
                    // The first by name is the next.
                    Ok((names, _)) => left.extend(names.into_iter().rev()),
                },
                Ok(facts) => {
                    let what = what(facts.file_type());
                    self.wrong.add(format!("{} is {what}; only files and directories are deposited", shown(&name)));
                }
            }
        }
    }

    /// The names of what is in a directory, sorted, and how many more there are that no file may have.
    fn inside(&mut self, path: &Path, name: &str) -> std::io::Result<(Vec<String>, usize)> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.push(entry?.file_name());
        }
        names.sort();
        let count = names.len();
        let mut sound = Vec::with_capacity(count);
        for inner in names {
            let full = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}/{inner}") };
            let checked = match inner.to_str() {
                Some(inner) => name::check(&full(inner)).map(|()| full(inner)),
                None => Err(name::NameError::NoText),
            };
            match checked {
                Ok(full) => sound.push(full),
                Err(error) => self.wrong.add(format!("{}: {error}", shown(&full(&inner.to_string_lossy())))),
            }
        }
        let refused = count - sound.len();
        Ok((sound, refused))
    }
}

fn what(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_symlink() => "a link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}
