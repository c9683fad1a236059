//! JSON that is the same to a program and harmless on a terminal.

use serde::Serialize;

use crate::views::show::visible_json;

/// A value as JSON in lines, with escapes for every character that does not show.
pub(super) fn text<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut text = visible_json(serde_json::to_string_pretty(value)?);
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_does_not_show_and_nothing_is_lost() {
        let value =
            ["\u{1b}[31m\u{7f}\u{9b}2J", "\u{202e}\u{2066}\u{200b}\u{e0041}", "Zürich 待 \"'\\ \n\t", "e\u{301}"];
        let text = text(&value).unwrap();
        let hidden = text.chars().filter(|character| *character != '\n' && character.is_control()).count();
        assert_eq!(hidden, 0, "{text}");
        assert!(text.is_ascii() || !text.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{e0041}']));
        assert!(text.contains("Zürich 待") && text.contains("\\u001b[31m\\u007f\\u009b2J"), "{text}");
        assert_eq!(serde_json::from_str::<[String; 4]>(&text).unwrap(), value);
    }
}
