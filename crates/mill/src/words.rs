//! Figures as people read them, in the sentences and mails of the mill.

pub(crate) use queuekeeper_store::time::moment;

/// A number with its noun.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
