//! A payload on its way into the working storage, which may come in parts.
//!
//! `WORKING/BATCH-UUID/.upload` is what has come of it, `.deposit` what is said of it. Both are gone when the batch
//! exists.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use queuekeeper_store::{Algorithm, Digest, Hashers};
use uuid::Uuid;

use super::{DepositError, NewDeposit};
use crate::file_root::PRIVATE;
use crate::manifest::{Limits, Reader};
use crate::spec::id_of;
use crate::working::{self, WorkingStorage};

/// What has come of the payload.
const DATA: &str = ".upload";

/// What is said of the deposit.
const NOTE: &str = ".deposit";

/// How much of a payload its type is guessed from, in bytes.
const START: u64 = 4_096;

/// Up to which size a payload is read to be known when it is sent again, in bytes: its client waits for the answer.
const MOST_COMPARED_BYTES: u64 = 1 << 30;

/// How much of it is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// How often an upload is opened again that another request has removed meanwhile.
const ATTEMPTS: u32 = 16;

/// A payload that is being uploaded. No other process writes to it while this one has it.
#[derive(Debug)]
pub struct Upload {
    directory: PathBuf,
    /// The volume that it lies on.
    volume: Uuid,
    file: File,
    offset: u64,
    held: u64,
}

/// Whose file has the name of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadPlace {
    /// The one that was opened.
    Ours,
    /// One that another request has begun.
    Others,
    /// None has it: the one that was opened was kept or removed.
    Empty,
}

/// What an upload that has come whole is.
#[derive(Debug)]
pub(super) struct Whole {
    /// Its first bytes.
    pub(super) start: Vec<u8>,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Its SHA-256, where it is known.
    pub(super) sha256: Option<Digest>,
}

impl Upload {
    /// Begins an upload, or takes up one that was broken off.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while another request writes to it; others when the disk cannot be written.
    pub fn open(storage: &WorkingStorage, batch: Uuid) -> io::Result<Self> {
        let directory = storage.batch(&id_of(batch));
        for _ in 0..ATTEMPTS {
            // One that is removed takes its directory with it.
            fs::create_dir_all(&directory)?;
            // Until it has come whole it may be a manifest, whose URLs may be presigned.
            let mut options = OpenOptions::new();
            let file = options.read(true).append(true).create(true).mode(PRIVATE).open(directory.join(DATA));
            match file.and_then(|file| Self::lock(&directory, storage.volume(), file)) {
                Ok(Some(upload)) => return Ok(upload),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Takes up an upload; `None` where there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn find(storage: &WorkingStorage, batch: Uuid) -> io::Result<Option<Self>> {
        let directory = storage.batch(&id_of(batch));
        for _ in 0..ATTEMPTS {
            let file = match OpenOptions::new().read(true).append(true).open(directory.join(DATA)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
            if let Some(upload) = Self::lock(&directory, storage.volume(), file)? {
                return Ok(Some(upload));
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Takes up a file that was opened; `None` where the request that had it has removed or kept it since.
    fn lock(directory: &Path, volume: Uuid, file: File) -> io::Result<Option<Self>> {
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        })?;
        let facts = file.metadata()?;
        let upload = Self { directory: directory.to_owned(), volume, file, offset: facts.len(), held: held(&facts) };
        Ok((upload.place()? == UploadPlace::Ours).then_some(upload))
    }

    /// What lies where it was opened.
    fn place(&self) -> io::Result<UploadPlace> {
        let there = match fs::metadata(self.directory.join(DATA)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(UploadPlace::Empty),
            found => found?,
        };
        let ours = self.file.metadata()?;
        let is_ours = (there.dev(), there.ino()) == (ours.dev(), ours.ino());
        Ok(if is_ours { UploadPlace::Ours } else { UploadPlace::Others })
    }

    /// Takes the room for so many bytes in all, so that no job is granted what is still to come.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where there is too little; others when the disk cannot be written.
    pub fn announce(&mut self, bytes: u64) -> io::Result<()> {
        working::allocate(&self.file, bytes)?;
        self.held = held(&self.file.metadata()?);
        Ok(())
    }

    /// How many bytes of the volume it had when it was taken up, or announced: what has come, and the room for what has
    /// not.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The volume that it lies on.
    pub(super) fn volume(&self) -> Uuid {
        self.volume
    }

    /// How many bytes have come.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When they cannot be written, or only some of them.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        self.offset = self.file.metadata()?.len();
        written
    }

    /// Forgets what has come.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.offset = 0;
        Ok(())
    }

    /// Keeps what is said of the deposit until it is made.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_note(&self, note: &[u8]) -> io::Result<()> {
        working::write_synced(&self.directory.join(NOTE), note)
    }

    /// What was kept; `None` where nothing was.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn note(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.directory.join(NOTE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// How many bytes have come of an upload, and what is said of it, without taking it up; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn look(storage: &WorkingStorage, batch: Uuid) -> io::Result<Option<(u64, Option<Vec<u8>>)>> {
        let directory = storage.batch(&id_of(batch));
        let offset = match fs::metadata(directory.join(DATA)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?.len(),
        };
        let note = match fs::read(directory.join(NOTE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read?),
        };
        Ok(Some((offset, note)))
    }

    /// How many bytes of the volume an upload has, without taking it up; 0 where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn held_by(storage: &WorkingStorage, batch: Uuid) -> io::Result<u64> {
        match fs::metadata(storage.batch(&id_of(batch)).join(DATA)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            found => found.map(|facts| held(&facts)),
        }
    }

