//! The comparison of what a store lists and what the content index has, without reading content.
//!
//! Both are gone through side by side, a page at a time, so that a space of any size needs the memory of one page. What
//! differs is looked at again before it counts: at the store by its properties, and at the record before and after
//! that, since an item may have been changed between the listing and the look at the index. A listing has no checksums:
//! that the one of a store is another one, with the size and entity tag that are recorded, is found by checks alone.

use std::collections::BTreeMap;
use std::time::Duration;

use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_catalogue::bit::ItemRecords;
use queuekeeper_catalogue::tasks::{TaskKind, TaskSubject};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};
use serde::Serialize;
use tokio::time::sleep;

use super::checker::{CheckedSpace, Checker, said};
use super::coverage::Amount;
use super::decide::is_same;
use super::intended::is_being_stored;
use super::page::{Known, Range, is_listed_as_indexed};
use super::report::line;
use super::verdict::{Fixity, Sighting};
use super::verify::Scope;
use super::{evidence, look};
use crate::worker::Lease;

/// How often an item that is being changed is looked at, and how long after each look.
const CHANGING: (u32, Duration) = (3, Duration::from_millis(200));

/// How the listing of a store and the content index differ by one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// It is recorded, and not stored.
    Missing,
    /// It is stored, and nothing was ever recorded of it.
    NotRecorded,
    /// It is stored, and recorded as found there, and as no content.
    Observed,
    /// It is stored, and recorded as deleted.
    Deleted,
    /// It has another size.
    Size,
    /// It has another checksum, as the store says.
    Checksum,
    /// It has another entity tag, and no other checksum: it was written again, or its state is not known to the index.
    EntityTag,
}

impl DifferenceKind {
    /// All of them, the gravest first.
    pub const ALL: [Self; 7] =
        [Self::Missing, Self::NotRecorded, Self::Observed, Self::Deleted, Self::Size, Self::Checksum, Self::EntityTag];

    /// The name in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// What it is, in words: the rest of a sentence after a number of items.
    #[must_use]
    pub fn words(self) -> &'static str {
        self.names().1
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("missing", "recorded, not stored"),
            Self::NotRecorded => ("not_recorded", "stored, not recorded"),
            Self::Observed => ("observed", "stored, not recorded (noted by a check)"),
            Self::Deleted => ("deleted", "stored, recorded as deleted"),
            Self::Size => ("size", "with another size"),
            Self::Checksum => ("checksum", "with another checksum"),
            Self::EntityTag => ("entity_tag", "with another entity tag"),
        }
    }
}

/// A key by which the listing of a store and the content index differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The key.
    pub key: Key,
    /// How they differ.
    pub kind: DifferenceKind,
    /// How many bytes the store has; `None` where it has no such item.
    pub stored: Option<u64>,
    /// How many bytes are recorded; `None` where no content is.
    pub recorded: Option<u64>,
}

impl Difference {
    /// The first line of a table of differences.
    #[must_use]
    pub fn tsv_header() -> String {
        line(["account", "store", "space", "key", "difference", "stored_bytes", "recorded_bytes"])
    }

    /// Its line in a table: the key percent-encoded, so that any bytes are text.
    #[must_use]
    pub fn tsv(&self, account: &str, store: &StoreName) -> String {
        let Self { space, key, kind, stored, recorded } = self;
        let [stored, recorded] = [stored, recorded].map(|bytes| bytes.map(|bytes| bytes.to_string()));
        line([
            account,
            store.as_str(),
            space.as_str(),
            &key.encoded(),
            kind.as_str(),
            &stored.unwrap_or_default(),
            &recorded.unwrap_or_default(),
        ])
    }
}

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// What is stored as it is recorded.
    pub agreeing: Amount,
    /// What differs, with the bytes that are stored, or where nothing is, that are recorded.
    pub differences: BTreeMap<DifferenceKind, Amount>,
    /// How many items were being changed at each look: nothing is said of them.
    pub changing: u64,
}

impl Compared {
    /// How many items differ.
    #[must_use]
    pub fn differing(&self) -> u64 {
        self.differences.values().map(|amount| amount.items).sum()
    }

