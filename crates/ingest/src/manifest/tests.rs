use std::collections::BTreeSet;

use ::url::Url;
use proptest::prelude::*;
use queuekeeper_store::{Algorithm, Digest, Digests, Hashers};

use super::*;
use crate::name;

const PROFILES: &str = "http://uc3.cdlib.org/registry/ingest/manifest/";

fn reader(text: &str) -> Reader<&[u8]> {
    Reader::new(text.as_bytes(), Limits::default(), None)
}

fn manifest(profile: &str, rows: &str) -> String {
    format!("#%checkm_0.7\n#%profile | {PROFILES}{profile}\n{rows}\n#%eof\n")
}

fn rows(text: &str) -> Vec<ManifestRow> {
    let mut reader = reader(text);
    let rows = reader.by_ref().map(|(_, row)| row).collect();
    reader.finish().unwrap_or_else(|error| panic!("{error}\n{text}"));
    rows
}

/// Each problem as it is shown.
fn problems(text: &str) -> Vec<String> {
    let error = reader(text).finish().expect_err(text);
    error.problems().iter().map(ToString::to_string).collect()
}

fn digest(algorithm: Algorithm) -> Digest {
    let mut hashers = Hashers::new([algorithm]);
    hashers.update(b"content");
    hashers.finish().strongest().unwrap().clone()
}

#[test]
fn a_manifest_as_depositors_send_it_is_read() {
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    let text = format!(
        "\u{feff}#%checkm_0.7\r\n# a comment\r\n#%profile | {PROFILES}mrt-ingest-manifest\r\n\
         #%prefix | anything\r\n#%columns | in | wrong | order\r\n\r\n\
         http://a.edu/x/one.txt | MD5 | {md5} | 12 | 2010-06-02T13:54:43-07:00 | dir/o%20n%7ce.txt | text/plain | more\r\n\
         \thttp://a.edu/two%20b.txt?key=1|||\r\
         https://a.edu/3 | crc32 | 1f | 0 | - | three %7C%41 \n\n  \n# end\n#%EOF\n\n# after\n"
    );
    let read = rows(&text);
    let names: Vec<_> = read.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["dir/o n|e.txt", "two b.txt", "three %7C%41"]);
    assert_eq!(read[0].digest.as_ref().map(Digest::hex).as_deref(), Some(md5));
    assert_eq!((read[0].size, read[0].mime_type.as_deref()), (Some(12), Some("text/plain")));
    assert_eq!(read[0].modified.as_deref(), Some("2010-06-02T13:54:43-07:00"));
    assert_eq!(
        read[1],
        ManifestRow { url: read[1].url.clone(), name: "two b.txt".to_owned(), ..ManifestRow::default() }
    );
    assert_eq!(read[1].url.as_ref().unwrap().reveal().query(), Some("key=1"));
    assert_eq!(read[2].digest.as_ref().map(Digest::hex).as_deref(), Some("0000001f"));

    let batch = "http://a.edu/1 | | | | | m.txt | ark:/99999/fk4 | a ; b;a;; | Me%7cYou | A  title\t2 | 1999\n\
                 http://a.edu/2 | | | | | m.txt |  | c\n\
                 http://a.edu/x/y/?key=1";
    let [first, second, third] = rows(&manifest("mrt-container-batch-manifest", batch)).try_into().unwrap();
    assert_eq!(
        (first.local_ids.as_slice(), first.primary_id.as_deref()),
        (&["a".into(), "b".into()][..], Some("ark:/99999/fk4"))
    );
    assert_eq!((first.creator.as_deref(), first.title.as_deref()), (Some("Me|You"), Some("A  title\t2")));
    assert_eq!((second.name.as_str(), second.local_ids.as_slice()), ("m.txt", &["c".to_owned()][..]));

    assert_eq!(third.name, "xy");

    // With an expected profile, none needs to be named; the old registry is known.
    let bare = "http://a.edu/1\n#%eof";
    let read = |text: &str| Reader::new(text.as_bytes(), Limits::default(), Some(ManifestProfile::Ingest)).finish();
    assert_eq!(read(bare).unwrap().unstated_sizes, 1);
    let old = format!("#%profile | http://uc3.cdlib.org/registry/mrt/mrt-ingest-manifest \n{bare}");
    assert_eq!(read(&old).unwrap().profile, ManifestProfile::Ingest);
    let moved = ManifestProfile::of_uri(&format!("{PROFILES}mrt-object-manifest"));
    assert_eq!(moved, Some(ManifestProfile::Object), "it is found in the folder of deposits, too");
    let other = read(&manifest("mrt-batch-manifest", "http://a.edu/1")).unwrap_err().to_string();
    assert!(other.contains("mrt-batch-manifest, but mrt-ingest-manifest was expected"), "{other}");
}