    /// Removes it with all that has come. What else lies in the directory belongs to a batch that was made before, or
    /// to an upload that another request has begun since this one was kept.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        if self.place()? == UploadPlace::Others {
            return Ok(());
        }
        // Once the data is gone, another request may begin, and have a note of its own.
        for name in [NOTE, DATA] {
            working::absent_is_fine(fs::remove_file(self.directory.join(name)))?;
        }
        match fs::remove_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => working::absent_is_fine(removed),
        }
    }

    /// How many objects a deposit of what has come would have: the rows of a batch manifest, or one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn objects(&mut self, deposit: &NewDeposit) -> io::Result<u64> {
        let mut start = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(START).read_to_end(&mut start)?;
        let kind = deposit.kind_of(&start);
        if !kind.is_batch() {
            return Ok(1);
        }
        self.file.seek(SeekFrom::Start(0))?;
        // One that is not valid becomes no objects at all, which the daemons find.
        let rows = Reader::new(BufReader::new(&self.file), Limits::default(), kind.manifest()).count();
        Ok(u64::try_from(rows).unwrap_or(u64::MAX).max(1))
    }

    /// Compares what has come with the digest that was announced.
    pub(super) fn check(&mut self, expected: Option<&Digest>) -> Result<Whole, DepositError> {
        let disk = |error| DepositError::Disk { what: "read the upload", error };
        let mut start = Vec::new();
        self.file.seek(SeekFrom::Start(0)).map_err(disk)?;
        (&self.file).take(START).read_to_end(&mut start).map_err(disk)?;
        // By which it is known when it is sent again.
        let own = (self.offset <= MOST_COMPARED_BYTES).then_some(Algorithm::Sha256);
        let own = own.filter(|own| expected.is_none_or(|expected| expected.algorithm() != *own));
        let algorithms: Vec<_> = expected.map(Digest::algorithm).into_iter().chain(own).collect();
        let mut sha256 = None;
        if !algorithms.is_empty() {
            self.file.seek(SeekFrom::Start(0)).map_err(disk)?;
            let (mut hashers, mut piece) = (Hashers::new(algorithms), vec![0; PIECE]);
            loop {
                match self.file.read(&mut piece) {
                    Ok(0) => break,
                    Ok(bytes) => hashers.update(&piece[..bytes]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(disk(error)),
                }
            }
            let digests = hashers.finish();
            if let Some(expected) = expected
                && let Some(found) = digests.get(expected.algorithm()).filter(|found| *found != expected)
            {
                return Err(DepositError::Digest { expected: expected.clone(), found: found.clone() });
            }
            sha256 = digests.get(Algorithm::Sha256).cloned();
        }
        Ok(Whole { start, size: self.offset, sha256 })
    }

    /// Gives what has come its name, durably. [`Self::remove`] follows when the batch exists. A manifest stays readable
    /// by the owner of the process only; other files get the access that the batch's directory has.
    pub(super) fn keep(&self, file_name: &str, is_manifest: bool) -> io::Result<()> {
        // More may have been announced before.
        self.file.set_len(self.offset)?;
        if !is_manifest {
            let mode = fs::metadata(&self.directory)?.mode() & 0o666;
            self.file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        self.file.sync_all()?;
        let path = self.directory.join(file_name);
        if self.place()? != UploadPlace::Ours {
            return Err(io::Error::other("the upload was removed meanwhile"));
        }
        fs::rename(self.directory.join(DATA), &path)?;
        working::sync_folder_of(&path)?;
        working::sync_folder_of(&self.directory)
    }
}

fn held(facts: &fs::Metadata) -> u64 {
    facts.blocks().saturating_mul(working::STAT_BLOCK)
}

/// The directories of uploads to which nothing was added for so long, by the ids of their batches.
///
/// # Errors
/// When the working storage cannot be read.
pub fn abandoned(storage: &WorkingStorage, for_longer_than: Duration) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(storage.root())? {
        let entry = entry?;
        let Ok(id) = entry.file_name().into_string() else { continue };
        let is_of_batch = id.strip_prefix("bid-").is_some_and(|uuid| uuid.parse::<Uuid>().is_ok());
        if is_of_batch && is_older(&entry.path().join(DATA), for_longer_than) {
            found.push(id);
        }
    }
    Ok(found)
}

fn is_older(path: &Path, than: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|facts| facts.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > than))
}

#[cfg(test)]
mod tests;
