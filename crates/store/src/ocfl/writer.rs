//! A new version of an object, while it is being put together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::{Algorithm, Digest};
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::{DigestId, Inventory, MOST_FILES, MOST_VERSIONS, Stored, User, VersionText};
use crate::ocfl::object::Object;
use crate::ocfl::path::{self, PathError};
use crate::ocfl::strings::StringId;
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
/// Content that an earlier version has, with the same SHA-512, is not stored again. A writer may be dropped at any time:
/// what it stored is used by the next one of the same job, or removed by the writer that makes this version.
pub struct Writer {
    pub(super) object: Object,
    pub(super) job: Uuid,
    pub(super) text: VersionText,
    pub(super) version: u32,
    /// That of the version before, with the digests and content paths of this one.
    pub(super) base: Inventory,
    /// The entity tag of the root inventory; `None` for a new object.
    pub(super) before: Option<EntityTag>,
    /// The digests of the files, by logical path.
    pub(super) state: BTreeMap<Box<str>, DigestId>,
    /// What was stored, by the number of its content path.
    pub(super) stored: HashMap<StringId, Stored>,
    /// The digests of what was stored.
    new_digests: HashSet<DigestId>,
    /// Names in the folder of the job's content: those of an earlier attempt, and ours.
    pub(super) names: BTreeSet<Box<str>>,
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
    /// [`OcflError::Damaged`] when the object must be repaired first; those of the store.
    pub async fn begin(&self, new: NewVersion) -> Result<Begun, OcflError> {
        let NewVersion { job, user, message, created, start } = new;
        let (current, _) = self.settle().await?;
        let (base, before) = match current {
            Some(current) => (current.inventory, Some(current.etag)),
            None => (Inventory::empty(self.id()), None),
        };
        if let Some(version) = base.version_of(job) {
            self.remove_unnamed(version, job, &base).await?;
            return Ok(Begun::Done(version));
        }
        let version = base.head() + 1;
        if version as usize > MOST_VERSIONS {
            return Err(self.too_many(format!("version {version}"), MOST_VERSIONS));
        }
        let mut state = BTreeMap::new();
        if start == Start::Head {
            state.extend(base.state_of(base.head()).map(|(path, digest)| (path.into(), digest)));
        }
        let mut names = BTreeSet::new();
        let folder = path::content_folder(version, job);
        let mut left = std::pin::pin!(self.list(&folder));
        while let Some((file, _)) = left.try_next().await? {
            names.insert(file[folder.len()..].into());
            if names.len() > MOST_LEFT {
                let what = format!("{} items of earlier attempts in {folder}", names.len());
                return Err(self.too_many(what, MOST_LEFT));
            }
        }
        let message = if message.is_empty() { format!("job {job}") } else { format!("job {job}: {message}") };
        let text = VersionText { created: created.to_string(), message, user };
        let object = self.clone();
        let (stored, new_digests) = (HashMap::new(), HashSet::new());
        let writer = Writer { object, job, text, version, base, before, state, stored, new_digests, names };
        Ok(Begun::Writer(Box::new(writer)))
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

    /// The logical paths that the version has so far, sorted by bytes.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.state.keys().map(AsRef::as_ref)
    }

    /// Adds a file under a path that the version does not have.
    ///
    /// # Errors
    /// [`OcflError::Path`] when it cannot have it; the store's, of which a wrong digest is one.
    pub async fn add(&mut self, path: &str, file: NewFile) -> Result<(), OcflError> {
        self.check_new(path)?;
        let stored = self.plan(path, file).run().await?;
        self.record(path, stored);
        Ok(())
    }

    /// Replaces the content of a file.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the version does not have it; the store's.
    pub async fn replace(&mut self, path: &str, file: NewFile) -> Result<(), OcflError> {
        self.present(path)?;
        let stored = self.plan(path, file).run().await?;
        self.record(path, stored);
        Ok(())
    }

