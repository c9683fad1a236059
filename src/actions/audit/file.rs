//! The file: appended to, synced, rotated by size.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::AuditError;

/// Only its owner reads who did what.
const MODE: u32 = 0o600;

/// How much of the files is read back at the start, in bytes.
const READ_BACK: u64 = 8 << 20;

/// When a file is full, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would grow beyond this is put aside as `FILE.1`, in bytes.
    pub size_bytes: u64,
    /// How many are kept besides the one that is written.
    pub files: u32,
}

impl Default for Rotation {
    /// 64 MiB, ten files: some million orders.
    fn default() -> Self {
        Self { size_bytes: 64 << 20, files: 10 }
    }
}

/// Where lines go.
#[derive(Debug)]
pub(super) enum Sink {
    StandardOutput,
    File(Log),
}

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    size_bytes: u64,
    /// The last line may have been cut: the next begins on a line of its own.
    is_torn: bool,
}

impl Sink {
    pub(super) fn standard_output() -> Self {
        Self::StandardOutput
    }

    pub(super) fn file(path: PathBuf, rotation: Rotation) -> Result<Self, AuditError> {
        let open = || -> io::Result<_> {
            let mut file = open(&path)?;
            let size_bytes = file.metadata()?.len();
            let mut last = [b'\n'];
            if size_bytes > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            Ok((file, size_bytes, last != *b"\n"))
        };
        let (file, size_bytes, is_torn) = open().map_err(|why| error("cannot open the audit file", &path, why))?;
        Ok(Self::File(Log { path, rotation, file, size_bytes, is_torn }))
    }

    /// Writes lines. They are on the disk when this returns.
    pub(super) fn append(&mut self, text: &str) -> Result<(), AuditError> {
        match self {
            Self::StandardOutput => {
                let mut out = io::stdout().lock();
                let wrote = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                wrote.map_err(|why| error("cannot write the audit trail to", Path::new("standard output"), why))
            }
            Self::File(log) => {
                let wrote = log.append(text);
                wrote.map_err(|why| error("cannot write the audit file", &log.path, why))
            }
        }
    }

    /// The last lines of the files, the oldest first.
    pub(super) fn last_lines(&self) -> Result<Vec<String>, AuditError> {
        let Self::File(log) = self else { return Ok(Vec::new()) };
        let mut pieces = Vec::new();
        let mut left = READ_BACK;
        for path in std::iter::once(log.path.clone()).chain((1..=log.rotation.files).map(|n| aside(&log.path, n))) {
            let read = tail(&path, left);
            let Some(text) = read.map_err(|why| error("cannot read the audit file", &path, why))? else { break };
            left = left.saturating_sub(text.len() as u64);
            pieces.push(text);
            if left == 0 {
                break;
            }
        }
        let lines = pieces.iter().rev().flat_map(|text| text.lines()).map(str::to_owned);
        Ok(lines.collect())
    }
}

impl Log {
    fn append(&mut self, text: &str) -> io::Result<()> {
        let added = text.len() as u64 + u64::from(self.is_torn);
        if self.size_bytes > 0 && self.size_bytes + added > self.rotation.size_bytes {
            self.rotate()?;
        }
        let wrote = self.write(text);
        // Whatever came of it, as much as that may be there.
        self.size_bytes += added;
        self.is_torn = wrote.is_err();
        wrote
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
        self.file = open(&self.path)?;
        // The new name is to be found again, too, after the power failed.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        (self.size_bytes, self.is_torn) = (self.file.metadata()?.len(), false);
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).read(true).mode(MODE).open(path)
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

fn error(what: &'static str, path: &Path, why: io::Error) -> AuditError {
    AuditError { what, path: path.to_owned(), why: Arc::new(why) }
}
