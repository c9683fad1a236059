//! The files of a job, as downloading found them: a dot-file in the job's directory, a line of JSON for each.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;

use queuekeeper_store::Digests;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::working::{self, FILES, JobDirectory};

/// A file in `producer/`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct JobFile {
    /// Its name, relative to `producer/`.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digests.
    pub digests: Digests,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// Writes the list, which appears when it is complete.
pub struct FilesWriter {
    to: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    files: u64,
    bytes: u64,
}

impl FilesWriter {
    /// Begins the list of a job, under a name of its own: an attempt whose session was lost may still be writing one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(directory: &JobDirectory) -> io::Result<Self> {
        let (temporary, path) = (directory.helper(&format!("files.new-{}", Uuid::new_v4())), directory.helper(FILES));
        Ok(Self { to: BufWriter::new(File::create(&temporary)?), temporary, path, files: 0, bytes: 0 })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, file: &JobFile) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, file)?;
        (self.files, self.bytes) = (self.files + 1, self.bytes.saturating_add(file.size));
        self.to.write_all(b"\n")
    }

    /// Ends the list; the answer is how many files there are, and their bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> io::Result<(u64, u64)> {
        self.to.into_inner()?.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        working::sync_folder_of(&self.path)?;
        Ok((self.files, self.bytes))
    }
}

/// Reads the list, file by file; `None` where downloading has not finished in this directory.
///
/// # Errors
/// When it cannot be opened; each file where it cannot be read.
pub fn read(directory: &JobDirectory) -> io::Result<Option<impl Iterator<Item = io::Result<JobFile>> + Send + use<>>> {
    let file = match File::open(directory.helper(FILES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    Ok(Some(BufReader::new(file).lines().map(|line| Ok(serde_json::from_str(&line?)?))))
}
