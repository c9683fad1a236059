//! What fuzzing found stays found: everything in its corpus goes through the properties of its decoder again, without
//! libFuzzer.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

#[path = "../fuzz/properties/lib.rs"]
#[expect(unreachable_pub, reason = "to the fuzz targets it is a library")]
mod properties;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use properties::TARGETS;

/// The files in a folder of `fuzz`.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Gives each file to a decoder, and names those for which something does not hold.
fn replay(name: &str, check: fn(&[u8])) -> Vec<String> {
    let mut inputs = files(&format!("corpus/{name}"));
    assert!(!inputs.is_empty(), "there is no corpus for {name}");
    if name == "tree" {
        inputs.extend(files("trees"));
    }
    let fails = |input: &PathBuf| {
        let data = std::fs::read(input).unwrap();
        catch_unwind(AssertUnwindSafe(|| check(&data))).is_err()
    };
    inputs.iter().filter(|input| fails(input)).map(|input| input.display().to_string()).collect()
}

#[test]
fn whatever_fuzzing_came_upon_still_holds() {
    let failed: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = TARGETS.map(|(name, check)| scope.spawn(move || replay(name, check))).into();
        running.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "the reasons stand above; the inputs are {failed:#?}");
}

#[test]
fn every_corpus_and_every_target_belong_to_a_decoder() {
    let named = |folder: &str| -> Vec<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        files(folder).into_iter().map(stem).collect()
    };
    let known = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!(named("corpus"), known);
    assert_eq!(named("fuzz_targets"), known);
}
