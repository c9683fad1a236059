//! A new version of an object, while it is being put together.

use std::fmt;
use std::io;

use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Algorithm;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::{Inventory, MOST_FILES, MOST_VERSIONS, User, VersionText};
use crate::ocfl::object::Object;
use crate::ocfl::path::{self, PathError};
use crate::sorted::Map;
use crate::store::EntityTag;

/// How many items of earlier attempts of a job are looked at.
const MOST_LEFT: usize = 2 * MOST_FILES;

mod content;

pub use content::NewFile;
use content::{ContentPut, Done, Put};

/// What a new version says of itself.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// The job that makes it. One job makes at most one version of an object, however often it is begun.
    pub job: Uuid,
    /// The name of the folder of its content within the version's: the job's UUID, or another one where what lies in
    /// that was given up and may be removed at any time.
    pub content: Uuid,
    /// Who makes it.
    pub user: User,
    /// Why; stands behind the job's UUID in the version's message. May be empty.
    pub message: String,
    /// When it is made.
    pub created: Timestamp,
    /// Which files it begins with.
    pub start: Start,
}

/// Which files a new version begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Those of the newest version.
    Head,
    /// None.
    Empty,
}

/// The answer to [`Object::begin`].
#[derive(Debug)]
pub enum Begun {
    /// The job made this version already; there is nothing more to do.
    Done(u32),
    /// A version to be put together.
    Writer(Box<Writer>),
}

/// A new version that is being put together: readers see nothing of it before [`Writer::commit`].
///
/// Content that an earlier version has, with the same SHA-512, is not stored again. A writer may be dropped at any
/// time: what it stored is used by the next one of the same job, or removed by the writer that makes this version.
///
/// What it knows of files is in memory only as long as that is little, else in temporary files. Each change looks up
/// its path there, and blocks its thread for as long as the file system does; it fails with [`OcflError::Temporary`].
pub struct Writer {
    pub(super) object: Object,
    pub(super) job: Uuid,
    /// The name of the folder of its content.
    pub(super) content: Uuid,
    pub(super) text: VersionText,
    pub(super) version: u32,
    /// That of the version before.
    pub(super) base: Inventory,
    /// The entity tag of the root inventory; `None` for a new object.
    pub(super) before: Option<EntityTag>,
    /// The SHA-512s of the files, by logical path.
    pub(super) state: Map,
    /// Names in the folder of its content: those of an earlier attempt or of content that is being stored, without a
    /// value, and those of what was stored, with it as [`Stored`](crate::ocfl::inventory::Stored).
    pub(super) names: Map,
    /// The SHA-512s of what was stored.
    new_digests: Map,
    /// Whether an earlier attempt of the job left something in the folder of its content.
    is_continued: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Writer({:?} v{} of job {})", self.object, self.version, self.job)
    }
}

impl Object {
    /// Begins a new version, or the first one. What an earlier writer decided and did not finish is finished before.
    ///
    /// # Errors
    /// [`OcflError::Damaged`] when the object must be repaired first, or content of the version that the job made is
    /// gone; those of the store.
    pub async fn begin(&self, new: NewVersion) -> Result<Begun, OcflError> {
        let NewVersion { job, content, user, message, created, start } = new;
        let (current, _) = self.settle().await?;
        let (base, before) = match current {
            Some(current) => (current.inventory, Some(current.etag)),
            None => (Inventory::empty(self.id(), &self.directory), None),
        };
        if let Some(version) = base.version_of(job) {
            self.remove_unnamed(version, content, &base).await?;
            self.check_named(version, &base).await?;
            return Ok(Begun::Done(version));
        }
        let version = base.head() + 1;
        if version as usize > MOST_VERSIONS {
            return Err(self.too_many(format!("version {version}"), MOST_VERSIONS));
        }
        let (base, state) = match start {
            Start::Empty => (base, Map::new(&self.directory)),
            Start::Head => self.copy_state(base).await?,
        };
        let mut names = Map::new(&self.directory);
        let folder = path::content_folder(version, content);
        let mut left = std::pin::pin!(self.list(&folder));
        while let Some((file, _)) = left.try_next().await? {
            names.insert(&file.as_bytes()[folder.len()..], b"").map_err(|error| self.temporary(error))?;
            if names.len() > MOST_LEFT {
                let what = format!("{} items of earlier attempts in {folder}", names.len());
                return Err(self.too_many(what, MOST_LEFT));
            }
        }
        let message = if message.is_empty() { format!("job {job}") } else { format!("job {job}: {message}") };
        let text = VersionText { created: created.to_string(), message, user };
        let (object, new_digests) = (self.clone(), Map::new(&self.directory));
        let is_continued = names.len() > 0;
        let writer =
            Writer { object, job, content, text, version, base, before, state, names, new_digests, is_continued };
        Ok(Begun::Writer(Box::new(writer)))
    }

