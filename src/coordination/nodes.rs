//! Where our own znodes are.

/// Our own folder.
pub(super) const ROOT: &str = "/queuekeeper";

/// The decisions that wait.
pub(super) const PENDING: &str = "/queuekeeper/pending";

/// What rules remember.
pub(super) const RULES: &str = "/queuekeeper/rules";

/// Who wants to act.
pub(super) const ELECTION: &str = "/queuekeeper/election";

/// While this znode is there, nothing acts by itself.
pub const PAUSED: &str = "/queuekeeper/paused";

/// The longest name of a znode of ours.
const LONGEST: usize = 160;

/// Whether a text can be the name of a znode of ours: lower-case letters, digits and `- _ .`, beginning with a letter or
/// a digit.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    text.len() <= LONGEST
        && text.bytes().all(is_taken)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// The znode of a decision that waits, by its name.
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

#[cfg(test)]
mod tests {
    use super::*;

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
