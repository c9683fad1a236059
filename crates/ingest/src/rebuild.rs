//! Rebuilding the inventory from what lies in the stores: the OCFL inventories of the objects, and the files that
//! ingest has added to each version.
//!
//! What is in no store is not made again: deposits, mails, identifiers of jobs that stored nothing, and the media types
//! of deposited files.

mod described;
mod version;

use std::collections::HashSet;
use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_catalogue::inventory::{File, NewVersion, Rebuilt};
use queuekeeper_catalogue::{Catalogue, ErrorKind};
use queuekeeper_store::Algorithm;
use queuekeeper_store::error::{ErrorKind as StoreErrorKind, Operation};
use queuekeeper_store::ocfl::{Found, Object, OcflError, Root, Snapshot};

use version::Versions;

/// How many rows are read at once.
const PAGE: u32 = 1_000;

/// After how many objects in a row that cannot be read the store counts as away.
const MOST_UNREADABLE: u32 = 20;

/// A storage root, and what it is called: `STORE/SPACE`.
#[derive(Clone, Debug)]
pub struct NamedRoot {
    /// The name.
    pub name: String,
    /// The root.
    pub root: Root,
}

/// How many of what there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects in the stores.
    pub objects: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Versions whose rows were right.
    pub same: u64,
    /// Versions whose rows were missing.
    pub added: u64,
    /// Versions whose rows said something else.
    pub corrected: u64,
    /// Counters that were wrong.
    pub counters: u64,
}

/// Something that was left as it was, for an operator to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// What lies in a store, and was not recorded.
    Skipped {
        /// The object or the key.
        what: String,
        /// Why.
        why: String,
    },
    /// An object that its store does not give out: nothing is known of it.
    Unreadable {
        /// The object.
        what: String,
        /// Why, with the key.
        why: String,
    },
    /// Rows of which no storage root has anything.
    Unfounded {
        /// The ARK.
        ark: String,
        /// What is recorded.
        what: String,
    },
}

/// Why a rebuild ended before its end. Repeated, it goes through everything again, and changes what is still to be
/// changed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] OcflError),
    /// So many objects could not be read one after the other that the store counts as away.
    #[error("{MOST_UNREADABLE} objects in a row could not be read, the last one with: {0}; check the store")]
    Away(OcflError),
    /// The catalogue cannot be written.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// Why one object was skipped, or all was ended.
#[derive(Debug)]
enum Stop {
    Skip(String),
    Unreadable(OcflError),
    End(RebuildError),
}

/// The objects that could not be read.
#[derive(Debug, Default)]
struct Unreadable {
    known: HashSet<String>,
    in_a_row: u32,
}

impl Unreadable {
    /// An object could not be read; the note of it, unless it is known.
    ///
    /// # Errors
    /// Where it is one of too many in a row.
    fn add(&mut self, what: &str, error: OcflError) -> Result<Option<Note>, RebuildError> {
        // One that was tried before says nothing of the store now.
        if !self.known.insert(what.to_owned()) {
            return Ok(None);
        }
        self.in_a_row += 1;
        match self.in_a_row {
            MOST_UNREADABLE.. => Err(RebuildError::Away(error)),
            _ => Ok(Some(Note::Unreadable { what: what.to_owned(), why: error.to_string() })),
        }
    }

    /// An object could be read.
    fn end_row(&mut self) {
        self.in_a_row = 0;
    }
}

