//! The collections of the demo and their depositors. None of them exists.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// One KiB, and one MiB.
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

/// What one object of a collection is deposited as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One file.
    File,
    /// A container: a tar of its files.
    Container,
    /// A manifest of its files.
    Manifest,
}

/// A collection and what its depositors send.
#[derive(Debug)]
pub(super) struct Collection {
    /// The mnemonic, which is the value of `profile`.
    pub(super) mnemonic: &'static str,
    /// The name of the ARK that owns its objects.
    pub(super) owner: &'static str,
    /// Its depositors, as `submitter` spells them.
    pub(super) submitters: &'static [&'static str],
    /// The creators of the objects.
    pub(super) creators: &'static [&'static str],
    /// The titles of the objects, each followed by a number.
    pub(super) titles: &'static [&'static str],
    /// The prefix of file names and local ids.
    pub(super) prefix: &'static str,
    /// What each object is deposited as.
    pub(super) form: Form,
    /// The extension of file names.
    pub(super) ending: &'static str,
    /// The shoulder under which its ARKs are minted.
    pub(super) shoulder: &'static str,
    /// The smallest and largest objects, in bytes.
    pub(super) sizes: (u64, u64),
    /// Its share of all submissions.
    pub(super) weight: u32,
}

pub(super) const COLLECTIONS: &[Collection] = &[
    Collection {
        mnemonic: "merritt_demo_content",
        owner: "fk4demo01",
        submitters: &["uc3user/UC3 User", "uc3deposit/UC3 Deposit Service"],
        creators: &["Robbins", "Okafor", "Lindqvist"],
        titles: &["RBN", "OKF field notes", "LDQ sample set"],
        prefix: "rbn",
        form: Form::Container,
        ending: "tar",
        shoulder: "fk4",
        sizes: (4 * KIB, 90 * KIB),
        weight: 5,
    },
    Collection {
        mnemonic: "coastal_etd",
        owner: "fk4demo02",
        submitters: &["etd_batch/Graduate Division ETD", "hmora/Helena Mora"],
        creators: &["Tran, Minh Anh", "Oduya, Grace", "Castellanos, Iv\u{e1}n", "Fujimoto, Ren", "Bauer, Lea"],
        titles: &["Dissertation", "Master's thesis", "Supplementary data"],
        prefix: "etd",
        form: Form::File,
        ending: "pdf",
        shoulder: "fk8",
        sizes: (3 * KIB, 60 * KIB),
        weight: 6,
    },
    Collection {
        mnemonic: "valley_herbarium",
        owner: "fk4demo03",
        submitters: &["herbscan/Herbarium Imaging", "pnaidu/Priya Naidu"],
        creators: &["Valley Herbarium"],
        titles: &["Quercus lobata, sheet", "Arctostaphylos viscida, sheet", "Eschscholzia californica, sheet"],
        prefix: "vh",
        form: Form::Manifest,
        ending: "checkm",
        shoulder: "fk3",
        sizes: (12 * KIB, 160 * KIB),
        weight: 5,
    },
    Collection {
        mnemonic: "harbor_newspapers",
        owner: "fk4demo04",
        submitters: &["dlp-ingest/Digital Library Program"],
        creators: &["Harbor Gazette", "El Faro del Puerto"],
        titles: &["Harbor Gazette, reel", "El Faro del Puerto, n\u{fa}mero"],
        prefix: "hn_reel",
        form: Form::Manifest,
        ending: "checkm",
        shoulder: "fk2",
        sizes: (60 * KIB, 400 * KIB),
        weight: 2,
    },
    Collection {
        mnemonic: "oral_history_av",
        owner: "fk4demo05",
        submitters: &["ohcenter/Oral History Center", "tbell/Thomas Bell"],
        creators: &["Oral History Center"],
        titles: &["Interview with a cannery worker", "Interview with a lighthouse keeper", "Town meeting"],
        prefix: "ohc",
        form: Form::File,
        ending: "mov",
        shoulder: "fk7",
        sizes: (80 * KIB, 800 * KIB),
        weight: 2,
    },
    Collection {
        mnemonic: "open_datasets",
        owner: "fk4demo06",
        submitters: &["datashare/Data Share Service"],
        creators: &["Nkemelu, A.", "Petrov, D.", "Silva, M. & Roy, T."],
        titles: &["Data from: Tidal mixing", "Data from: Soil respiration", "Data from: Bird song dialects"],
        prefix: "dryd",
        form: Form::Container,
        ending: "tar",
        shoulder: "fk6",
        sizes: (6 * KIB, 120 * KIB),
        weight: 5,
    },
    Collection {
        mnemonic: "mission_maps",
        owner: "fk4demo07",
        submitters: &["mapsroom/Map Room"],
        creators: &["Surveyor General", "unknown"],
        titles: &["Rancho survey", "Harbor chart", "Aerial photograph"],
        prefix: "map",
        form: Form::File,
        ending: "tif",
        shoulder: "fk5",
        sizes: (20 * KIB, 120 * KIB),
        weight: 3,
    },
];

