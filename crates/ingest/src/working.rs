//! The working storage: where the files of batches and jobs lie while they are worked on.
//!
//! `WORKING/BATCH-UUID/JOB-UUID/{producer,system}`, as the Java daemons have it. Helper files of ours begin with a dot,
//! since these move every other file into `producer/`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use queuekeeper_queue::state::JobState;
use uuid::Uuid;

use crate::spec::JobSpec;

mod job;
mod limit;
pub(crate) mod secret;
mod served;

pub use job::JobDirectory;
pub(crate) use job::{FILES, PACKAGE, PRODUCER};
pub use limit::SizeLimit;

/// The file at the top of a volume that holds its UUID.
const VOLUME_FILE: &str = ".queuekeeper-volume";

/// The file at the top of a volume that holds the UUID of the catalogue of the tree that it belongs to.
pub(crate) const TREE_FILE: &str = ".queuekeeper-tree";

/// How many bytes a block of `st_blocks` has, whatever the file system's own are.
pub(crate) const STAT_BLOCK: u64 = 512;

/// The directory of the working storage.
#[derive(Clone, Debug)]
pub struct WorkingStorage {
    root: PathBuf,
    volume: Uuid,
    /// The part of its file system that it may use; `None` for all of it.
    limit: Option<SizeLimit>,
}

impl WorkingStorage {
    /// Opens it, and gives the volume a UUID where it has none.
    ///
    /// # Errors
    /// When it cannot be read or written, or the file that should hold the UUID holds something else.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let file = root.join(VOLUME_FILE);
        write_once(&file, Uuid::new_v4().to_string().as_bytes())?;
        let tree = root.join(TREE_FILE);
        if tree.try_exists()? {
            // It is not written again, so no other attempt does.
            remove_attempts(&tree)?;
        }
        let text = fs::read_to_string(&file)?;
        let wrong = || io::Error::other(format!("{} does not contain the UUID of a volume", file.display()));
        Ok(Self { volume: text.trim().parse().map_err(|_| wrong())?, root, limit: None })
    }

    /// The same one, which uses so much of its file system at most.
    #[must_use]
    pub fn limited(self, limit: SizeLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The volume's UUID.
    #[must_use]
    pub fn volume(&self) -> Uuid {
        self.volume
    }

    /// Its path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The catalogue of the tree that the volume belongs to; `None` where it belongs to none yet.
    ///
    /// # Errors
    /// When it cannot be read, or the file holds something else.
    pub fn tree(&self) -> io::Result<Option<Uuid>> {
        let path = self.root.join(TREE_FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let wrong = |_| io::Error::other(format!("{} does not contain the UUID of a catalogue", path.display()));
        text.trim().parse().map(Some).map_err(wrong)
    }

    /// Gives the volume to a tree, unless it belongs to one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn give_to(&self, catalogue: Uuid) -> io::Result<()> {
        let path = self.root.join(TREE_FILE);
        write_once(&path, catalogue.to_string().as_bytes())?;
        sync_folder_of(&path)
    }

    /// Gives the volume to another tree, if it belongs to the one whose catalogue is lost.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn pass_on(&self, lost: Uuid, catalogue: Uuid) -> io::Result<()> {
        if self.tree()? == Some(lost) {
            fs::remove_file(self.root.join(TREE_FILE))?;
            self.give_to(catalogue)?;
        }
        Ok(())
    }

    /// The size and the free bytes (`f_bfree`) of its file system, or of the part that it may use.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn space(&self) -> io::Result<(u64, u64)> {
        if let Some(limit) = &self.limit {
            return limit.space(&self.root);
        }
        space_of(&self.root)
    }

    /// The name of the file at the top by which the jobs of a state are made to fail, where it is there: those who test
    /// Java's daemons create it.
    ///
    /// # Errors
    /// When the volume cannot be read.
    pub(crate) fn fail_file(&self, state: JobState) -> io::Result<Option<&'static str>> {
        let Some(name) = fail_file(state) else { return Ok(None) };
        Ok(self.root.join(name).try_exists()?.then_some(name))
    }

    /// The directory of a batch, by its checked id.
    #[must_use]
    pub fn batch(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// Removes the directory of a batch with all that is in it, by its checked id.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_batch(&self, id: &str) -> io::Result<()> {
        check_name(id)?;
        absent_is_fine(fs::remove_dir_all(self.batch(id)))
    }

    /// Removes the directory of a job with all that is in it, by the checked ids of batch and job.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn remove_job(&self, batch: &str, job: &str) -> io::Result<()> {
        check_name(batch)?;
        check_name(job)?;
        let above = self.batch(batch);
        let path = above.join(job);
        JobDirectory { batch: above, path }.remove()
    }

    /// The directory of a job.
    #[must_use]
    pub fn job(&self, spec: &JobSpec) -> JobDirectory {
        JobDirectory { batch: self.batch(&spec.batch), path: self.batch(&spec.batch).join(&spec.job) }
    }
}

