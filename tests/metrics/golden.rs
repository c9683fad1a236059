//! What is exposed, against a file that is read by people before it changes.

/// Compares line by line. `UPDATE_GOLDEN=1 cargo test` writes the file anew, to be read before it is committed.
pub(super) fn assert_golden(text: &str, path: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (line, (found, expected)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {path}", line + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "lines of {path}");
}
