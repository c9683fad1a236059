//! The directory of one job in the working storage.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;
use uuid::Uuid;

use super::{absent_is_fine, write_synced};
use crate::file_root::FileRoot;

/// The folder of packages that are no content themselves.
pub(crate) const PACKAGE: &str = ".package";

/// The folder of the deposited files.
pub(crate) const PRODUCER: &str = "producer";

/// The name of the dot-file with the job's files, without the dot.
pub(crate) const FILES: &str = "files";

/// The folder of a job's files that are not whole yet.
const TEMPORARY: &str = ".part";

/// The directory of a job.
#[derive(Clone, Debug)]
pub struct JobDirectory {
    pub(super) batch: PathBuf,
    pub(super) path: PathBuf,
}

impl JobDirectory {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What messages call it: its path from the top of the working storage, which depositors may read.
    #[must_use]
    pub fn shown(&self) -> String {
        let names = self.path.components().rev().take(2).collect::<Vec<_>>();
        names.iter().rev().collect::<PathBuf>().display().to_string()
    }

    /// A helper file of ours in it.
    #[must_use]
    pub fn helper(&self, name: &str) -> PathBuf {
        self.path.join(format!(".{name}"))
    }

    /// Makes it with its folders, where they are missing, and opens one of them for files: `producer`, or that of the
    /// package, `.package`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn root(&self, folder: &str) -> io::Result<Arc<FileRoot>> {
        self.open_root(folder).map(Arc::new)
    }

    /// The same for files that are readable by the owner of the process only.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn private_root(&self, folder: &str) -> io::Result<Arc<FileRoot>> {
        self.open_root(folder).map(|root| Arc::new(root.private()))
    }

    fn open_root(&self, folder: &str) -> io::Result<FileRoot> {
        let [folder, temporary] = [folder, TEMPORARY].map(|name| self.path.join(name));
        for path in [&folder, &temporary, &self.path.join("system")] {
            fs::create_dir_all(path)?;
        }
        FileRoot::open(&folder, &temporary)
    }

    /// The package that lies in the working storage: in the job's directory, else in that of the batch; `None` where it
    /// is in neither.
    ///
    /// # Errors
    /// When it is no plain file, or cannot be opened.
    pub fn local_package(&self, file_name: &str) -> io::Result<Option<File>> {
        for directory in [&self.path, &self.batch] {
            if !directory.is_dir() {
                continue;
            }
            // Nothing temporary is made by reading.
            if let Some(file) = FileRoot::open(directory, directory)?.file(file_name)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Removes what an attempt left of files that are not whole.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_temporary(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_dir_all(self.path.join(TEMPORARY)))
    }

    /// Removes what was fetched and unpacked: it is fetched again from what the deposit brought, which stays.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn remove_content(&self) -> io::Result<()> {
        // Where the list is, everything is taken to be there.
        absent_is_fine(fs::remove_file(self.helper(FILES)))?;
        for folder in [TEMPORARY, PACKAGE, PRODUCER] {
            absent_is_fine(fs::remove_dir_all(self.path.join(folder)))?;
        }
        Ok(())
    }

    /// Writes a file in it, which appears whole or not at all. Its name is durable after [`super::sync_folder_of`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
        // A name of its own: an attempt whose session was lost may still be writing.
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".new-{}", Uuid::new_v4()));
        let temporary = PathBuf::from(temporary);
        write_synced(&temporary, content)?;
        fs::rename(&temporary, path)
    }

    /// The URL of the directory, with a slash at the end.
    ///
    /// # Errors
    /// When its path is not absolute.
    pub fn url(&self) -> io::Result<Url> {
        Url::from_directory_path(&self.path)
            .map_err(|()| io::Error::other("the path of the working storage is not absolute"))
    }

    /// Removes it with all that is in it, and the batch's directory where that is empty then.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_dir_all(&self.path))?;
        match fs::remove_dir(&self.batch) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => absent_is_fine(other),
        }
    }
}
