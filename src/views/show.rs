//! Figures as people read them.

use std::fmt::{self, Write as _};
use std::time::Duration;

use jiff::Timestamp;

mod data;

pub(crate) use data::{Shown, shown};

use crate::words;
pub(crate) use crate::words::{counted, percent};

/// The maximum length of a shown name of who stopped something, in characters: any client may have written it.
const NAME_CHARS: usize = 60;

/// The same of the reason.
const REASON_CHARS: usize = 160;

/// A length of time in one unit, rounded down: `20 s`, `38 min`, `3.2 h`, `31 h`, `4 days`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ago(pub(crate) Duration);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::length(self.0))
    }
}

impl Ago {
    /// The same of a time that has just begun, to the nearest unit: rounded down, 30 days would be 29 after a second.
    pub(crate) fn nearest(time: Duration) -> Self {
        let unit = match time.as_secs() {
            ..60 => 1,
            60..3_600 => 60,
            3_600..36_000 => 360,
            36_000..172_800 => 3_600,
            172_800.. => 86_400,
        };
        Self(time.saturating_add(Duration::from_secs(unit) / 2))
    }
}

/// An instant: how long ago to read, and exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// How long ago, as [`Ago`].
    pub(crate) ago: String,
    /// The instant in UTC, to read.
    pub(crate) exact: String,
    /// The instant as RFC 3339, to compute with.
    pub(crate) machine: String,
}

impl Moment {
    pub(crate) fn new(instant: Timestamp, now: Timestamp) -> Self {
        let ago = Duration::try_from(now.duration_since(instant)).unwrap_or(Duration::ZERO);
        Self { ago: Ago(ago).to_string(), exact: words::moment(instant), machine: machine(instant) }
    }
}

/// An instant as RFC 3339, to the second.
pub(crate) fn machine(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A count with its thousands apart: `12,046`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::count(self.0))
    }
}

/// A size in binary units, with the exact bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// To read: `6.2 TiB`.
    pub(crate) short: String,
    /// Exactly: `6,817,104,930,406 bytes`.
    pub(crate) exact: String,
}

impl Size {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { short: words::size(bytes), exact: counted(bytes, "byte", "bytes") }
    }
}

/// A text out of a znode, with escapes for invisible characters: control characters, and the marks that turn the
/// direction of whatever follows them on the page.
pub(crate) fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\'' | '\\' => visible.push(character),
            other => visible.extend(other.escape_debug()),
        }
    }
    visible
}

/// JSON that is the same to a program, with escapes for every character in its strings that does not show: control
/// characters, and the marks that turn the direction of what follows. It is meant to be read in a terminal too.
pub(crate) fn visible_json(json: String) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if json.bytes().all(is_plain) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        // Outside of its strings JSON is made of what shows and of line ends, so what follows is within a string.
        if matches!(character, '\n' | '"' | '\'' | '\\') || character.escape_debug().len() == 1 {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

/// The same of a text of which the beginning is enough: at most so many characters, with an ellipsis where it was cut.
pub(crate) fn brief(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", visible(text[..end].trim_end())),
        None => visible(text),
    }
}

/// Who stopped something, and why, in a line; empty if neither is recorded.
pub(crate) fn requested(by: &str, reason: &str) -> String {
    match (by.trim(), reason.trim()) {
        ("", "") => String::new(),
        (by, "") => format!("by {}", brief(by, NAME_CHARS)),
        ("", reason) => brief(reason, REASON_CHARS),
        (by, reason) => format!("by {}: {}", brief(by, NAME_CHARS), brief(reason, REASON_CHARS)),
    }
}

/// A cause as a sentence: it may come from an error, which begins small and ends without a full stop.
pub(crate) fn as_sentence(cause: &str) -> String {
    let mut characters = cause.trim().chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    let text: String = first.chain(characters).collect();
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_reported_in_one_unit() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1.0 h"),
            (11_530, "3.2 h"),
            (35_999, "9.9 h"),
            (36_000, "10 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
        ] {
            assert_eq!(Ago(Duration::from_secs(seconds)).to_string(), text);
        }
    }

    #[test]
    fn a_time_to_come_is_reported_in_the_nearest_unit() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (89, "1 min"),
            (90, "2 min"),
            (3_580, "1.0 h"),
            (11_530, "3.2 h"),
            (11_699, "3.2 h"),
            (11_700, "3.3 h"),
            (35_999, "10 h"),
            (172_799, "2 days"),
            (30 * 86_400 - 5, "30 days"),
            (30 * 86_400 + 43_199, "30 days"),
        ] {
            assert_eq!(Ago::nearest(Duration::from_secs(seconds)).to_string(), text);
        }
    }

    #[test]
    fn an_instant_in_the_future_is_now() {
        let now = Timestamp::from_second(1_772_475_331).unwrap();
        let moment = Moment::new(now + Duration::from_secs(5), now);
        assert_eq!((&*moment.ago, &*moment.exact), ("0 s", "2026-03-02 18:15:36 UTC"));
    }

    #[test]
    fn what_does_not_show_is_escaped_and_everything_else_stays() {
        assert_eq!(visible("Zurückgestellt \"<b>\\ 待"), "Zurückgestellt \"<b>\\ 待");
        assert_eq!(visible("a\n\u{1b}[31m\u{202e}b\u{2066}"), "a\\n\\u{1b}[31m\\u{202e}b\\u{2066}");
    }

    #[test]
    fn what_is_long_is_cut_with_a_note() {
        assert_eq!([brief("äöü", 3), brief("äö ü", 3), brief("\n", 1)], ["äöü", "äö…", "\\n"]);
    }

    #[test]
    fn counts_and_sizes_are_reported_short_and_exactly() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_046, "12,046"), (1_234_567, "1,234,567")] {
            assert_eq!(Count(count).to_string(), text);
        }
        for (bytes, short) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1,023 bytes"),
            (1_024, "1.0 KiB"),
            (24 << 30, "24 GiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (6_817_104_930_406, "6.2 TiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(Size::new(bytes).short, short);
        }
        assert_eq!(Size::new(1_048_576).exact, "1,048,576 bytes");
    }
}
