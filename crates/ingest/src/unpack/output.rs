//! Where the entries of an archive go, within its limits.

use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use std::sync::atomic::Ordering;

use queuekeeper_store::{Algorithm, Hashers};

use super::{ArchiveCause, ArchiveError, Limits, Progress, Unpacked, UnpackedFile};
use crate::file_root::FileRoot;
use crate::manifest::{Names, ProblemKind, Warning};
use crate::name;

/// How much is copied at once, in bytes.
const PIECE: usize = 256 * 1024;

/// How many names are reported.
const MOST_REPORTED: usize = 100;

pub(super) struct Output<'a> {
    file_root: &'a FileRoot,
    limits: &'a Limits,
    /// What the limit by ratio is.
    expanded: u64,
    algorithms: &'a [Algorithm],
    progress: &'a Progress,
    entries: u64,
    names: Names,
    folders: BTreeSet<String>,
    unpacked: Unpacked,
    piece: Vec<u8>,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        file_root: &'a FileRoot,
        limits: &'a Limits,
        size: u64,
        algorithms: &'a [Algorithm],
        progress: &'a Progress,
    ) -> Self {
        Self {
            file_root,
            limits,
            expanded: size.saturating_mul(limits.ratio).max(Limits::FREE),
            algorithms,
            progress,
            entries: 0,
            names: Names::new(),
            folders: BTreeSet::new(),
            unpacked: Unpacked::default(),
            piece: vec![0; PIECE],
        }
    }

    /// Counts an entry, whatever it is.
    pub(super) fn entry(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ArchiveError::whole(ArchiveCause::TooManyEntries(self.limits.entries)));
        }
        Ok(())
    }

    /// Takes note of a folder. The archive's own one has no name.
    pub(super) fn folder(&mut self, name: &str) -> Result<(), ArchiveError> {
        self.entry()?;
        let name = relative(name).trim_end_matches('/');
        if name.is_empty() || name == "." {
            return Ok(());
        }
        name::check(name).map_err(|error| ArchiveError::of(name, error.into()))?;
        self.folders.insert(name.to_owned());
        Ok(())
    }

    /// Writes a file; where a size is stated, it has that.
    pub(super) fn file(&mut self, name: &str, size: Option<u64>, content: &mut dyn Read) -> Result<(), ArchiveError> {
        self.entry()?;
        let name = relative(name);
        let wrong = |cause: ArchiveCause| ArchiveError::of(name, cause);
        name::check(name).map_err(|error| wrong(error.into()))?;
        let similar = self.names.add(name, self.entries).map_err(|kind| {
            wrong(match kind {
                ProblemKind::Repeated(_) => ArchiveCause::Repeated,
                ProblemKind::Conflict(_) => ArchiveCause::Conflict,
                _ => ArchiveCause::TooManyParts,
            })
        })?;
        if let Some(Warning::Normalization { other, .. }) = similar
            && self.unpacked.similar.len() < MOST_REPORTED
        {
            self.unpacked.similar.push((other, name.to_owned()));
        }
        self.check_bytes(size.unwrap_or(0)).map_err(wrong)?;
        let partial = self.file_root.begin(name).map_err(|error| wrong(ArchiveCause::Write(error)))?;
        let mut hashers = Hashers::new(self.algorithms.iter().copied());
        let before = self.unpacked.bytes;
        loop {
            if self.progress.stop.load(Ordering::Relaxed) {
                return Err(wrong(ArchiveCause::Stopped));
            }
            let read = match content.read(&mut self.piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(wrong(ArchiveCause::of_reading(error))),
            };
            self.check_bytes(read as u64).map_err(wrong)?;
            self.unpacked.bytes += read as u64;
            partial.file().write_all(&self.piece[..read]).map_err(|error| wrong(ArchiveCause::Write(error)))?;
            hashers.update(&self.piece[..read]);
            self.progress.written.fetch_add(read as u64, Ordering::Relaxed);
        }
        let found = self.unpacked.bytes - before;
        if size.is_some_and(|size| found < size) {
            return Err(wrong(ArchiveCause::CutOff));
        }
        if size.is_some_and(|size| found > size) {
            return Err(wrong(ArchiveCause::Damaged("it has more bytes than it declares".to_owned())));
        }
        self.file_root.publish(&partial, name).map_err(|error| wrong(ArchiveCause::Write(error)))?;
        self.unpacked.files.push(UnpackedFile { name: name.to_owned(), size: found, digests: hashers.finish() });
        Ok(())
    }

    fn check_bytes(&self, more: u64) -> Result<(), ArchiveCause> {
        let all = self.unpacked.bytes.saturating_add(more);
        if all > self.limits.bytes {
            return Err(ArchiveCause::TooManyBytes(self.limits.bytes));
        }
        if all > self.expanded {
            return Err(ArchiveCause::Ratio(self.limits.ratio));
        }
        Ok(())
    }

    /// Makes everything durable, and says what it was.
    pub(super) fn finish(mut self) -> Result<Unpacked, ArchiveError> {
        for folder in &self.folders {
            match self.names.is_folder(folder) {
                Some(true) => {}
                Some(false) => return Err(ArchiveError::of(folder, ArchiveCause::Conflict)),
                None => {
                    // Only the deepest ones are named: the others hold them.
                    let inside = format!("{folder}/");
                    let next = self.folders.range(inside.clone()..).next();
                    if next.is_none_or(|next| !next.starts_with(&inside)) {
                        self.unpacked.empty_folders.push(folder.clone());
                    }
                }
            }
        }
        let names = self.unpacked.files.iter().map(|file| file.name.as_str());
        self.file_root.sync_folders(names).map_err(|error| ArchiveError::whole(ArchiveCause::Write(error)))?;
        Ok(self.unpacked)
    }
}

/// A name without the `./` that archivers put before it.
fn relative(name: &str) -> &str {
    name.strip_prefix("./").unwrap_or(name)
}
