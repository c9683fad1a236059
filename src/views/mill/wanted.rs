//! Which copies a policy wants, and whether they are what their source is.

use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::Policy;
use queuekeeper_store::{SpaceName, StoreName};

/// The pairs of stores that a policy wants a space copied between.
pub(super) fn pairs<'a>(
    account: &'a Account,
    policy: &'a Policy,
    space: &SpaceName,
) -> impl Iterator<Item = (&'a StoreName, &'a StoreName)> {
    let pairs = policy.pairs(space).iter();
    pairs.filter_map(|pair| account.stores.get(&pair.source).zip(account.stores.get(&pair.destination)))
}

/// Whether a store has not what its source has, as far as the content index tells. What the source never had is
/// foreign, and no copy of it; what is left out may be anything.
pub(super) fn differs(account: &Account, item: &IndexedItem, source: &StoreName, destination: &StoreName) -> bool {
    if account.leaves_out(destination, &item.key).is_some() {
        return false;
    }
    let copy = |store: &StoreName| item.copies.iter().find(|copy| copy.store == *store);
    let is_living = |copy: &&Copy| !copy.is_deleted;
    match (copy(source), copy(destination).filter(is_living)) {
        (None, _) => false,
        (Some(from), None) => !from.is_deleted,
        (Some(from), Some(_)) if from.is_deleted => true,
        (Some(from), Some(to)) => from.size != to.size || from.digests.agree(&to.digests) == Some(false),
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::{Digests, Key};

    use super::*;

    fn copy(store: &str, size: u64, is_deleted: bool) -> Copy {
        Copy {
            store: store.parse().unwrap(),
            size,
            digests: Digests::default(),
            etag: None,
            properties: None,
            seq: 1,
            is_deleted,
            proven: None,
        }
    }

    #[test]
    fn a_copy_differs_where_it_is_to_be_made_changed_or_deleted_and_not_where_it_is_foreign() {
        let (main, replica) = ("main".parse().unwrap(), "replica".parse().unwrap());
        let differs = |copies: Vec<Copy>| {
            let item = IndexedItem { key: Key::new(b"a".as_slice()).unwrap(), copies };
            super::differs(&Account::default(), &item, &main, &replica)
        };
        assert!(differs(vec![copy("main", 1, false)]));
        assert!(differs(vec![copy("main", 1, false), copy("replica", 1, true)]));
        assert!(differs(vec![copy("main", 1, false), copy("replica", 2, false)]));
        assert!(differs(vec![copy("main", 1, true), copy("replica", 1, false)]));
        assert!(!differs(vec![copy("main", 1, false), copy("replica", 1, false)]));
        assert!(!differs(vec![copy("main", 1, true), copy("replica", 1, true)]));
        assert!(!differs(vec![copy("replica", 1, false)]));
    }
}
