//! Times as the queue's values spell them. Instants of ZooKeeper's own (`ctime`, `mtime`) need none of this.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};

/// An instant to the second, as messages, pages and commands show it. Crates without the queue use
/// `queuekeeper_store::time::moment`, which writes the same form.
#[must_use]
pub fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Java's `yyyy-MM-dd HH:mm:ss Z`, the one form that we write.
const WRITTEN: &str = "%Y-%m-%d %H:%M:%S %z";

/// Writes a time as the daemons do, in UTC: `2026-03-02 18:16:00 +0000`.
#[must_use]
pub fn write(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime(WRITTEN).to_string()
}

/// Reads a time in any form found in production: the one that we write, RFC 3339, or Java's `Date.toString`
/// (`Mon Mar 02 10:15:31 PST 2026`). `None` where it is none of these.
#[must_use]
pub fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    strtime::parse(WRITTEN, text)
        .and_then(|parsed| parsed.to_timestamp())
        .or_else(|_| text.parse())
        .ok()
        .or_else(|| read_java_date(text))
}

/// `Date.toString` names the zone by an abbreviation, which no zone database can resolve alone.
fn read_java_date(text: &str) -> Option<Timestamp> {
    let mut parts = text.split_ascii_whitespace();
    let (_weekday, month, day, time, zone, year) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let local = DateTime::strptime("%b %d %H:%M:%S %Y", format!("{month} {day} {time} {year}")).ok()?;
    read_zone(zone)?.to_timestamp(local).ok()
}

/// The zones in which this queue is run, and Java's `GMT+hh:mm` for one without an abbreviation.
fn read_zone(zone: &str) -> Option<Offset> {
    let hours = match zone {
        "UTC" | "GMT" | "Z" | "WET" => 0,
        "BST" | "CET" | "WEST" => 1,
        "CEST" | "EET" => 2,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" | "AKDT" => -8,
        "AKST" => -9,
        "HST" => -10,
        custom => {
            let (sign, digits) = match custom.strip_prefix("GMT")?.split_at_checked(1)? {
                ("+", digits) => (1, digits),
                ("-", digits) => (-1, digits),
                _ => return None,
            };
            let (hours, minutes) = digits.split_once(':')?;
            let minutes = hours.parse::<i32>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?)?;
            return Offset::from_seconds(sign * minutes.checked_mul(60)?).ok();
        }
    };
    Offset::from_hours(hours).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_form_of_production_is_read_as_the_same_instant() {
        let expected: Timestamp = "2026-03-02T18:15:31Z".parse().unwrap();
        for text in [
            "2026-03-02 10:15:31 -0800",
            "2026-03-02T10:15:31-08:00",
            "2026-03-02T18:15:31Z",
            "Mon Mar 02 10:15:31 PST 2026",
            "Mon Mar 02 18:15:31 UTC 2026",
            "Mon Mar 02 10:15:31 GMT-08:00 2026",
            " 2026-03-02 18:15:31 +0000 ",
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn each_zone_that_java_names_has_its_offset() {
        let noon: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        for (zone, minutes_east) in [
            ("UTC", 0),
            ("GMT", 0),
            ("Z", 0),
            ("WET", 0),
            ("BST", 60),
            ("WEST", 60),
            ("CET", 60),
            ("CEST", 120),
            ("EET", 120),
            ("EDT", -240),
            ("EST", -300),
            ("CDT", -300),
            ("CST", -360),
            ("MDT", -360),
            ("MST", -420),
            ("PDT", -420),
            ("PST", -480),
            ("AKDT", -480),
            ("AKST", -540),
            ("HST", -600),
            ("GMT+05:30", 330),
            ("GMT-03:30", -210),
        ] {
            let east = read(&format!("Mon Mar 02 12:00:00 {zone} 2026")).map(|time| noon.duration_since(time));
            assert_eq!(east.map(|east| east.as_secs()), Some(minutes_east * 60), "{zone}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "yesterday",
            "2026-03-02",
            "Mon Mar 02 10:15:31 XYZ 2026",
            "Mon Mar 02 10:15:31 GMT+99:99 2026",
            "Mon Mar 02 10:15:31 GMT=01:00 2026",
            "Mon Mar 02 10:15:31 PST 2026 again",
            "\u{1F980}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0i64..4_000_000_000) {
            let time = Timestamp::from_second(seconds).unwrap();
            prop_assert_eq!(read(&write(time)), Some(time));
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,60}") {
            let _ = read(&text);
        }
    }
}
