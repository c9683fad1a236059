//! Where our own znodes are.

/// Our own folder.
pub(super) const ROOT: &str = "/queuekeeper";

/// The pending decisions.
pub(super) const PENDING: &str = "/queuekeeper/pending";

/// What rules remember.
pub(super) const RULES: &str = "/queuekeeper/rules";

/// The candidates of the election.
pub(super) const ELECTION: &str = "/queuekeeper/election";

/// The items that sessions of ours work on, below the same root, by which the queue core keeps others off them.
pub(super) const HELD: &str = "/queuekeeper/held";

/// What may exist below our own folder: what is used here, and what other programs of the family keep there.
const CHILDREN: [&str; 15] = [
    "catalogue",
    "clock",
    "daemons",
    "election",
    "expansions",
    "held",
    "paused",
    "pending",
    "progress",
    "retry",
    "rules",
    "space",
    "stores",
    "volumes",
    "withdrawals",
];

/// Whether a name is that of a child of our own folder.
#[must_use]
pub fn is_child(name: &str) -> bool {
    CHILDREN.contains(&name)
}

/// While this znode exists, no process acts automatically.
pub const PAUSED: &str = "/queuekeeper/paused";

/// What any process writes to, to learn the servers' time. Its data is empty.
pub const CLOCK: &str = "/queuekeeper/clock";

/// The longest name of a znode of ours.
const LONGEST: usize = 160;

/// Whether a text can be the name of a znode of ours: lower-case letters, digits and `- _ .`, beginning with a letter
/// or a digit.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    text.len() <= LONGEST
        && text.bytes().all(is_taken)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// The number of a candidate, by which it stands in the election, from the name of its znode; `None` for one that is
/// none of ours.
pub(super) fn candidate_number(name: &str) -> Option<u32> {
    const UUID: usize = 36;
    const DIGITS: usize = 10;
    let (uuid, rest) = name.strip_prefix("_c_")?.split_at_checked(UUID)?;
    let number = rest.strip_prefix("-candidate-").filter(|number| number.len() == DIGITS)?;
    let is_uuid = uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_uuid && is_number)
}

/// The znode of a pending decision, by its name.
#[must_use]
pub fn pending(name: &str) -> String {
    format!("{PENDING}/{name}")
}

/// The znode of what a rule remembers, by its name.
#[must_use]
pub fn rule(name: &str) -> String {
    format!("{RULES}/{name}")
}

/// The znode of what all rules do together.
#[must_use]
pub fn rules() -> String {
    RULES.to_owned()
}

/// How many znodes below the kill switch are deleted with it. We create none there: a few are a mistake; more need an
/// operator's attention.
pub const MOST_BELOW: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_what_we_call_so() {
        let uuid = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90";
        assert_eq!(candidate_number(&format!("_c_{uuid}-candidate-0000000042")), Some(42));
        for name in ["", "candidate-0000000000", "_c_-candidate-0000000000", "0", "_c_ä"] {
            assert_eq!(candidate_number(name), None, "{name}");
        }
        for name in [format!("_c_{uuid}-candidate-42"), format!("_c_{}-candidate-0000000000", uuid.replace('0', "x"))] {
            assert_eq!(candidate_number(&name), None, "{name}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["make-room", "a", "7", "make-room.0f.release", "x_y"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "-a", "a/b", "A", "ä", "a b", "a\n", &"x".repeat(LONGEST + 1)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
