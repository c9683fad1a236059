//! Mails: whom they go to, what they look like, and how the outbox of the catalogue is sent.
//!
//! A mail is rendered once, into a row of the catalogue's outbox, with or before the change that it reports. The row's
//! name says what it reports; a process that renders it again, after a crash or on another host, finds the row.
//!
//! [`address`] is what may be a recipient, [`message`] the form of all mails; [`settings`] is what an operator sets,
//! [`delivery`] sends what waits, by `smtp` or as files of a `folder`; [`metrics`] is what is counted of it.
//!
//! # Invariants
//! - Whatever comes from others is on a line of ours, in text and headers.
//! - A mail that was given up or taken by its server is never sent again.

pub mod address;
pub mod delivery;
mod folder;
pub mod message;
pub mod metrics;
pub mod settings;
mod smtp;

use std::collections::BTreeMap;

/// The kind of a mail's row.
pub const MAIL: &str = "mail";

/// What became of the recipients of a mail: none for one whose server took it, else why it cannot be delivered to this
/// one. A recipient who is not there is to be tried.
pub type Settled = BTreeMap<String, Option<String>>;

/// Reads what a row has.
fn read_settled(text: Option<&str>) -> Settled {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Writes it for a row.
#[must_use]
pub fn write_settled(settled: &Settled) -> Option<String> {
    if settled.is_empty() { None } else { serde_json::to_string(settled).ok() }
}

/// One sentence on all recipients to whom a mail cannot be delivered; `None` where there is none.
fn refusals(settled: &Settled) -> Option<String> {
    let refused = settled.iter().filter_map(|(address, why)| Some(format!("{address}: {}", why.as_deref()?)));
    let refused: Vec<_> = refused.collect();
    (!refused.is_empty()).then(|| refused.join("; "))
}

/// A text of others as a mail may have it: one line without controls and changes of direction, of at most so many
/// characters.
#[must_use]
pub fn line(text: &str, most_chars: usize) -> String {
    let is_odd = |char: char| {
        char.is_control() || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut line: String =
        text.chars().take(most_chars + 1).map(|char| if is_odd(char) { ' ' } else { char }).collect();
    if line.chars().count() > most_chars {
        line = line.chars().take(most_chars.saturating_sub(2)).collect::<String>() + "..";
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_is_one_line() {
        assert_eq!(line(" a\r\nBcc: x\u{202e}y\0 ", 100), "a  Bcc: x y");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcd..");
        assert_eq!(line("ääääääää", 6), "ääää..");
    }

    #[test]
    fn what_became_of_recipients_is_kept_and_said() {
        assert_eq!(write_settled(&Settled::new()), None);
        let settled = Settled::from([("a@b".to_owned(), None), ("c@d".to_owned(), Some("no such user".to_owned()))]);
        assert_eq!(read_settled(write_settled(&settled).as_deref()), settled);
        assert_eq!(refusals(&settled).as_deref(), Some("c@d: no such user"));
        assert_eq!(refusals(&read_settled(Some("odd"))), None);
    }
}
