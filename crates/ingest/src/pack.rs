//! Files and directories as one container: a tar that is made while it is read, from any offset on.
//!
//! It has the same bytes each time that it is made of the same files, so that an upload that was broken off goes on
//! where it was. Neither owners nor times are in it: an object keeps none.

mod walk;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use tar::{Builder, EntryType, Header};

use crate::file_root::FileRoot;

pub use walk::PackError;
use walk::Stamp;

/// The unit of a tar, in bytes.
const BLOCK: u64 = 512;

/// What is behind the last entry: two blocks of zeros.
const END: u64 = 2 * BLOCK;

/// Files and directories to be read as one tar.
pub struct Pack {
    file_root: FileRoot,
    /// By name.
    entries: Vec<Entry>,
    files: u64,
    size: u64,
}

/// A file of a pack, or a directory without files.
struct Entry {
    name: String,
    is_folder: bool,
    /// Where its header begins in the tar.
    start: u64,
    /// How long that is.
    header: u64,
    /// The file as it was found.
    stamp: Stamp,
}

impl Pack {
    /// All that is beneath a directory, by names relative to it.
    ///
    /// # Errors
    /// When something there cannot be deposited.
    pub fn of_directory(directory: &Path) -> Result<Self, PackError> {
        walk::pack(directory, &[""])
    }

    /// Files and directories with all that is beneath them, by their paths as they are given, which are relative.
    ///
    /// # Errors
    /// When something of it cannot be deposited.
    pub fn of_paths<P: AsRef<Path>>(paths: &[P]) -> Result<Self, PackError> {
        walk::pack(Path::new("."), paths)
    }

    fn new(file_root: FileRoot, found: Vec<walk::Found>) -> io::Result<Self> {
        let (mut entries, mut start, mut files) = (Vec::with_capacity(found.len()), 0, 0);
        for walk::Found { name, file } in found {
            let (is_folder, stamp) = (file.is_none(), file.unwrap_or_default());
            let mut entry = Entry { name, is_folder, start, header: 0, stamp };
            entry.header = entry.header()?.len() as u64;
            start += entry.header + stamp.size.next_multiple_of(BLOCK);
            files += u64::from(!is_folder);
            entries.push(entry);
        }
        Ok(Self { file_root, entries, files, size: start + END })
    }

    /// How many bytes the tar has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many files are in it.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files
    }

    /// The directories without files: no object keeps them, and the report of the deposit names them.
    pub fn empty_folders(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.is_folder).map(|entry| entry.name.as_str())
    }

    /// The tar from an offset on.
    #[must_use]
    pub fn read_from(self: &Arc<Self>, offset: u64) -> PackReader {
        PackReader { pack: Arc::clone(self), at: offset, open: None }
    }
}

impl Entry {
    /// Checks that the file is as it was found.
    fn check(&self, file: &File) -> io::Result<()> {
        if Stamp::of(&file.metadata()?) == self.stamp { Ok(()) } else { Err(changed(self)) }
    }

    /// What precedes its content.
    fn header(&self) -> io::Result<Vec<u8>> {
        let mut header = Header::new_gnu();
        header.set_size(self.stamp.size);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_mode(if self.is_folder { 0o755 } else { 0o644 });
        header.set_entry_type(if self.is_folder { EntryType::Directory } else { EntryType::Regular });
        let mut builder = Builder::new(Vec::new());
        // A name that is too long for the header gets an entry before it.
        builder.append_data(&mut header, &self.name, io::empty())?;
        Ok(std::mem::take(builder.get_mut()))
    }
}

/// A tar as it is read.
pub struct PackReader {
    pack: Arc<Pack>,
    /// Where in the tar the next byte is.
    at: u64,
    open: Option<Open>,
}

/// The entry that is being read.
struct Open {
    index: usize,
    header: Vec<u8>,
    file: Option<File>,
}

impl PackReader {
    /// The entry in whose bytes the next one is; `None` behind the last.
    fn entry(&mut self) -> io::Result<Option<(&Entry, &Open)>> {
        let entries = &self.pack.entries;
        let Some(index) = entries.partition_point(|entry| entry.start <= self.at).checked_sub(1) else {
            return Ok(None);
        };
        let entry = &entries[index];
        if self.at >= entry.start + entry.header + entry.stamp.size.next_multiple_of(BLOCK) {
            return Ok(None);
        }
        let open = match self.open.take().filter(|open| open.index == index) {
            Some(open) => open,
            None => Open { index, header: entry.header()?, file: self.pack.open(entry)? },
        };
        Ok(Some((entry, self.open.insert(open))))
    }
}

impl Pack {
    fn open(&self, entry: &Entry) -> io::Result<Option<File>> {
        if entry.is_folder {
            return Ok(None);
        }
        let of =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", crate::name::shown(&entry.name)));
        let file = self.file_root.file(&entry.name).map_err(of)?.ok_or_else(|| changed(entry))?;
        entry.check(&file)?;
        Ok(Some(file))
    }
}

fn changed(entry: &Entry) -> io::Error {
    io::Error::other(format!("{} changed while it was being deposited", crate::name::shown(&entry.name)))
}