    /// The files of the newest version, to be changed.
    async fn copy_state(&self, base: Inventory) -> Result<(Inventory, Map), OcflError> {
        let mut state = Map::new(&self.directory);
        let copy = move || {
            for file in base.state_of(base.head()) {
                let (path, digest) = file?;
                state.insert(path.as_bytes(), &digest)?;
            }
            Ok((base, state))
        };
        self.blocking(copy).await
    }

    fn too_many(&self, what: String, most: usize) -> OcflError {
        OcflError::TooMany { id: self.id().to_owned(), what, most }
    }
}

impl Writer {
    /// The version that it makes, from 1.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether an earlier attempt of the job left content, which this one goes on with.
    #[must_use]
    pub fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// The logical paths that the version has so far, sorted by bytes. An error ends them.
    pub fn paths(&self) -> impl Iterator<Item = Result<String, OcflError>> {
        let path = |file: io::Result<(Vec<u8>, Vec<u8>)>| Ok(path::text(&file?.0)?.to_owned());
        self.state.iter().map(move |file| path(file).map_err(|error| self.object.temporary(error)))
    }

    /// Adds a file under a path that the version does not have.
    ///
    /// # Errors
    /// [`OcflError::Path`] when it cannot have it; the store's, of which a wrong digest is one.
    pub async fn add(&mut self, path: &str, file: NewFile) -> Result<(), OcflError> {
        self.check_new(path)?;
        self.put(path, file).await
    }

    /// Replaces the content of a file.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the version does not have it; the store's.
    pub async fn replace(&mut self, path: &str, file: NewFile) -> Result<(), OcflError> {
        self.present(path)?;
        self.put(path, file).await
    }

    async fn put(&mut self, path: &str, file: NewFile) -> Result<(), OcflError> {
        let put = self.plan(path, file).map_err(|error| self.object.temporary(error))?;
        let done = put.run().await?;
        self.record(path, &done).map_err(|error| self.object.temporary(error))
    }

    /// Adds many files, or replaces them where the version has them, some at a time; each path comes once. After an
    /// error, those whose content was being stored are not in the version, nor replaced.
    ///
    /// # Errors
    /// The first one of those of [`Self::add`].
    pub async fn put_all(
        &mut self,
        files: impl Stream<Item = (String, NewFile)>,
        at_a_time: usize,
    ) -> Result<(), OcflError> {
        let mut files = std::pin::pin!(files.fuse());
        let mut running = FuturesUnordered::new();
        let object = self.object.clone();
        let failed = |error| object.temporary(error);
        let mut paths = Map::new(&object.directory);
        loop {
            tokio::select! {
                Some((path, file)) = files.next(), if running.len() < at_a_time.max(1) => {
                    if !self.state.has(path.as_bytes()).map_err(failed)? {
                        self.check_new(&path)?;
                    }
                    self.check_among(&path, &paths)?;
                    paths.insert(path.as_bytes(), b"").map_err(failed)?;
                    let put = self.plan(&path, file).map_err(failed)?;
                    running.push(async move { (path, put.run().await) });
                }
                Some((path, put)) = running.next(), if !running.is_empty() => {
                    self.record(&path, &put?).map_err(failed)?;
                }
                else => return Ok(()),
            }
        }
    }

