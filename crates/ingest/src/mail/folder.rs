//! Mails as files, where there is no mail server.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::directory::sync_folder_of;
use crate::place::Place;

/// Writes a mail to a file of its name, which appears whole, and is durable when this returns. One that is there stays.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn deliver(directory: &Path, name: &str, content: &str) -> io::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not the name of a mail")));
    }
    fs::create_dir_all(directory)?;
    let path = directory.join(format!("{name}.eml"));
    if !path.try_exists()? {
        // What an attempt left whose process ended is replaced, and moved with the rest.
        let (place, file) = (Place::open(directory, directory)?, format!("{name}.eml"));
        let partial = place.begin(&file)?;
        partial.file().write_all(content.as_bytes())?;
        place.publish(&partial, &file)?;
    }
    sync_folder_of(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_one_file_however_often_it_is_delivered() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("reports");
        // An attempt ended before the mail was whole.
        fs::create_dir(&folder).unwrap();
        Place::open(&folder, &folder).unwrap().begin("report-1-0.uuid.eml").unwrap().file().write_all(b"fir").unwrap();
        deliver(&folder, "report-1-0.uuid", "first").unwrap();
        deliver(&folder, "report-1-0.uuid", "second").unwrap();
        assert_eq!(fs::read_to_string(folder.join("report-1-0.uuid.eml")).unwrap(), "first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        for name in ["../a", "a/b", ".hidden", "a\0b", "a b"] {
            assert_eq!(deliver(&folder, name, "x").unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(deliver(&directory.path().join("file"), "a", "x").is_err());
    }
}
