//! Profiles of Merritt's ingest service, as `profiles import` converts them.

use std::path::Path;

use queuekeeper_ingest::fuzzing::properties;
use queuekeeper_ingest::profile::{ImportSettings, Profiles, import};

use super::shown;

/// Reads the bytes as a file of properties, and converts it.
///
/// # Panics
/// When what was read is written as what reads otherwise, a line is not in the file, an error is not one line, or what
/// is converted is no profile.
pub fn check(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        read(text);
    }
    let stores = [("http://store:35121".to_owned(), "main".parse().expect("it is a name"))].into();
    let store = Some("other".parse().expect("it is a name"));
    let shoulder = Some("ark:/99999/fk4".parse().expect("it is a shoulder"));
    let lines = data.split(|byte| *byte == b'\n').count() as u64;
    match import(Path::new("p"), data, &ImportSettings { stores, store, shoulder }) {
        Ok(profile) => {
            for note in &profile.notes {
                shown::error(note, 1 << 20);
            }
            let directory = tempfile::tempdir().expect("a temporary directory can be made");
            std::fs::write(directory.path().join("p.yaml"), &profile.yaml).expect("a file can be written");
            let profiles = Profiles::read(directory.path()).expect("its directory is there");
            assert!(profiles.errors().is_empty(), "{:?} of {}", profiles.errors(), profile.yaml);
            assert!(profiles.get(profile.name.as_str()).is_some(), "it is found by its name: {}", profile.yaml);
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "what is refused is so for a reason");
            for error in errors {
                shown::error(&error, 4_096);
                assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error} is not in {lines} lines");
            }
        }
    }
}

fn read(text: &str) {
    let Ok(read) = properties(text) else { return };
    let lines: Vec<_> = read.iter().map(|(line, ..)| *line).collect();
    assert!(lines.is_sorted_by(|one, next| one < next), "the lines go up: {lines:?}");
    let written: Vec<_> =
        read.iter().map(|(_, key, value)| [escaped(key), "=".to_owned(), escaped(value)].concat()).collect();
    let again = properties(&written.join("\n")).expect("what is written is read");
    let plain = |read: Vec<(u64, String, String)>| -> Vec<_> {
        // Blanks at the end of a value go.
        read.into_iter().map(|(_, key, value)| (key, value.trim_end().to_owned())).collect()
    };
    assert_eq!(plain(again), plain(read), "what was read is the same again");
}

/// A text with nothing in it but letters, digits and escapes.
fn escaped(text: &str) -> String {
    let escape = |char: char| match char {
        _ if char.is_ascii_alphanumeric() => char.to_string(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\x0c' => "\\f".to_owned(),
        _ if char.is_ascii_control() => format!("\\u{:04x}", u32::from(char)),
        _ if char.is_ascii() => format!("\\{char}"),
        _ => char.to_string(),
    };
    text.chars().map(escape).collect()
}