    /// Leaves a file out of the version.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the version does not have it.
    pub fn remove(&mut self, path: &str) -> Result<(), OcflError> {
        self.present(path)?;
        self.state.remove(path.as_bytes()).map_err(|error| self.object.temporary(error))
    }

    /// Moves a file to a path that the version does not have.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the version does not have the file, or cannot have the new path.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), OcflError> {
        let digest = self.present(from)?;
        self.remove(from)?;
        let checked = self.check_new(to);
        self.set(if checked.is_ok() { to } else { from }, &digest)?;
        checked
    }

    /// Takes a file over from the newest version, unchanged: for a version that begins empty.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the newest version does not have it, or this one cannot.
    pub fn carry(&mut self, path: &str) -> Result<(), OcflError> {
        let digest = self.base.file_digest(self.base.head(), path).map_err(|error| self.object.temporary(error))?;
        let digest = digest.ok_or_else(|| self.missing(path))?;
        self.check_new(path)?;
        self.set(path, &digest)
    }

    fn set(&mut self, path: &str, digest: &[u8]) -> Result<(), OcflError> {
        self.state.insert(path.as_bytes(), digest).map_err(|error| self.object.temporary(error))
    }

    /// The SHA-512 of a file that the version must have.
    fn present(&self, path: &str) -> Result<Vec<u8>, OcflError> {
        let digest = self.state.get(path.as_bytes()).map_err(|error| self.object.temporary(error))?;
        digest.ok_or_else(|| self.missing(path))
    }

    fn check_new(&self, path: &str) -> Result<(), OcflError> {
        if self.state.len() >= MOST_FILES {
            return Err(self.object.too_many(format!("{} files", self.state.len() + 1), MOST_FILES));
        }
        path::check(path).map_err(|error| self.path_error(error))?;
        self.check_among(path, &self.state)
    }

    fn check_among(&self, path: &str, others: &Map) -> Result<(), OcflError> {
        let refusal = path::refusal(path, others).map_err(|error| self.object.temporary(error))?;
        refusal.map_or(Ok(()), |refusal| Err(self.path_error(refusal)))
    }

    fn missing(&self, path: &str) -> OcflError {
        self.path_error(PathError::Missing(path::shown(path)))
    }

    fn path_error(&self, source: PathError) -> OcflError {
        OcflError::Path { id: self.object.id().to_owned(), source }
    }

    /// Decides where the content of a file goes.
    fn plan(&mut self, logical: &str, file: NewFile) -> io::Result<Put> {
        if let Some(digest) = file.expected.get(Algorithm::Sha512)
            && (self.new_digests.has(digest.as_bytes())? || self.base.has_content(digest)?)
        {
            return Ok(Put::Known(digest.clone()));
        }
        let folder = path::content_folder(self.version, self.content);
        let mut name = path::content_name(logical, self.object.root().len() + 1 + folder.len());
        if path::conflict(&name, &self.names)?.is_some() {
            // A file or folder of that name was stored, and is in the version no more.
            name = path::digest_name(logical);
        }
        let is_taken = self.names.has(name.as_bytes())?;
        if !is_taken {
            self.names.insert(name.as_bytes(), b"")?;
        }
        Ok(Put::Content(Box::new(ContentPut { object: self.object.clone(), folder, name, is_taken, file })))
    }

    fn record(&mut self, path: &str, done: &Done) -> io::Result<()> {
        let digest = match done {
            Done::Known(digest) => digest.as_bytes(),
            Done::Stored { name, stored } => {
                self.names.insert(name.as_bytes(), &stored.to_bytes())?;
                self.new_digests.insert(&stored.sha512, b"")?;
                &stored.sha512
            }
        };
        self.state.insert(path.as_bytes(), digest)
    }
}
