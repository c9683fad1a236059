//! Tar.

use std::io::Read;

use tar::{Archive, EntryType};

use super::budget::{Budget, Budgeted};
use super::output::Output;
use super::{ArchiveCause, ArchiveError};
use crate::name::NameError;

/// How much may stand between the contents of two files: a header, and what extends it. The library holds it in memory.
const MOST_HEADERS: u64 = 1 << 20;

/// How much may stand behind the end: archivers fill their last record.
const MOST_BEHIND: u64 = 16 << 20;

pub(super) fn unpack(source: Box<dyn Read>, output: &mut Output<'_>) -> Result<(), ArchiveError> {
    let damaged = |error| ArchiveError::whole(ArchiveCause::of_reading(error));
    let budget = Budget::default();
    let mut archive = Archive::new(Budgeted::new(source, budget.clone()));
    budget.set(MOST_HEADERS);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| {
            let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
            ArchiveError::of(&shown, NameError::NoText.into())
        })?;
        let special = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse if name.ends_with('/') => {
                output.folder(&name)?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let size = entry.size();
                budget.set(u64::MAX);
                output.file(&name, Some(size), &mut entry)?;
                budget.set(MOST_HEADERS);
                continue;
            }
            EntryType::Directory => {
                output.folder(&name)?;
                continue;
            }
            // Says something of all entries, as Git does of its commit.
            EntryType::XGlobalHeader => {
                output.entry()?;
                continue;
            }
            EntryType::Link | EntryType::Symlink => "a link",
            EntryType::Char | EntryType::Block => "a device",
            EntryType::Fifo => "a pipe",
            _ => "of an unknown type",
        };
        return Err(ArchiveError::of(&name, ArchiveCause::Special(special)));
    }
    if budget.has_ended() {
        return Err(ArchiveError::whole(ArchiveCause::CutOff));
    }
    // The checksum of what is compressed stands at its end.
    budget.set(MOST_BEHIND);
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(damaged)?;
    Ok(())
}