#[test]
fn all_problems_are_named_at_once_with_line_and_column() {
    let text = manifest(
        "mrt-ingest-manifest",
        "http://a.edu/1 | md2 | 00\n\
         http://u:secret@a.edu/2 | md5 | d41d | -1\n\
         ftp://a.edu/3\n\
         | md5\n\
         http://a.edu/5 | | | | | ../five\n\
         http://a.edu/6 | | | 18446744073709551616 | | /six\n\
         http://a.edu/7/\n\
         file:///etc/passwd\n\
         http://a.edu/9 | | | | | a\n\
         http://a.edu/10 | | | | | a\n\
         http://a.edu/11 | | | | | a/b\n\
         http://a.edu/12 | | | | |  é/c | text\u{1}\n\
         http://a.edu/13 | | | | | é\n\
         http://a.edu/%2e%2e%2f14",
    );
    // The line, what stands at the column, and how the message begins.
    let expected = [
        (3, "md2 |", "algorithm \"md2\" is not supported; use one of adler32, crc32, md5"),
        (4, "http://u:secret", "the URL http://a.edu/2 has a user name or password"),
        (4, "d41d", "md5 digests have 32"),
        (4, "-1", "\"-1\" is not a size"),
        (5, "ftp:", "the URL ftp://a.edu/3 has a scheme"),
        (6, "| md5", "the row has no URL"),
        (7, "../five", "the name has a part '..'"),
        (8, "1844", "\"18446744073709551616\" is not a size"),
        (8, "/six", "the name is absolute"),
        (9, "http://a.edu/7/", "the row has no file name"),
        (10, "file:", "the URL file:///etc/passwd has a scheme"),
        (12, "a", "the file name is that of line 11"),
        (13, "a/b", "the file name and that of line 11"),
        (14, "text\u{1}", "the column has a control character"),
        (16, "http:", "the row has no file name"),
    ];
    let error = reader(&text).finish().unwrap_err();
    for (problem, (line, at, message)) in error.problems().iter().zip(expected) {
        let text = text.lines().nth(usize::try_from(problem.line).unwrap() - 1).unwrap();
        let there: String = text.chars().skip(usize::try_from(problem.column).unwrap() - 1).collect();
        assert!(problem.line == line && there.starts_with(at), "{problem}: {there:?}, not {at:?}");
        let shown = problem.kind.to_string();
        assert!(shown.starts_with(message) && !shown.contains("secret"), "{shown}");
    }
    assert_eq!(error.problems().len(), expected.len(), "{error:?}");
    assert!(error.to_string().ends_with("(and 14 other problems)"), "{error}");
}

#[test]
fn what_is_cut_off_or_no_manifest_is_refused() {
    for (text, expected) in [
        ("", "line 1, column 1: the manifest does not end with '#%eof'"),
        ("http://a.edu/1\n#%eof", "line 1, column 1: there is no line '#%profile"),
        (&manifest("mrt-ingest-manifest", "")[..], "the manifest has no rows"),
        (&manifest("mrt-new-manifest", "http://a.edu/1"), "line 2, column 13: the profile \"http:"),
        (manifest("mrt-ingest-manifest", "http://a.edu/1").trim_end_matches("#%eof\n"), "does not end with"),
        (
            &format!("{}http://a.edu/2\nhttp://a.edu/3", manifest("mrt-ingest-manifest", "http://a.edu/1")),
            "line 5, column 1: the manifest continues after '#%eof'",
        ),
        (
            &manifest("mrt-batch-manifest", "http://a.edu/1 | | | | | | doi:10/3"),
            "line 3, column 28: \"doi:10/3\" is not an ARK",
        ),
        (
            &manifest("mrt-ingest-manifest", &format!("http://a.edu/{}", "a".repeat(65_536))),
            "line 3, column 1: the line is longer",
        ),
    ] {
        let found = problems(text);
        assert!(found.iter().any(|one| one.contains(expected)), "{found:?}");
    }
    let invalid =
        [manifest("mrt-ingest-manifest", "http://a.edu/1 | é").as_bytes(), b"http://a.edu/\xff\n#%eof"].concat();
    let error = Reader::new(&*invalid, Limits::default(), None).finish().unwrap_err();
    assert!(error.problems().iter().any(|one| one.kind == ProblemKind::NoText && (one.line, one.column) == (5, 14)));

    let many = problems(&manifest("mrt-ingest-manifest", &"no url\n".repeat(200)));
    assert_eq!(many.len(), MOST_PROBLEMS);
    let limits = Limits { rows: 2, ..Limits::default() };
    let three = manifest("mrt-ingest-manifest", "http://a.edu/1\nhttp://a.edu/2\nhttp://a.edu/3");
    let error = Reader::new(three.as_bytes(), limits, None).finish().unwrap_err();
    assert_eq!(error.to_string(), "invalid manifest: line 5, column 1: the manifest has more than 2 rows; divide it");
}

