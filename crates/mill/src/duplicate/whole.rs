//! Objects of OCFL are copied so that a reader of the copy sees whole ones: content before the inventory of its
//! version, that before the root inventory, and that before its sidecar.
//!
//! What an inventory names was stored before it. So what the source lists after the inventory was looked at is all of
//! it, and the inventory is copied once the destination lists the same.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{TakenTask, TaskOutcome};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, Store};

use super::Places;
use super::decide::{self, Action};
use super::look::Side;
use crate::merge::merge;
use crate::missing::listing;

const INVENTORY: &[u8] = b"inventory.json";

/// How long to wait for what comes before an inventory, at first and at most: a quarter of the age of its task.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(10));

/// What an inventory, or its sidecar, is of.
struct Inventory<'a> {
    /// The key of its folder, with the slash.
    folder: &'a [u8],
    /// The key of its object, with the slash.
    object: &'a [u8],
    is_sidecar: bool,
}

/// An inventory by its name; whether there is an object is not known by that.
fn inventory(key: &[u8]) -> Option<Inventory<'_>> {
    let name_at = key.iter().rposition(|byte| *byte == b'/')? + 1;
    let (folder, name) = key.split_at(name_at);
    let rest = name.strip_prefix(INVENTORY)?;
    let is_sidecar = match rest.first() {
        None => false,
        Some(b'.') => true,
        Some(_) => return None,
    };
    let above = &folder[..folder.len() - 1];
    let last_at = above.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let is_version = is_version(&above[last_at..]);
    let object = if is_version { &folder[..last_at] } else { folder };
    Some(Inventory { folder, object, is_sidecar })
}

fn is_version(folder: &[u8]) -> bool {
    folder.strip_prefix(b"v").is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// How late an item of an object comes.
fn rank(within: &[u8]) -> u8 {
    let (is_root, name) = match within.iter().position(|byte| *byte == b'/') {
        None => (true, within),
        Some(at) if is_version(&within[..at]) => (false, &within[at + 1..]),
        Some(_) => return 0,
    };
    let rank = match name.strip_prefix(INVENTORY) {
        Some(b"") => 1,
        Some(rest) if rest.starts_with(b".") && !rest.contains(&b'/') => 2,
        _ => return 0,
    };
    if is_root { rank + 2 } else { rank }
}

/// How the task ends where the item has to wait for others of its object; `None` where it may be copied.
///
/// # Errors
/// When a store cannot be listed.
pub(super) async fn wait(
    catalogue: &Catalogue,
    task: &TakenTask,
    places: &Places<'_>,
    item: &Item,
) -> Result<Option<TaskOutcome>, String> {
    let Some(of) = inventory(item.key.as_bytes()) else { return Ok(None) };
    let declaration = [of.object, b"0=ocfl_object_"].concat();
    let declared = places.source.list(&places.space, &declaration, None).next().await;
    if declared.transpose().map_err(|error| error.to_string())?.is_none() {
        return Ok(None);
    }
    if is_ready(catalogue, places, item, &of).await? {
        return Ok(None);
    }
    let age = Timestamp::now().duration_since(task.created).unsigned_abs();
    Ok(Some(TaskOutcome::PutOff((age / 4).clamp(WAITS.0, WAITS.1))))
}

async fn is_ready(catalogue: &Catalogue, places: &Places<'_>, item: &Item, of: &Inventory<'_>) -> Result<bool, String> {
    let Places { source, destination, space, limits } = places;
    let own = rank(&item.key.as_bytes()[of.object.len()..]);
    let (here, there) =
        (listing(source, space, of.folder, None).await?, listing(destination, space, of.folder, None).await?);
    let mut both = merge(here, there);
    while let Some(both) = both.next().await {
        let both = both.map_err(|error| error.to_string())?;
        let Some(here) = &both.source else { continue };
        if limits.is_some_and(|limits| limits.leaves_out(&here.key).is_some()) {
            continue;
        }
        let is_there = both.destination.as_ref().is_some_and(|there| there.size == here.size);
        if !is_there && rank(&here.key.as_bytes()[of.object.len()..]) < own {
            return Ok(false);
        }
    }
    if !of.is_sidecar {
        return Ok(true);
    }
    // A root inventory may have had as many bytes before.
    let key = Key::new([of.folder, INVENTORY].concat()).map_err(|error| error.to_string())?;
    let inventory = Item::new(space.clone(), key);
    let look = async |store: &Arc<dyn Store>| Side::look(catalogue, store, &inventory).await;
    let (from, to) = (look(source).await?, look(destination).await?);
    let action = decide::item(from.seen().as_ref(), from.record(), to.seen().as_ref());
    Ok(matches!(action, Action::Nothing | Action::SetProperties | Action::Read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventories_come_after_content_and_that_of_the_root_after_those_of_versions() {
        let order = [
            "v1/content/job/producer/inventory.json",
            "v1/inventory.json",
            "v1/inventory.json.sha512",
            "inventory.json",
            "inventory.json.sha512",
        ];
        assert_eq!(order.map(|name| rank(name.as_bytes())), [0, 1, 2, 3, 4]);
        for early in
            ["0=ocfl_object_1.1", "v1/x", "extensions/inventory.json", "vx/inventory.json", "v1/inventory.jsonl"]
        {
            assert_eq!(rank(early.as_bytes()), 0, "{early}");
        }
    }

    #[test]
    fn an_inventory_is_known_by_its_name() {
        let of = |key: &'static str| inventory(key.as_bytes()).map(|of| (of.folder, of.object, of.is_sidecar));
        assert_eq!(of("a/b/inventory.json"), Some((&b"a/b/"[..], &b"a/b/"[..], false)));
        assert_eq!(of("a/b/v12/inventory.json.sha512"), Some((&b"a/b/v12/"[..], &b"a/b/"[..], true)));
        assert_eq!(of("v1/inventory.json"), Some((&b"v1/"[..], &b""[..], false)));
        for other in ["inventory.json", "a/inventory.jsonl", "a/my-inventory.json", "a/inventory.json/x"] {
            assert!(of(other).is_none(), "{other}");
        }
    }
}
