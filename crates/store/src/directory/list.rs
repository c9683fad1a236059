//! A walk through a space in the byte order of keys.

use std::collections::VecDeque;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use rustix::io::Errno;

use super::core::{Core, etag_of};
use super::folder::{self, Names};
use super::names::names_of_folder;
use super::tree::os;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::SpaceName;
use crate::store::{Listed, Listing};

/// How many items are looked up at a time.
const BATCH: usize = 512;

/// A directory whose names are being listed.
struct Frame {
    /// What the keys of all that is in it begin with.
    prefix: Vec<u8>,
    path: PathBuf,
    names: Names,
}

/// Where a walk is. Directories that are begun are on the stack, the innermost last.
struct Walk {
    core: Arc<Core>,
    space: SpaceName,
    prefix: Vec<u8>,
    after: Option<Key>,
    stack: Vec<Frame>,
    has_begun: bool,
}

/// Every item of a space in byte order.
pub(super) fn list(core: Arc<Core>, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
    let walk = Walk {
        core,
        space: space.clone(),
        prefix: prefix.to_vec(),
        after: after.cloned(),
        stack: Vec::new(),
        has_begun: false,
    };
    let batches = stream::unfold(Some(walk), async |walk| {
        let mut walk = walk?;
        let batch = tokio::task::spawn_blocking(move || {
            let batch = walk.batch();
            (walk, batch)
        });
        let (walk, batch) = batch.await.ok()?;
        match batch {
            (items, None) if items.is_empty() => None,
            (items, None) => Some((items, Some(walk))),
            (mut items, Some(kind)) => {
                items.push_back(Err(walk.core.failed(Operation::List, &walk.space, kind)));
                Some((items, None))
            }
        }
    });
    batches.flat_map(stream::iter).boxed()
}

impl Walk {
    /// The next items, and why the walk ends, if it fails.
    fn batch(&mut self) -> (VecDeque<Result<Listed, Error>>, Option<ErrorKind>) {
        let mut items = VecDeque::new();
        while items.len() < BATCH {
            match self.next() {
                Ok(Some(item)) => items.push_back(Ok(item)),
                Ok(None) => break,
                Err(kind) => return (items, Some(kind)),
            }
        }
        (items, None)
    }

    /// The next item; `None` at the end.
    fn next(&mut self) -> Result<Option<Listed>, ErrorKind> {
        if !self.has_begun {
            self.has_begun = true;
            let path = self.core.space_path(&self.space);
            // A link in place of a space would lead out of the store, as one in it would.
            if path.symlink_metadata().is_ok_and(|facts| facts.is_symlink()) {
                return Err(Errno::LOOP.into());
            }
            if !path.is_dir() {
                return Err(ErrorKind::NoSpace);
            }
            self.begin(path)?;
        }
        while let Some(frame) = self.stack.last_mut() {
            let Some(name) = frame.names.next().transpose()? else {
                self.stack.pop();
                continue;
            };
            let key = [&*frame.prefix, &name.part].concat();
            let path = frame.path.join(os(&name.path));
            if name.is_directory() {
                self.enter(key, path)?;
                continue;
            }
            let Ok(facts) = path.symlink_metadata() else {
                // It was deleted since its directory was read.
                continue;
            };
            let key = Key::new(key).map_err(|error| {
                ErrorKind::Answer(format!("{}: {error}", path.as_os_str().as_bytes().escape_ascii()))
            })?;
            let (seconds, nanos) = (facts.mtime(), facts.mtime_nsec());
            let modified = Timestamp::new(seconds, i32::try_from(nanos).unwrap_or(0)).unwrap_or_default();
            let etag = Some(etag_of(seconds, nanos, facts.size()));
            return Ok(Some(Listed { key, size: facts.size(), modified, etag }));
        }
        Ok(None)
    }

    /// Begins with the directory that all keys of the prefix have in common, whatever lies beside it.
    fn begin(&mut self, space: PathBuf) -> Result<(), ErrorKind> {
        let end = self.prefix.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let folder = self.prefix[..end].to_vec();
        let mut path = space;
        for name in if folder.is_empty() { Vec::new() } else { names_of_folder(&folder) } {
            path.push(os(&name));
            match path.symlink_metadata() {
                Ok(facts) if facts.is_symlink() => return Err(Errno::LOOP.into()),
                Ok(facts) if facts.is_dir() => {}
                Ok(_) => return Ok(()),
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.enter(folder, path).map(drop)
    }

    /// Begins a directory; the answer is whether there is one.
    fn enter(&mut self, prefix: Vec<u8>, path: PathBuf) -> Result<bool, ErrorKind> {
        // A key that is too long shows when it is reached; what lies deeper is not looked at.
        if prefix.len() > Key::MOST_BYTES {
            return Err(ErrorKind::Answer(format!(
                "{} is too deep for a key",
                path.as_os_str().as_bytes().escape_ascii()
            )));
        }
        let is_wanted = |name: &folder::Name| {
            let key = [&*prefix, &name.part].concat();
            is_wanted(&key, name.is_directory(), &self.prefix, self.after.as_ref())
        };
        let names = folder::read(&path, self.core.temporary(), &is_wanted)?;
        let is_there = names.is_some();
        if let Some(names) = names {
            self.stack.push(Frame { prefix, path, names });
        }
        Ok(is_there)
    }
}

/// Whether a key is to be listed; for a directory, whether any key may be that begins so.
fn is_wanted(key: &[u8], is_directory: bool, prefix: &[u8], after: Option<&Key>) -> bool {
    let fits = key.starts_with(prefix) || is_directory && prefix.starts_with(key);
    let is_behind = after.is_none_or(|after| {
        let after = after.as_bytes();
        key > after || is_directory && after.starts_with(key)
    });
    fits && is_behind
}