#[test]
fn what_is_odd_is_kept_with_a_warning() {
    let rows = "http://a.edu/1 | | | 5 | | e\u{301}\nhttp://a.edu/2 | md5 | | 6 | | \u{e9}\nhttp://a.edu/3";
    let summary = reader(&manifest("mrt-ingest-manifest", rows)).finish().unwrap();
    assert_eq!((summary.rows, summary.stated_bytes, summary.unstated_sizes), (3, 11, 1));
    let (name, other) = ("\u{e9}".to_owned(), "e\u{301}".to_owned());
    let similar = Warning::Normalization { line: 4, first: 3, name, other };
    let said =
        "line 4: the file name \"\u{e9}\" differs from that of line 3, \"e\\u{301}\", by Unicode normalization only";
    assert_eq!(similar.to_string(), said);
    assert_eq!(summary.warnings, [Warning::HalfDigest { line: 4 }, similar]);
    let twice =
        reader(&manifest("mrt-batch-manifest", "http://a.edu/1\nhttp://a.edu/2\nhttp://a.edu/1")).finish().unwrap();
    assert_eq!(twice.warnings, [Warning::RepeatedRow { line: 5, first: 3 }]);
}

#[test]
fn many_rows_with_deep_names_take_linear_time() {
    let deep = ["d"; 1_000].join("/");
    let rows: Vec<_> = (0..2_000).map(|at| format!("http://a.edu/ | | | | | {deep}/{at}")).collect();
    let text = manifest("mrt-ingest-manifest", &rows.join("\n"));
    assert_eq!(reader(&text).finish().unwrap().rows, 2_000);
}

#[test]
fn the_kept_manifest_has_no_queries() {
    let text = manifest(
        "mrt-ingest-manifest",
        "http://a.edu/1?X=secret and|md5 | a?b\r\nhttp://a.edu/2?secret\nhttp://a.edu/3 | | | | | what?",
    );
    for buffer in [1, 7, 4096] {
        let mut kept = Vec::new();
        conceal_queries(std::io::BufReader::with_capacity(buffer, text.as_bytes()), &mut kept).unwrap();
        let expected = text.replace("?X=secret and|", "?.. |").replace("?secret", "?..");
        assert_eq!(String::from_utf8(kept).unwrap(), expected);
    }
}

#[test]
fn a_container_is_compared_with_its_manifest_both_ways() {
    let sha = digest(Algorithm::Sha256);
    let text = format!(
        "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/store/manifest/mrt-object-manifest\n\
         a.txt | sha256 | {sha} | 7\nb.txt | sha256 | {sha}\nc.txt\nd.txt | | | 5\ne.txt\n#%eof\n"
    );
    let (mut contents, summary) = ListedFiles::read(text.as_bytes(), Limits::default()).unwrap();
    assert_eq!(
        (summary.rows, contents.algorithm("b.txt"), contents.algorithm("c.txt")),
        (5, Some(Algorithm::Sha256), None)
    );
    let (right, none) = (Digests::from_iter([sha.clone()]), Digests::default());
    let mut compare =
        |name, size, digests| contents.compare(FoundFile { name, size, digests }).map(|one| one.to_string());
    assert_eq!(compare("a.txt", 7, &right), None);
    assert!(compare("b.txt", 7, &none).unwrap().contains("does not have the sha256 digest"));
    assert_eq!(compare("d.txt", 6, &none).unwrap(), "file \"d.txt\" has 6 bytes, but 5 in the manifest");
    assert_eq!(compare("x.txt", 6, &none).unwrap(), "file \"x.txt\" of the container is not in its manifest");
    assert_eq!(compare(ListedFiles::FILE_NAME, 6, &none), None);
    assert_eq!(compare("c.txt", 0, &none), None);
    let missing = contents.missing();
    assert_eq!(missing, [Difference::Missing { name: "e.txt".to_owned(), line: 7 }]);
}

fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[ a%27c0|;#é\u{a0}\u{85}]{1,6}")
}

fn any_row(profile: ManifestProfile) -> impl Strategy<Value = ManifestRow> {
    let of_file = (
        "[a-z%|?=&é .]{0,8}",
        proptest::option::of(proptest::sample::select(profile::ALGORITHMS.to_vec())),
        proptest::option::of(any::<u64>()),
        text(),
        "[ a%27c0|#é\u{a0}\"/]{1,8}",
    );
    let of_object = (
        text(),
        proptest::option::of(any::<u32>()),
        proptest::collection::vec("[ a%20|é]{1,3}", 0..3),
        text(),
        text(),
        text(),
    );
    (of_file, of_object).prop_map(move |((path, algorithm, size, modified, name), more)| {
        let (mime_type, primary_id, local_ids, creator, title, date) = more;
        let primary_id = primary_id.map(|number: u32| format!("ark:/12345/x{number}"));
        let mut row = ManifestRow {
            url: Some(format!("http://a.edu/{path}").parse().unwrap()),
            digest: algorithm.map(digest),
            size,
            modified,
            name,
            ..ManifestRow::default()
        };
        if profile.is_batch() {
            row = ManifestRow { primary_id, local_ids, creator, title, date, ..row };
        } else {
            row.mime_type = mime_type;
        }
        if profile == ManifestProfile::Object {
            row.url = None;
        }
        row
    })
}

fn any_rows() -> impl Strategy<Value = (ManifestProfile, Vec<ManifestRow>)> {
    proptest::sample::select(ManifestProfile::ALL.to_vec())
        .prop_flat_map(|profile| (Just(profile), proptest::collection::vec(any_row(profile), 1..6)))
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was((profile, candidates) in any_rows()) {
        let mut writer = Writer::new(Vec::new(), profile).unwrap();
        let (mut written, mut names) = (Vec::new(), names::Names::new());
        for row in candidates {
            let among = profile.is_batch() || name::check(&row.name).is_ok() && names.add(&row.name, 1).is_ok();
            if among && writer.write(&row).is_ok() {
                written.push(row);
            }
        }
        prop_assume!(!written.is_empty());
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        prop_assert_eq!(rows(&text), written, "{}", text);
    }

    #[test]
    fn a_version_has_exactly_the_names_that_its_files_have(
        candidates in proptest::collection::btree_set("[ a%27c0|#é?\"\\\\&:.~é\u{a0}/]{1,8}", 1..6),
    ) {
        let base = Url::parse("file:///queue/b/j/").unwrap();
        let mut writer = AddWriter::new(Vec::new(), base.clone()).unwrap();
        let mut names = names::Names::new();
        let valid = candidates.into_iter().filter(|name| name::check(name).is_ok() && names.add(name, 1).is_ok());
        let written: BTreeSet<String> = valid.collect();
        for name in &written {
            writer.write(name, 7, digest(Algorithm::Sha256), None).unwrap();
        }
        prop_assume!(!written.is_empty());
        let text = writer.finish().unwrap();
        let mut reader = Reader::add(&*text, Limits::default(), base);
        let read: BTreeSet<String> = reader.by_ref().map(|(_, row)| row.name).collect();
        prop_assert_eq!(reader.finish().map(|summary| summary.rows).unwrap(), written.len() as u64);
        prop_assert_eq!(read, written);
        let elsewhere = Url::parse("file:///queue/b/k/").unwrap();
        let error = Reader::add(&*text, Limits::default(), elsewhere).finish().unwrap_err();
        prop_assert!(error.to_string().contains("is not below file:///queue/b/k/"));
    }

    #[test]
    fn no_bytes_make_the_reader_fail_or_say_too_much(
        bytes in proptest::collection::vec(proptest::sample::select(b"#%eof profile|http://a.\xff\xc3\xa9\r\n;20\x007c".to_vec()), 0..400),
        profile in proptest::sample::select(ManifestProfile::ALL.to_vec()),
    ) {
        let limits = Limits { line_bytes: 40, rows: 20, bytes: 300 };
        match Reader::new(&*bytes, limits, Some(profile)).finish() {
            Ok(summary) => prop_assert!(summary.rows > 0 && bytes.len() <= 303),
            Err(error) => prop_assert!((1..=MOST_PROBLEMS).contains(&error.problems().len())),
        }
    }
}
