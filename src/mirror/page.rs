//! Lists in pages.
//!
//! A page goes on after the key of the last item of the page before, and not after a number of items: items that come
//! and go meanwhile neither show twice nor are left out. Every key ends with what distinguishes items, such as an id.

use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use super::cursor::InvalidCursor;
use super::find::PAGE_LIMIT;

/// Which part of a list is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Where to begin; `None` for the first page.
    pub after: Option<Cursor>,
    /// How many items, 1 to [`PAGE_LIMIT`].
    pub size: usize,
}

impl PageRequest {
    /// The key after which to go on, in a list of that order.
    pub(super) fn key<K: DeserializeOwned>(&self, order: &str) -> Result<Option<K>, InvalidCursor> {
        self.after.as_ref().map(|cursor| cursor.key(order)).transpose()
    }
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// It is not known yet what is in the queue.
    #[error("the queue has not been read yet")]
    NoImage,
    /// The cursor is none of this list.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order; at most as many as were requested, and [`PAGE_LIMIT`].
    pub items: Vec<T>,
    /// How many items the whole list has.
    pub total: u64,
    /// How many of them come before this page.
    pub before: u64,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The same page of something else.
    #[must_use]
    pub fn map<U>(self, map: impl FnMut(T) -> U) -> Page<U> {
        let Self { items, total, before, next } = self;
        Page { items: items.into_iter().map(map).collect(), total, before, next }
    }
}

impl<T> Page<Option<T>> {
    /// The same page without what is not there any more.
    pub(super) fn flatten(self) -> Page<T> {
        let Self { items, total, before, next } = self;
        Page { items: items.into_iter().flatten().collect(), total, before, next }
    }
}

/// A place in a list: the order that the list is in, and the key of the item after which to go on.
///
/// As text it is opaque, and safe in an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    order: String,
    key: serde_json::Value,
}

impl Cursor {
    /// The place after an item's key, in a list of that order.
    pub(super) fn after(order: &str, key: &impl Serialize) -> Option<Self> {
        Some(Self { order: order.to_owned(), key: serde_json::to_value(key).ok()? })
    }

    /// The key, if this is a place in a list of that order.
    pub(super) fn key<K: DeserializeOwned>(&self, order: &str) -> Result<K, InvalidCursor> {
        if self.order != order {
            return Err(InvalidCursor);
        }
        K::deserialize(&self.key).map_err(|_| InvalidCursor)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::json!([self.order, self.key]).to_string();
        text.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(InvalidCursor),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Result<Vec<_>, _> = pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect();
        let (order, key) = serde_json::from_slice(&bytes?).map_err(|_| InvalidCursor)?;
        if rest.is_empty() { Ok(Self { order, key }) } else { Err(InvalidCursor) }
    }
}

/// Picks a page out of items that come in any order, without sorting those that are not on it.
#[derive(Debug)]
pub(super) struct Picker<K> {
    after: Option<K>,
    size: usize,
    total: u64,
    before: u64,
    /// The first keys of the page and of what comes behind it, the last of them on top.
    first: BinaryHeap<K>,
}

impl<K: Ord> Picker<K> {
    /// Picks `size` items (1 to [`PAGE_LIMIT`]), those that come next after a key.
    pub(super) fn new(after: Option<K>, size: usize) -> Self {
        let size = size.clamp(1, PAGE_LIMIT);
        Self { after, size, total: 0, before: 0, first: BinaryHeap::with_capacity(size + 2) }
    }

    /// Takes note of an item of the list.
    pub(super) fn offer(&mut self, key: K) {
        self.total += 1;
        if self.after.as_ref().is_some_and(|after| key <= *after) {
            self.before += 1;
        } else if self.first.len() <= self.size {
            self.first.push(key);
        } else if let Some(mut last) = self.first.peek_mut()
            && key < *last
        {
            *last = key;
        }
    }

    /// The last key that is on the page or just behind it, once these are filled: what is greater need not be offered.
    pub(super) fn limit(&self) -> Option<&K> {
        self.first.peek().filter(|_| self.first.len() > self.size)
    }

    /// Says how many items the list has, where not all of them were offered, and how many of those come before the
    /// page.
    pub(super) fn of(self, total: usize, skipped: usize) -> Self {
        Self { total: total as u64, before: self.before + skipped as u64, ..self }
    }

    /// The page of an order. `item` gives what a key stands for.
    pub(super) fn page<T>(self, order: &str, item: impl FnMut(&K) -> T) -> Page<T>
    where
        K: Serialize,
    {
        let Self { size, total, before, first, .. } = self;
        let mut keys = first.into_sorted_vec();
        let has_more = keys.len() > size;
        keys.truncate(size);
        let next = keys.last().filter(|_| has_more).and_then(|key| Cursor::after(order, key));
        Page { items: keys.iter().map(item).collect(), total, before, next }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_one_after_the_other_are_the_sorted_list(
            mut keys in proptest::collection::btree_set((-3i64..3, "[a-b\u{1f}\"é]{0,3}", any::<u32>()), 0..60),
            size in 1usize..9,
        ) {
            let mut cursor: Option<Cursor> = None;
            let mut seen = Vec::new();
            loop {
                let after = cursor.as_ref().map(|cursor| cursor.key("value").unwrap());
                let mut picker = Picker::new(after, size);
                keys.iter().rev().for_each(|key| picker.offer(key.clone()));
                let page = picker.page("value", Clone::clone);
                prop_assert_eq!(page.total, keys.len() as u64);
                prop_assert_eq!(page.before, seen.len() as u64);
                prop_assert!(page.items.len() == size || page.next.is_none());
                seen.extend(page.items);
                match page.next {
                    Some(next) => cursor = Some(next.to_string().parse().unwrap()),
                    None => break,
                }
            }
            prop_assert_eq!(&seen, &keys.iter().cloned().collect::<Vec<_>>());
            // What goes away behind a cursor moves nothing of what comes after it.
            if let (Some(cursor), Some(first)) = (cursor, seen.first()) {
                keys.remove(first);
                let mut picker = Picker::new(Some(cursor.key("value").unwrap()), size);
                for key in &keys {
                    picker.offer(key.clone());
                }
                let last = picker.page("value", Clone::clone);
                prop_assert!(seen.ends_with(&last.items));
            }
        }

        #[test]
        fn any_text_is_a_cursor_or_refused(text in "\\PC{0,40}|[0-9a-f]{0,40}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
            }
        }
    }

    #[test]
    fn a_cursor_goes_on_in_its_own_list_only() {
        let cursor = Cursor::after("age", &(5, "x")).unwrap();
        assert_eq!(cursor.key::<(i64, String)>("age"), Ok((5, "x".to_owned())));
        assert_eq!(cursor.key::<(i64, String)>("id"), Err(InvalidCursor));
        assert_eq!(cursor.key::<(i64, i64)>("age"), Err(InvalidCursor));
        for text in ["", "0", "zz", "5b", "É", "5B5D"] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
