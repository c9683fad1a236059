//! Figures as people read them, in the sentences and mails of the mill.

use jiff::Timestamp;

/// An instant to the second, as every page, mail and command shows it.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A number with its noun.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
