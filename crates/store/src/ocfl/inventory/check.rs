//! What must hold of an inventory besides its form.

use super::Inventory;
use crate::ocfl::path;
use crate::ocfl::strings::StringId;

/// Checks what holds between the parts of an inventory; says what does not.
pub(super) fn check(inventory: Inventory) -> Result<Inventory, String> {
    let inner = folders_that_are_paths(&inventory);
    manifest(&inventory, &inner)?;
    states(&inventory, &inner)?;
    fixity(&inventory)?;
    Ok(inventory)
}

/// Pairs of a path and a folder of it that is a path of the inventory, too: one of them may be in a version, not both.
/// There is next to none, so that this is cheaper than to sort the paths of every version.
fn folders_that_are_paths(inventory: &Inventory) -> Vec<(StringId, StringId)> {
    let paths = &inventory.paths;
    let pairs = paths.iter().flat_map(|(id, path)| path::folders(path).map(move |folder| (id, folder)));
    pairs.filter_map(|(id, folder)| Some((id, paths.find(folder)?))).collect()
}

fn manifest(inventory: &Inventory, inner: &[(StringId, StringId)]) -> Result<(), String> {
    let head = inventory.head();
    let mut is_content = vec![false; inventory.paths.len()];
    for entry in &inventory.manifest {
        let path = inventory.paths.get(entry.path);
        let shown = || path::shown(path);
        if std::mem::replace(&mut is_content[entry.path as usize], true) {
            return Err(format!("content path {:?} comes twice", shown()));
        }
        let folder = path.split_once("/content/").map(|(folder, _)| folder);
        let version = folder.and_then(|folder| folder.strip_prefix('v')?.parse::<u32>().ok());
        let is_in_version = |version: u32| (1..=head).contains(&version) && folder == Some(&format!("v{version}"));
        if !version.is_some_and(is_in_version) {
            return Err(format!("content path {:?} does not begin with v1/content/ to v{head}/content/", shown()));
        }
        if path.len() > path::MOST_KEY_BYTES {
            return Err(format!("content path {:?} is longer than {} bytes", shown(), path::MOST_KEY_BYTES));
        }
    }
    conflict(inventory, inner, |id| is_content[id as usize], "content path")
}

fn states(inventory: &Inventory, inner: &[(StringId, StringId)]) -> Result<(), String> {
    let mut has_content = vec![false; inventory.digests.len()];
    for entry in &inventory.manifest {
        has_content[entry.digest as usize] = true;
    }
    for (number, version) in (1_u32..).zip(&inventory.versions) {
        if let Some(twice) = version.state.windows(2).find(|pair| pair[0].path == pair[1].path) {
            let path = path::shown(inventory.paths.get(twice[0].path));
            return Err(format!("path {path:?} comes twice in version {number}"));
        }
        if let Some(entry) = version.state.iter().find(|entry| !has_content[entry.digest as usize]) {
            let path = path::shown(inventory.paths.get(entry.path));
            return Err(format!("the digest of {path:?} in version {number} is not in the manifest"));
        }
        let is_there = |id| version.state.binary_search_by_key(&id, |entry| entry.path).is_ok();
        conflict(inventory, inner, is_there, "path")?;
    }
    Ok(())
}

fn conflict(
    inventory: &Inventory,
    inner: &[(StringId, StringId)],
    is_there: impl Fn(StringId) -> bool,
    what: &str,
) -> Result<(), String> {
    match inner.iter().find(|(path, folder)| is_there(*path) && is_there(*folder)) {
        None => Ok(()),
        Some((path, folder)) => {
            let [path, folder] = [path, folder].map(|id| path::shown(inventory.paths.get(*id)));
            Err(format!("{what} {folder:?} is a file and the folder of {path:?}"))
        }
    }
}

fn fixity(inventory: &Inventory) -> Result<(), String> {
    let is_content = inventory.content_flags();
    match inventory.fixity.iter().find(|entry| !is_content[entry.path as usize]) {
        None => Ok(()),
        Some(entry) => {
            let path = path::shown(inventory.paths.get(entry.path));
            Err(format!("the fixity block names {path:?}, which is not in the manifest"))
        }
    }
}
