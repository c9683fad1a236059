//! What the znode of a process says of mail that waits.

use std::time::Duration;

use jiff::SignedDuration;
use parking_lot::Mutex;
use queuekeeper_queue::record::MailNote;
use tokio::sync::watch;

use crate::clock::now;

/// By how much the age of the oldest mail may differ between two looks at the same one.
const SAME: SignedDuration = SignedDuration::from_mins(1);

/// The mail that waits, as far as it is to be noted.
#[derive(Debug)]
pub struct WaitingMail {
    note: watch::Sender<Option<MailNote>>,
    /// How the last attempt of this process failed.
    why: Mutex<String>,
}

impl Default for WaitingMail {
    fn default() -> Self {
        Self { note: watch::Sender::new(None), why: Mutex::default() }
    }
}

impl WaitingMail {
    /// An attempt has failed, or, where nothing is said, succeeded.
    pub(super) fn tried(&self, why: &str) {
        why.clone_into(&mut self.why.lock());
    }

    /// So many mails wait, the oldest for `age`; it is noted from `noted_after` on.
    pub(super) fn counted(&self, waiting: u64, age: Duration, noted_after: Duration) {
        let is_noted = waiting > 0 && age >= noted_after;
        let since = now().checked_sub(age).unwrap_or_else(|_| now());
        let note = is_noted.then(|| MailNote { waiting, since, why: self.why.lock().clone() });
        self.note.send_if_modified(|noted| {
            let is_same = match (&*noted, &note) {
                (Some(old), Some(new)) => {
                    (old.waiting, &old.why) == (new.waiting, &new.why)
                        && new.since.duration_since(old.since).abs() < SAME
                }
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !is_same {
                *noted = note;
            }
            !is_same
        });
    }

    /// Follows it.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<MailNote>> {
        self.note.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_noted_when_it_has_waited_for_some_time_and_again_only_when_it_changes() {
        let (mail, minute) = (WaitingMail::default(), Duration::from_mins(1));
        let mut noted = mail.follow();
        let mut counted = |waiting, minutes| {
            mail.counted(waiting, minute * minutes, minute * 5);
            let is_new = noted.has_changed().unwrap();
            (is_new, noted.borrow_and_update().clone().map(|note| (note.waiting, note.why)))
        };
        assert_eq!([counted(0, 9), counted(1, 4)], [(false, None), (false, None)]);
        assert_eq!(counted(1, 5), (true, Some((1, String::new()))));
        assert_eq!(counted(1, 5), (false, Some((1, String::new()))));
        mail.tried("refused");
        assert_eq!(counted(1, 5), (true, Some((1, "refused".to_owned()))));
        assert!(counted(2, 5).0);
        assert!(counted(2, 7).0, "another one is the oldest");
        assert_eq!(counted(0, 0), (true, None));
    }
}
