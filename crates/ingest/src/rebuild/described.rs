//! What the files of ingest say of a version.

use std::collections::HashMap;

use uuid::Uuid;

use crate::spec::uuid_of;
use crate::steps::cut;

/// What describes a version, besides its OCFL inventory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) owner: String,
    pub(super) collection: String,
    pub(super) batch: Option<Uuid>,
    pub(super) title: Option<String>,
    pub(super) creator: Option<String>,
    pub(super) date: Option<String>,
    pub(super) local_ids: Vec<String>,
}

impl Described {
    /// Reads `mrt-ingest.txt`, `mrt-owner.txt` and `mrt-erc.txt` of an object; an error is one sentence.
    pub(super) fn read(ark: &str, ingest: &str, owner: &str, erc: &str) -> Result<Self, String> {
        let values: HashMap<&str, &str> = ingest.lines().filter_map(|line| line.split_once(":\t")).collect();
        let text = |key: &str| values.get(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let collection = text("profile").ok_or("system/mrt-ingest.txt names no profile")?;
        let owner = owner.trim();
        if owner.is_empty() || owner.lines().count() != 1 {
            return Err("system/mrt-owner.txt does not name one owner".to_owned());
        }
        let mut places = erc.lines().filter_map(|line| line.strip_prefix("where: ")).map(str::trim);
        if places.next() != Some(ark) {
            return Err("system/mrt-erc.txt is not about this object".to_owned());
        }
        Ok(Self {
            owner: owner.to_owned(),
            collection,
            batch: text("batch").map(|batch| uuid_of(&batch, "bid-")),
            title: text("title").as_deref().map(cut),
            creator: text("creator").as_deref().map(cut),
            date: text("date").as_deref().map(cut),
            local_ids: places.filter(|id| !id.is_empty()).map(ToOwned::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARK: &str = "ark:/99999/fk4x";
    const ERC: &str = "erc:\nwho: A\nwhere: ark:/99999/fk4x\nwhere: an id; with more\nwhere: b\n";

    #[test]
    fn a_version_is_described_by_its_files_and_what_they_lack_is_named() {
        let ingest = "ingest:\tx\nbatch:\tbid-9c1a0b5e-0000-4000-8000-000000000001\nprofile:\tdemo\ntitle:\tA: title\n";
        let described = Described::read(ARK, ingest, "ark:/99999/owner\n", ERC).unwrap();
        assert_eq!((described.collection.as_str(), described.owner.as_str()), ("demo", "ark:/99999/owner"));
        assert_eq!((described.title.as_deref(), described.creator), (Some("A: title"), None));
        assert_eq!(described.batch.unwrap().to_string(), "9c1a0b5e-0000-4000-8000-000000000001");
        assert_eq!(described.local_ids, ["an id; with more", "b"]);
        let refused = |ingest: &str, owner: &str, erc: &str| Described::read(ARK, ingest, owner, erc).unwrap_err();
        assert_eq!(refused("title:\tx\n", "o", ERC), "system/mrt-ingest.txt names no profile");
        assert_eq!(refused(ingest, "a\nb\n", ERC), "system/mrt-owner.txt does not name one owner");
        assert_eq!(refused(ingest, "o", "where: ark:/99999/y\n"), "system/mrt-erc.txt is not about this object");
    }
}
