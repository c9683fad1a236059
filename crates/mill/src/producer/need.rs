//! Whether an item needs a look, by what listings and the index say.

use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_store::StoreName;
use queuekeeper_store::store::Listed;

use crate::merge::Both;

/// Whether an item gets a task: unless both stores have it as the index says, and the index says that they have the
/// same.
pub(super) fn needs_task(
    both: &Both,
    known: Option<&IndexedItem>,
    source: &StoreName,
    destination: &StoreName,
) -> bool {
    let copy = |store: &StoreName| known.and_then(|item| item.copies.iter().find(|copy| copy.store == *store));
    let (from, to) = (copy(source), copy(destination));
    match (&both.source, &both.destination) {
        (Some(here), Some(there)) => {
            let (Some(from), Some(to)) = (from, to) else { return true };
            !is_as_recorded(here, from) || !is_as_recorded(there, to) || from.digests.agree(&to.digests) != Some(true)
        }
        (Some(_), None) => true,
        // What the source never had is foreign: no task changes it.
        (None, Some(_)) => from.is_some(),
        (None, None) => false,
    }
}

fn is_as_recorded(listed: &Listed, copy: &Copy) -> bool {
    let is_same_state = listed.etag.is_some() && listed.etag == copy.etag;
    !copy.is_deleted && copy.size == listed.size && is_same_state
}
