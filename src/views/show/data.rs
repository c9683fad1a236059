//! A znode's data as a page shows it: text, whatever it holds, and no more of it than the page has room for.

use serde::de::IgnoredAny;

use super::counted;

/// Data ready to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The text, with escapes for invisible characters but line breaks.
    pub(crate) text: String,
    /// What was done to it; empty for nothing.
    pub(crate) note: String,
}

/// Shows data of which `kept` is what is known and `length` how many bytes there are, in at most `limiter` bytes of
/// HTML.
///
/// JSON gets lines and indents, and stays as it is otherwise: each number and each repeated key as it is written.
pub(crate) fn shown(kept: &[u8], length: u64, limiter: usize) -> Shown {
    let is_whole = kept.len() as u64 == length;
    let (text, is_utf8) = match std::str::from_utf8(kept) {
        Ok(text) => (text.into(), true),
        // Where it was cut, the last character may be cut with it.
        Err(error) if !is_whole && error.error_len().is_none() => {
            (String::from_utf8_lossy(&kept[..error.valid_up_to()]), true)
        }
        Err(_) => (String::from_utf8_lossy(kept), false),
    };
    let is_json =
        is_whole && text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(&text).is_ok();
    let text = if is_json { indented(&text, limiter) } else { text.into_owned() };
    let (text, is_cut) = excerpt(&text, limiter);
    let mut notes = Vec::new();
    if is_cut || !is_whole {
        notes.push(format!("truncated: {} in all", counted(length, "byte", "bytes")));
    }
    if !is_utf8 {
        notes.push("not UTF-8: invalid bytes are shown as \u{fffd}".to_owned());
    }
    Shown { text, note: notes.join("; ") }
}

/// The beginning of a text that takes at most `limiter` bytes of HTML, with escapes, and whether that is not all.
fn excerpt(text: &str, limiter: usize) -> (String, bool) {
    let (mut shown, mut used) = (String::new(), 0);
    for character in text.chars() {
        let before = shown.len();
        match character {
            '\n' | '"' | '\'' | '\\' => shown.push(character),
            '\t' => shown.push_str("    "),
            // Java on Windows ends lines so, and it says nothing.
            '\r' => {}
            other => shown.extend(other.escape_debug()),
        }
        // What has a meaning in HTML is written as a reference of five bytes.
        used += if matches!(character, '<' | '>' | '&' | '"' | '\'') { 5 } else { shown.len() - before };
        if used > limiter {
            shown.truncate(before);
            shown.push('…');
            return (shown, true);
        }
    }
    (shown, false)
}

/// JSON with a line for each value, as far as there is room for it.
fn indented(json: &str, limiter: usize) -> String {
    let mut lines = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut rest = json.chars().filter(|character| *character != '\r').peekable();
    let line = |lines: &mut String, depth: usize| {
        lines.push('\n');
        lines.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(character) = rest.next() {
        if lines.len() > limiter {
            break;
        }
        if is_string {
            lines.push(character);
            is_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            '"' => {
                is_string = true;
                lines.push(character);
            }
            '{' | '[' => {
                lines.push(character);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = rest.next_if(|next| matches!(next, '}' | ']')) {
                    lines.push(end);
                } else {
                    depth += 1;
                    line(&mut lines, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut lines, depth);
                lines.push(character);
            }
            ',' => {
                lines.push(character);
                line(&mut lines, depth);
            }
            ':' => lines.push_str(": "),
            other if other.is_ascii_whitespace() => {}
            other => lines.push(other),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gets_lines_and_keeps_its_numbers_and_keys() {
        let json = br#"{"a":1e400000, "b": [1,{"c\"}":""} ,[ ] ] ,"a":{ },"n":12345678901234567890123}"#;
        let lines = [
            "{",
            "  \"a\": 1e400000,",
            "  \"b\": [",
            "    1,",
            "    {",
            "      \"c\\\"}\": \"\"",
            "    },",
            "    []",
            "  ],",
            "  \"a\": {},",
            "  \"n\": 12345678901234567890123",
            "}",
        ];
        assert_eq!(shown(json, json.len() as u64, 9_999), Shown { text: lines.join("\n"), note: String::new() });
    }

    #[test]
    fn whatever_it_holds_it_is_text_of_bounded_size() {
        let show = |data: &[u8], limiter| shown(data, data.len() as u64, limiter);
        assert_eq!(show(b"", 9), Shown::default());
        assert_eq!(show("a\n\u{202e}\u{0}\tb".as_bytes(), 99).text, "a\n\\u{202e}\\0    b");
        assert_eq!(show(b"{\"a\": \xff}", 99).note, "not UTF-8: invalid bytes are shown as \u{fffd}");
        let cut = show(&b"<".repeat(1_000), 50);
        assert_eq!((&*cut.text, &*cut.note), ("<<<<<<<<<<…", "truncated: 1,000 bytes in all"));
        let deep = [b"[".repeat(100), b"]".repeat(100)].concat();
        assert!(show(&deep, 500).text.len() < 510);
        // A character that lies across the end of what is kept is no garbage.
        assert_eq!(shown("aé".as_bytes().split_at(2).0, 3, 99).note, "truncated: 3 bytes in all");
    }
}
