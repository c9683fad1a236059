//! What a directory does for each operation, waiting for the file system.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use rustix::fs::Stat;
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::errors::{check_there, unless_away};
use super::locks::Locks;
use super::names::names;
use super::record::{Record, Records};
use super::syncs::Syncs;
use super::tree::{Tree, Way, sync};
use crate::digest::Digests;
use crate::error::{Error, ErrorKind, Operation};
use crate::name::{SpaceName, StoreName};
use crate::store::{Condition, EntityTag, INTERRUPTED, Item, Properties, UserProperties};

/// Where everything lies that is not content. No space has such a name.
const OWN: &str = ".queuekeeper";

/// How often a place is looked for again that others change meanwhile.
const TRIES: usize = 100;

/// The directory of a store.
pub(super) struct Core {
    pub(super) name: StoreName,
    top: PathBuf,
    temporary: Arc<Path>,
    syncs: Syncs,
}

/// An open file with what is known of it.
pub(super) struct Opened {
    pub(super) file: fs::File,
    pub(super) properties: Properties,
}

/// Content that is complete and has not appeared yet.
pub(super) struct Pending {
    pub(super) file: NamedTempFile,
    /// The entity tag that it will have.
    pub(super) etag: EntityTag,
    pub(super) size: u64,
    pub(super) digests: Digests,
    /// What a user says of it.
    pub(super) user: UserProperties,
}

/// Content that has appeared, in directories that have to be synced before that counts.
struct Placed {
    directories: Vec<OwnedFd>,
    /// The record of the content before.
    outdated: Option<(Records, EntityTag)>,
}

impl Core {
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    pub(super) fn open(name: StoreName, top: PathBuf) -> io::Result<Self> {
        let temporary = top.join(OWN).join("temporary");
        fs::create_dir_all(&temporary)?;
        Ok(Self { name, top, temporary: temporary.into(), syncs: Syncs::default() })
    }

    pub(super) fn failed(&self, operation: Operation, subject: &impl ToString, kind: ErrorKind) -> Error {
        let kind = unless_away(kind, &self.top, &self.temporary);
        Error { store: self.name.clone(), operation, subject: subject.to_string(), kind }
    }

    /// Where files lie while they are written.
    pub(super) fn temporary(&self) -> &Arc<Path> {
        &self.temporary
    }

    pub(super) fn space_path(&self, space: &SpaceName) -> PathBuf {
        self.top.join(space.as_str())
    }

    pub(super) fn records(&self, space: &SpaceName) -> Records {
        Records::new(self.top.join(OWN).join("records").join(space.as_str()))
    }

    pub(super) fn locks(&self, space: &SpaceName) -> Locks {
        Locks::new(&self.top.join(OWN).join("locks"), space)
    }

    pub(super) fn tree(&self, space: &SpaceName) -> Result<Tree, ErrorKind> {
        Tree::open(&self.space_path(space))?.ok_or(ErrorKind::NoSpace)
    }

