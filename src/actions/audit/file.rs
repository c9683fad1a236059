//! A file: appended to, synced, rotated by size, and found again when somebody has moved it.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use queuekeeper_zookeeper::files;

/// When a file is full, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would grow beyond this is put aside as `FILE.1`, in bytes.
    pub size_bytes: u64,
    /// How many are kept besides the one that is written.
    pub files: u32,
}

impl Default for Rotation {
    /// 64 MiB, ten files: some million actions.
    fn default() -> Self {
        Self { size_bytes: 64 << 20, files: 10 }
    }
}

/// A file that is open for appending.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    /// Its device and number: what is at the path now may be another file.
    identity: (u64, u64),
    size_bytes: u64,
    /// The last line may have been cut: the next begins on a line of its own.
    is_torn: bool,
    /// The size of the text that could not be written the last time; 0 when it could.
    failed_bytes: u64,
}

impl Log {
    pub(super) fn open(path: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let file = files::append(&path)?;
        let facts = file.metadata()?;
        let mut log = Self {
            path,
            rotation,
            identity: (facts.dev(), facts.ino()),
            size_bytes: facts.len(),
            is_torn: false,
            failed_bytes: 0,
            file,
        };
        log.is_torn = log.ends_within_a_line()?;
        Ok(log)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other processes from opening the file, until it is shared. Gives whether none has it open, so that none can be
    /// about to write to it. Where the file system has no locks, that is taken to be so.
    pub(super) fn lock(&self) -> bool {
        !matches!(self.file.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Lets other processes open the file besides.
    pub(super) fn share(&self) {
        // Where there are no locks, nobody asks for one.
        let _ = self.file.lock_shared();
    }

    /// Writes lines. They are on the disk when this returns, in the file that is at the path.
    pub(super) fn append(&mut self, text: &str) -> io::Result<()> {
        self.put(text, text.len() as u64)
    }

    /// Finds out whether lines can be written: that the file is at its path, and, where the last could not be written,
    /// that there is room for it now and what was cut of it can be ended.
    pub(super) fn check(&mut self) -> io::Result<()> {
        if self.failed_bytes == 0 { self.find_again() } else { self.put("", self.failed_bytes) }
    }

    /// Writes a text into a file that may grow by so many bytes.
    fn put(&mut self, text: &str, bytes: u64) -> io::Result<()> {
        let wrote = self.try_put(text, bytes);
        self.failed_bytes = if wrote.is_ok() { 0 } else { bytes.max(1) };
        wrote
    }

    fn try_put(&mut self, text: &str, bytes: u64) -> io::Result<()> {
        self.find_again()?;
        if self.size_bytes > 0 && self.size_bytes + bytes + u64::from(self.is_torn) > self.rotation.size_bytes {
            self.rotate()?;
        }
        let added = text.len() as u64 + u64::from(self.is_torn);
        let wrote = self.write(text);
        // Whatever came of it, as much as that may be there.
        self.size_bytes += added;
        self.is_torn = wrote.is_err();
        wrote
    }

    /// Opens what is at the path now, if that is another file than the one that is open or none.
    pub(super) fn find_again(&mut self) -> io::Result<()> {
        let found = match std::fs::symlink_metadata(&self.path) {
            Ok(found) => Some(found),
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            Err(why) => return Err(why),
        };
        match found {
            Some(found) if (found.dev(), found.ino()) == self.identity => {
                // Another process may write to it too, or have cut it.
                if found.len() != self.size_bytes {
                    self.size_bytes = found.len();
                    self.is_torn = self.ends_within_a_line()?;
                }
                Ok(())
            }
            found => {
                let new = Self::open(self.path.clone(), self.rotation)?;
                new.share();
                sync_folder(&self.path)?;
                let what = if found.is_some() { "replaced" } else { "moved or removed" };
                tracing::warn!(path = %self.path.display(), "the audit file was {what}; opened the one at its path");
                *self = new;
                Ok(())
            }
        }
    }

    fn ends_within_a_line(&mut self) -> io::Result<bool> {
        let mut last = [b'\n'];
        if self.size_bytes > 0 {
            self.file.seek(SeekFrom::End(-1))?;
            self.file.read_exact(&mut last)?;
        }
        Ok(last != *b"\n")
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_torn {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }

    /// Puts the file aside and begins another. Where that fails half way, the next attempt goes on: nothing is
    /// overwritten but the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..=self.rotation.files).rev() {
            let from = if number == 1 { self.path.clone() } else { aside(&self.path, number - 1) };
            if let Err(why) = std::fs::rename(&from, aside(&self.path, number))
                && why.kind() != io::ErrorKind::NotFound
            {
                return Err(why);
            }
        }
        if self.rotation.files == 0 {
            std::fs::remove_file(&self.path)?;
        }
        let new = Self::open(self.path.clone(), self.rotation)?;
        new.share();
        *self = new;
        sync_folder(&self.path)
    }

    /// The file and those that were put aside, the newest first.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(self.path.clone()).chain((1..=self.rotation.files).map(|number| aside(&self.path, number)))
    }

    /// The last lines of the files, the oldest first, of that many bytes at most.
    pub(super) fn last_lines(&self, mut left_bytes: u64) -> io::Result<Vec<String>> {
        let mut pieces = Vec::new();
        for path in self.paths() {
            let Some(text) = tail(&path, left_bytes)? else { break };
            left_bytes = left_bytes.saturating_sub(text.len() as u64);
            pieces.push(text);
            if left_bytes == 0 {
                break;
            }
        }
        let lines = pieces.iter().rev().flat_map(|text| text.lines()).map(str::to_owned);
        Ok(lines.collect())
    }
}

/// The new name is to be found again, too, after the power failed.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn aside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The end of a file, from the beginning of a line on; `None` where there is no such file.
fn tail(path: &Path, most: u64) -> io::Result<Option<String>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    let size = file.metadata()?.len();
    let skipped = size.saturating_sub(most);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if skipped > 0 { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    Ok(Some(whole.to_owned()))
}
