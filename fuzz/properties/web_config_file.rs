//! `--web.config.file`.

use queuekeeper::config::WebFile;

use super::{board, shown};

/// Reads the bytes as such a file.
///
/// # Panics
/// When an error is no line, or what is accepted cannot be used.
pub fn check(data: &[u8]) {
    let file = match WebFile::read(&board::file("web.yml", data)) {
        Ok(file) => file,
        Err(error) => {
            shown::error(&error, 4_000);
            let text = error.to_string();
            // Keys are named in errors, values never.
            let is_shown = text.contains("$2y$10$QO") && !text.contains("the key");
            assert!(!is_shown, "an error shows a hash: {text}");
            return;
        }
    };
    assert!(matches!(file.read_again(), Ok(None)), "nothing has changed");
    let printed = format!("{file:?}");
    assert!(!printed.contains("$2"), "a debug print shows no hash: {printed}");
    if let Some(value) = file.strict_transport_security() {
        assert!(value.to_str().is_ok_and(|text| !text.contains(['\r', '\n'])), "it is the value of a header");
    }
    assert!(file.users().hash("a:b").is_none(), "no user has a name that no browser can send");
}
