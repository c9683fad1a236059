//! Rebuilding the inventory from what lies in the stores: the OCFL inventories of the objects, and the files that ingest
//! has added to each version.
//!
//! What is in no store is not made again: deposits, mails, identifiers of jobs that stored nothing, and the media types
//! of deposited files.

mod described;
mod version;

use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_catalogue::inventory::{File, NewVersion, Rebuilt};
use queuekeeper_catalogue::{Catalogue, ErrorKind};
use queuekeeper_store::Algorithm;
use queuekeeper_store::error::ErrorKind as StoreErrorKind;
use queuekeeper_store::ocfl::{Found, Object, OcflError, Root, Snapshot};

use version::Versions;

/// How many rows are read at once.
const PAGE: u32 = 1_000;

/// A storage root, and what it is called: `STORE/SPACE`.
#[derive(Clone, Debug)]
pub struct Place {
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
    /// Versions whose rows were right.
    pub same: u64,
    /// Versions whose rows were missing.
    pub added: u64,
    /// Versions whose rows said something else.
    pub corrected: u64,
    /// Counters that were wrong.
    pub counters: u64,
}

/// Something that was left as it was, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// What lies in a store, and was not recorded.
    Skipped {
        /// The object or the key.
        what: String,
        /// Why.
        why: String,
    },
    /// Rows of which no place has anything.
    Unfounded {
        /// The ARK.
        ark: String,
        /// What is recorded.
        what: String,
    },
}

/// Why a rebuild ended before its end. Repeated, it goes through everything again, and changes what is still to be changed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] OcflError),
    /// The catalogue cannot be written.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// Why one object was skipped, or all was ended.
#[derive(Debug)]
enum Stop {
    Skip(String),
    End(RebuildError),
}

/// Makes the rows of the inventory say what the places hold; `note` is called with what was left as it was. Each version is
/// one transaction. No row of an object or version is removed. Memory grows with the files of the largest version, and not
/// with the number of objects.
///
/// # Errors
/// When a store cannot be read, or the catalogue cannot be written.
pub async fn rebuild(
    catalogue: &Catalogue,
    places: &[Place],
    mut note: impl FnMut(Note),
) -> Result<Totals, RebuildError> {
    let mut totals = Totals::default();
    for place in places {
        let mut objects = std::pin::pin!(place.root.objects(None));
        while let Some(found) = objects.next().await {
            let object = match found? {
                Found::Object(object) => object,
                Found::Other { key, why } => {
                    note(Note::Skipped { what: format!("{}/{key}", place.name), why });
                    continue;
                }
            };
            totals.objects += 1;
            match one(catalogue, &object, &mut totals).await {
                Ok(()) => {}
                Err(Stop::Skip(why)) => note(Note::Skipped { what: object.id().to_owned(), why }),
                Err(Stop::End(error)) => return Err(error),
            }
        }
    }
    unfounded(catalogue, places, &mut note).await?;
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

/// Reads the content of files whose rows have the same digest and another size: a row is as good a witness as a store, and
/// content that was cut off must not become what is recorded.
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
                    "version {number}: {path:?} has {} bytes, and {} by its row: {error}",
                    file.size, row.size
                ))
            };
            let mut content = snapshot.open(new.number, &row.path).await?;
            while content.chunks.try_next().await.map_err(|error| damaged(&error))?.is_some() {}
        }
    }
}

/// Finds rows of objects and versions that no place has.
async fn unfounded(catalogue: &Catalogue, places: &[Place], note: &mut impl FnMut(Note)) -> Result<(), RebuildError> {
    let mut after = String::new();
    loop {
        let rows = catalogue.objects(None, &after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after.clone_from(&last.ark);
        for row in rows {
            let mut head = None;
            for place in places {
                // An ARK that no object can have is in no place; a damaged object was skipped by name.
                let Ok(object) = place.root.object(&row.ark) else { continue };
                head = match object.read().await {
                    Ok(snapshot) => snapshot.map(|snapshot| snapshot.inventory().head()),
                    Err(OcflError::Damaged { .. }) => Some(row.current_version),
                    Err(error) => return Err(error.into()),
                };
                if head.is_some() {
                    break;
                }
            }
            let what = match head {
                None => "the object, which lies in none of the spaces".to_owned(),
                Some(head) if head < row.current_version => {
                    format!("version {}, and the newest one in the store is {head}", row.current_version)
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
    /// Damage is of one object; a store that cannot be read is of all.
    fn from(error: OcflError) -> Self {
        match &error {
            OcflError::Temporary { .. } => Self::End(error.into()),
            OcflError::Store(inner) if !matches!(inner.kind, StoreErrorKind::NotFound) => Self::End(error.into()),
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
