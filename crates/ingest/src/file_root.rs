//! Files beneath an open directory, which appear whole or not at all.
//!
//! Names come from depositors. Each is opened by the kernel beneath the directory, through no link, so that whatever
//! else happens in the directory no name leads out of it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use queuekeeper_store::{Algorithm, Digest, Digests, Hashers};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::name;

/// How much is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// How often a temporary file is locked that another attempt holds: one that was given up ends what it is writing.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A directory and, on the same file system, one for what is not whole yet.
pub struct FileRoot {
    root: OwnedFd,
    temporary: OwnedFd,
    /// The mode of new files, less the umask.
    mode: u32,
}

/// The mode of files that hold secrets, such as manifests with presigned URLs.
pub(crate) const PRIVATE: u32 = 0o600;

/// A file that is not whole yet, locked against other attempts. Dropped, it stays: the next attempt goes on with it or
/// replaces it.
pub struct Partial {
    file: File,
    name: String,
}

impl Partial {
    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl FileRoot {
    /// Opens a directory for files, and another one on the same file system for what is not whole yet. Both exist.
    ///
    /// # Errors
    /// When one of them cannot be opened.
    pub fn open(root: &Path, temporary: &Path) -> io::Result<Self> {
        let open = |path: &Path| rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self::new(open(root)?, open(temporary)?))
    }

    /// The same of directories that are open.
    #[must_use]
    pub fn new(root: OwnedFd, temporary: OwnedFd) -> Self {
        Self { root, temporary, mode: 0o666 }
    }

    /// The same one, whose new files are readable by the owner of the process only.
    #[must_use]
    pub fn private(self) -> Self {
        Self { mode: PRIVATE, ..self }
    }

