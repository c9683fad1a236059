//! At which hours tasks are begun that use a store.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// The names of the days, the first of the week first.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How many minutes a day has by the clock.
const DAY: i16 = 24 * 60;

/// Windows of local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    name: String,
    time_zone: TimeZone,
    windows: Vec<Window>,
}

/// A window, on each of some days; one that ends when it begins or before ends on the next day.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    text: String,
    days: [bool; 7],
    /// In minutes from midnight by the clock.
    from: i16,
    to: i16,
}

impl Hours {
    /// Windows of a time zone, each such as `Mon-Fri 20:00-06:00`.
    ///
    /// # Errors
    /// With what is wrong, and what to write.
    pub fn new(time_zone: &str, windows: &[impl AsRef<str>]) -> Result<Self, String> {
        let found = TimeZone::get(time_zone).map_err(|_unknown| {
            format!("this machine has no time zone {time_zone:?}; expected one such as America/Los_Angeles or UTC")
        })?;
        if windows.is_empty() {
            return Err("there are no windows, so no task would ever start; add at least one".to_owned());
        }
        let windows = windows.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(Self { name: time_zone.to_owned(), time_zone: found, windows })
    }

    /// When the next window begins; `None` where an instant is within one.
    #[must_use]
    pub fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let today = now.to_zoned(self.time_zone.clone()).date();
        // A window of yesterday may last, and one a day wide comes after a week at the latest.
        let days = (-1..=8).filter_map(|day| today.checked_add(i64::from(day).days()).ok());
        let mut next = None;
        for (begins, ends) in days.flat_map(|date| self.on(date)) {
            if begins <= now && now < ends {
                return None;
            }
            next = next.into_iter().chain((begins > now).then_some(begins)).min();
        }
        next
    }

    /// The windows that begin on a day.
    fn on(&self, date: Date) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let is_on = move |window: &&Window| window.days[day(date.weekday())];
        self.windows.iter().filter(is_on).filter_map(move |window| {
            let to = if window.to <= window.from { window.to + DAY } else { window.to };
            Some((self.instant(date, window.from)?, self.instant(date, to)?))
        })
    }

    /// Where the clock skips a time, the one after it.
    fn instant(&self, date: Date, minutes: i16) -> Option<Timestamp> {
        let date = date.checked_add(i64::from(minutes / DAY).days()).ok()?;
        let (hour, minute) = (minutes % DAY / 60, minutes % 60);
        let time = date.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0);
        Some(time.to_zoned(self.time_zone.clone()).ok()?.timestamp())
    }
}

/// `Mon-Fri 20:00-06:00 and Sun 00:00-24:00 (America/Los_Angeles)`.
impl fmt::Display for Hours {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows: Vec<_> = self.windows.iter().map(|window| window.text.as_str()).collect();
        write!(to, "{} ({})", windows.join(" and "), self.name)
    }
}

fn day(weekday: Weekday) -> usize {
    usize::try_from(weekday.to_monday_zero_offset()).unwrap_or(0)
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let window = || {
            let (days, times) = text.split_once(' ')?;
            let (from, to) = times.split_once('-')?;
            Some((read_days(days)?, minutes(from).filter(|from| *from < DAY)?, minutes(to)?))
        };
        let read = window().filter(|(_, from, to)| from != to);
        let (days, from, to) = read.ok_or_else(|| {
            format!("expected days and times, such as \"Mon-Fri 20:00-06:00\" or \"Sat,Sun 00:00-24:00\", not {text:?}")
        })?;
        Ok(Self { text: text.to_owned(), days, from, to })
    }
}

/// `Mon`, `Mon-Fri`, `Sat,Sun`; `Fri-Mon` goes across the end of the week.
fn read_days(text: &str) -> Option<[bool; 7]> {
    let mut days = [false; 7];
    let named = |name: &str| DAYS.iter().position(|day| *day == name);
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (mut at, last) = (named(first)?, named(last)?);
        days[at] = true;
        while at != last {
            at = (at + 1) % 7;
            days[at] = true;
        }
    }
    Some(days)
}

/// `06:30`, to `24:00`.
fn minutes(text: &str) -> Option<i16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_two = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<i16>().ok().filter(|_| is_two)
    };
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|minutes| *minutes < 60)?);
    Some(hours * 60 + minutes).filter(|all| *all <= DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_closed_until_its_next_window_begins_by_the_clock_of_its_place() {
        let hours = |zone: &str, windows: &[&str]| Hours::new(zone, windows).unwrap();
        let closed = |hours: &Hours, now: &str| hours.closed_until(now.parse().unwrap()).map(|until| until.to_string());
        // 2026-11-27 is a Friday; in Los Angeles it is eight hours earlier than UTC.
        let nights = hours("America/Los_Angeles", &["Mon-Fri 20:00-06:00", "Sun 00:00-24:00"]);
        for (now, until) in [
            ("2026-11-27T03:59:59Z", Some("2026-11-27T04:00:00Z")),
            ("2026-11-27T04:00:00Z", None),
            ("2026-11-27T13:59:59Z", None),
            ("2026-11-27T14:00:00Z", Some("2026-11-28T04:00:00Z")),
            // The window of Friday lasts into Saturday, on which none begins.
            ("2026-11-28T13:00:00Z", None),
            ("2026-11-28T14:00:00Z", Some("2026-11-29T08:00:00Z")),
            ("2026-11-30T07:59:59Z", None),
            ("2026-11-30T08:00:00Z", Some("2026-12-01T04:00:00Z")),
        ] {
            assert_eq!(closed(&nights, now).as_deref(), until, "{now}");
        }
        // In the night of 8 March 2026 the clock goes from 02:00 to 03:00.
        let early = hours("America/Los_Angeles", &["Sun 02:30-04:00"]);
        assert_eq!(closed(&early, "2026-03-08T09:00:00Z").as_deref(), Some("2026-03-08T10:30:00Z"));
        assert_eq!(closed(&early, "2026-03-08T10:45:00Z"), None);
        assert_eq!(closed(&early, "2026-03-08T11:00:00Z").as_deref(), Some("2026-03-15T09:30:00Z"));
        let weekend = hours("UTC", &["Fri-Mon 00:00-24:00"]);
        assert_eq!(closed(&weekend, "2026-12-01T00:00:00Z").as_deref(), Some("2026-12-04T00:00:00Z"));
        assert_eq!(closed(&weekend, "2026-11-30T23:59:59Z"), None);
        assert_eq!(nights.to_string(), "Mon-Fri 20:00-06:00 and Sun 00:00-24:00 (America/Los_Angeles)");
    }

    #[test]
    fn what_is_no_window_is_refused_with_what_to_write() {
        for wrong in [
            "",
            "Mon",
            "20:00-06:00",
            "Mon 20-06",
            "mon 20:00-06:00",
            "Mon-Foo 20:00-06:00",
            "Mon 24:00-06:00",
            "Mon 20:00-24:01",
            "Mon 20:60-22:00",
            "Mon 8:00-9:00",
            "Mon 20:00-20:00",
            "Mon  20:00-06:00",
            "Mon +1:00-02:00",
        ] {
            let why = Hours::new("UTC", &[wrong]).unwrap_err();
            assert!(why.contains("such as \"Mon-Fri 20:00-06:00\""), "{wrong}: {why}");
        }
        assert!(Hours::new("Mars/Olympus", &["Mon 00:00-24:00"]).unwrap_err().contains("America/Los_Angeles or UTC"));
        assert!(Hours::new("UTC", &[] as &[&str]).unwrap_err().contains("add at least one"));
    }
}
