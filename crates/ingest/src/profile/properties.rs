//! Files of the form that `java.util.Properties` reads: a key, a separator and a value a line.

/// A key with its value, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    /// The line, from 1.
    pub(crate) line: u64,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Reads a text: keys in their order, those that are there twice, too.
///
/// # Errors
/// The line and what is wrong in it.
pub(crate) fn read(text: &str) -> Result<Vec<Property>, (u64, &'static str)> {
    let mut all = Vec::new();
    let mut lines = (1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)));
    while let Some((line, first)) = lines.next() {
        let first = first.trim_start_matches(is_blank);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = first.to_owned();
        while continues(&whole) {
            whole.pop();
            let Some((_, next)) = lines.next() else { break };
            whole.push_str(next.trim_start_matches(is_blank));
        }
        let (key, value) = split(&whole);
        let read = |text| unescape(text).ok_or((line, "\\u is not followed by four hexadecimal digits of a character"));
        all.push(Property { line, key: read(key)?, value: read(value)?.trim_end().to_owned() });
    }
    Ok(all)
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\x0c')
}

/// Whether a line ends in a backslash that is not itself escaped.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A key ends at the first `:`, `=` or blank that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|char: char| {
        let ends = !is_escaped && (is_blank(char) || matches!(char, ':' | '='));
        is_escaped = !is_escaped && char == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix([':', '=']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let escaped = match char {
            '\\' => chars.next(),
            other => {
                plain.push(other);
                continue;
            }
        };
        plain.push(match escaped {
            None => break,
            Some('t') => '\t',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('f') => '\x0c',
            Some('u') => {
                let digits =
                    chars.as_str().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                chars = chars.as_str()[4..].chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            Some(other) => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_java_reads_it() {
        let text = "# a: comment\r\n\r\n  ! another\nA: one two  \r\nB=2\nC 3\n  D   :   4\nE\\:F\\ G=\\u00e9\\\\x\\\n   and more\n\
                    empty:\nalone\nurl: http://host:1/a=b\n";
        let found: Vec<_> =
            read(text).unwrap().into_iter().map(|Property { line, key, value }| (line, key, value)).collect();
        let expected = [
            (4, "A", "one two"),
            (5, "B", "2"),
            (6, "C", "3"),
            (7, "D", "4"),
            (8, "E:F G", "é\\xand more"),
            (10, "empty", ""),
            (11, "alone", ""),
            (12, "url", "http://host:1/a=b"),
        ];
        assert_eq!(found, expected.map(|(line, key, value)| (line, key.to_owned(), value.to_owned())));
        for wrong in ["a: \\u12", "a: \\u+041", "a: \\ud800", "a: \\u00é9"] {
            assert_eq!(read(wrong).unwrap_err().0, 1, "{wrong}");
        }
        assert_eq!(read("a: b\\").unwrap()[0].value, "b");
    }
}