    /// Adds what another one came to.
    pub fn add(&mut self, other: &Self) {
        self.agreeing = self.agreeing + other.agreeing;
        self.changing += other.changing;
        for (kind, amount) in &other.differences {
            self.count(*kind, *amount);
        }
    }

    fn count(&mut self, kind: DifferenceKind, amount: Amount) {
        let of = self.differences.entry(kind).or_default();
        *of = *of + amount;
    }
}

/// The comparison of one space, which goes on page by page.
pub(super) struct SpaceComparison<'a> {
    checker: &'a Checker,
    place: CheckedSpace,
    space: SpaceName,
    behind: Option<Key>,
    has_ended: bool,
    /// What it came to so far.
    pub(super) compared: Compared,
}

/// What a second look at an item found.
enum Second {
    Agrees(Amount),
    Differs(Difference, Amount),
    Changing,
}

impl Checker {
    /// The spaces of a scope, as the account names them.
    pub(super) async fn compared_spaces(&self, scope: &Scope) -> Result<Vec<SpaceName>, String> {
        let account = self.account_of(scope)?;
        match (&scope.space, &scope.key) {
            (_, Some(_)) => Err("a space is compared as a whole".to_owned()),
            (Some(space), None) if space.is_reserved() => {
                Err(format!("the space {space} is reserved and has no content of users"))
            }
            (Some(space), None) => Ok(vec![space.clone()]),
            (None, None) => self.spaces(account, &scope.store).await,
        }
    }

    /// The comparison of a space of a scope.
    pub(super) fn comparison(&self, scope: &Scope, space: SpaceName) -> Result<SpaceComparison<'_>, String> {
        let account = self.account_of(scope)?;
        let subject = TaskSubject {
            kind: TaskKind::Bit,
            account: account.name.clone(),
            space: space.clone(),
            key: None,
            destination: Some(scope.store.clone()),
        };
        let place = self.place_of(account, &subject)?;
        let compared = Compared::default();
        Ok(SpaceComparison { checker: self, place, space, behind: None, has_ended: false, compared })
    }
}

impl SpaceComparison<'_> {
    /// The differences of the next page; `None` behind the last one.
    pub(super) async fn page(&mut self) -> Result<Option<Vec<Difference>>, String> {
        if self.has_ended {
            return Ok(None);
        }
        let range = Range { behind: self.behind.as_ref(), last: None, number: 0 };
        let keys = self.checker.keys(&self.place, &range, &Lease::unlimited()).await?;
        let mut differences = Vec::new();
        for (key, known) in &keys.known {
            if let Some(agreeing) = agrees(known) {
                self.compared.agreeing = self.compared.agreeing + agreeing;
                continue;
            }
            match self.second_look(key).await? {
                Second::Agrees(amount) => self.compared.agreeing = self.compared.agreeing + amount,
                Second::Changing => self.compared.changing += 1,
                Second::Differs(difference, amount) => {
                    self.compared.count(difference.kind, amount);
                    differences.push(difference);
                }
            }
        }
        self.has_ended = keys.cut.is_none();
        self.behind = keys.cut;
        Ok(Some(differences))
    }

    async fn second_look(&self, key: &Key) -> Result<Second, String> {
        let item = Item::new(self.place.space.clone(), key.clone());
        let (catalogue, store) = (&self.checker.catalogue, self.place.store.name());
        let records = async || catalogue.records_of_item(store, &item).await.map_err(said);
        for look in 0..CHANGING.0 {
            if look > 0 {
                sleep(CHANGING.1).await;
            }
            let before = records().await?;
            let (sighting, state) = look::ask(&self.place.store, &item).await?;
            let is_changing = catalogue.is_changing(store, &item).await.map_err(said)?;
            if is_changing || records().await? != before {
                continue;
            }
            let stored = match sighting {
                Sighting::Present(fixity) => Some(fixity),
                Sighting::Missing | Sighting::NotLooked => None,
            };
            let index = before.as_ref().and_then(|records| records.index.as_ref());
            let is_same_state = index.is_some_and(|index| state.is_some() && index.etag == state);
            let recorded = evidence::index(before.as_ref());
            let kind = match (&stored, &recorded) {
                (None, None) => return Ok(Second::Agrees(Amount::default())),
                (None, Some(_)) => DifferenceKind::Missing,
                (Some(_), None) if is_being_stored(catalogue, store, &item).await? => continue,
                (Some(_), None) => self.unrecorded(&item, before.as_ref()).await?,
                (Some(stored), Some(recorded)) => match differs(stored, recorded, is_same_state) {
                    Some(kind) => kind,
                    None => return Ok(Second::Agrees(Amount { items: 1, bytes: stored.size })),
                },
            };
            let (stored, recorded) = (stored.map(|fixity| fixity.size), recorded.map(|fixity| fixity.size));
            let amount = Amount { items: 1, bytes: stored.or(recorded).unwrap_or_default() };
            let difference = Difference { space: self.space.clone(), key: key.clone(), kind, stored, recorded };
            return Ok(Second::Differs(difference, amount));
        }
        Ok(Second::Changing)
    }

    /// How an item is stored that has no content by the index.
    async fn unrecorded(&self, item: &Item, records: Option<&ItemRecords>) -> Result<DifferenceKind, String> {
        let of = Events::Item(self.place.store.name().clone(), item.clone());
        let newest = self.checker.catalogue.events(&of, None, 1).await.map_err(said)?;
        let is_observed = newest.first().is_some_and(|event| event.kind == EventKind::Observed);
        let of_index = records.and_then(|records| records.index.as_ref()).map(|index| index.is_deleted);
        let of_audit = records.and_then(|records| records.audit.as_ref()).map(|audit| audit.is_deleted);
        let is_deleted = of_index.or(of_audit) == Some(true) && of_audit != Some(false);
        Ok(match (is_observed, is_deleted) {
            (true, _) => DifferenceKind::Observed,
            (false, true) => DifferenceKind::Deleted,
            (false, false) => DifferenceKind::NotRecorded,
        })
    }
}

