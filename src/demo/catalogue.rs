//! The collections of the demo and their depositors. None of them exists.

/// One KiB, MiB, and so on.
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;

/// A collection and what its depositors send.
#[derive(Debug)]
pub(super) struct Collection {
    /// The mnemonic, which is the value of `profile`.
    pub(super) mnemonic: &'static str,
    /// The owner of its objects; a part of the names of local id locks.
    pub(super) owner: &'static str,
    /// Its depositors, as `submitter` spells them.
    pub(super) submitters: &'static [&'static str],
    /// The creators of the objects.
    pub(super) creators: &'static [&'static str],
    /// The titles of the objects, each followed by a number.
    pub(super) titles: &'static [&'static str],
    /// The prefix of file names and local ids.
    pub(super) prefix: &'static str,
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
        owner: "ark_99999_fk4demo01",
        submitters: &["uc3user/UC3 User", "uc3deposit/UC3 Deposit Service"],
        creators: &["Robbins", "Okafor", "Lindqvist"],
        titles: &["RBN", "OKF field notes", "LDQ sample set"],
        prefix: "rbn",
        ending: "zip",
        shoulder: "fk4",
        sizes: (MIB, 600 * MIB),
        weight: 5,
    },
    Collection {
        mnemonic: "coastal_etd",
        owner: "ark_99999_fk4demo02",
        submitters: &["etd_batch/Graduate Division ETD", "hmora/Helena Mora"],
        creators: &["Tran, Minh Anh", "Oduya, Grace", "Castellanos, Iv\u{e1}n", "Fujimoto, Ren", "Bauer, Lea"],
        titles: &["Dissertation", "Master's thesis", "Supplementary data"],
        prefix: "etd",
        ending: "zip",
        shoulder: "fk8",
        sizes: (MIB, 90 * MIB),
        weight: 6,
    },
    Collection {
        mnemonic: "valley_herbarium",
        owner: "ark_99999_fk4demo03",
        submitters: &["herbscan/Herbarium Imaging", "pnaidu/Priya Naidu"],
        creators: &["Valley Herbarium"],
        titles: &["Quercus lobata, sheet", "Arctostaphylos viscida, sheet", "Eschscholzia californica, sheet"],
        prefix: "vh",
        ending: "tif.zip",
        shoulder: "fk3",
        sizes: (80 * MIB, 2 * GIB),
        weight: 5,
    },
    Collection {
        mnemonic: "harbor_newspapers",
        owner: "ark_99999_fk4demo04",
        submitters: &["dlp-ingest/Digital Library Program"],
        creators: &["Harbor Gazette", "El Faro del Puerto"],
        titles: &["Harbor Gazette, reel", "El Faro del Puerto, n\u{fa}mero"],
        prefix: "hn_reel",
        ending: "checkm",
        shoulder: "fk2",
        sizes: (2 * GIB, 24 * GIB),
        weight: 2,
    },
    Collection {
        mnemonic: "oral_history_av",
        owner: "ark_99999_fk4demo05",
        submitters: &["ohcenter/Oral History Center", "tbell/Thomas Bell"],
        creators: &["Oral History Center"],
        titles: &["Interview with a cannery worker", "Interview with a lighthouse keeper", "Town meeting"],
        prefix: "ohc",
        ending: "mov.zip",
        shoulder: "fk7",
        sizes: (GIB, 40 * GIB),
        weight: 2,
    },
    Collection {
        mnemonic: "open_datasets",
        owner: "ark_99999_fk4demo06",
        submitters: &["datashare/Data Share Service"],
        creators: &["Nkemelu, A.", "Petrov, D.", "Silva, M. & Roy, T."],
        titles: &["Data from: Tidal mixing", "Data from: Soil respiration", "Data from: Bird song dialects"],
        prefix: "dryd",
        ending: "zip",
        shoulder: "fk6",
        sizes: (MIB, 8 * GIB),
        weight: 5,
    },
    Collection {
        mnemonic: "mission_maps",
        owner: "ark_99999_fk4demo07",
        submitters: &["mapsroom/Map Room"],
        creators: &["Surveyor General", "unknown"],
        titles: &["Rancho survey", "Harbor chart", "Aerial photograph"],
        prefix: "map",
        ending: "zip",
        shoulder: "fk5",
        sizes: (60 * MIB, 1_200 * MIB),
        weight: 3,
    },
];

/// The collection whose urgent submissions fill working storage.
pub(super) const FILMS: Collection = Collection {
    mnemonic: "film_archive_8k",
    owner: "ark_99999_fk4demo08",
    submitters: &["filmlab/Film Preservation Lab"],
    creators: &["Film Preservation Lab"],
    titles: &["Nitrate print, 8K scan, reel"],
    prefix: "nitrate",
    ending: "dpx.tar",
    shoulder: "fk9",
    sizes: (430 * GIB, 560 * GIB),
    weight: 1,
};

/// The reason for the hold.
pub(super) const HOLD_REASON: &str = "the depositor asked us to wait for corrected manifests";

/// The collections that an operator holds, one after the other.
pub(super) const HELD_IN_TURN: &[&str] = &["mission_maps", "coastal_etd", "valley_herbarium"];
