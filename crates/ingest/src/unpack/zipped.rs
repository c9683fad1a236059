//! ZIP.

use std::fs::File;
use std::io::BufReader;

use zip::ZipArchive;
use zip::result::ZipError;

use super::budget::{Budget, Budgeted};
use super::output::Output;
use super::{ArchiveCause, ArchiveError, Limits};

/// The part of a file's mode that says what it is, and two of its values.
const FORMAT: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// How much of a directory is read for each entry that is allowed: its name, and what stands beside it.
const BYTES_PER_ENTRY: u64 = 512;

/// How much may be read to find the directory.
const MOST_SEARCHED: u64 = 16 << 20;

pub(super) fn unpack(source: File, limits: &Limits, output: &mut Output<'_>) -> Result<(), ArchiveError> {
    let whole = |error| ArchiveError::whole(cause(error));
    let budget = Budget::default();
    // The library holds the directory in memory.
    budget.set(limits.entries.saturating_mul(BYTES_PER_ENTRY).saturating_add(MOST_SEARCHED));
    let source = Budgeted::new(source, budget.clone());
    let mut archive = ZipArchive::new(BufReader::with_capacity(64 * 1024, source)).map_err(whole)?;
    budget.set(u64::MAX);
    if archive.len() as u64 > limits.entries {
        return Err(ArchiveError::whole(ArchiveCause::TooManyEntries(limits.entries)));
    }
    if archive.has_duplicate_names() {
        return Err(ArchiveError::whole(ArchiveCause::Damaged("two of its entries have one name".to_owned())));
    }
    if archive.has_overlapping_files().map_err(whole)? {
        return Err(ArchiveError::whole(ArchiveCause::Overlap));
    }
    for at in 0..archive.len() {
        // Without its content first: an encrypted one cannot be opened.
        let entry = archive.by_index_raw(at).map_err(whole)?;
        let name = text(entry.name_raw());
        let (mode, size) = (entry.unix_mode().map_or(0, |mode| mode & FORMAT), entry.size());
        let (is_encrypted, is_folder) = (entry.encrypted(), name.ends_with('/'));
        drop(entry);
        match mode {
            0 | REGULAR | DIRECTORY => {}
            LINK => return Err(ArchiveError::of(&name, ArchiveCause::Special("a link"))),
            _ => return Err(ArchiveError::of(&name, ArchiveCause::Special("a device or pipe"))),
        }
        if is_folder || mode == DIRECTORY {
            output.folder(&name)?;
            continue;
        }
        if is_encrypted {
            return Err(ArchiveError::of(&name, ArchiveCause::Encrypted));
        }
        let mut entry = archive.by_index(at).map_err(|error| ArchiveError::of(&name, cause(error)))?;
        output.file(&name, Some(size), &mut entry)?;
    }
    Ok(())
}

/// A name: UTF-8, else ISO-8859-1, whose bytes are the first characters of Unicode.
fn text(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn cause(error: ZipError) -> ArchiveCause {
    match error {
        ZipError::Io(error) => ArchiveCause::of_reading(error),
        other => ArchiveCause::Damaged(crate::name::shown(&other.to_string())),
    }
}