/// What makes the jobs of a state fail: the name that Java's daemon gives its step there, and `_FAIL`.
fn fail_file(state: JobState) -> Option<&'static str> {
    match state {
        JobState::Pending => Some("Initialize_FAIL"),
        JobState::Estimating => Some("Estimate_FAIL"),
        JobState::Provisioning => Some("Provision_FAIL"),
        JobState::Downloading => Some("Download_FAIL"),
        JobState::Processing => Some("Process_FAIL"),
        JobState::Storing => Some("Store_FAIL"),
        JobState::Recording => Some("Record_FAIL"),
        JobState::Notify => Some("Notify_FAIL"),
        JobState::Held | JobState::Failed | JobState::Completed | JobState::Deleted => None,
    }
}

/// Refuses what is not the id of a batch or job: beneath `..` and an empty name lies what is not theirs.
fn check_name(name: &str) -> io::Result<()> {
    let is_id = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not the id of a batch or job"));
    if is_id { Ok(()) } else { Err(wrong()) }
}

pub(crate) fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The size and the free bytes (`f_bfree`) of the file system that a directory lies on.
pub(crate) fn space_of(directory: &Path) -> io::Result<(u64, u64)> {
    let facts = rustix::fs::statvfs(directory)?;
    Ok((facts.f_blocks.saturating_mul(facts.f_frsize), facts.f_bfree.saturating_mul(facts.f_frsize)))
}

/// Allocates so many bytes of the volume to a file, whose length stays. The answer is whether the file system can do
/// that; else none of them is used before it is written.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(true);
    }
    let allocated =
        rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, bytes).map_err(io::Error::from);
    match allocated {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        allocated => allocated.map(|()| true),
    }
}

/// Writes a file that is not there. Of two processes that do so at once one creates it: a hard link appears with its
/// content.
fn write_once(path: &Path, content: &[u8]) -> io::Result<()> {
    if !path.try_exists()? {
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", Uuid::now_v7()));
        write_synced(Path::new(&new), content)?;
        match fs::hard_link(&new, path) {
            // Another process was faster, and may have removed ours with what it found.
            Err(_) if path.try_exists()? => {}
            linked => linked?,
        }
    }
    remove_attempts(path)
}

/// Removes what those left that ended while they wrote a file.
fn remove_attempts(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name();
        let attempt = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.'));
        if attempt.is_some_and(|attempt| attempt.parse::<Uuid>().is_ok()) {
            absent_is_fine(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

pub(crate) fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes the name of a file durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_keeps_its_uuid_and_refuses_another_file_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let first = WorkingStorage::open(directory.path()).unwrap();
        let ended = directory.path().join(format!("{VOLUME_FILE}.{}", Uuid::now_v7()));
        fs::write(ended, "half of a UUI").unwrap();
        assert_eq!(WorkingStorage::open(directory.path()).unwrap().volume(), first.volume());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let (total, free) = first.space().unwrap();
        assert!(total >= free && free > 0);
        let [ours, other] = [1, 2].map(Uuid::from_u128);
        assert_eq!(first.tree().unwrap(), None);
        for catalogue in [ours, other] {
            first.give_to(catalogue).unwrap();
            assert_eq!(first.tree().unwrap(), Some(ours));
        }
        fs::write(directory.path().join(format!("{TREE_FILE}.{}", Uuid::now_v7())), "half of a UUI").unwrap();
        WorkingStorage::open(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        // Only names are checked here: nothing is given to a function that removes.
        for name in ["", ".", "..", "../a", "a/..", "a/b", "/", "a\0", ".hidden"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        check_name("bid-9c1a0b5e").unwrap();
        fs::write(directory.path().join(VOLUME_FILE), "odd").unwrap();
        assert!(WorkingStorage::open(directory.path()).unwrap_err().to_string().contains("UUID of a volume"));
        assert!(WorkingStorage::open(&directory.path().join("missing")).is_err());
    }
}
