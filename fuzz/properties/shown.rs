//! What must hold of every text that is shown to a user.

/// Whether a character is one that a log, a page or a terminal should never get from outside: control characters but
/// the end of a line, and the marks that turn the direction of what follows them.
#[must_use]
pub fn is_unfit(character: char) -> bool {
    let is_turning = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_turning || (character.is_control() && character != '\n')
}

/// Checks an error: one line, of bounded length, that shows nothing unfit.
///
/// # Panics
/// When it is otherwise.
pub fn error(error: impl std::fmt::Display, most: usize) {
    let text = error.to_string();
    assert!(!text.is_empty(), "an error says nothing");
    assert!(text.len() <= most, "an error has {} bytes: {}", text.len(), text.chars().take(300).collect::<String>());
    let unfit = text.chars().find(|found| is_unfit(*found) || *found == '\n');
    assert_eq!(unfit, None, "an error shows what is unfit for a line: {text:?}");
}

/// Checks that what was read is written as what reads as the same again.
///
/// # Panics
/// When it is not.
pub fn again<T>(read: &T)
where
    T: std::fmt::Display + std::str::FromStr + PartialEq + std::fmt::Debug,
    T::Err: std::fmt::Debug,
{
    let written = read.to_string();
    let again = written.parse::<T>();
    assert_eq!(again.as_ref().ok(), Some(read), "{written:?} is read as {again:?}");
}
