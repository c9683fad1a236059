//! Figures and texts as people read them, in sentences, on pages and in commands.

use std::time::Duration;

use jiff::Timestamp;

pub(crate) use queuekeeper_queue::time::moment;

/// How many characters of a znode's text a sentence quotes.
const QUOTED: usize = 200;

/// Two figures of which one is at most so many times the other are about the same.
const ALIKE: f64 = 1.25;

/// What goes on while the ingest queue is paused: the one state of jobs that does not stop then.
pub(crate) const WHILE_PAUSED: &str = "only the inventory daemon takes jobs";

/// What a pause of the ingest queue means, in a sentence.
pub(crate) fn until_unpaused() -> String {
    format!("Until it is unpaused, {WHILE_PAUSED}; jobs whose completion would free space wait too.")
}

/// How long ago something was, in one unit: `20 s`, `38 min`, `3.2 h`, `31 h`, `4 days`. What lies ahead is now.
pub(crate) fn ago(instant: Timestamp, now: Timestamp) -> String {
    length(Duration::try_from(now.duration_since(instant)).unwrap_or(Duration::ZERO))
}

/// A length of time in one unit, rounded down.
pub(crate) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds, seconds / 60, seconds / 3600) {
        (..60, _, _) => format!("{seconds} s"),
        (_, minutes @ ..60, _) => format!("{minutes} min"),
        (_, minutes, hours @ ..10) => format!("{hours}.{} h", minutes % 60 / 6),
        (_, _, hours @ ..48) => format!("{hours} h"),
        (_, _, hours) => format!("{} days", hours / 24),
    }
}

/// A length of time between two: `about 12 min`, `12 to 40 min`, `30 min to 2.0 h`.
pub(crate) fn span(least: Duration, most: Duration) -> String {
    let (from, to) = (length(least), length(most));
    if from == to || most <= least.mul_f64(ALIKE) {
        return format!("about {to}");
    }
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// So many an hour between two: `about 64`, `12 to 64`.
pub(crate) fn between(least: f64, most: f64) -> String {
    if most <= least * ALIKE {
        format!("about {}", about(least))
    } else {
        format!("{} to {}", about(least), about(most))
    }
}

/// A count with its thousands apart: `12,046`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and what is counted: `1 job`, `3 jobs`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// So many an hour, or whatever else is counted: `3.2`, `64`, `1,204`.
pub(crate) fn about(number: f64) -> String {
    if number < 9.95 {
        return format!("{number:.1}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is above 0, and far below 2^64")]
    let whole = number.round() as u64;
    count(whole)
}

/// A size in binary units: `6.2 TiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return counted(bytes, "byte", "bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    // From 1,023.95 on it would be written as 1024.0 of the smaller unit.
    while value >= 1023.95 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1024.0, next);
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// A part of a whole, 0 to 1, in percent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A session as ZooKeeper prints it, and from where it is connected, where that is known.
pub(crate) fn session(session: i64, address: Option<&str>) -> String {
    match address {
        Some(address) => format!("0x{session:x} at {address}"),
        None => format!("0x{session:x}"),
    }
}

/// A znode's text in quotation marks: cut where it is long, and with escapes for what does not show or would turn the
/// direction of what follows it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("“");
    for (at, character) in text.trim().chars().enumerate() {
        if at == QUOTED {
            quoted.push('…');
            break;
        }
        match character {
            '"' | '\'' | '\\' => quoted.push(character),
            other => quoted.extend(other.escape_debug()),
        }
    }
    quoted.push('”');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (seconds, text) in
            [(59, "59 s"), (3_599, "59 min"), (11_530, "3.2 h"), (172_799, "47 h"), (172_800, "2 days")]
        {
            assert_eq!(length(Duration::from_secs(seconds)), text);
        }
        for (bytes, text) in
            [(1, "1 byte"), (1_024, "1.0 KiB"), ((1 << 30) - 1, "1.0 GiB"), (24 << 30, "24 GiB"), (u64::MAX, "16 EiB")]
        {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(counted(12_046, "job", "jobs"), "12,046 jobs");
        assert_eq!(session(-1, None), "0xffffffffffffffff");
        assert_eq!(session(0x1f, Some("10.0.0.5:40834")), "0x1f at 10.0.0.5:40834");
    }

    #[test]
    fn an_instant_has_one_form_in_the_crates_that_cannot_share_it() {
        let at = Timestamp::from_second(1_772_475_336).unwrap();
        assert_eq!(moment(at), "2026-03-02 18:15:36 UTC");
        assert_eq!(queuekeeper_store::time::moment(at), moment(at));
    }

    #[test]
    fn a_quotation_is_harmless_and_of_bounded_length() {
        assert_eq!(quoted(" a\n\u{202e}<b>'"), "“a\\n\\u{202e}<b>'”");
        assert_eq!(quoted(&"é".repeat(1_000)).chars().count(), QUOTED + 3);
    }
}
