//! Copies that differ from their records.

use super::{Attention, Severity, item};
use crate::views::overview::OpenBitErrors;
use crate::views::show::{as_sentence, counted, visible};

/// The open bit errors, where there are any, or that these are not known.
pub(super) fn open(known: &OpenBitErrors) -> Option<Attention> {
    match known {
        OpenBitErrors::NotRead | OpenBitErrors::Open(0, _) => None,
        OpenBitErrors::Open(count, oldest) => Some(Attention {
            since: *oldest,
            is_oldest: *count > 1,
            fix: format!(
                "The page of bit errors and queuekeeper mill errors show why {} is still open, and what can be done.",
                if *count == 1 { "it" } else { "each" }
            ),
            page: Some("mill/errors".to_owned()),
            link: "Show bit errors",
            ..item(
                "bit_errors",
                Severity::Bad,
                counted(*count, "open bit error", "open bit errors"),
                if *count == 1 {
                    "A copy in a store differs from its records."
                } else {
                    "Copies in stores differ from their records."
                },
            )
        }),
        OpenBitErrors::Unknown(why) => Some(Attention {
            fix: "Check that the catalogue's database is running and responds.".to_owned(),
            ..item(
                "bit_errors_unknown",
                Severity::Warn,
                "The number of open bit errors is unknown".to_owned(),
                as_sentence(&visible(why)),
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn open_bit_errors_are_urgent_and_what_is_not_known_is_no_good_news() {
        assert!(open(&OpenBitErrors::NotRead).is_none() && open(&OpenBitErrors::Open(0, None)).is_none());
        let at = Some(Timestamp::UNIX_EPOCH);
        let one = open(&OpenBitErrors::Open(1, at)).unwrap();
        assert_eq!(
            (&*one.title, one.since, one.is_oldest, one.severity),
            ("1 open bit error", at, false, Severity::Bad)
        );
        assert!(one.fix.contains("why it is still open"), "{}", one.fix);
        let many = open(&OpenBitErrors::Open(1_200, at)).unwrap();
        assert_eq!((&*many.title, many.page.as_deref()), ("1,200 open bit errors", Some("mill/errors")));
        assert!(many.fix.contains("why each is still open"), "{}", many.fix);
        let unknown = open(&OpenBitErrors::Unknown("the catalogue cannot be read".to_owned())).unwrap();
        assert_eq!((&*unknown.text, unknown.severity), ("The catalogue cannot be read.", Severity::Warn));
    }
}