    pub(super) fn spaces(&self) -> Result<Vec<SpaceName>, ErrorKind> {
        check_there(&self.top, &self.temporary)?;
        let mut spaces = Vec::new();
        for entry in fs::read_dir(&self.top)? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().and_then(|name| name.parse().ok());
            if let Some(name) = name.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                spaces.push(name);
            }
        }
        spaces.sort();
        Ok(spaces)
    }

    pub(super) fn create_space(&self, space: &SpaceName) -> Result<bool, ErrorKind> {
        check_there(&self.top, &self.temporary)?;
        match fs::create_dir(self.space_path(space)) {
            Ok(()) => fs::File::open(&self.top).and_then(sync).map(|()| true).map_err(unknown),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.tree(space)?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn delete_space(&self, space: &SpaceName) -> Result<bool, ErrorKind> {
        if Tree::open(&self.space_path(space))?.is_none() {
            check_there(&self.top, &self.temporary)?;
            return Ok(false);
        }
        let _all = self.locks(space).space()?;
        match remove_empty(&self.space_path(space)) {
            // Another process was faster.
            Err(_) if Tree::open(&self.space_path(space))?.is_none() => return Ok(false),
            removed => removed?,
        }
        fs::File::open(&self.top).and_then(sync).map_err(unknown)?;
        left_behind(self.records(space).clear());
        Ok(true)
    }

    /// The file of an item with its properties; `None` where there is none.
    pub(super) fn find(&self, item: &Item) -> Result<Option<Opened>, ErrorKind> {
        let tree = self.tree(&item.space)?;
        // A record goes when its content does: what is read meanwhile is of the content before, or after.
        for _ in 0..TRIES {
            let Some((file, facts)) = tree.file(&names(&item.key))? else { return Ok(None) };
            let (size, modified, etag) = facts_of(&facts);
            let Record { digests: checksums, user, .. } = self.records(&item.space).read(&item.key, &etag)?;
            let now = tree.file(&names(&item.key))?;
            if now.is_some_and(|(_, facts)| facts_of(&facts).2 == etag) {
                let properties = Properties { size, modified, etag, checksums, user };
                return Ok(Some(Opened { file, properties }));
            }
        }
        Err(ErrorKind::Unavailable("it keeps changing; try again".to_owned()))
    }

    pub(super) fn etag(tree: &Tree, names: &[Vec<u8>]) -> Result<Option<EntityTag>, ErrorKind> {
        Ok(tree.file(names)?.map(|(_, facts)| facts_of(&facts).2))
    }

    /// Whether a condition holds now.
    pub(super) fn check(&self, item: &Item, condition: &Condition) -> Result<(), ErrorKind> {
        let tree = self.tree(&item.space)?;
        check(condition, Self::etag(&tree, &names(&item.key))?.as_ref())
    }

    /// Lets content appear for good, if the condition holds and it has not been given up.
    pub(super) fn place(
        &self,
        item: &Item,
        pending: &Pending,
        condition: &Condition,
        abort: &CancellationToken,
    ) -> Result<(), ErrorKind> {
        let placed = self.try_to_place(item, pending, condition, abort);
        let Ok(Placed { directories, outdated }) = placed else {
            self.records(&item.space).remove(&item.key, &pending.etag)?;
            return placed.map(drop);
        };
        directories.into_iter().try_for_each(|directory| self.syncs.sync(directory)).map_err(unknown)?;
        if let Some((records, etag)) = outdated {
            left_behind(records.remove(&item.key, &etag));
        }
        Ok(())
    }

    fn try_to_place(
        &self,
        item: &Item,
        pending: &Pending,
        condition: &Condition,
        abort: &CancellationToken,
    ) -> Result<Placed, ErrorKind> {
        let tree = self.tree(&item.space)?;
        let names = names(&item.key);
        let records = self.records(&item.space);
        let mut directories = Vec::new();
        for _ in 0..TRIES {
            let held = self.locks(&item.space).item(&item.key)?;
            let before = Self::etag(&tree, &names)?;
            check(condition, before.as_ref())?;
            let place = match tree.way(&names, true) {
                Ok(Some(Way::To(place))) => place,
                Ok(Some(Way::File(depth))) => {
                    drop(held);
                    self.make_room(&tree, &item.space, &names[..depth])?;
                    continue;
                }
                // Another writer removes empty directories on the way.
                Ok(None) => continue,
                Err(error) if is_race(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            if abort.is_cancelled() {
                return Err(ErrorKind::Stopped(INTERRUPTED.to_owned()));
            }
            let record = Record::new(&item.key, pending.digests.clone(), pending.user.clone());
            if !record.is_empty() {
                let directory = records.write(&item.key, &pending.etag, &record, &self.temporary)?;
                directories.extend(directory.map(OwnedFd::from));
            }
            match place.take(pending.file.path()) {
                Ok(directory) => {
                    directories.push(directory);
                    let outdated = before.map(|before| (records, before));
                    return Ok(Placed { directories, outdated });
                }
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErrorKind::Unavailable("its directories keep changing; try again".to_owned()))
    }

    /// Turns a file that is in the way into a directory.
    fn make_room(&self, tree: &Tree, space: &SpaceName, names: &[Vec<u8>]) -> Result<(), ErrorKind> {
        let _all = self.locks(space).space()?;
        let spare = tempfile::Builder::new().permissions(mode(0o777)).tempdir_in(&self.temporary)?;
        tree.turn_into_directory(names, spare.path())
    }

    pub(super) fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, ErrorKind> {
        let tree = self.tree(&item.space)?;
        let names = names(&item.key);
        for _ in 0..TRIES {
            let _held = self.locks(&item.space).item(&item.key)?;
            let Some(before) = Self::etag(&tree, &names)? else { return Ok(false) };
            if if_match.is_some_and(|tag| *tag != before) {
                return Err(ErrorKind::Precondition);
            }
            match tree.way(&names, false)? {
                Some(Way::To(place)) => match place.clear() {
                    Ok(directory) => sync(directory).map_err(unknown)?,
                    Err(error) if is_race(&error) => continue,
                    Err(error) => return Err(error.into()),
                },
                // It has just gone, or become another's directory.
                Some(Way::File(_)) | None => continue,
            }
            left_behind(self.records(&item.space).remove(&item.key, &before));
            tree.prune(&names);
            return Ok(true);
        }
        Err(ErrorKind::Unavailable("its directories keep changing; try again".to_owned()))
    }

    pub(super) fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Properties, ErrorKind> {
        let _held = self.locks(&item.space).item(&item.key)?;
        let Opened { properties, .. } = self.find(item)?.ok_or(ErrorKind::NotFound)?;
        if if_match.is_some_and(|tag| *tag != properties.etag) {
            return Err(ErrorKind::Precondition);
        }
        let records = self.records(&item.space);
        let record = Record::new(&item.key, properties.checksums.clone(), user.clone());
        if record.is_empty() {
            records.remove(&item.key, &properties.etag)?;
        } else {
            let directory = records.replace(&item.key, &properties.etag, &record, &self.temporary)?;
            sync(directory).map_err(unknown)?;
        }
        Ok(Properties { user: user.clone(), ..properties })
    }
}

/// What was changed is there, and may be as before again after a loss of power.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn unknown(error: io::Error) -> ErrorKind {
    ErrorKind::Unknown(error.to_string())
}

/// A record that belongs to nothing any more is no failure of the change behind which it is removed: no reader asks for
/// it, and it is swept.
fn left_behind(removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!("cannot remove a record of deleted content; will retry later: {error}");
    }
}

/// Refuses what is not as a condition requires.
fn check(condition: &Condition, now: Option<&EntityTag>) -> Result<(), ErrorKind> {
    if condition.allows(now) { Ok(()) } else { Err(ErrorKind::Precondition) }
}

/// Whether another writer has changed the directories on the way at the same time.
fn is_race(error: &io::Error) -> bool {
    use io::ErrorKind::{DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), DirectoryNotEmpty | IsADirectory | NotADirectory | NotFound)
}

/// Dates a file that is complete by the clock, to the nanosecond, and returns the entity tag that it has from now on.
/// (A file system dates what is written by its tick of some milliseconds, in which a file can be written twice.)
pub(super) fn stamp(file: &fs::File) -> io::Result<EntityTag> {
    file.set_modified(SystemTime::now())?;
    let facts = rustix::fs::fstat(file)?;
    Ok(facts_of(&facts).2)
}

/// The size, the time of modification, and the entity tag.
fn facts_of(facts: &Stat) -> (u64, Timestamp, EntityTag) {
    let nanos = i64::try_from(facts.st_mtime_nsec).unwrap_or(0);
    let size = u64::try_from(facts.st_size).unwrap_or(0);
    let modified = Timestamp::new(facts.st_mtime, i32::try_from(nanos).unwrap_or(0)).unwrap_or_default();
    (size, modified, etag_of(facts.st_mtime, nanos, size))
}

/// The entity tag of a file: when it was modified, and its size.
pub(super) fn etag_of(seconds: i64, nanos: i64, size: u64) -> EntityTag {
    EntityTag(format!("{seconds:x}-{nanos:x}-{size:x}"))
}

fn mode(mode: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

/// Removes a directory that has no files, with all that it has.
fn remove_empty(directory: &Path) -> Result<(), ErrorKind> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            return Err(ErrorKind::NotEmpty);
        }
        remove_empty(&entry.path())?;
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Err(ErrorKind::NotEmpty),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::temporary::temporary_file;
    use crate::key::Key;

    #[test]
    fn a_state_has_a_tag_of_its_own() {
        let files = tempfile::tempdir().unwrap();
        let tags: std::collections::BTreeSet<_> =
            (0..1000).map(|_| stamp(temporary_file(files.path()).unwrap().as_file()).unwrap()).collect();
        assert_eq!(tags.len(), 1000);
    }

    #[test]
    fn a_key_is_one_whatever_it_is() {
        let key = Key::new(*b"\xff/\0").unwrap();
        let record = Record::new(&key, Digests::default(), UserProperties::default());
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap().key(), Some(key));
    }
}
