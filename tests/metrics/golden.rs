//! What is exposed, against a file that is read by people before it changes.

/// The text with the samples of each family in order: label sets are kept in none.
pub(super) fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = Vec::new();
    for family in text.split("# HELP ").skip(1) {
        let mut samples: Vec<_> = family.lines().map(str::to_owned).collect();
        samples[0].insert_str(0, "# HELP ");
        samples[2..].sort();
        lines.extend(samples);
    }
    lines.join("\n") + "\n"
}

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
