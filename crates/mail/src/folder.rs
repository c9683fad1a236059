//! Mails as files, where there is no mail server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

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
    let (path, temporary) = (directory.join(format!("{name}.eml")), directory.join(format!(".{name}.eml.part")));
    if !path.try_exists()? {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&temporary)?;
        // Another attempt may still be writing it, or have moved it away by now.
        file.lock()?;
        if path.try_exists()? {
            remove(&temporary)?;
        } else {
            // What an attempt left whose process ended is replaced.
            file.set_len(0)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
        }
    }
    File::open(directory)?.sync_all()
}

/// Removes a file that may be gone.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
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
        fs::write(folder.join(".report-1-0.uuid.eml.part"), "first, which").unwrap();
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
