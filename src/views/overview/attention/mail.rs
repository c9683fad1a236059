//! Mail that cannot be sent.

use jiff::{SignedDuration, Timestamp};
use queuekeeper_queue::record::MailNote;

use super::{Attention, Severity, item};
use crate::views::show::{as_sentence, counted, visible};

/// For how long a mail server may be away before an operator should know: after as long, Prometheus raises an alert.
const OVERDUE: SignedDuration = SignedDuration::from_hours(1);

/// The mail that waits, where the oldest has waited for an hour.
pub(super) fn overdue(mail: &MailNote, now: Timestamp) -> Option<Attention> {
    if now.duration_since(mail.since) < OVERDUE {
        return None;
    }
    let why = if mail.why.is_empty() {
        "No process has reported an attempt: check that one has --mail.server or --mail.directory.".to_owned()
    } else {
        format!("The last attempt failed: {}", as_sentence(&visible(&mail.why)))
    };
    Some(Attention {
        since: Some(mail.since),
        is_oldest: true,
        fix:
            "Check --mail.server of the processes with daemons, and the server's answers; the mail is sent once the server accepts it."
                .to_owned(),
        page: Some("daemons".to_owned()),
        link: "Show daemons",
        ..item(
            "mail_waiting",
            Severity::Warn,
            format!("{} be sent", counted(mail.waiting, "mail cannot", "mails cannot")),
            format!("{why} Depositors do not get their reports; batches are not held up."),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_that_has_waited_for_an_hour_is_shown_with_the_reason() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mail = |why: &str| MailNote { waiting: 2, since: at(0), why: why.to_owned() };
        assert!(overdue(&mail("x"), at(3_599)).is_none());
        let item = overdue(&mail("connection \u{202e}refused"), at(3_600)).unwrap();
        assert_eq!((item.title.as_str(), item.since), ("2 mails cannot be sent", Some(at(0))));
        assert!(item.text.starts_with("The last attempt failed: ") && !item.text.contains('\u{202e}'), "{}", item.text);
        assert!(overdue(&mail(""), at(9_999)).unwrap().text.starts_with("No process"));
    }

    #[test]
    fn the_page_and_the_alert_have_the_same_limit() {
        let rules = include_str!("../../../../dashboards/prometheus/recording.yml");
        let limit = format!("merritt:daemon_mail:limit_seconds, expr: vector({})}}", OVERDUE.as_secs());
        assert!(rules.contains(&limit), "recording.yml should have {limit}");
    }
}
