use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use queuekeeper_store::{Algorithm, Hashers};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::bag::BagError;
use super::*;

const ALGORITHMS: [Algorithm; 1] = [Algorithm::Sha256];

struct Fixture {
    directory: TempDir,
    file_root: FileRoot,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [root, temporary] = ["producer", "temporary"].map(|name| directory.path().join(name));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&temporary).unwrap();
        let file_root = FileRoot::open(&root, &temporary).unwrap();
        Self { directory, file_root }
    }

    fn unpack_within(&self, name: &str, bytes: &[u8], limits: &Limits) -> Result<Unpacked, ArchiveError> {
        let path = self.directory.path().join("archive");
        std::fs::write(&path, bytes).unwrap();
        let progress = Progress::default();
        let unpacked = unpack(File::open(path).unwrap(), name, &self.file_root, limits, &ALGORITHMS, &progress)?;
        assert_eq!(progress.written.load(Ordering::Relaxed), unpacked.bytes);
        Ok(unpacked)
    }

    fn unpack(&self, name: &str, bytes: &[u8]) -> Result<Unpacked, ArchiveError> {
        self.unpack_within(name, bytes, &Limits { entries: 100, bytes: 1 << 30, ratio: 500 })
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join("producer").join(name)).unwrap()
    }

    /// What lies beside the directory: nothing may get there.
    fn beside(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A tar of entries: name, type, content.
fn tarred(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // Unchecked, as a hostile archiver does.
        let bytes = name.as_bytes();
        header.as_mut_bytes()[..bytes.len().min(100)].copy_from_slice(&bytes[..bytes.len().min(100)]);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("target").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zipped(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).unix_permissions(*mode);
        if name.ends_with('/') {
            writer.add_directory(*name, options).unwrap();
        } else if *mode == 0o777 {
            writer.add_symlink(*name, "target", options).unwrap();
        } else {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn hex(content: &[u8], algorithm: Algorithm) -> String {
    let mut hashers = Hashers::new([algorithm]);
    hashers.update(content);
    hashers.finish().get(algorithm).unwrap().hex()
}

const FILE: EntryType = EntryType::Regular;
const FOLDER: EntryType = EntryType::Directory;

#[test]
fn every_form_is_unpacked_to_the_same_files_however_often() {
    let tar = tarred(&[
        ("./", FOLDER, b""),
        ("./a.txt", FILE, b"one"),
        ("empty/deep/", FOLDER, b""),
        ("empty/", FOLDER, b""),
        ("full/", FOLDER, b""),
        ("full/inner.tar.gz", FILE, b"left as it is"),
    ]);
    let zip = zipped(&[
        ("a.txt", 0o644, b"one"),
        ("empty/deep/", 0o755, b""),
        ("empty/", 0o755, b""),
        ("full/inner.tar.gz", 0o600, b"left as it is"),
    ]);
    let two = [gzip(&tar[..700]), gzip(&tar[700..])].concat();
    let zst = zstd::encode_all(&*tar, 1).unwrap();
    for (name, bytes) in [
        ("x.tar", &tar),
        ("x.tar.gz", &gzip(&tar)),
        ("X.TGZ", &two),
        ("x.tarz", &gzip(&tar)),
        ("x.tar.bz2", &bzip2(&tar)),
        ("x.tar.zst", &zst),
        ("x.zip", &zip),
    ] {
        let fixture = Fixture::new();
        let unpacked = fixture.unpack(name, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let files: Vec<_> = unpacked.files.iter().map(|file| (file.name.as_str(), file.size)).collect();
        assert_eq!(files, [("a.txt", 3), ("full/inner.tar.gz", 13)], "{name}");
        assert_eq!(unpacked.files[0].digests.get(Algorithm::Sha256).unwrap().hex(), hex(b"one", Algorithm::Sha256));
        assert_eq!(unpacked.empty_folders, ["empty/deep"], "{name}");
        assert_eq!(unpacked.warnings(), ["empty folders, which are not stored: \"empty/deep\""], "{name}");
        // An attempt that was killed may have left anything in their places.
        std::fs::write(fixture.directory.path().join("producer/a.txt"), "other").unwrap();
        fixture.file_root.begin("a.txt").unwrap().file().write_all(b"half of it").unwrap();
        assert_eq!(fixture.unpack(name, bytes).unwrap(), unpacked, "{name}");
        assert_eq!(
            (fixture.read("a.txt"), fixture.read("full/inner.tar.gz")),
            (b"one".to_vec(), b"left as it is".to_vec())
        );
        assert_eq!(std::fs::read_dir(fixture.directory.path().join("temporary")).unwrap().count(), 0, "{name}");
    }
    let fixture = Fixture::new();
    let single = fixture.unpack("data.csv.gz", &gzip(b"1,2")).unwrap();
    assert_eq!((single.files[0].name.as_str(), fixture.read("data.csv")), ("data.csv", b"1,2".to_vec()));
    assert!(fixture.unpack("x.rar", b"").unwrap_err().to_string().contains("does not end with any of .tar.gz"));
}

#[test]
fn what_is_hostile_is_refused_and_gets_nowhere() {
    let long = "d/".repeat(40) + "x";
    for (entries, message) in [
        (vec![("/etc/passwd", FILE)], "absolute"),
        (vec![("../x", FILE)], "'..'"),
        (vec![("a/../../x", FILE)], "'..'"),
        (vec![("a//b", FILE)], "empty part"),
        (vec![("a\nb", FILE)], "control character"),
        (vec![("../", FOLDER)], "'..'"),
        (vec![("link", EntryType::Symlink)], "a link"),
        (vec![("hard", EntryType::Link)], "a link"),
        (vec![("null", EntryType::Char)], "a device"),
        (vec![("disk", EntryType::Block)], "a device"),
        (vec![("pipe", EntryType::Fifo)], "a pipe"),
        (vec![("odd", EntryType::new(b'Z'))], "unknown type"),
        (vec![("a", FILE), ("a", FILE)], "occurs twice"),
        (vec![("a", FILE), ("./a", FILE)], "occurs twice"),
        (vec![("a", FILE), ("a/b", FILE)], "a file and a folder"),
        (vec![("a/b", FILE), ("a", FILE)], "a file and a folder"),
        (vec![("a", FILE), ("a/", FOLDER)], "a file and a folder"),
        (vec![(&long, FILE); 101], "occurs twice"),
    ] {
        let fixture = Fixture::new();
        let entries: Vec<_> = entries.iter().map(|(name, kind)| (*name, *kind, &b""[..])).collect();
        let error = fixture.unpack("x.tar", &tarred(&entries)).unwrap_err();
        assert!(error.to_string().contains(message) && error.is_final(), "{error}, not {message}");
        assert_eq!(fixture.beside(), ["archive", "producer", "temporary"]);
        assert!(!Path::new("/etc/passwd.part").exists());
    }
    let many: Vec<String> = (0..101).map(|at| format!("{at}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), FILE, &b""[..])).collect();
    let error = Fixture::new().unpack("x.tar", &tarred(&many)).unwrap_err();
    assert!(error.to_string().contains("more than 100 entries"), "{error}");
    for (entries, message) in [
        (vec![("../x", 0o644)], "'..'"),
        (vec![("/x", 0o644)], "absolute"),
        (vec![("link", 0o777)], "a link"),
        (vec![("a", 0o644), ("a/b", 0o644)], "a file and a folder"),
    ] {
        let entries: Vec<_> = entries.iter().map(|(name, mode)| (*name, *mode, &b""[..])).collect();
        let fixture = Fixture::new();
        let error = fixture.unpack("x.zip", &zipped(&entries)).unwrap_err();
        assert!(error.to_string().contains(message) && error.is_final(), "{error}, not {message}");
        assert_eq!(fixture.beside(), ["archive", "producer", "temporary"]);
    }
}

#[test]
fn what_is_too_large_ends_at_the_limit() {
    let zeros = vec![0; 70 << 20];
    let all = zstd::encode_all(&*tarred(&[("a", FILE, &zeros)]), 1).unwrap();
    let fixture = Fixture::new();
    let limits = Limits { entries: 10, bytes: 1 << 20, ratio: 500 };
    let error = fixture.unpack_within("x.tar.zst", &all, &limits).unwrap_err();
    assert!(matches!(error.cause(), ArchiveCause::TooManyBytes(_)), "{error}");
    for (name, bytes) in [("x.tar.zst", &all), ("x.zip", &zipped(&[("a", 0o644, &zeros)])), ("x.gz", &gzip(&zeros))] {
        let limits = Limits { entries: 10, bytes: 1 << 30, ratio: 2 };
        let error = fixture.unpack_within(name, bytes, &limits).unwrap_err();
        assert!(matches!(error.cause(), ArchiveCause::Ratio(2)), "{error}");
    }
    // A name of the length of a film, which the library would hold in memory.
    let name = vec![b'a'; 2 << 20];
    let long =
        zstd::encode_all(&*tarred(&[("././@LongLink", EntryType::GNULongName, &name), ("a", FILE, b"")]), 1).unwrap();
    let error = fixture.unpack("x.tar.zst", &long).unwrap_err();
    assert!(error.to_string().contains("headers are too large"), "{error}");
    let stopped = Progress::default();
    stopped.stop.store(true, Ordering::Relaxed);
    let path = fixture.directory.path().join("archive");
    std::fs::write(&path, tarred(&[("a", FILE, b"content")])).unwrap();
    let error = unpack(File::open(path).unwrap(), "x.tar", &fixture.file_root, &limits, &[], &stopped).unwrap_err();
    assert!(!error.is_final(), "{error}");
}

#[test]
fn names_are_utf_8_or_latin_1_and_similar_ones_are_reported() {
    let fixture = Fixture::new();
    let mut zip = zipped(&[("caf\u{65}X.txt", 0o644, b"one"), ("e\u{301}", 0o644, b""), ("\u{e9}", 0o644, b"")]);
    for at in 0..zip.len() - 8 {
        if zip[at..].starts_with(b"cafeX.txt") {
            zip[at + 3] = 0xe9;
        }
    }
    let unpacked = fixture.unpack("x.zip", &zip).unwrap();
    assert_eq!(unpacked.files[0].name, "caf\u{e9}X.txt");
    assert_eq!(unpacked.similar, [("e\u{301}".to_owned(), "\u{e9}".to_owned())]);
    let similar = "names that differ by Unicode normalization only: \"e\\u{301}\" and \"\u{e9}\"";
    assert_eq!(unpacked.warnings(), [similar]);
}

/// A change of a bag's files, each a name and a content.
type Change = fn(&mut Vec<(String, Vec<u8>)>);

/// A bag with one file, in a folder.
fn bagged(change: impl Fn(&mut Vec<(String, Vec<u8>)>)) -> Vec<u8> {
    let digest = |content: &[u8]| hex(content, Algorithm::Md5);
    let declaration = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".to_vec();
    let manifest = format!("{}  data/a%25b.txt\n{} data/sub/c\n", digest(b"one"), digest(b"")).into_bytes();
    let mut files = vec![
        ("bagit.txt".to_owned(), declaration.clone()),
        ("manifest-md5.txt".to_owned(), manifest.clone()),
        ("bag-info.txt".to_owned(), b"Source: me\nPayload-Oxum: 3.2\n".to_vec()),
        (
            "tagmanifest-md5.txt".to_owned(),
            format!("{} bagit.txt\n{} manifest-md5.txt\n", digest(&declaration), digest(&manifest)).into_bytes(),
        ),
        ("data/a%b.txt".to_owned(), b"one".to_vec()),
        ("data/sub/c".to_owned(), Vec::new()),
    ];
    change(&mut files);
    let named: Vec<_> = files.iter().map(|(name, content)| (format!("bag/{name}"), content)).collect();
    tarred(&named.iter().map(|(name, content)| (name.as_str(), FILE, content.as_slice())).collect::<Vec<_>>())
}

#[test]
fn a_bag_is_complete_and_valid_or_refused_by_what_is_wrong() {
    let validate = |tar: &[u8]| {
        let fixture = Fixture::new();
        let unpacked = fixture.unpack("bag.tar", tar).unwrap();
        bag::validate(&fixture.file_root, &unpacked.files)
    };
    let right = validate(&bagged(|_| {})).unwrap().unwrap();
    assert_eq!(
        (right.root.as_str(), right.version.as_str(), &*right.algorithms),
        ("bag/", "1.0", &[Algorithm::Md5][..])
    );
    assert!(validate(&tarred(&[("a", FILE, b"")])).unwrap().is_none());
    assert!(validate(&tarred(&[("x/a", FILE, b""), ("bag/bagit.txt", FILE, b"")])).unwrap().is_none());
    let cases: [(Change, &str); 8] = [
        (|files| files[4].1 = b"two".to_vec(), "manifest-md5.txt, line 1: file \"data/a%b.txt\" has the md5 digest"),
        (|files| drop(files.pop()), "manifest-md5.txt, line 2: file \"data/sub/c\" is not in the bag"),
        (|files| files.push(("data/more".to_owned(), Vec::new())), "file \"data/more\" is not in manifest-md5.txt"),
        (|files| files[1].1.extend(b"00 ../x\n"), "line 3: it is not a digest"),
        (|files| files[0].1 = b"BagIt-Version: 2.0\n".to_vec(), "BagIt-Version \"2.0\""),
        (|files| files[2].1 = b"Payload-Oxum: 4.2".to_vec(), "Payload-Oxum \"4.2\", but the payload 3.2"),
        (|files| files[1].0 = "manifest-blake9.txt".to_owned(), "no manifest with a supported algorithm"),
        (|files| files.push(("fetch.txt".to_owned(), b"http://a 1 data/x".to_vec())), "names files that are elsewhere"),
    ];
    for (change, message) in cases {
        let Err(BagError::Invalid(problems)) = validate(&bagged(change)) else { panic!("not refused: {message}") };
        assert!(problems.iter().any(|problem| problem.contains(message)), "{problems:?}, not {message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is cut off or damaged, nothing but whole files of right content appears, or an error is returned.
    #[test]
    fn no_damage_goes_unseen(kind in 0usize..4, at in 0usize..10_000, flip in 0u8..255, is_cut: bool) {
        let content: Vec<u8> = (0..3_000u32).map(|at| (at * at % 251).to_le_bytes()[0]).collect();
        let tar = tarred(&[("a", FILE, &content), ("b/c", FILE, &content[..1_000])]);
        let (name, mut bytes) = match kind {
            0 => ("x.tar.gz", gzip(&tar)),
            1 => ("x.tar.bz2", bzip2(&tar)),
            2 => ("x.zip", zipped(&[("a", 0o644, &content), ("b/c", 0o644, &content[..1_000])])),
            _ => ("x.tar", tar),
        };
        let at = at % bytes.len();
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        let fixture = Fixture::new();
        match fixture.unpack(name, &bytes) {
            Err(error) => prop_assert!(error.is_final(), "{}", error),
            Ok(unpacked) => {
                // A tar has no checksum of content, and padding means nothing.
                prop_assert!(kind == 3 || unpacked.files.iter().all(|file| file.size == 3_000 || file.size == 1_000 || file.size == 0));
                for file in &unpacked.files {
                    let read = fixture.read(&file.name);
                    prop_assert_eq!(hex(&read, Algorithm::Sha256), file.digests.get(Algorithm::Sha256).unwrap().hex());
                    if kind < 3 {
                        prop_assert!(read == content || read == content[..1_000], "{}", file.name);
                    }
                }
            }
        }
        prop_assert_eq!(fixture.beside(), ["archive", "producer", "temporary"]);
    }
}

#[test]
fn a_manifest_that_names_all_the_wrong_files_is_refused_in_one_short_sentence() {
    let fixture = Fixture::new();
    let validate = |rows: &str, files: &[(&str, EntryType, &[u8])]| {
        let text = format!("#%checkm_0.7\n{rows}#%eof\n");
        let own = [("mrt-manifest.txt", FILE, text.as_bytes())];
        let unpacked =
            fixture.unpack_within("x.tar", &tarred(&[&own, files].concat()), &Limits::bytes(1 << 30)).unwrap();
        manifest::validate(&fixture.file_root, &unpacked.files)
    };
    let refused = |result: Result<_, manifest::ContentsError>| {
        let error = result.err().unwrap();
        assert!(error.is_final());
        let message = error.to_string();
        assert!(message.len() < 1_000 && !message.contains('\n'), "{message}");
        message
    };
    let rows: Vec<_> = (0..100_000).map(|at| format!("{at}/file\n")).collect();
    let message = refused(validate(&rows.concat(), &[]));
    assert!(message.contains("file \"0/file\" of line 2 of") && message.ends_with(" more)"), "{message}");
    // What is read again is read no more where that much is wrong.
    let names: Vec<_> = (0..300).map(|at| at.to_string()).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), FILE, &b"one"[..])).collect();
    let wrong: Vec<_> = names.iter().map(|name| format!("{name} | md5 | {}\n", "0".repeat(32))).collect();
    let wrong = wrong.concat();
    let message = refused(validate(&wrong, &files));
    let (_, count) = message.rsplit_once(" (and at least ").unwrap();
    assert!(count.strip_suffix(" more)").unwrap().parse::<usize>().unwrap() < 100, "{message}");
    let right = wrong.replace(&"0".repeat(32), &hex(b"one", Algorithm::Md5));
    assert_eq!(validate(&right, &files).unwrap().unwrap().rows, 300);
    // Further down it is a file like any other.
    assert_eq!(validate("x/mrt-manifest.txt\n", &[("x/mrt-manifest.txt", FILE, b"")]).unwrap().unwrap().rows, 1);
}
