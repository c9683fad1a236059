//! `mrt-embargo.txt`: a line `embargoEndDate:` with a date.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use crate::name::shown;

/// The key, whose case does not matter.
const KEY: &str = "embargoEndDate";

/// What stands for no embargo.
const NONE: &str = "none";

/// When the embargo ends, as the file has it; `None` where there is none. An error is one sentence.
pub(super) fn end(text: &str) -> Result<Option<String>, String> {
    let lines = text.trim_start_matches('\u{feff}').lines().filter_map(|line| line.split_once(':'));
    let mut ends = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(KEY)).map(|(_, value)| value.trim());
    let end = ends.next().ok_or_else(|| format!("it has no line with {KEY}"))?;
    if end.eq_ignore_ascii_case(NONE) {
        return Ok(None);
    }
    let is_date = end.parse::<Timestamp>().is_ok() || end.parse::<DateTime>().is_ok() || end.parse::<Date>().is_ok();
    if is_date {
        Ok(Some(end.to_owned()))
    } else {
        Err(format!("{KEY} {:?} is not a date such as 2030-01-31", shown(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_date_with_or_without_a_time_and_nothing_else() {
        for date in ["2030-01-31", "2030-01-31T12:00:00", "2030-01-31T12:00:00Z", "2030-01-31T12:00:00-08:00"] {
            assert_eq!(end(&format!("# note\r\nEMBARGOENDDATE:{date}\r\n")), Ok(Some(date.to_owned())));
        }
        assert_eq!(end("embargoEndDate: none"), Ok(None));
        for text in ["", "embargoEndDate", "embargoEndDate:", "embargoEndDate: 2030-02-30", "embargoEndDate: 2030"] {
            assert!(end(text).is_err(), "{text:?}");
        }
    }
}
