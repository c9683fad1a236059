//! A file that is being read into, and appears when it is whole: `FILE.part`, and what its bytes are of beside it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use queuekeeper_store::store::Properties;
use queuekeeper_store::{Algorithm, Digest, Digests, Hashers};
use rustix::fs::{CWD, OFlags, RenameFlags};

use super::path::ItemPath;
use crate::cli::exit::{CommandError, REFUSED};

/// A file that is being read into, by this process alone.
pub(super) struct Part {
    path: PathBuf,
    /// Says of which state of which item the bytes are.
    state: PathBuf,
    file: File,
    hashers: Hashers,
}

/// Hashers of all algorithms that the store's checksums have.
pub(super) fn hashers(found: &Properties) -> Hashers {
    Hashers::new(found.checksums.iter().map(Digest::algorithm))
}

/// The name of what is read so far of a file.
pub(super) fn beside(file: &Path) -> PathBuf {
    with_ending(file, "part")
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Refuses what is there already: `replace` is only for files, since devices, pipes and links were put there for
/// another use.
pub(super) fn check_target(file: &Path, replace: bool) -> Result<(), CommandError> {
    let why = match file.symlink_metadata() {
        Ok(facts) if !facts.is_file() => format!("{} is not a regular file; name another one", file.display()),
        Ok(_) if !replace => format!("{} exists; --replace replaces it", file.display()),
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(CommandError::new(REFUSED, why))
}

impl Part {
    /// Opens what was read before, if it is of the same state of the same item; else an empty file.
    pub(super) fn open(file: &Path, item: &ItemPath, found: &Properties) -> anyhow::Result<Self> {
        let (path, state) = (beside(file), with_ending(file, "part.state"));
        let mut identity = Hashers::new([Algorithm::Sha256]);
        identity.update(format!("{item}\n{}\n{}", found.etag, found.size).as_bytes());
        let identity = identity.finish().strongest().map(Digest::hex).unwrap_or_default();
        let text = format!("cannot write {}", path.display());
        let cannot = || text.clone();
        check_target(&path, true)?;
        let opened = lock(&path).with_context(cannot)?;
        let file = opened.ok_or_else(|| {
            let why = format!(
                "another process is writing {}; wait until it has finished, or name another file",
                path.display()
            );
            CommandError::new(REFUSED, why)
        })?;
        let mut part = Self { path, state, file, hashers: hashers(found) };
        let known = read(&part.state).with_context(|| format!("cannot read {}", part.state.display()))?;
        match known {
            Some(text) if text == identity => part.read_again(found).with_context(cannot)?,
            None if part.file.metadata()?.len() > 0 => {
                let why = format!("{} exists, but is not from `store get`; move it away", part.path.display());
                return Err(CommandError::new(REFUSED, why).into());
            }
            Some(_) | None => {
                part.empty(found).with_context(cannot)?;
                write(&part.state, &identity).with_context(|| format!("cannot write {}", part.state.display()))?;
            }
        }
        Ok(part)
    }

    /// Digests what is there.
    fn read_again(&mut self, found: &Properties) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        loop {
            match self.file.read(&mut buffer)? {
                0 => break,
                read => self.hashers.update(&buffer[..read]),
            }
        }
        if self.bytes() > found.size { self.empty(found) } else { Ok(()) }
    }

    /// Begins again.
    pub(super) fn empty(&mut self, found: &Properties) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.hashers = hashers(found);
        Ok(())
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.hashers.bytes()
    }

    /// How many bytes it has, and their digests; no more may be written.
    pub(super) fn digests(&mut self) -> (u64, Digests) {
        let hashers = std::mem::replace(&mut self.hashers, Hashers::new([]));
        (hashers.bytes(), hashers.finish())
    }

    pub(super) fn write(&mut self, chunk: &[u8]) -> anyhow::Result<()> {
        self.hashers.update(chunk);
        self.file.write_all(chunk).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Removes it: going on would not make it right.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.state).and_then(|()| fs::remove_file(&self.path));
    }

    /// Gives it its name, now that it is whole.
    pub(super) fn finish(self, file: &Path, replace: bool) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", file.display());
        self.file.sync_all().with_context(cannot)?;
        // Another file of that name may have come meanwhile.
        check_target(file, replace)?;
        if replace {
            fs::rename(&self.path, file).with_context(cannot)?;
        } else {
            match rustix::fs::renameat_with(CWD, &self.path, CWD, file, RenameFlags::NOREPLACE) {
                // Not every file system can.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    fs::hard_link(&self.path, file).with_context(cannot)?;
                    fs::remove_file(&self.path).with_context(cannot)?;
                }
                renamed => renamed.map_err(io::Error::from).with_context(cannot)?,
            }
        }
        fs::remove_file(&self.state).with_context(cannot)
    }
}

/// Opens a file for this process alone; `None` where another one has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = options().create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let (ours, there) = (file.metadata()?, path.symlink_metadata());
        // The process that had it may have finished it meanwhile.
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

/// Never through a link, which may lead to a file of another user.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// The text of a file; `None` where there is none.
fn read(path: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    match options().open(path) {
        Ok(file) => file.take(1 << 10).read_to_string(&mut text).map(|_| Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    options().create(true).truncate(true).open(path)?.write_all(text.as_bytes())
}