/// What is listed as the index has it; `None` where that is not so, or there is neither.
fn agrees(known: &Known) -> Option<Amount> {
    let index = known.records.as_ref().and_then(|records| records.index.as_ref()).filter(|index| !index.is_deleted);
    match (&known.listed, index) {
        (Some(listed), Some(index)) if is_listed_as_indexed(listed, index) => {
            Some(Amount { items: 1, bytes: listed.size })
        }
        // It was deleted, and is not there.
        (None, None) => Some(Amount::default()),
        (_, _) => None,
    }
}

/// How what is stored differs from what is recorded, where it does.
fn differs(stored: &Fixity, recorded: &Fixity, is_same_state: bool) -> Option<DifferenceKind> {
    if stored.size != recorded.size {
        return Some(DifferenceKind::Size);
    }
    match (is_same(stored, recorded), is_same_state) {
        (Some(false), _) => Some(DifferenceKind::Checksum),
        (_, true) => None,
        (_, false) => Some(DifferenceKind::EntityTag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_difference_has_a_name_of_its_own() {
        for kind in DifferenceKind::ALL {
            assert_eq!(DifferenceKind::named(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn what_is_stored_differs_by_size_then_by_checksum_then_by_its_state() {
        use queuekeeper_store::Algorithm::Sha256;
        use queuekeeper_store::{Hashers, digest::Digests};
        let of = |text: &[u8]| -> Fixity {
            let mut hashers = Hashers::new([Sha256]);
            hashers.update(text);
            Fixity { size: text.len() as u64, digests: hashers.finish() }
        };
        let bare = |size| Fixity { size, digests: Digests::default() };
        for (stored, recorded, is_same_state, expected) in [
            (of(b"one"), of(b"one"), true, None),
            (of(b"one"), of(b"one"), false, Some(DifferenceKind::EntityTag)),
            (of(b"one"), of(b"two"), true, Some(DifferenceKind::Checksum)),
            (of(b"one"), of(b"two"), false, Some(DifferenceKind::Checksum)),
            (of(b"one"), of(b"three"), true, Some(DifferenceKind::Size)),
            (bare(3), of(b"one"), true, None),
            (bare(3), of(b"one"), false, Some(DifferenceKind::EntityTag)),
            (bare(4), of(b"one"), true, Some(DifferenceKind::Size)),
        ] {
            assert_eq!(differs(&stored, &recorded, is_same_state), expected, "{stored:?} {recorded:?}");
        }
    }
}
