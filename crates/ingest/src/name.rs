//! What the files of an object may be called.

/// The longest name, in bytes: what an OCFL object takes (4,096), less the folder `producer/`.
pub const MOST_BYTES: usize = 4087;

/// The longest part between two slashes, in bytes: what file systems take.
pub const MOST_PART_BYTES: usize = 255;

/// How many characters of a hostile text an error repeats.
const SHOWN: usize = 200;

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name is absolute; give it relative to the object")]
    Absolute,
    #[error("the name has a part '..', which leads out of the object")]
    Parent,
    #[error("the name has an empty part or a part '.'; write each file's name in one way only")]
    Ambiguous,
    #[error("the name of a deposited file has at most 240 bytes, no slash, and no dot at its beginning")]
    NotPlain,
    #[error("the name has a control character")]
    Control,
    #[error("the name is longer than {MOST_BYTES} bytes")]
    TooLong,
    #[error("a part of the name is longer than {MOST_PART_BYTES} bytes, which file systems do not support")]
    PartTooLong,
    #[error("the name is not UTF-8")]
    NoText,
}

/// Checks a file's name: parts joined by single slashes, relative, none of them `.` or `..`, no control characters.
///
/// # Errors
/// The first rule that the name breaks.
pub fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.contains(char::is_control) {
        return Err(NameError::Control);
    }
    if name.starts_with('/') {
        return Err(NameError::Absolute);
    }
    if name.len() > MOST_BYTES {
        return Err(NameError::TooLong);
    }
    for part in name.split('/') {
        match part {
            ".." => return Err(NameError::Parent),
            "" | "." => return Err(NameError::Ambiguous),
            _ if part.len() > MOST_PART_BYTES => return Err(NameError::PartTooLong),
            _ => {}
        }
    }
    Ok(())
}

/// A hostile text as an error repeats it: one line, visible, cut where it is long.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, char) in text.chars().enumerate() {
        if at == SHOWN {
            shown.push('…');
            break;
        }
        match char {
            '"' | '\'' | '\\' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    shown
}

/// Whether a text is visible as it is: [`shown`] would change nothing of it but its length.
#[must_use]
pub fn is_visible(text: &str) -> bool {
    text.chars().all(|char| matches!(char, '"' | '\'' | '\\') || char.escape_debug().count() == 1)
}

/// The folders of a name, the deepest first: `a/b` and `a` for `a/b/c`.
pub fn folders(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('/').map(|(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_object_and_has_one_way_to_be_written() {
        let longest = ["a".repeat(MOST_PART_BYTES).as_str(); 15].join("/");
        for name in ["a", "a b/c", "...", "..a", "a..", ".hidden", "é/ü", "a\\..\\b", "%2e%2e", &longest] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
        let long_part = "a".repeat(MOST_PART_BYTES + 1);
        let long = format!("{longest}/{}", "a/".repeat(200));
        for (name, error) in [
            ("", NameError::Empty),
            ("/a", NameError::Absolute),
            ("//a", NameError::Absolute),
            ("..", NameError::Parent),
            ("../a", NameError::Parent),
            ("a/../b", NameError::Parent),
            ("a/..", NameError::Parent),
            ("a//b", NameError::Ambiguous),
            ("a/", NameError::Ambiguous),
            ("./a", NameError::Ambiguous),
            ("a\nb", NameError::Control),
            ("a\0", NameError::Control),
            ("a\u{85}", NameError::Control),
            (&long_part, NameError::PartTooLong),
            (&long, NameError::TooLong),
        ] {
            assert_eq!(check(name), Err(error), "{name:?}");
        }
        assert_eq!(folders("a/b/c").collect::<Vec<_>>(), ["a/b", "a"]);
        assert_eq!(shown("a\nb\u{202e}"), "a\\nb\\u{202e}");
        assert!(is_visible("é \"b\\'") && !is_visible("a\nb") && !is_visible("\u{202e}"));
        assert_eq!(shown(&"é".repeat(201)).chars().count(), SHOWN + 1);
    }
}
