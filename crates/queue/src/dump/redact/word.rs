//! Which texts reveal nothing about people or content.

use crate::state::{AccessState, BatchState, JobState, State};

/// Values of closed sets that the queue's programs write.
const WORDS: [&str; 27] = [
    "add",
    "batch-manifest",
    "container",
    "container-batch-manifest",
    "crc32",
    "delete",
    "false",
    "file",
    "html",
    "json",
    "manifest",
    "md5",
    "none",
    "object-manifest",
    "sha-1",
    "sha-256",
    "sha-384",
    "sha-512",
    "sha1",
    "sha256",
    "sha512",
    "single-file-batch-manifest",
    "Success",
    "true",
    "update",
    "xhtml",
    "xml",
];

/// Whether a text is one of those.
pub(super) fn is_word(text: &str) -> bool {
    WORDS.contains(&text)
}

/// Whether a text names a state of a job, a batch or an access request, in whatever spelling.
pub(super) fn is_state(text: &str) -> bool {
    JobState::from_any(text).is_some() || BatchState::from_any(text).is_some() || AccessState::from_any(text).is_some()
}

/// Whether a value is a whole number, as a priority or a size.
pub(super) fn is_number(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| text.trim().parse::<i128>().is_ok())
}

/// Whether a name is nothing but an id of the queue, or an entry's name, also where its number has too few or too many
/// digits.
pub(super) fn is_id(name: &str) -> bool {
    let (priority, id) = match name.rsplit_once('-') {
        Some((priority, id)) => (priority, id),
        None => ("", name),
    };
    let digits = |text: &str, most| text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = ["jid", "bid", "qid"].iter().find_map(|prefix| id.strip_prefix(prefix));
    digits(priority.strip_prefix(['+', '-']).unwrap_or(priority), 5)
        && number.is_some_and(|number| !number.is_empty() && digits(number, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_and_entries_are_shown_as_they_are() {
        for name in ["jid0000000042", "bid42", "05-jid0000000042", "-1-jid0000000042", "5-jid0000000042", "100-qid1"] {
            assert!(is_id(name), "{name}");
        }
        for name in ["12345-jid1", "-12345-jid1", "+5-bid1", "jid123456789012"] {
            assert!(is_id(name), "{name}");
        }
        for name in ["123456-jid1", "--5-jid1", "jid1234567890123", "5-", "jid-1"] {
            assert!(!is_id(name), "{name}");
        }
        for name in ["", "jid", "jid00x", "bob-jid0000000042", "0123456-jid0000000042", "bid-9c1a", "42", "jid42/bob"] {
            assert!(!is_id(name), "{name}");
        }
    }

    #[test]
    fn words_states_and_numbers_are_distinguished_from_other_texts() {
        assert!(is_word("container") && is_word("Success") && !is_word("success") && !is_word(""));
        for state in ["Storing", "update-reporting", "COMPLETED"] {
            assert!(is_state(state), "{state}");
        }
        assert!(!is_state("Teleporting") && !is_state(""));
        for number in ["0", "-1", " 42\n", "170141183460469231731687303715884105727"] {
            assert!(is_number(number.as_bytes()), "{number}");
        }
        assert!(!is_number(b"1.5") && !is_number(b"x") && !is_number(b"") && !is_number(b"1\xff"));
    }
}
