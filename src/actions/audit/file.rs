//! An audit file: append, sync, rotate by size, and reopen when it was moved.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use queuekeeper_zookeeper::files;

/// When a file is rotated, and how many rotated files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would grow beyond this is renamed to `FILE.1`, in bytes.
    pub size_bytes: u64,
    /// How many rotated files are kept besides the current one.
    pub files: u32,
}

impl Default for Rotation {
    /// 64 MiB, ten files: several million actions.
    fn default() -> Self {
        Self { size_bytes: 64 << 20, files: 10 }
    }
}

/// A file opened for appending.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    /// Its device and inode, to notice when another file is at the path.
    identity: (u64, u64),
    size_bytes: u64,
    /// Whether the last line may be incomplete, so that the next write starts a new one.
    is_torn: bool,
    /// The size of the text whose last write failed; 0 if it succeeded.
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

    /// Keeps other processes from opening the file until it is shared. Returns whether no other process has it open,
    /// and so none can be about to write to it. True where the file system has no locks.
    pub(super) fn lock(&self) -> bool {
        !matches!(self.file.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Lets other processes open the file as well.
    pub(super) fn share(&self) {
        // Without file locks no process waits for one.
        let _ = self.file.lock_shared();
    }

    /// Appends lines to the file that is at the path. They are on the disk when this returns.
    pub(super) fn append(&mut self, text: &str) -> io::Result<()> {
        self.put(text, text.len() as u64)
    }

    /// Checks that lines can be written: that the file is at its path and, after a failed write, that there is room now
    /// and an incomplete line can be terminated.
    pub(super) fn check(&mut self) -> io::Result<()> {
        if self.failed_bytes == 0 { self.reopen() } else { self.put("", self.failed_bytes) }
    }

    /// Writes a text to the file, which may have to grow by this many bytes.
    fn put(&mut self, text: &str, bytes: u64) -> io::Result<()> {
        let wrote = self.try_put(text, bytes);
        self.failed_bytes = if wrote.is_ok() { 0 } else { bytes.max(1) };
        wrote
    }

    fn try_put(&mut self, text: &str, bytes: u64) -> io::Result<()> {
        self.reopen()?;
        if self.size_bytes > 0 && self.size_bytes + bytes + u64::from(self.is_torn) > self.rotation.size_bytes {
            self.rotate()?;
        }
        let added = text.len() as u64 + u64::from(self.is_torn);
        let wrote = self.write(text);
        // Even a failed write may have written all of it.
        self.size_bytes += added;
        self.is_torn = wrote.is_err();
        wrote
    }

    /// Opens the file at the path if it is not the one that is open.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let found = match std::fs::symlink_metadata(&self.path) {
            Ok(found) => Some(found),
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            Err(why) => return Err(why),
        };
        match found {
            Some(found) if (found.dev(), found.ino()) == self.identity => {
                // Another process may have appended to it or truncated it.
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
                tracing::warn!(path = %self.path.display(), "the audit file was {what}; reopened its path");
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

    /// Renames the file and starts another. If that fails half way, the next attempt continues: nothing but the oldest
    /// file is overwritten.
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

    /// The current file and the rotated ones, the newest first.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(self.path.clone()).chain((1..=self.rotation.files).map(|number| aside(&self.path, number)))
    }

    /// The last lines of the files, the oldest first, of this many bytes at most.
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

/// Makes a rename survive a power failure.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn aside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The end of a file, from the start of a line; `None` if there is no such file.
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
