//! Mail addresses.

use crate::line;

/// The most addresses that a mail goes to.
pub const MOST_RECIPIENTS: usize = 50;

/// The longest address, in bytes (RFC 5321, 4.5.3.1.3, without the angle brackets).
const MOST_BYTES: usize = 254;

/// How much of what is no address is repeated, in characters.
const MOST_SHOWN: usize = 200;

/// A text is no address that mail is sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a mail address{hint}", text = line(.0, MOST_SHOWN), hint = if .0.is_ascii() { "" } else { " in ASCII" })]
pub struct NoAddress(String);

/// Checks an address: `user@host` in ASCII, without a name before it, without quotes, white space and brackets.
///
/// # Errors
/// When it is none.
pub fn check(text: &str) -> Result<lettre::Address, NoAddress> {
    let is_plain = |char: char| char.is_ascii_graphic() && !"<>()[],;:\"\\".contains(char);
    let is_plain = text.len() <= MOST_BYTES && text.chars().all(is_plain) && text.matches('@').count() == 1;
    let address = if is_plain { text.parse().ok() } else { None };
    address.ok_or_else(|| NoAddress(text.to_owned()))
}

/// Whom a mail goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// The addresses, each once.
    pub valid: Vec<String>,
    /// Those that are none, or too many, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Recipients {
    /// Those that a submission names, separated by commas, semicolons or white space; else those of its profile.
    #[must_use]
    pub fn new<'a>(of_profile: impl IntoIterator<Item = &'a str>, of_submission: &'a str) -> Self {
        let named = Self::parse(of_submission);
        if named.valid.is_empty() {
            let of_profile = Self::collect(of_profile);
            let refused = of_profile.refused.into_iter().chain(named.refused).collect();
            return Self { valid: of_profile.valid, refused };
        }
        named
    }

    /// Those that a text names, separated by commas, semicolons or white space.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let separate = |char: char| char.is_whitespace() || char == ',' || char == ';';
        Self::collect(text.split(separate).map(|text| text.trim_start_matches('<').trim_end_matches('>')))
    }

    fn collect<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut recipients, mut left_out) = (Self::default(), 0);
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            if recipients.valid.iter().any(|known| known.eq_ignore_ascii_case(text)) {
                continue;
            }
            if recipients.valid.len() + recipients.refused.len() >= MOST_RECIPIENTS {
                left_out += 1;
                continue;
            }
            match check(text) {
                Ok(_) => recipients.valid.push(text.to_owned()),
                Err(error) => recipients.refused.push((line(text, MOST_SHOWN), error.to_string())),
            }
        }
        if left_out > 0 {
            let why = format!("a mail goes to at most {MOST_RECIPIENTS} addresses");
            recipients.refused.push((format!("{left_out} more"), why));
        }
        recipients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_nothing_that_ends_a_line_or_begins_another_address() {
        for text in ["a@b.example", "first.last+tag@host.example.edu", "x_y@127-0-0-1.example"] {
            assert_eq!(check(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "a",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b\r\nBcc: c@d",
            "\"a b\"@c.example",
            "<a@b.example>",
            "a@b.example,c@d.example",
            "ä@b.example",
            "a@ä.example",
            "a@b.example\0",
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
        assert!(check(&format!("{}@b.example", "a".repeat(300))).is_err());
        assert_eq!(check("ä@b").unwrap_err().to_string(), "\"ä@b\" is not a mail address in ASCII");
    }

    #[test]
    fn each_address_gets_one_mail_and_one_that_is_none_is_named() {
        let found =
            Recipients::new(["p@x.example"], "a@x.example A@x.example; b@x.example, <c@x.example>\r\nBcc: d@x.example");
        assert_eq!(found.valid, ["a@x.example", "b@x.example", "c@x.example", "d@x.example"]);
        assert_eq!(found.refused, [("Bcc:".to_owned(), "\"Bcc:\" is not a mail address".to_owned())]);
        let many = (0..60).map(|number| format!("u{number}@x.example")).collect::<Vec<_>>().join(" ");
        let found = Recipients::new([], &many);
        assert_eq!((found.valid.len(), found.refused[0].0.as_str()), (50, "10 more"));
        assert_eq!(Recipients::new([], " , ;"), Recipients::default());
        let found = Recipients::new(["p@x.example", "P@x.example"], "nobody");
        assert_eq!((found.valid.as_slice(), found.refused.len()), (&["p@x.example".to_owned()][..], 1));
    }
}
