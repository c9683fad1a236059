//! Two listings side by side, in the order of their keys.

use std::cmp::Ordering;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use queuekeeper_store::store::{Listed, Listing};
use queuekeeper_store::{Error, Key};

/// What two stores have by one key: at least one of them has an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both {
    /// What the source has.
    pub source: Option<Listed>,
    /// What the destination has.
    pub destination: Option<Listed>,
}

impl Both {
    /// The key of both.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.source.as_ref().or(self.destination.as_ref()).map(|listed| &listed.key)
    }
}

/// Merges the listing of a source and that of a destination: each key once, ascending, of memory as much as two items
/// need. It ends with the first error of either: what comes behind that is not known.
#[must_use]
pub fn merge(source: Listing, destination: Listing) -> BoxStream<'static, Result<Both, Error>> {
    let sides = (Side::new(source), Side::new(destination));
    stream::unfold(Some(sides), |sides| async move {
        let (mut source, mut destination) = sides?;
        match next(&mut source, &mut destination).await {
            Ok(None) => None,
            Ok(Some(both)) => Some((Ok(both), Some((source, destination)))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// One listing, with the item that comes next.
struct Side<S> {
    listing: S,
    head: Option<Listed>,
    has_ended: bool,
}

impl<S: Stream<Item = Result<Listed, Error>> + Unpin> Side<S> {
    fn new(listing: S) -> Self {
        Self { listing, head: None, has_ended: false }
    }

    /// Sees to it that the next item is there, where there is one.
    async fn fill(&mut self) -> Result<(), Error> {
        if self.head.is_none() && !self.has_ended {
            self.head = self.listing.next().await.transpose()?;
            self.has_ended = self.head.is_none();
        }
        Ok(())
    }
}

async fn next(source: &mut Side<Listing>, destination: &mut Side<Listing>) -> Result<Option<Both>, Error> {
    let (one, other) = futures::join!(source.fill(), destination.fill());
    one?;
    other?;
    let order = match (&source.head, &destination.head) {
        (None, None) => return Ok(None),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(one), Some(other)) => one.key.cmp(&other.key),
    };
    let take = |side: &mut Side<Listing>, behind: Ordering| if order == behind { None } else { side.head.take() };
    Ok(Some(Both { source: take(source, Ordering::Greater), destination: take(destination, Ordering::Less) }))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use queuekeeper_store::error::{ErrorKind, Operation};

    use super::*;

    fn listed(key: &[u8]) -> Listed {
        Listed {
            key: Key::new(key).unwrap(),
            size: key.len() as u64,
            modified: jiff::Timestamp::UNIX_EPOCH,
            etag: None,
        }
    }

    fn error() -> Error {
        let kind = ErrorKind::Unknown("it went away".to_owned());
        Error { store: "main".parse().unwrap(), operation: Operation::List, subject: "space".to_owned(), kind }
    }

    /// A listing that ends with an error after so many items, where it has more.
    fn listing(keys: &BTreeSet<Vec<u8>>, fails_after: usize) -> Listing {
        let items: Vec<_> = keys.iter().take(fails_after).map(|key| Ok(listed(key))).collect();
        let end = (fails_after < keys.len()).then(|| Err(error()));
        stream::iter(items.into_iter().chain(end)).boxed()
    }

    fn run(listing: BoxStream<'static, Result<Both, Error>>) -> Vec<Result<Both, Error>> {
        futures::executor::block_on(listing.collect())
    }

    proptest! {
        #[test]
        fn each_key_comes_once_with_what_both_have(
            one in btree_set(prop::collection::vec(any::<u8>(), 1..4), 0..20),
            other in btree_set(prop::collection::vec(any::<u8>(), 1..4), 0..20),
            fails in 0..30usize,
        ) {
            let all: BTreeMap<_, _> = one.union(&other).map(|key| (key.clone(), (one.contains(key), other.contains(key)))).collect();
            let merged = run(merge(listing(&one, usize::MAX), listing(&other, usize::MAX)));
            let seen: Vec<_> = merged.iter().map(|both| both.as_ref().unwrap()).collect();
            let seen: Vec<_> = seen.iter().map(|both| {
                let key = both.key().unwrap().as_bytes().to_vec();
                prop_assert!([&both.source, &both.destination].into_iter().flatten().all(|listed| listed.key.as_bytes() == key));
                Ok((key, (both.source.is_some(), both.destination.is_some())))
            }).collect::<Result<_, _>>()?;
            prop_assert_eq!(&seen, &all.into_iter().collect::<Vec<_>>());

            // Nothing is said of what comes behind an error: it may be there.
            let cut = run(merge(listing(&one, fails), listing(&other, usize::MAX)));
            let is_cut = fails < one.len();
            prop_assert_eq!(cut.iter().filter(|both| both.is_err()).count(), usize::from(is_cut));
            prop_assert_eq!(cut.last().is_some_and(Result::is_err), is_cut);
            let known: Vec<_> = cut.iter().flatten().collect();
            prop_assert!(known.iter().zip(&seen).all(|(both, seen)| both.key().unwrap().as_bytes() == seen.0));
            let limit = one.iter().nth(fails);
            prop_assert!(known.iter().all(|both| limit.is_none_or(|limit| both.key().unwrap().as_bytes() < limit.as_slice())));
        }
    }
}