impl Read for PackReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (at, size) = (self.at, self.pack.size);
        let most = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX).min(to.len());
        let mut to = &mut to[..most];
        if to.is_empty() {
            return Ok(0);
        }
        let read = match self.entry()? {
            None => {
                to.fill(0);
                to.len()
            }
            Some((entry, open)) => {
                let inside = at - entry.start;
                let mut limit = |bytes: u64| {
                    let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(to.len());
                    to = &mut std::mem::take(&mut to)[..most];
                };
                if let Some(left) = entry.header.checked_sub(inside).filter(|left| *left > 0) {
                    limit(left);
                    let begin = usize::try_from(inside).map_err(io::Error::other)?;
                    to.copy_from_slice(&open.header[begin..begin + to.len()]);
                    to.len()
                } else if let Some(file) = open.file.as_ref().filter(|_| inside - entry.header < entry.stamp.size) {
                    let offset = inside - entry.header;
                    limit(entry.stamp.size - offset);
                    let read = match file.read_at(to, offset)? {
                        0 => return Err(changed(entry)),
                        read => read,
                    };
                    // What was written while it was read is in part what was there before.
                    if offset + read as u64 == entry.stamp.size {
                        entry.check(file)?;
                    }
                    read
                } else {
                    limit(entry.header + entry.stamp.size.next_multiple_of(BLOCK) - inside);
                    to.fill(0);
                    to.len()
                }
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    fn all(pack: &Arc<Pack>, from: u64, piece: usize) -> Vec<u8> {
        let (mut reader, mut read, mut buffer) = (pack.read_from(from), Vec::new(), vec![0; piece]);
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => return read,
                bytes => read.extend_from_slice(&buffer[..bytes]),
            }
        }
    }

    #[test]
    fn a_directory_is_one_tar_that_can_be_read_from_any_offset_on() {
        let home = tempfile::tempdir().unwrap();
        let long = format!("deep/{}/é b.txt", "long".repeat(40));
        let mut files = BTreeMap::new();
        for (name, content) in [
            ("a.txt", "x".repeat(700)),
            ("empty.txt", String::new()),
            (".hidden", "h".repeat(512)),
            (&long, "é".repeat(9)),
        ] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &content).unwrap();
            files.insert(name.to_owned(), content);
        }
        fs::create_dir_all(home.path().join("none/inner")).unwrap();
        let pack = Arc::new(Pack::of_directory(home.path()).unwrap());
        assert_eq!((pack.files(), pack.empty_folders().collect::<Vec<_>>()), (4, vec!["none/inner"]));
        let whole = all(&pack, 0, 64 * 1024);
        assert_eq!(whole.len() as u64, pack.size());
        assert_eq!(whole, all(&pack, 0, 7));
        for from in (0..whole.len()).step_by(97) {
            assert_eq!(all(&pack, from as u64, 300), whole[from..], "{from}");
        }
        // As another reader sees it.
        let mut found = BTreeMap::new();
        for entry in tar::Archive::new(whole.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            if entry.header().entry_type().is_file() {
                found.insert(name, content);
            } else {
                assert_eq!((name.as_str(), entry.header().entry_type()), ("none/inner", EntryType::Directory));
            }
        }
        assert_eq!(found, files);
        // What has another size by then is not read.
        fs::write(home.path().join("a.txt"), "shorter").unwrap();
        let error = io::copy(&mut pack.read_from(0), &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "a.txt changed while it was being deposited");
    }

    #[test]
    fn a_file_that_is_written_while_it_is_read_is_not_deposited_in_part_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.txt");
        fs::write(&path, "1".repeat(2_000)).unwrap();
        let pack = Arc::new(Pack::of_directory(home.path()).unwrap());
        let mut reader = pack.read_from(0);
        reader.read_exact(&mut [0; 1_000]).unwrap();
        // The clock of the file system may stand still for a moment.
        let before = fs::metadata(&path).map(|facts| Stamp::of(&facts)).unwrap();
        while fs::metadata(&path).map(|facts| Stamp::of(&facts)).unwrap() == before {
            File::options().write(true).open(&path).unwrap().write_all_at(&[b'2'; 2_000], 0).unwrap();
        }
        let error = io::copy(&mut reader, &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "a.txt changed while it was being deposited");
        let error = io::copy(&mut pack.read_from(0), &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "a.txt changed while it was being deposited");
    }

    #[test]
    fn what_is_neither_a_file_nor_a_directory_and_what_has_no_relative_name_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let none = Pack::of_directory(home.path()).err().unwrap();
        assert_eq!(none.problems, ["there is no file"]);
        fs::write(at("a"), "a").unwrap();
        fs::write(at("b\nc"), "a").unwrap();
        fs::create_dir(at("d")).unwrap();
        std::os::unix::fs::symlink("a", at("d/link")).unwrap();
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        fs::write(at("d").join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff")), "a").unwrap();
        let refused = Pack::of_directory(home.path()).err().unwrap();
        let expected = [
            "b\\nc: the name has a control character",
            "d/\u{fffd}: the name is not UTF-8",
            "d/link is a link; only files and directories are deposited",
            "socket is a socket; only files and directories are deposited",
        ];
        assert_eq!(refused.problems, expected);
        assert_eq!(refused.to_string(), format!("{} (and 3 more problems)", expected[0]));
        let relative = "give paths relative to the directory in which the command runs, without \"..\"";
        for (path, why) in [("/etc", relative), ("../a", relative), ("nothing", "No such file")] {
            let refused = Pack::of_paths(&[path]).err().unwrap();
            assert!(refused.problems[0].starts_with(path) && refused.problems[0].contains(why), "{refused}");
        }
        let twice = Pack::of_paths(&["Cargo.toml", "./Cargo.toml", "src/lib.rs"]).err().unwrap();
        assert_eq!(twice.problems, ["Cargo.toml is named twice"]);
        assert_eq!(Pack::of_paths(&["Cargo.toml", "./src/pack"]).unwrap().files(), 2);
    }
}
