//! Containers: zip and tar in their compressions, single compressed files, and `BagIt` bags and manifests in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use queuekeeper_ingest::file_root::FileRoot;
use queuekeeper_ingest::name;
use queuekeeper_ingest::unpack::{Limits, Progress, Unpacked, bag, manifest, unpack};
use queuekeeper_store::Algorithm;

use super::shown;

/// What containers are called, one of each form.
const NAMES: [&str; 8] = ["a.zip", "a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.zst", "a.gz", "a.bz2", "a.tgz"];

/// The bytes that an archive may become here.
const MOST_BYTES: u64 = 4 << 20;

/// Unpacks what follows the first byte, which chooses the form.
///
/// # Panics
/// When something but plain files is unpacked, something lies outside of its place or beyond its limit, what is listed
/// is not what lies there, an error is not one line, or a second time has another result.
pub fn check(data: &[u8]) {
    let Some((first, archive)) = data.split_first() else { return };
    let form = NAMES[usize::from(*first) % NAMES.len()];
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let [root, temporary] = ["producer", "temporary"].map(|name| directory.path().join(name));
    std::fs::create_dir(&root).expect("a directory can be made");
    std::fs::create_dir(&temporary).expect("a directory can be made");
    let file = directory.path().join("archive");
    std::fs::write(&file, archive).expect("a file can be written");
    let place = FileRoot::open(&root, &temporary).expect("its directories are there");

    let limits = Limits { entries: 200, bytes: MOST_BYTES, ratio: 500 };
    let unpack = || {
        let source = File::open(&file).expect("it was written");
        unpack(source, form, &place, &limits, &[Algorithm::Sha256], &Progress::default())
    };
    let first = unpack();
    let mut beside: Vec<_> = std::fs::read_dir(directory.path())
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().into_string().expect("all names are ours"))
        .collect();
    beside.sort();
    assert_eq!(beside, ["archive", "producer", "temporary"], "nothing is unpacked beside the place");
    let mut found = BTreeMap::new();
    walk(&root, "", &mut found);
    assert!(found.values().sum::<u64>() <= MOST_BYTES, "no more is unpacked than allowed");
    match &first {
        Ok(unpacked) => {
            listed(unpacked, &found);
            assert_eq!(unpack().ok().as_ref(), Some(unpacked), "unpacked again, it is the same");
            match bag::validate(&place, &unpacked.files) {
                Ok(_) => {}
                Err(error) => shown::error(&error, 16_384),
            }
            match manifest::validate(&place, &unpacked.files) {
                Ok(_) => {}
                Err(error) => {
                    shown::error(&error, 16_384);
                    assert!(error.is_final(), "nothing is wrong here but the manifest: {error}");
                }
            }
        }
        Err(error) => {
            shown::error(error, 4_096);
            assert!(error.is_final(), "nothing is wrong here but the archive: {error}");
        }
    }
}

/// Checks that the files which are listed are those that were found.
fn listed(unpacked: &Unpacked, found: &BTreeMap<String, u64>) {
    let listed: BTreeMap<String, u64> = unpacked.files.iter().map(|file| (file.name.clone(), file.size)).collect();
    assert_eq!(&listed, found, "what is listed lies there");
    assert_eq!(listed.len(), unpacked.files.len(), "no name is listed twice");
    assert_eq!(unpacked.bytes, found.values().sum::<u64>(), "the bytes are those of all files");
    for name in listed.keys() {
        assert_eq!(name::check(name), Ok(()), "a file may be called {name:?}");
    }
}

/// The plain files beneath a directory, with their sizes.
fn walk(directory: &Path, before: &str, found: &mut BTreeMap<String, u64>) {
    for entry in std::fs::read_dir(directory).expect("it is there") {
        let entry = entry.expect("it can be read");
        let name = format!("{before}{}", entry.file_name().into_string().expect("a name is UTF-8"));
        let metadata = entry.path().symlink_metadata().expect("it is there");
        if metadata.is_dir() {
            walk(&entry.path(), &format!("{name}/"), found);
        } else {
            assert!(metadata.is_file(), "{name:?} is no plain file");
            found.insert(name, metadata.len());
        }
    }
}
