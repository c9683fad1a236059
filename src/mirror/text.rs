//! The text that the mirror holds: of each job its own, and one table of what many jobs share.
//!
//! Both keep [`Folded`] text in a [`TextColumn`], which a search scans whatever the case of its letters.

mod bits;
mod column;
mod folded;
mod shared;

pub(super) use bits::Bits;
pub(super) use column::TextColumn;
pub(super) use folded::{Folded, Needle};
pub(super) use shared::{TextId, Texts};

/// The longest text kept of one field, in bytes. A znode's page reads the whole value from ZooKeeper.
pub(super) const FIELD_LIMIT: usize = 512;

/// At most [`FIELD_LIMIT`] bytes of a text, with an ellipsis where it was cut.
pub(super) fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= FIELD_LIMIT {
        return text.into();
    }
    let mut end = FIELD_LIMIT - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "é".repeat(FIELD_LIMIT);
        let kept = cut(&text);
        assert!((FIELD_LIMIT - 1..=FIELD_LIMIT).contains(&kept.len()) && kept.ends_with("é…"), "{kept}");
        assert_eq!(cut("short"), "short");
    }
}