    /// Adds many files, or replaces them where the version has them, some at a time; each path comes once. After an error,
    /// those whose content was being stored are not in the version, nor replaced.
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
        let mut paths = BTreeSet::new();
        loop {
            tokio::select! {
                Some((path, file)) = files.next(), if running.len() < at_a_time.max(1) => {
                    if !self.state.contains_key(path.as_str()) {
                        self.check_new(&path)?;
                    }
                    path::check_among(&path, &paths).map_err(|error| self.path_error(error))?;
                    paths.insert(path.as_str().into());
                    let put = self.plan(&path, file);
                    running.push(async move { (path, put.run().await) });
                }
                Some((path, put)) = running.next(), if !running.is_empty() => {
                    self.record(&path, put?);
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
        self.state.remove(path);
        Ok(())
    }

    /// Moves a file to a path that the version does not have.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the version does not have the file, or cannot have the new path.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), OcflError> {
        let digest = self.present(from)?;
        self.state.remove(from);
        if let Err(error) = self.check_new(to) {
            self.state.insert(from.into(), digest);
            return Err(error);
        }
        self.state.insert(to.into(), digest);
        Ok(())
    }

    /// Takes a file over from the newest version, unchanged: for a version that begins empty.
    ///
    /// # Errors
    /// [`OcflError::Path`] when the newest version does not have it, or this one cannot.
    pub fn carry(&mut self, path: &str) -> Result<(), OcflError> {
        let head = self.base.head();
        let missing = || self.path_error(PathError::Missing(path::shown(path)));
        let digest = self.base.file_digest(head, path).ok_or_else(missing)?;
        self.check_new(path)?;
        self.state.insert(path.into(), digest);
        Ok(())
    }

    fn present(&self, path: &str) -> Result<DigestId, OcflError> {
        let missing = || self.path_error(PathError::Missing(path::shown(path)));
        self.state.get(path).copied().ok_or_else(missing)
    }

    fn check_new(&self, path: &str) -> Result<(), OcflError> {
        if self.state.len() >= MOST_FILES {
            return Err(self.object.too_many(format!("{} files", self.state.len() + 1), MOST_FILES));
        }
        let checked = path::check(path).and_then(|()| path::check_among(path, &self.state));
        checked.map_err(|error| self.path_error(error))
    }

    fn path_error(&self, source: PathError) -> OcflError {
        OcflError::Path { id: self.object.id().to_owned(), source }
    }

    /// Decides where the content of a file goes.
    fn plan(&mut self, logical: &str, file: NewFile) -> Put {
        if let Some(digest) = file.expected.get(Algorithm::Sha512)
            && self.has_content(digest)
        {
            return Put::Known(digest.clone());
        }
        let folder = path::content_folder(self.version, self.job);
        let mut name = path::content_name(logical, self.object.root().len() + 1 + folder.len());
        if path::conflict(&name, &self.names).is_some() {
            // A file or folder of that name was stored, and is in the version no more.
            name = path::digest_name(logical);
        }
        let is_taken = !self.names.insert(name.as_str().into());
        Put::Content(Box::new(ContentPut { object: self.object.clone(), folder, name, is_taken, file }))
    }

    fn has_content(&self, digest: &Digest) -> bool {
        let is_new = self.base.digest_id(digest).is_some_and(|id| self.new_digests.contains(&id));
        is_new || self.base.has_content(digest)
    }

    fn record(&mut self, path: &str, stored: Done) {
        let digest = match stored {
            Done::Known(digest) => self.base.intern_digest(&digest),
            Done::Stored { content_path, digest, sha256, size } => {
                let name = &content_path[path::content_folder(self.version, self.job).len()..];
                self.names.insert(name.into());
                let content = self.base.stored(&content_path, &digest, size, sha256.as_ref());
                self.new_digests.insert(content.digest());
                let digest = content.digest();
                self.stored.insert(content.path(), content);
                digest
            }
        };
        self.state.insert(path.into(), digest);
    }
}
