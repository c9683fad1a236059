//! `--zookeeper.auth-file`.

use queuekeeper_zookeeper::Auth;

use super::board;

/// Reads the bytes as such a file.
///
/// # Panics
/// When an error or a debug print shows the credentials, or something else is read than stands there.
pub fn check(data: &[u8]) {
    let file = board::file("auth", data);
    match Auth::read_file(&file) {
        Ok(all) => {
            assert!(!all.is_empty(), "a file without credentials is refused");
            let mut written = Vec::new();
            for auth in &all {
                assert!(!auth.credentials().is_empty(), "credentials are not empty");
                let is_there = |whole: &[u8], part: &[u8]| whole.windows(part.len()).any(|found| found == part);
                assert!(is_there(data, auth.credentials()), "credentials are taken as they stand");
                // One that is shorter may stand in the words around it.
                if auth.credentials().len() > 24 {
                    let shown = format!("{auth:?}").replace(auth.scheme(), "");
                    assert!(!is_there(shown.as_bytes(), auth.credentials()), "a secret is printed: {shown}");
                }
                written.extend_from_slice(format!("{}:", auth.scheme()).as_bytes());
                written.extend_from_slice(auth.credentials());
                written.extend_from_slice(b"\n");
            }
            // A line's end may be a part of the credentials when another follows it.
            if !data.contains(&b'\r') {
                let file = board::file("auth", &written);
                assert!(Auth::read_file(&file).is_ok_and(|again| again == all), "what was read is read again");
            }
        }
        Err(error) => board::file_error(&error, data),
    }
}
