//! What must hold of an inventory besides its form.

use super::relations::{split_digest, split_version, version_key};
use super::{Failure, Inventory};
use crate::ocfl::path::{self, Ascending, Clash};

/// Checks what holds between the parts of an inventory; says what does not.
pub(super) fn check(inventory: &Inventory) -> Result<(), Failure> {
    manifest(inventory)?;
    states(inventory)?;
    digests(inventory)?;
    fixity(inventory)
}

fn manifest(inventory: &Inventory) -> Result<(), Failure> {
    let head = inventory.head();
    let mut before = Ascending::default();
    for record in inventory.relations.content.all() {
        let record = record?;
        let path = path::text(record.key())?;
        let shown = || path::shown(path);
        before.next(path).map_err(|clash| clashing(&clash, path, "content path", ""))?;
        let folder = path.split_once("/content/").map(|(folder, _)| folder);
        let version = folder.and_then(|folder| folder.strip_prefix('v')?.parse::<u32>().ok());
        let is_in_version = |version: u32| (1..=head).contains(&version) && folder == Some(&format!("v{version}"));
        if !version.is_some_and(is_in_version) {
            let why = format!("content path {:?} does not begin with v1/content/ to v{head}/content/", shown());
            return Err(Failure::Form(why));
        }
        if path.len() > path::MOST_KEY_BYTES {
            let why = format!("content path {:?} is longer than {} bytes", shown(), path::MOST_KEY_BYTES);
            return Err(Failure::Form(why));
        }
    }
    Ok(())
}

fn states(inventory: &Inventory) -> Result<(), Failure> {
    let (mut before, mut number) = (Ascending::default(), 0);
    for record in inventory.relations.states.all() {
        let record = record?;
        let (version, path) = split_version(record.key())?;
        if number != version {
            (before, number) = (Ascending::default(), version);
        }
        let path = path::text(path)?;
        before.next(path).map_err(|clash| clashing(&clash, path, "path", &format!(" in version {number}")))?;
    }
    Ok(())
}

fn clashing(clash: &Clash, path: &str, what: &str, place: &str) -> Failure {
    let path = path::shown(path);
    Failure::Form(match clash {
        Clash::Twice => format!("{what} {path:?} comes twice{place}"),
        Clash::Inside(folder) => format!("{what} {:?} is a file and the folder of {path:?}", path::shown(folder)),
    })
}

/// Each digest of a version must be in the manifest.
fn digests(inventory: &Inventory) -> Result<(), Failure> {
    for number in 1..=inventory.head() {
        let mut manifest = inventory.relations.manifest.all();
        for record in inventory.relations.states_by_digest.within(&version_key(number)) {
            let record = record?;
            let (_, file) = split_version(record.key())?;
            let (digest, path) = split_digest(file)?;
            manifest.seek(digest)?;
            if !manifest.peek()?.is_some_and(|content| content.key().starts_with(digest)) {
                let path = path::shown(path);
                return Err(Failure::Form(format!(
                    "the digest of {path:?} in version {number} is not in the manifest"
                )));
            }
        }
    }
    Ok(())
}

fn fixity(inventory: &Inventory) -> Result<(), Failure> {
    let mut content = inventory.relations.content.all();
    for record in inventory.relations.fixity_by_path.all() {
        let record = record?;
        if !content.has(record.key())? {
            let path = path::shown(path::text(record.key())?);
            return Err(Failure::Form(format!("the fixity block names {path:?}, which is not in the manifest")));
        }
    }
    Ok(())
}
