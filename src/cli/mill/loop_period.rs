//! The time between the beginnings of two loops, as flags have it.

use std::time::Duration;

use crate::config::PrometheusDuration;

/// Less would be a loop without an end.
const LEAST: Duration = Duration::from_secs(1);

/// A month of Mill's notation, as in `1M`.
const MONTH: Duration = Duration::from_hours(30 * 24);

/// A duration of at least a second, or a number of months.
pub(super) fn loop_period(text: &str) -> Result<PrometheusDuration, String> {
    let months = text.strip_suffix('M').and_then(|number| number.parse::<u16>().ok());
    let period = match months {
        Some(months) => Some(PrometheusDuration::from(MONTH * u32::from(months))),
        None => text.parse::<PrometheusDuration>().ok(),
    };
    let wrong = || "expected a duration of at least 1s, such as 12h, 30d or 1M (a month, 30 days)".to_owned();
    period.filter(|period| period.get() >= LEAST).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_durations_or_months_and_no_shorter_than_a_second() {
        let days = |text| loop_period(text).map(|period| period.get().as_secs() / 86_400);
        assert_eq!((days("2M"), days("30d"), days("1s")), (Ok(60), Ok(30), Ok(0)));
        for wrong in ["", "0", "0s", "999ms", "0M", "M", "1.5M", "-1M", "99999999999M", "1x", "30"] {
            assert!(loop_period(wrong).unwrap_err().contains("such as 12h"), "{wrong}");
        }
    }
}