    /// The file with a name; `None` where there is none.
    ///
    /// # Errors
    /// When it is no plain file, or cannot be opened.
    pub fn file(&self, path: &str) -> io::Result<Option<File>> {
        checked(path)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        match beneath(self.root.as_fd(), path, flags) {
            Ok(file) => {
                let file = File::from(file);
                let facts = file.metadata()?;
                if facts.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is not a file")) }
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The temporary file for a name, as an earlier attempt left it, or empty. Waits some seconds for an attempt that
    /// still writes it.
    ///
    /// # Errors
    /// When it cannot be opened, or is being written.
    pub fn resume(&self, path: &str) -> io::Result<Partial> {
        self.partial(path, OFlags::empty())
    }

    /// The temporary file for a name, empty. Waits as [`Self::resume`].
    ///
    /// # Errors
    /// When it cannot be made, or is being written.
    pub fn begin(&self, path: &str) -> io::Result<Partial> {
        self.partial(path, OFlags::TRUNC)
    }

    fn partial(&self, path: &str, flags: OFlags) -> io::Result<Partial> {
        checked(path)?;
        let name = temporary_name(path);
        let open_flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..LOCK_TRIES {
            let file = rustix::fs::openat(&self.temporary, &name, open_flags, Mode::from_raw_mode(self.mode))?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_named(&file, &name)? => {
                    let file = File::from(file);
                    if flags.contains(OFlags::TRUNC) {
                        file.set_len(0)?;
                    }
                    return Ok(Partial { file, name });
                }
                // It was published or discarded meanwhile.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "another attempt is still writing it"))
    }

    /// Whether a file of the temporary directory still has its name there.
    fn is_named(&self, file: &OwnedFd, name: &str) -> io::Result<bool> {
        let own = rustix::fs::fstat(file)?;
        match rustix::fs::statat(&self.temporary, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a file appear under its name, in place of one that is there. Its content is durable before; its name after
    /// [`Self::sync_folders`].
    ///
    /// # Errors
    /// When it cannot be moved, or a file is in the way of its folders.
    pub fn publish(&self, partial: &Partial, path: &str) -> io::Result<()> {
        checked(path)?;
        partial.file.sync_all()?;
        let (folder, last) = path.rsplit_once('/').map_or((None, path), |(folder, last)| (Some(folder), last));
        let folder = folder.map(|folder| self.folder(folder)).transpose()?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::renameat(&self.temporary, &partial.name, folder, last)?)
    }

    /// Gives an open file of the same file system a second name here, or copies one of another; a file that is there
    /// already stays.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn adopt(&self, source: &File, path: &str) -> io::Result<()> {
        checked(path)?;
        if self.file(path)?.is_some() {
            return Ok(());
        }
        let (folder, last) = path.rsplit_once('/').map_or((None, path), |(folder, last)| (Some(folder), last));
        let folder = folder.map(|folder| self.folder(folder)).transpose()?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        let open = format!("/proc/self/fd/{}", source.as_raw_fd());
        match rustix::fs::linkat(rustix::fs::CWD, open, folder, last, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            // Another file system, one without links, or a file with too many of them.
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS) => {
                let partial = self.begin(path)?;
                let mut file = source;
                file.rewind()?;
                io::copy(&mut file, &mut partial.file())?;
                self.publish(&partial, path)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the names of files durable that were published: each folder above one of them is synced once.
    ///
    /// # Errors
    /// When the file system cannot be written.
    pub fn sync_folders<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        let mut paths: Vec<&str> = paths.into_iter().collect();
        // What lies in one folder stands together.
        paths.sort_unstable();
        let mut before = "";
        for path in paths {
            for folder in name::folders(path) {
                if before.starts_with(folder) && before.as_bytes().get(folder.len()) == Some(&b'/') {
                    break;
                }
                rustix::fs::fsync(beneath(self.root.as_fd(), folder, OFlags::DIRECTORY)?)?;
            }
            before = path;
        }
        Ok(rustix::fs::fsync(&self.root)?)
    }

    /// Removes the temporary file of a name, if there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn discard(&self, path: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.temporary, temporary_name(path), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a folder, and makes what is missing on the way.
    fn folder(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY;
        match beneath(self.root.as_fd(), path, flags) {
            Ok(folder) => return Ok(folder),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut folder: Option<OwnedFd> = None;
        for part in path.split('/') {
            let above = folder.as_ref().unwrap_or(&self.root);
            match rustix::fs::mkdirat(above, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = Some(beneath(above.as_fd(), part, flags)?);
        }
        folder.ok_or_else(|| io::Error::other("the folder has no name"))
    }
}

/// Opens what a path leads to beneath a directory, through no link.
fn beneath(directory: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(&directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // Others move directories meanwhile.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

fn checked(path: &str) -> io::Result<()> {
    name::check(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// The same name in each attempt, and another one for each path.
fn temporary_name(path: &str) -> String {
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(path.as_bytes());
    let digest = hashers.finish().get(Algorithm::Sha256).map(Digest::hex).unwrap_or_default();
    format!("{}.part", &digest[..digest.len().min(40)])
}

/// Reads what is left of a file, piece by piece.
///
/// # Errors
/// When it cannot be read.
pub fn read(mut file: &File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(bytes) => each(&piece[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The size and digests of an open file from where it is read next.
///
/// # Errors
/// When it cannot be read.
pub fn digests(file: &File, algorithms: impl IntoIterator<Item = Algorithm>) -> io::Result<(u64, Digests)> {
    let mut hashers = Hashers::new(algorithms);
    read(file, |bytes| hashers.update(bytes))?;
    Ok((hashers.bytes(), hashers.finish()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn file_root() -> (tempfile::TempDir, FileRoot) {
        let directory = tempfile::tempdir().unwrap();
        let [root, temporary] = ["root", "temporary"].map(|name| directory.path().join(name));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&temporary).unwrap();
        let file_root = FileRoot::open(&root, &temporary).unwrap();
        (directory, file_root)
    }

    #[test]
    fn a_file_appears_whole_and_an_attempt_goes_on_with_the_one_before() {
        let (directory, file_root) = file_root();
        file_root.begin("a/b/c").unwrap().file().write_all(b"one").unwrap();
        assert!(file_root.file("a/b/c").unwrap().is_none());
        let partial = file_root.resume("a/b/c").unwrap();
        assert_eq!(digests(partial.file(), [Algorithm::Md5]).unwrap().0, 3);
        partial.file().write_all(b" two").unwrap();
        file_root.publish(&partial, "a/b/c").unwrap();
        drop(partial);
        assert_eq!(std::fs::read(directory.path().join("root/a/b/c")).unwrap(), b"one two");
        assert_eq!(file_root.resume("a/b/c").unwrap().file().metadata().unwrap().len(), 0);
        file_root.discard("a/b/c").unwrap();
        file_root.discard("a/b/c").unwrap();
        assert_eq!(std::fs::read_dir(directory.path().join("temporary")).unwrap().count(), 0);
        file_root.publish(&file_root.begin("a/b/c").unwrap(), "a/b/c").unwrap();
        file_root.sync_folders(["a/b/c", "a/b/c"]).unwrap();
        assert!(file_root.sync_folders(["x/y"]).is_err());
        assert_eq!(file_root.file("a/b/c").unwrap().unwrap().metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_file_gets_a_second_name_and_one_that_is_there_stays() {
        let (directory, file_root) = file_root();
        let path = directory.path().join("upload");
        std::fs::write(&path, "deposit").unwrap();
        let source = File::open(&path).unwrap();
        file_root.adopt(&source, "a/b").unwrap();
        file_root.adopt(&source, "a/b").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(std::fs::read(directory.path().join("root/a/b")).unwrap(), b"deposit");
        // A file without a name cannot get one, and is copied.
        file_root.adopt(&source, "c").unwrap();
        assert_eq!(std::fs::read(directory.path().join("root/a/b")).unwrap(), b"deposit");
        assert_eq!(std::fs::read(directory.path().join("root/c")).unwrap(), b"deposit");
        assert!(file_root.adopt(&source, "../d").is_err());
    }

    #[test]
    fn what_a_private_place_writes_or_copies_is_for_the_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let (directory, file_root) = file_root();
        let file_root = file_root.private();
        file_root.publish(&file_root.begin("a").unwrap(), "a").unwrap();
        let path = directory.path().join("upload");
        std::fs::write(&path, "deposit").unwrap();
        let source = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file_root.adopt(&source, "b").unwrap();
        for name in ["a", "b"] {
            let mode = std::fs::metadata(directory.path().join("root").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, PRIVATE, "{name}");
        }
    }

    #[test]
    fn no_name_and_no_link_leads_out() {
        let (directory, file_root) = file_root();
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "secret").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("secret"), root.join("file")).unwrap();
        let partial = file_root.begin("x").unwrap();
        for path in ["../outside/secret", "/etc/passwd", "link/secret", "a/../../outside/secret", ""] {
            assert!(file_root.file(path).is_err(), "{path}");
            assert!(file_root.publish(&partial, path).is_err(), "{path}");
        }
        assert!(file_root.file("file").is_err());
        assert!(file_root.publish(&partial, "link/new").is_err());
        // A link in the place of a file is replaced, not followed.
        file_root.publish(&partial, "file").unwrap();
        assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"secret");
        // A folder is no file, and a file no folder.
        file_root.publish(&file_root.begin("a/b").unwrap(), "a/b").unwrap();
        assert!(file_root.file("a").is_err() && file_root.file("a/b/c").unwrap().is_none());
        for path in ["a", "a/b/c"] {
            assert!(file_root.publish(&file_root.begin(path).unwrap(), path).is_err(), "{path}");
        }
    }
}