/// Makes the rows of the inventory say what the storage roots hold; `note` is called with what was left as it was. Each
/// version is one transaction. No row of an object or version is removed. Memory grows with the files of the largest
/// version and with the objects that cannot be read, and not with the number of objects.
///
/// # Errors
/// When a store cannot be listed, too many objects in a row cannot be read, or the catalogue cannot be written.
pub async fn rebuild(
    catalogue: &Catalogue,
    roots: &[NamedRoot],
    mut note: impl FnMut(Note),
) -> Result<Totals, RebuildError> {
    let (mut totals, mut unreadable) = (Totals::default(), Unreadable::default());
    for named in roots {
        let mut objects = std::pin::pin!(named.root.objects(None));
        while let Some(found) = objects.next().await {
            let object = match found {
                Ok(Found::Object(object)) => object,
                Ok(Found::Other { key, why }) => {
                    note(Note::Skipped { what: format!("{}/{key}", named.name), why });
                    continue;
                }
                // The identifier of an object with a long one is in its inventory.
                Err(OcflError::Store(error)) if error.operation != Operation::List => {
                    let what = format!("{}/{}", error.store, error.subject);
                    unreadable.add(&what, error.into())?.into_iter().for_each(&mut note);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            totals.objects += 1;
            match one(catalogue, &object, &mut totals).await {
                Ok(()) => unreadable.end_row(),
                Err(Stop::Skip(why)) => {
                    unreadable.end_row();
                    note(Note::Skipped { what: object.id().to_owned(), why });
                }
                Err(Stop::Unreadable(error)) => {
                    unreadable.add(object.id(), error)?.into_iter().for_each(&mut note);
                }
                Err(Stop::End(error)) => return Err(error),
            }
        }
    }
    unfounded(catalogue, roots, &mut unreadable, &mut note).await?;
    totals.unreadable = unreadable.known.len() as u64;
    totals.counters = catalogue.recount_inventory().await?;
    Ok(totals)
}

/// Rebuilds the versions of an object, from the first one on.
async fn one(catalogue: &Catalogue, object: &Object, totals: &mut Totals) -> Result<(), Stop> {
    let snapshot = object.read().await?.ok_or_else(|| skip("it has no complete version"))?;
    let head = snapshot.inventory().head();
    let mut versions = Versions::new(&snapshot);
    for number in 1..=head {
        let (new, stored, files) = versions.read(number).await?;
        prove_sizes(catalogue, &snapshot, &new, &files).await?;
        match catalogue.rebuild_version(&new, stored, files).await? {
            Rebuilt::Same => totals.same += 1,
            Rebuilt::Added => totals.added += 1,
            Rebuilt::Corrected => totals.corrected += 1,
        }
    }
    Ok(())
}

/// Reads the content of files whose rows have the same digest and another size: a row is as good a witness as a store,
/// and content that was cut off must not become what is recorded.
async fn prove_sizes(catalogue: &Catalogue, snapshot: &Snapshot, new: &NewVersion, files: &[File]) -> Result<(), Stop> {
    let mut after = String::new();
    loop {
        let rows = catalogue.files(&new.ark, new.number, &after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after.clone_from(&last.path);
        for row in &rows {
            let Ok(at) = files.binary_search_by(|file| file.path.cmp(&row.path)) else { continue };
            let file = &files[at];
            let is_same = row.digests.get(Algorithm::Sha512) == file.digests.get(Algorithm::Sha512);
            if file.size == row.size || !is_same {
                continue;
            }
            let damaged = |error: &dyn fmt::Display| {
                let (number, path) = (new.number, &row.path);
                skip(format!(
                    "version {number}: {path:?} has {} bytes, but {} in its row: {error}",
                    file.size, row.size
                ))
            };
            let mut content = snapshot.open(new.number, &row.path).await?;
            while content.chunks.try_next().await.map_err(|error| damaged(&error))?.is_some() {}
        }
    }
}

/// Finds rows of objects and versions that no storage root has.
async fn unfounded(
    catalogue: &Catalogue,
    roots: &[NamedRoot],
    unreadable: &mut Unreadable,
    note: &mut impl FnMut(Note),
) -> Result<(), RebuildError> {
    let mut after = String::new();
    loop {
        let rows = catalogue.objects(None, &after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after.clone_from(&last.ark);
        for row in rows {
            let (mut head, mut failure) = (None, None);
            for named in roots {
                // An ARK that no object can have is in no root; a damaged object was skipped by name.
                let Ok(object) = named.root.object(&row.ark) else { continue };
                head = match object.read().await.map_err(Stop::from) {
                    Ok(snapshot) => snapshot.map(|snapshot| snapshot.inventory().head()),
                    Err(Stop::Skip(_)) => Some(row.current_version),
                    Err(Stop::Unreadable(error)) => {
                        failure = Some(error);
                        None
                    }
                    Err(Stop::End(error)) => return Err(error),
                };
                if head.is_some() {
                    break;
                }
            }
            match failure.filter(|_| head.is_none()) {
                // Whether a root has it is not known.
                Some(error) => {
                    unreadable.add(&row.ark, error)?.into_iter().for_each(&mut *note);
                    continue;
                }
                None => unreadable.end_row(),
            }
            let what = match head {
                None => "the object, which is in none of the spaces".to_owned(),
                Some(head) if head < row.current_version => {
                    format!("version {}, but the newest one in the store is {head}", row.current_version)
                }
                Some(_) => continue,
            };
            note(Note::Unfounded { ark: row.ark, what });
        }
    }
}

fn skip(why: impl Into<String>) -> Stop {
    Stop::Skip(why.into())
}

impl From<OcflError> for Stop {
    /// Damage is of one object; what its store does not give out is not known to be.
    fn from(error: OcflError) -> Self {
        match &error {
            OcflError::Temporary { .. } => Self::End(error.into()),
            OcflError::Store(inner) if !matches!(inner.kind, StoreErrorKind::NotFound) => Self::Unreadable(error),
            _ => Self::Skip(error.to_string()),
        }
    }
}

impl From<queuekeeper_catalogue::Error> for Stop {
    fn from(error: queuekeeper_catalogue::Error) -> Self {
        match &error.kind {
            // That of the database is such as a text that it does not hold: the next object may have none.
            ErrorKind::Refused(why) | ErrorKind::Database(why) => Self::Skip(why.clone()),
            _ => Self::End(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_in_a_row_count_and_each_is_noted_once() {
        let mut unreadable = Unreadable::default();
        let error = || OcflError::Missing { id: "ark:/1/2".to_owned(), what: "bytes".to_owned() };
        for row in 0..3 {
            for number in 1..MOST_UNREADABLE {
                assert!(unreadable.add(&format!("{row}-{number}"), error()).unwrap().is_some());
            }
            unreadable.end_row();
        }
        for number in 1..MOST_UNREADABLE {
            assert!(unreadable.add(&number.to_string(), error()).unwrap().is_some());
            assert!(unreadable.add(&number.to_string(), error()).unwrap().is_none());
        }
        assert!(matches!(unreadable.add("last", error()), Err(RebuildError::Away(_))));
    }
}
