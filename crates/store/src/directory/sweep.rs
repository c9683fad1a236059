//! Removing what processes have left that ended in the middle of a write.

use std::fs;

use jiff::Timestamp;

use super::core::Core;
use super::names::names;
use super::record;
use crate::error::ErrorKind;

/// Whose time of modification is that of the last look at all records.
const LOOKED: &str = "swept";

impl Core {
    /// Removes temporary files, and records of content that is not there, if they were written before an instant. The
    /// records, of which there are as many as items, are looked at again only when that instant is later than the last
    /// look: once a day for those who sweep what is a day old, however often they do.
    pub(super) fn sweep(&self, before: Timestamp) -> Result<u64, ErrorKind> {
        let is_old = |facts: &fs::Metadata| {
            facts.modified().ok().and_then(|at| Timestamp::try_from(at).ok()).is_some_and(|at| at < before)
        };
        let mut removed = 0;
        for entry in fs::read_dir(self.temporary())? {
            let entry = entry?;
            let Ok(facts) = entry.metadata() else { continue };
            if is_old(&facts) {
                let gone =
                    if facts.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
                removed += u64::from(gone.is_ok());
            }
        }
        let looked = self.temporary().with_file_name(LOOKED);
        if fs::metadata(&looked).is_ok_and(|facts| !is_old(&facts)) {
            return Ok(removed);
        }
        removed += self.sweep_records(&is_old)?;
        // Where this fails, all of them are looked at again.
        let _ = fs::write(&looked, "");
        Ok(removed)
    }

    fn sweep_records(&self, is_old: &impl Fn(&fs::Metadata) -> bool) -> Result<u64, ErrorKind> {
        let mut removed = 0;
        for space in self.spaces()? {
            let tree = self.tree(&space)?;
            for record in self.records(&space).all()? {
                let (path, etag) = record?;
                let Ok(file) = fs::File::open(&path) else { continue };
                if !is_old(&file.metadata()?) {
                    continue;
                }
                if file.metadata()?.len() == 0 {
                    // It was not written to its end before a loss of power.
                    removed += u64::from(fs::remove_file(&path).is_ok());
                    continue;
                }
                let Some(key) = record::read(file)?.and_then(|record| record.key()) else { continue };
                let _held = self.locks(&space).item(&key)?;
                if Self::etag(&tree, &names(&key))?.as_ref() != Some(&etag) {
                    removed += u64::from(fs::remove_file(&path).is_ok());
                }
            }
        }
        Ok(removed)
    }
}
