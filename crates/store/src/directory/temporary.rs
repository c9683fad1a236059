//! Files on their way: what is written before it appears.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// A new file for content or its record. Who may read it once it has appeared is for the user's mask.
pub(super) fn temporary_file(directory: &Path) -> io::Result<NamedTempFile> {
    // Opened here, since the crate's own errors do not have the system's number.
    let open = |path: &Path| fs::OpenOptions::new().read(true).write(true).create_new(true).open(path);
    tempfile::Builder::new().make_in(directory, open)
}
