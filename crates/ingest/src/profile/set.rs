//! The profiles of a directory, read again when they change.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use queuekeeper_zookeeper::files;

use super::{Profile, ProfileError};

/// The largest file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The most files.
const MOST_FILES: usize = 10_000;

/// The profiles of a directory, by their names.
///
/// A file that is invalid takes no other one down. If it was valid before, that profile stays in force until the file
/// is valid again or gone.
#[derive(Clone, Debug)]
pub struct Profiles {
    directory: PathBuf,
    files: BTreeMap<PathBuf, ProfileFile>,
    by_name: BTreeMap<String, Arc<Profile>>,
    errors: Vec<ProfileError>,
}

#[derive(Clone, Debug)]
struct ProfileFile {
    /// Of its content and that of its credentials.
    fingerprint: u64,
    /// The last valid one.
    profile: Option<Arc<Profile>>,
    error: Option<ProfileError>,
}

/// The directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the profiles in {}: {source}", directory.display())]
pub struct SetError {
    directory: PathBuf,
    source: io::Error,
}

/// What reading again has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The names of profiles that are new.
    pub added: Vec<String>,
    /// Those whose content is another one.
    pub changed: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// What is invalid and was not, or was in another way.
    pub broken: Vec<ProfileError>,
    /// The files that were invalid and are not any more.
    pub repaired: Vec<PathBuf>,
}

impl Changes {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One line for a log.
impl fmt::Display for Changes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.repaired.iter().map(|path| path.display().to_string()).collect();
        let errors: Vec<_> = self.broken.iter().map(ToString::to_string).collect();
        let parts = [
            ("added", &self.added, ", "),
            ("changed", &self.changed, ", "),
            ("removed", &self.removed, ", "),
            ("valid again", &files, ", "),
            ("invalid", &errors, "; "),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|(_, names, _)| !names.is_empty()).collect();
        if parts.is_empty() {
            return to.write_str("nothing changed");
        }
        let parts: Vec<_> =
            parts.into_iter().map(|(what, names, join)| format!("{what}: {}", names.join(join))).collect();
        to.write_str(&parts.join("; "))
    }
}

impl Profiles {
    /// Reads all `*.yaml` and `*.yml` of a directory.
    ///
    /// # Errors
    /// When the directory cannot be read; what is wrong with files, [`Self::errors`] has.
    pub fn read(directory: impl Into<PathBuf>) -> Result<Self, SetError> {
        let mut profiles =
            Self { directory: directory.into(), files: BTreeMap::new(), by_name: BTreeMap::new(), errors: Vec::new() };
        profiles.read_again()?;
        Ok(profiles)
    }

    /// The profile with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.by_name.get(name)
    }

    /// All profiles, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.by_name.values()
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is wrong with files, in the order of their paths.
    #[must_use]
    pub fn errors(&self) -> &[ProfileError] {
        &self.errors
    }

    /// Reads the directory again, and reports what has changed.
    ///
    /// # Errors
    /// When the directory cannot be read; everything stays as it was then.
    pub fn read_again(&mut self) -> Result<Changes, SetError> {
        let found = list(&self.directory).map_err(|source| SetError { directory: self.directory.clone(), source })?;
        let mut files = BTreeMap::new();
        for path in found {
            let old = self.files.remove(&path);
            let (fingerprint, parsed) = load(&path);
            let file = match (parsed, old) {
                (_, Some(old)) if old.fingerprint == fingerprint => old,
                (Ok(profile), _) => ProfileFile { fingerprint, profile: Some(Arc::new(profile)), error: None },
                (Err(error), old) => {
                    ProfileFile { fingerprint, profile: old.and_then(|old| old.profile), error: Some(error) }
                }
            };
            files.insert(path, file);
        }
        self.files = files;
        Ok(self.replace())
    }

    /// Puts the files in force: the first one of a name, by path, counts.
    fn replace(&mut self) -> Changes {
        let mut changes = Changes::default();
        let (mut profiles, mut errors) = (BTreeMap::new(), Vec::new());
        let mut origins: BTreeMap<String, &Path> = BTreeMap::new();
        for (path, file) in &self.files {
            errors.extend(file.error.clone());
            let Some(profile) = &file.profile else { continue };
            let name = profile.name.to_string();
            if let Some(other) = origins.get(&name) {
                let why = format!("name: {name} is also the name of {}; this file is ignored", other.display());
                errors.push(ProfileError::new(path, 0, why));
                continue;
            }
            match self.by_name.get(&name) {
                None => changes.added.push(name.clone()),
                Some(old) if !Arc::ptr_eq(old, profile) => changes.changed.push(name.clone()),
                Some(_) => {}
            }
            origins.insert(name.clone(), path.as_path());
            profiles.insert(name, Arc::clone(profile));
        }
        changes.removed = self.by_name.keys().filter(|name| !profiles.contains_key(*name)).cloned().collect();
        changes.broken = errors.iter().filter(|error| !self.errors.contains(error)).cloned().collect();
        let is_broken = |path: &Path| errors.iter().any(|error| error.path == path);
        let old = self.errors.iter().map(|error| &error.path);
        changes.repaired = old.filter(|path| !is_broken(path) && self.files.contains_key(*path)).cloned().collect();
        changes.repaired.dedup();
        (self.by_name, self.errors) = (profiles, errors);
        changes
    }
}

/// The files of a directory that are profiles.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_yaml && !is_hidden {
            paths.push(path);
        }
        if paths.len() > MOST_FILES {
            return Err(io::Error::other(format!("there are more than {MOST_FILES} files")));
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file with those that it refers to, and the fingerprint of them all.
fn load(path: &Path) -> (u64, Result<Profile, ProfileError>) {
    let mut hasher = DefaultHasher::new();
    let mut read = |path: &Path| {
        let bytes = files::read(path, MOST_BYTES);
        let bytes = bytes.map_err(|error| ProfileError::new(path, 0, format!("cannot be read: {error}")));
        match &bytes {
            Ok(bytes) => bytes.hash(&mut hasher),
            Err(error) => error.why.hash(&mut hasher),
        }
        bytes
    };
    let parsed = read(path).and_then(|bytes| Profile::parse(path, &bytes, &mut read)).map_err(|error| ProfileError {
        // Whichever file it is of, this one is not valid with it.
        why: if error.path == path { error.why } else { format!("credentials_file: {error}") },
        line: error.line.filter(|_| error.path == path),
        path: path.to_owned(),
    });
    (hasher.finish(), parsed)
}
