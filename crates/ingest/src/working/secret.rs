//! A URL whose query may be a signature: all of it is in a dot-file of a batch's or a job's directory, for the owner of
//! the working storage only. Znodes, pages and logs have it without its query.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{absent_is_fine, sync_folder_of};
use crate::file_root::PRIVATE;
use crate::step::StepError;
use crate::url::ContentUrl;

/// What the name of the dot-file begins with.
const NAME: &str = ".url-";

/// The namespace of the UUIDs that the names end with.
const URLS: Uuid = Uuid::from_u128(0x2c85_e0b1_4d7a_4f39_a6c2_90f3_1b58_de74);

/// The dot-file of a URL. It is one for each URL without its query: of two deposits with one key, the one that is
/// refused leaves the file of the other as it is.
fn path(directory: &Path, url: &ContentUrl) -> PathBuf {
    directory.join(format!("{NAME}{}", Uuid::new_v5(&URLS, url.without_query().as_bytes())))
}

/// Keeps a URL in a directory, which is made where it is missing, in place of the same one with another query. It is
/// durable then, and a process that reads it meanwhile finds all of one of them.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn keep_url(directory: &Path, url: &ContentUrl) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let new = directory.join(format!("{NAME}new-{}", Uuid::new_v4()));
    let kept = write_new(&new, url).and_then(|()| fs::rename(&new, path(directory, url)));
    if kept.is_err() {
        // It may hold a part of the secret; why it could not be written is the error that counts.
        let _ = absent_is_fine(fs::remove_file(&new));
    }
    kept?;
    sync_folder_of(&new)?;
    sync_folder_of(directory)
}

fn write_new(path: &Path, url: &ContentUrl) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    file.write_all(url.reveal().as_str().as_bytes())?;
    file.sync_all()
}

/// All of a URL that a submission or a job names: with the query that is kept in its directory, where one is kept of
/// it.
///
/// # Errors
/// [`StepError::Permanent`] where its query is not kept, and `?..` stands for it; others when it cannot be read.
pub(crate) fn whole_url(directory: &Path, url: &ContentUrl) -> Result<ContentUrl, StepError> {
    if !url.has_query() {
        return Ok(url.clone());
    }
    let kept = match fs::read_to_string(path(directory, url)) {
        Ok(text) => text.parse::<ContentUrl>().ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StepError::working("read the query of a URL", &error)),
    };
    match kept.filter(|kept| kept.without_query() == url.without_query()) {
        Some(kept) => Ok(kept),
        None if url.is_concealed() => {
            let why = format_args!("the query of its URL {url} is no longer kept: deposit it again");
            Err(StepError::permanent(why))
        }
        // Another program has written all of it.
        None => Ok(url.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_kept_url_is_replaced_as_a_whole_and_by_the_same_one_only() {
        let url = |text: &str| text.parse::<ContentUrl>().unwrap();
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("bid-1");
        let (first, again, other) = (url("https://a/b?sig=1"), url("https://a/b?sig=2"), url("https://a/c?sig=3"));
        let known = url(&first.without_query());
        keep_url(&directory, &first).unwrap();
        let mut reads = File::open(path(&directory, &first)).unwrap();
        keep_url(&directory, &again).unwrap();
        keep_url(&directory, &other).unwrap();
        let mut text = String::new();
        reads.read_to_string(&mut text).unwrap();
        assert_eq!(text, first.reveal().as_str());
        assert_eq!(whole_url(&directory, &known).unwrap(), again);
        assert_eq!(whole_url(&directory, &url(&other.without_query())).unwrap(), other);
        for entry in fs::read_dir(&directory).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, PRIVATE);
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }

    #[test]
    fn a_query_that_is_not_kept_is_said_so_and_one_that_is_no_secret_is_taken_as_it_is() {
        let url = |text: &str| text.parse::<ContentUrl>().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let concealed = url("https://a/b?..");
        let sentence = "the query of its URL https://a/b?.. is no longer kept: deposit it again";
        let is_gone =
            || matches!(whole_url(directory.path(), &concealed), Err(StepError::Permanent(why)) if why == sentence);
        assert!(is_gone());
        for text in ["https://a/b", "https://a/b?page=1"] {
            assert_eq!(whole_url(directory.path(), &url(text)).unwrap(), url(text));
        }
        // Whatever is in the file: the content of another URL is never fetched.
        fs::write(path(directory.path(), &concealed), "https://a/c?sig=1").unwrap();
        assert!(is_gone());
        fs::remove_file(path(directory.path(), &concealed)).unwrap();
        fs::create_dir(path(directory.path(), &concealed)).unwrap();
        assert!(matches!(whole_url(directory.path(), &concealed), Err(StepError::Temporary { .. })));
    }
}
