//! The directories of batches and jobs in the working storage.

use std::fs;
use std::io;
use std::path::Path;

use uuid::Uuid;

/// The names of the directories of batches, sorted, without those that have only what comes before a batch: uploads
/// under way, and URLs that are kept, whose names begin with a dot.
pub(super) fn batches(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, path) in directories(root, "bid-")? {
        let mut entries = fs::read_dir(path)?;
        let is_plain = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        };
        if entries.try_fold(false, |found, entry| Ok::<_, io::Error>(found || is_plain(entry)?))? {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The directories below a path whose names are a prefix and a UUID, with their paths.
pub(super) fn directories(path: &Path, prefix: &str) -> io::Result<Vec<(String, std::path::PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let is_id = |name: &str| name.strip_prefix(prefix).is_some_and(|uuid| uuid.parse::<Uuid>().is_ok());
        if let Some(name) = entry.file_name().to_str().filter(|name| is_id(name))
            && entry.file_type()?.is_dir()
        {
            found.push((name.to_owned(), entry.path()));
        }
    }
    Ok(found)
}
