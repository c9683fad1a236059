//! A URL whose query may be a signature: all of it is in a dot-file of a batch's or a job's directory, for the owner of the
//! working storage only. Znodes, pages and logs have it without its query.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::place::PRIVATE;
use crate::url::ContentUrl;

/// The dot-file.
const NAME: &str = ".url";

/// Keeps a URL in a directory, which is made where it is missing, in place of another one.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn keep_url(directory: &Path, url: &ContentUrl) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(PRIVATE).open(directory.join(NAME))?;
    file.write_all(url.reveal().as_str().as_bytes())?;
    file.sync_all()
}

/// The URL that is kept in a directory; `None` where there is none.
pub(crate) fn kept_url(directory: &Path) -> Option<ContentUrl> {
    fs::read_to_string(directory.join(NAME)).ok()?.trim().parse().ok()
}
