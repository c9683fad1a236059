//! What to do to a copy, by a look at both sides: a pure function of what was seen.

use queuekeeper_store::Digests;
use queuekeeper_store::store::UserProperties;

/// A space as a store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceState {
    /// There is none.
    Missing,
    /// It has no item.
    Empty,
    /// It has items.
    Full,
}

/// What to do to the copy of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceAction {
    /// It is as it should be.
    Nothing,
    /// Make it.
    Create,
    /// Delete it: it is empty, and its source is gone.
    Delete,
    /// Leave it and say so: it has items, and its source is gone.
    Orphan,
}

/// What to do to the copy of a space.
#[must_use]
pub fn space(source: SpaceState, destination: SpaceState) -> SpaceAction {
    use SpaceState::{Empty, Full, Missing};
    match (source, destination) {
        (Empty | Full, Missing) => SpaceAction::Create,
        (Empty | Full, Empty | Full) | (Missing, Missing) => SpaceAction::Nothing,
        (Missing, Empty) => SpaceAction::Delete,
        (Missing, Full) => SpaceAction::Orphan,
    }
}

/// An item as a store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Its size in bytes.
    pub size: u64,
    /// Its digests: those that the store keeps of the whole content, and those in the content index where that is of
    /// the state which the store has.
    pub digests: Digests,
    /// What a user says of it, in the form in which both stores can hold it.
    pub user: UserProperties,
}

/// What the content index says of an item at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Nothing: it was never recorded there.
    Never,
    /// That it is there.
    Living,
    /// That it was deleted.
    Deleted,
}

/// What to do to the copy of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is as it should be.
    Nothing,
    /// Write it; nothing is there.
    Copy,
    /// Write it over other content: counted by the brake.
    Overwrite,
    /// Read what is there, and decide again with its digests: nothing that is known says whether it is the same.
    Read,
    /// Replace what a user says of it.
    SetProperties,
    /// Delete it: its source was deleted. Counted by the brake, and done after a delay.
    Delete,
    /// Fail: the source has lost it.
    Lost,
    /// Leave it and say so: its source never had it.
    Foreign,
}

/// What to do to the copy of an item, by what the source and the destination have, and what the index says of the
/// source.
#[must_use]
pub fn item(source: Option<&StoredItem>, record: Record, destination: Option<&StoredItem>) -> Action {
    match (source, record, destination) {
        (Some(_), _, None) => Action::Copy,
        (Some(source), _, Some(destination)) => match is_same(source, destination) {
            Some(false) => Action::Overwrite,
            None => Action::Read,
            Some(true) if source.user != destination.user => Action::SetProperties,
            Some(true) => Action::Nothing,
        },
        (None, Record::Living, _) => Action::Lost,
        (None, Record::Deleted, Some(_)) => Action::Delete,
        (None, Record::Never, Some(_)) => Action::Foreign,
        (None, Record::Deleted | Record::Never, None) => Action::Nothing,
    }
}

/// Whether both have the same content, as far as is known.
fn is_same(source: &StoredItem, destination: &StoredItem) -> Option<bool> {
    if source.size == destination.size { source.digests.agree(&destination.digests) } else { Some(false) }
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::{Algorithm, Digest};

    use super::*;

    fn seen(number: u8, algorithm: Algorithm, bytes: usize, content_type: &str) -> StoredItem {
        let digests = Digests::from_iter([Digest::new(algorithm, &vec![number; bytes]).unwrap()]);
        let user = UserProperties { content_type: Some(content_type.to_owned()), ..UserProperties::default() };
        StoredItem { size: 7, digests, user }
    }

    #[test]
    fn each_row_of_the_table_for_spaces() {
        use SpaceState::{Empty, Full, Missing};
        for (source, destination, action) in [
            (Empty, Missing, SpaceAction::Create),
            (Full, Missing, SpaceAction::Create),
            (Empty, Empty, SpaceAction::Nothing),
            (Empty, Full, SpaceAction::Nothing),
            (Full, Empty, SpaceAction::Nothing),
            (Full, Full, SpaceAction::Nothing),
            (Missing, Missing, SpaceAction::Nothing),
            (Missing, Empty, SpaceAction::Delete),
            (Missing, Full, SpaceAction::Orphan),
        ] {
            assert_eq!(space(source, destination), action, "{source:?} {destination:?}");
        }
    }

    #[test]
    fn each_row_of_the_table_for_items() {
        use Record::{Deleted, Living, Never};
        let one = seen(1, Algorithm::Sha256, 32, "text/plain");
        let other = seen(2, Algorithm::Sha256, 32, "text/plain");
        let longer = StoredItem { size: 8, ..one.clone() };
        let html = seen(1, Algorithm::Sha256, 32, "text/html");
        let incomparable = seen(1, Algorithm::Md5, 16, "text/plain");
        let bare = StoredItem { digests: Digests::default(), ..one.clone() };
        let longer_and_bare = StoredItem { size: 8, ..bare.clone() };
        let there = |destination| {
            [(Some(&one), Never, destination), (Some(&one), Living, destination), (Some(&one), Deleted, destination)]
        };
        for (rows, action) in [
            (there(None), Action::Copy),
            (there(Some(&other)), Action::Overwrite),
            (there(Some(&longer)), Action::Overwrite),
            (there(Some(&longer_and_bare)), Action::Overwrite),
            (there(Some(&incomparable)), Action::Read),
            (there(Some(&bare)), Action::Read),
            (there(Some(&html)), Action::SetProperties),
            (there(Some(&one)), Action::Nothing),
        ] {
            for (source, record, destination) in rows {
                assert_eq!(item(source, record, destination), action, "{record:?} {destination:?}");
            }
        }
        for (record, destination, action) in [
            (Deleted, Some(&one), Action::Delete),
            (Living, Some(&one), Action::Lost),
            (Living, None, Action::Lost),
            (Never, Some(&one), Action::Foreign),
            (Deleted, None, Action::Nothing),
            (Never, None, Action::Nothing),
        ] {
            assert_eq!(item(None, record, destination), action, "{record:?}");
        }
    }
}
