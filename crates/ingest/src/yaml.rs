//! What is wrong with a YAML file, as a sentence for those who write it.

use serde_saphyr::Error;

/// From which length on a word of the parser's message is left out: it may be a value, and a secret.
const LONG: usize = 16;

/// Where the text of a file is wrong, by its line from 1 (0 where that is not known), and how: one sentence without the
/// value, which may be a secret.
#[must_use]
pub fn problem(text: &str, error: &Error) -> (u64, String) {
    let error = error.without_snippet();
    let (line, column) = error.location().map_or((0, 0), |location| (location.line(), location.column()));
    let before = || key_before(text, line, column).map(|key| format!("{key}: ")).unwrap_or_default();
    let why = match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("{} is unknown; expected one of {}", named(field), expected.join(", "))
        }
        Error::SerdeUnknownVariant { expected, .. } => format!("{}expected one of {}", before(), expected.join(", ")),
        Error::SerdeMissingField { field, .. } => format!("{}the key {field} is missing", before()),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{} is duplicated", named(key)),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("{}expected {}, found {}", before(), wanted(expected), found(unexpected))
        }
        Error::InvalidScalar { ty, .. } => format!("{}expected {}", before(), wanted(ty)),
        Error::Unexpected { expected, .. } if is_structure(expected) => {
            format!("{}expected {}", before(), wanted(expected))
        }
        Error::InvalidBooleanStrict { .. } => format!("{}expected true or false", before()),
        Error::NullIntoString { .. } => format!("{}expected a text, found nothing", before()),
        Error::Message { msg, .. } => format!("{}{}", before(), masked(msg)),
        other => format!("it is not valid YAML: {}", masked(&other.render())),
    };
    (line, why)
}

/// A key that may be shown: if it is not a word, it may be a value in the wrong place.
fn named(key: &str) -> String {
    if is_word(key) { format!("the key {key}") } else { "a key that is not a word, or looks like a token,".to_owned() }
}

fn is_word(key: &str) -> bool {
    (1..=32).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-.".contains(&byte))
}

/// The key whose value begins at a place, or holds it.
fn key_before(text: &str, line: u64, column: u64) -> Option<&str> {
    let at = usize::try_from(line).ok()?.checked_sub(1)?;
    let (lines, column) = (text.lines().take(at + 1).collect::<Vec<_>>(), usize::try_from(column).ok()?);
    let own = *lines.get(at)?;
    let end = own.char_indices().nth(column.saturating_sub(1)).map_or(own.len(), |(end, _)| end);
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let above = || {
        let mut above = lines[..at].iter().rev().filter(|line| !line.trim().is_empty());
        above.find(|line| indent(line) < indent(own)).and_then(|line| last_key(line))
    };
    last_key(&own[..end]).or_else(above)
}

/// The last key in a part of a line.
fn last_key(part: &str) -> Option<&str> {
    let before = part.rsplit_once(':')?.0;
    let key = before.rsplit(['{', ',', ' ', '-']).find(|key| !key.is_empty());
    // A key may have dashes of its own.
    let whole = before.rsplit(['{', ',', ' ']).find(|key| !key.is_empty());
    whole.filter(|key| is_word(key)).or(key.filter(|key| is_word(key)))
}

/// Whether the parser expected something that is valid YAML, as is what it found.
fn is_structure(expected: &str) -> bool {
    matches!(expected, "mapping start" | "sequence start" | "string scalar" | "scalar")
}

/// What is to be written.
fn wanted(expected: &str) -> &str {
    match expected {
        "a string" | "string" | "str" | "a character" | "string scalar" | "scalar" => "a text",
        "a boolean" | "boolean" | "bool" => "true or false",
        "a sequence" | "sequence" | "sequence start" => "a list, as [a, b]",
        "a map" | "map" | "mapping start" => "keys with values, as {key: value}",
        "unit" | "null" => "nothing",
        number if number.strip_prefix(['u', 'i']).is_some_and(|rest| rest.parse::<u8>().is_ok() || rest == "size") => {
            "a whole number"
        }
        "integer" | "an integer" => "a whole number",
        "f32" | "f64" | "float" => "a number",
        structure if structure.starts_with("struct") => "keys with values, as {key: value}",
        other => other,
    }
}

/// What is there instead, without its value.
fn found(unexpected: &str) -> &'static str {
    let kinds = [
        ("map", "keys with values"),
        ("sequence", "a list"),
        ("string", "a text"),
        ("character", "a text"),
        ("integer", "a number"),
        ("floating", "a number"),
        ("boolean", "true or false"),
        ("unit", "nothing"),
        ("null", "nothing"),
        ("Option", "nothing"),
    ];
    let known = kinds.into_iter().find(|(beginning, _)| unexpected.starts_with(beginning));
    known.map_or("something else", |(_, words)| words)
}

/// The parser's message without words that may be a part of the contents.
fn masked(message: &str) -> String {
    let is_part = |word: &&str| {
        word.split(|found: char| !(found.is_ascii_alphanumeric() || "+/$_".contains(found)))
            .any(|run| run.len() >= LONG)
    };
    let words = message.split_whitespace().map(|word| if is_part(&word) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "its values are not of interest")]
    struct Keys {
        name: String,
        most: Option<u32>,
        #[serde(default)]
        hosts: Vec<String>,
        #[serde(default)]
        is_on: bool,
        #[serde(default)]
        inner: BTreeMap<String, Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "its values are not of interest")]
    struct Inner {
        list: Vec<String>,
    }

    #[test]
    fn each_problem_names_the_key_and_what_to_write_and_no_value() {
        let of = |text: &str| {
            let options = serde_saphyr::options! { with_snippet: false };
            let error = serde_saphyr::from_str_with_options::<Keys>(text, options).unwrap_err();
            let (line, why) = problem(text, &error);
            assert!(!why.contains("SECRET"), "{why}");
            format!("{line}: {why}")
        };
        for (text, expected) in [
            ("name: {a: b}", "1: name: expected a text"),
            ("name: [SECRET]", "1: name: expected a text"),
            ("name: a\nmost: SECRET", "2: most: expected a whole number"),
            ("name: a\nhosts: SECRET", "2: hosts: expected a list, as [a, b]"),
            ("name: a\nhosts:\n  a: SECRET", "3: hosts: expected a list, as [a, b]"),
            ("name: a\nis_on: SECRET", "2: is_on: expected true or false"),
            ("name: a\ninner:\n  lab: {list: SECRET}", "3: list: expected a list, as [a, b]"),
            ("name: a\ninner:\n  lab: [SECRET]", "3: lab: expected keys with values, as {key: value}"),
            ("name: a\ninner: SECRET", "2: inner: expected keys with values, as {key: value}"),
            ("most: 3", "1: the key name is missing"),
            ("name: a\nname: b", "2: the key name is duplicated"),
            ("name: a\nnmae: b", "2: the key nmae is unknown; expected one of name, most, hosts, is_on, inner"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        let invalid = of("name: 'a");
        assert!(invalid.contains(": it is not valid YAML: "), "{invalid}");
    }
}
