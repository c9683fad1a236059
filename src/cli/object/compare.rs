//! Compares what the catalogue has recorded of an object with its OCFL inventory and with the sizes in the store.

use std::collections::HashSet;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::inventory::{File, Object, Version};
use queuekeeper_store::ocfl::Inventory;
use queuekeeper_store::{Algorithm, Item, Key};
use serde::Serialize;

use crate::cli::exit::{CommandError, FAILED};
use crate::cli::repository::Located;

/// How many differences are listed; the others are counted.
const MOST_LISTED: usize = 1000;

/// How many rows are read at once.
const PAGE: u32 = 1000;

/// A difference, on one line.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    /// What it is of: a file relative to the root of the object, or a version or a file as the catalogue has it.
    pub(super) of: String,
    pub(super) what: String,
}

/// The differences of an object.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// At most 1,000.
    pub(super) listed: Vec<Difference>,
    pub(super) count: u64,
}

impl Differences {
    pub(super) fn add(&mut self, of: impl Into<String>, what: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push(Difference { of: of.into(), what: what.into() });
        }
    }
}

/// Compares the rows of an object with its inventory, both ways.
pub(super) async fn compare_rows(
    catalogue: &Catalogue,
    recorded: &Object,
    located: &Located,
    inventory: &Inventory,
    found: &mut Differences,
) -> anyhow::Result<()> {
    let head = inventory.head();
    if recorded.current_version != head {
        let what =
            format!("the newest version is {} in the catalogue and {head} in the inventory", recorded.current_version);
        found.add("object", what);
    }
    let mut seen = HashSet::new();
    let mut before = None;
    loop {
        let versions = catalogue.versions(&recorded.ark, before, PAGE).await.map_err(failed)?;
        let Some(last) = versions.last() else { break };
        before = Some(last.number);
        for version in &versions {
            seen.insert(version.number);
            compare_version(catalogue, &recorded.ark, version, located, inventory, found).await?;
        }
    }
    for number in (1..=head).filter(|number| !seen.contains(number)) {
        found.add(format!("version {number}"), "it is not in the catalogue");
    }
    Ok(())
}

async fn compare_version(
    catalogue: &Catalogue,
    ark: &str,
    version: &Version,
    located: &Located,
    inventory: &Inventory,
    found: &mut Differences,
) -> anyhow::Result<()> {
    let number = version.number;
    let of = format!("version {number}");
    let Some(info) = inventory.version(number) else {
        found.add(of, "it is in the catalogue, but not in the inventory");
        return Ok(());
    };
    match info.job() {
        Some(job) if job == version.job => {}
        Some(job) => {
            found.add(&of, format!("its job is {} in the catalogue and {job} in the inventory", version.job));
        }
        None => {
            found.add(&of, format!("its job is {} in the catalogue, but the inventory names none", version.job));
        }
    }
    let mut paths = HashSet::new();
    let mut after = String::new();
    loop {
        let files = catalogue.files(ark, number, &after, PAGE).await.map_err(failed)?;
        let Some(last) = files.last() else { break };
        after.clone_from(&last.path);
        for file in files {
            compare_file(number, &file, located, inventory, found).await?;
            paths.insert(file.path);
        }
    }
    for file in inventory.files(number) {
        let file = file?;
        if !paths.contains(&file.path) {
            found.add(format!("version {number}, {:?}", file.path), "it is not in the catalogue");
        }
    }
    Ok(())
}

async fn compare_file(
    number: u32,
    file: &File,
    located: &Located,
    inventory: &Inventory,
    found: &mut Differences,
) -> anyhow::Result<()> {
    let of = format!("version {number}, {:?}", file.path);
    let Some(entry) = inventory.file(number, &file.path)? else {
        found.add(of, "it is in the catalogue, but not in the inventory");
        return Ok(());
    };
    if file.content_path != entry.content_path {
        let what = format!(
            "its path is {:?} in the catalogue and {:?} in the inventory",
            file.content_path, entry.content_path
        );
        found.add(&of, what);
    }
    match file.digests.get(Algorithm::Sha512) {
        Some(digest) if *digest == entry.digest => {}
        Some(digest) => {
            found.add(&of, format!("its sha512 is {digest} in the catalogue and {} in the inventory", entry.digest));
        }
        None => found.add(&of, "its sha512 is not in the catalogue"),
    }
    let key = Key::new(format!("{}/{}", located.object.root(), entry.content_path).into_bytes())?;
    let item = Item::new(located.space.clone(), key);
    let there = located.store.head(&item).await.map_err(|error| CommandError::new(FAILED, error.to_string()))?;
    // A file that is missing is a finding where the content is read.
    if let Some(there) = there.filter(|there| there.size != file.size) {
        found.add(of, format!("it has {} bytes in the catalogue and {} in the store", file.size, there.size));
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err calls it")]
fn failed(error: queuekeeper_catalogue::Error) -> CommandError {
    CommandError::new(FAILED, error.to_string())
}