/// The collection whose urgent submissions fill working storage.
pub(super) const FILMS: Collection = Collection {
    mnemonic: "film_archive_8k",
    owner: "fk4demo08",
    submitters: &["filmlab/Film Preservation Lab"],
    creators: &["Film Preservation Lab"],
    titles: &["Nitrate print, 8K scan, reel"],
    prefix: "nitrate",
    form: Form::File,
    ending: "dpx",
    shoulder: "fk9",
    sizes: (13 * MIB, 14 * MIB),
    weight: 1,
};

/// The reason for the hold.
pub(super) const HOLD_REASON: &str = "the depositor asked us to wait for corrected manifests";

/// The collections that an operator holds, one after the other.
pub(super) const HELD_IN_TURN: &[&str] = &["mission_maps", "coastal_etd", "valley_herbarium"];

/// All collections.
pub(super) fn all() -> impl Iterator<Item = &'static Collection> {
    COLLECTIONS.iter().chain([&FILMS])
}

/// The collection with this mnemonic.
pub(super) fn find(mnemonic: &str) -> Option<&'static Collection> {
    all().find(|each| each.mnemonic == mnemonic)
}

impl Collection {
    /// Its profile, as the daemons read it; its depositors' files are at `origin`.
    pub(super) fn profile(&self, origin: SocketAddr) -> String {
        let Self { mnemonic, owner, shoulder, .. } = self;
        let mut text = format!(
            "# Made up: there is no such collection.
name: {mnemonic}
owner: ark:/99999/{owner}
store: main
minter: {{kind: noid, shoulder: ark:/99999/{shoulder}}}
notification: {{addresses: [{mnemonic}@example.edu]}}
internal_hosts: [\"{origin}\"]
"
        );
        if *mnemonic == FILMS.mnemonic {
            text.push_str(
                "# A depositor of films has waited for the projector, and is always in a hurry.\npriority: 1\n",
            );
        }
        if *mnemonic == CALLED_BACK {
            // A String takes everything.
            let _ = writeln!(text, "callback: http://{origin}/callbacks");
        }
        text
    }
}

/// The collection whose depositor is called back for each object.
pub(super) const CALLED_BACK: &str = "open_datasets";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use queuekeeper_ingest::profile::Profiles;

    use super::*;

    #[test]
    fn every_collection_has_a_profile_that_the_daemons_take() {
        let here = tempfile::tempdir().unwrap();
        for collection in all() {
            let text = collection.profile("127.0.0.1:8080".parse().unwrap());
            std::fs::write(here.path().join(format!("{}.yaml", collection.mnemonic)), text).unwrap();
        }
        let profiles = Profiles::read(here.path()).unwrap();
        assert_eq!(profiles.errors(), []);
        assert!(all().all(|collection| profiles.get(collection.mnemonic).is_some()));
        let owners: BTreeSet<_> = all().map(|collection| collection.owner).collect();
        assert_eq!(owners.len(), all().count(), "local ids of one owner are one object");
        assert!(find(CALLED_BACK).is_some() && HELD_IN_TURN.iter().all(|held| find(held).is_some()));
    }
}
