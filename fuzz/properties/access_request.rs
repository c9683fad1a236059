//! The tokens of access requests.

use jiff::Timestamp;
use queuekeeper_ingest::access::RequestedArchive;

use super::shown;

/// Reads the bytes as such a token.
///
/// # Panics
/// When what is read is not written as what reads as the same, an error is not one line, or a file's name is not plain.
pub fn check(data: &[u8]) {
    let wanted = match RequestedArchive::of(data) {
        Ok(wanted) => wanted,
        Err(error) => return shown::error(error, 4_096),
    };
    let now: Timestamp = "2026-03-02T18:17:05Z".parse().expect("this is an instant");
    let written = wanted.token(u64::MAX, u32::MAX, now);
    assert_eq!(RequestedArchive::of(&written).as_ref(), Ok(&wanted), "what is read is written as what it was");
    for name in [wanted.delivery(u32::MAX), wanted.folder(u32::MAX)] {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        assert!(name.bytes().all(is_plain) && !name.starts_with('.') && name.len() < 256, "{name:?} is a file's name");
    }
}
