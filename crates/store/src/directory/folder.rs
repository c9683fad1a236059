//! The names of one directory, in the order in which a listing has what they stand for.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{CONTINUED, SELF, decode};
use crate::error::ErrorKind;
use crate::sorted::{Merged, Sorter};

/// How deep names may continue each other: no key is that long.
const MOST_PIECES: usize = 32;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// A part of a key; that of a directory ends with a slash, which puts it where what is in it comes.
    pub(super) part: Vec<u8>,
    /// The path of the file or directory, from the directory that is listed.
    pub(super) path: Vec<u8>,
}

impl Name {
    /// Whether it is a directory.
    pub(super) fn is_directory(&self) -> bool {
        self.part.ends_with(b"/")
    }
}

/// Names in order. Those that do not fit into memory lie in a file, which goes with this.
pub(super) struct Names(Merged);

impl Iterator for Names {
    type Item = io::Result<Name>;

    fn next(&mut self) -> Option<io::Result<Name>> {
        let record = self.0.next()?;
        Some(record.map(|record| Name { part: record.key().to_vec(), path: record.value().to_vec() }))
    }
}

/// The names of a directory that are wanted; `None` where it is gone.
pub(super) fn read(
    directory: &Path,
    temporary: &Arc<Path>,
    is_wanted: &dyn Fn(&Name) -> bool,
) -> Result<Option<Names>, ErrorKind> {
    let mut sorter = Sorter::new(temporary);
    let mut push = |name: Name| Ok(sorter.push(&name.part, &name.path)?);
    let is_there = each(directory, &Pieces::default(), is_wanted, &mut push)?;
    Ok(is_there.then(|| Names(sorter.merged())))
}

/// The pieces of a name that are continued, and the path that they make.
#[derive(Default)]
struct Pieces {
    name: Vec<u8>,
    path: PathBuf,
    count: usize,
}

/// Calls with each wanted name in a directory, those that continue others whole. The answer is whether there is a
/// directory.
fn each(
    directory: &Path,
    before: &Pieces,
    is_wanted: &dyn Fn(&Name) -> bool,
    push: &mut dyn FnMut(Name) -> Result<(), ErrorKind>,
) -> Result<bool, ErrorKind> {
    let here = directory.join(&before.path);
    let entries = match fs::read_dir(&here) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    for entry in entries {
        let entry = entry?;
        let (file_name, path) = (entry.file_name(), before.path.join(entry.file_name()));
        let kind = entry.file_type()?;
        // The content of the directory's own key is listed with the directory.
        if file_name.as_bytes() == SELF && before.count == 0 && kind.is_file() {
            continue;
        }
        if let Some(piece) = file_name.as_bytes().strip_suffix(CONTINUED).filter(|_| kind.is_dir()) {
            if before.count == MOST_PIECES {
                return Err(foreign(&entry));
            }
            let pieces = Pieces { name: [&before.name, piece].concat(), path, count: before.count + 1 };
            each(directory, &pieces, is_wanted, push)?;
            continue;
        }
        let part = decode(&[&before.name, file_name.as_bytes()].concat()).ok_or_else(|| foreign(&entry))?;
        let on_disk = path.as_os_str().as_bytes().to_vec();
        if kind.is_file() {
            let name = Name { part, path: on_disk };
            if is_wanted(&name) {
                push(name)?;
            }
        } else if kind.is_dir() {
            let own = path.join(OsStr::from_bytes(SELF));
            let is_content = || directory.join(&own).symlink_metadata().is_ok_and(|facts| facts.is_file());
            let name = Name { part: part.clone(), path: own.as_os_str().as_bytes().to_vec() };
            // A directory with many others is asked for those only that are wanted.
            if is_wanted(&name) && is_content() {
                push(name)?;
            }
            let name = Name { part: [part, b"/".to_vec()].concat(), path: on_disk };
            if is_wanted(&name) {
                push(name)?;
            }
        } else {
            return Err(foreign(&entry));
        }
    }
    Ok(true)
}

fn foreign(entry: &DirEntry) -> ErrorKind {
    // Any byte may be in a name, and the message is one line.
    let path = entry.path();
    let path = path.as_os_str().as_bytes().escape_ascii();
    ErrorKind::Answer(format!(
        "{path} has no name that this store gives, or is a link or a device; rename or remove it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More names than are sorted in memory.
    const MANY: usize = 50_000;

    #[test]
    fn names_are_in_the_order_of_what_they_lead_to_however_many_there_are() {
        let (top, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let temporary = Arc::from(files.path());
        for directory in ["d", "e"] {
            fs::create_dir(top.path().join(directory)).unwrap();
        }
        for file in ["d!", "d.x", "d0", "d/%3D", "e/f"] {
            fs::write(top.path().join(file), "").unwrap();
        }
        let names = read(top.path(), &temporary, &|_| true).unwrap().unwrap();
        let parts: Vec<_> = names.map(|name| String::from_utf8(name.unwrap().part).unwrap()).collect();
        assert_eq!(parts, ["d", "d!", "d.x", "d/", "d0", "e/"]);
        for number in 0..MANY {
            fs::write(top.path().join(format!("n{number}")), "").unwrap();
        }
        let names = read(top.path(), &temporary, &|name| name.part.starts_with(b"n")).unwrap().unwrap();
        let parts: Vec<_> = names.map(|name| name.unwrap().part).collect();
        assert_eq!(parts.len(), MANY);
        assert!(parts.is_sorted());
        assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_no_key_leads_to_ends_a_listing_by_name() {
        let (top, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let temporary = Arc::from(files.path());
        std::os::unix::fs::symlink("/etc/passwd", top.path().join("link")).unwrap();
        let names = read(top.path(), &temporary, &|_| true);
        assert!(names.is_err_and(|kind| kind.to_string().contains("link has no name")));
        fs::remove_file(top.path().join("link")).unwrap();
        fs::write(top.path().join("a%2Fb"), "").unwrap();
        assert!(read(top.path(), &temporary, &|_| true).is_err());
        assert!(read(&top.path().join("gone"), &temporary, &|_| true).unwrap().is_none());
    }
}
