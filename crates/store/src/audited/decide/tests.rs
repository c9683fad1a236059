//! The decision, as a table.

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::audit::Subject;
use crate::digest::Hashers;
use crate::key::Key;

fn digests(content: &[u8], algorithms: &[Algorithm]) -> Digests {
    let mut hashers = Hashers::new(algorithms.iter().copied());
    hashers.update(content);
    hashers.finish()
}

const WRITTEN: &[u8] = b"what was to be written";
const OTHER: &[u8] = b"other content that is.";
const LONGER: &[u8] = b"content of another length";

fn intent(change: Change, seen: bool, size: bool, known: bool) -> Intent {
    let key = Some(Key::new(*b"key").unwrap());
    let user = UserProperties { content_encoding: Some("gzip".to_owned()), ..UserProperties::default() };
    Intent {
        id: Uuid::now_v7(),
        holder: Uuid::now_v7(),
        user: "user".to_owned(),
        subject: Subject { store: "store".parse().unwrap(), space: "space".parse().unwrap(), key },
        change,
        seen: seen.then(|| EntityTag("seen".to_owned())),
        size: size.then_some(WRITTEN.len() as u64),
        digests: if known { digests(WRITTEN, &[Algorithm::Md5]) } else { Digests::default() },
        source: (change == Change::Copy).then(|| ("space".parse().unwrap(), Key::new(*b"source").unwrap())),
        upload: None,
        properties: (change == Change::Properties).then(|| serde_json::to_string(&user).unwrap()),
    }
}

fn found(etag: &str, content: &[u8], kept: &[Algorithm], has_properties: bool) -> Found {
    // A media type that was not requested makes no difference.
    let media = Some("application/octet-stream".to_owned());
    let coding = has_properties.then(|| "gzip".to_owned());
    Found::Content(Box::new(Properties {
        size: content.len() as u64,
        modified: Timestamp::UNIX_EPOCH,
        etag: EntityTag(etag.to_owned()),
        checksums: digests(content, kept),
        user: UserProperties { content_type: media, content_encoding: coding, ..UserProperties::default() },
    }))
}

/// One letter for each decision: Done, Not done (`-`), Observed, Read, read the Source.
fn letter(decision: &Decision) -> char {
    match decision {
        Decision::Settle(Settlement::Done { .. }) => 'D',
        Decision::Settle(Settlement::NotDone) => '-',
        Decision::Settle(Settlement::Observed { .. }) => 'O',
        Decision::Read(_) => 'R',
        Decision::ReadSource(_) => 'S',
    }
}

/// What there may be: nothing; the space; then, under the tag that was seen and under a new one, content as it was to
/// be written, other of that size, and other of another size, each with checksums that can be compared and without;
/// then the first two, with checksums, with the properties that were to be set.
fn columns() -> Vec<Found> {
    let contents = |tag: &'static str| {
        let kept = [[Algorithm::Md5], [Algorithm::Sha256]];
        let contents = [WRITTEN, OTHER, LONGER].into_iter();
        contents.flat_map(move |content| kept.map(|kept| found(tag, content, &kept, false)))
    };
    let with_properties = |tag| [WRITTEN, OTHER].map(|content| found(tag, content, &[Algorithm::Md5], true));
    let mut columns = vec![Found::Nothing, Found::Space];
    columns.extend(contents("seen").chain(contents("new")));
    columns.extend(["seen", "new"].into_iter().flat_map(with_properties));
    columns
}

/// For each change: what was seen before (`.` nothing, `x` content), what is recorded (`s` the size, `d` digests), and
/// the decision in each column.
const TABLE: [(Change, [&str; 6]); 7] = [
    (Change::Add, WRITES),
    (Change::Update, WRITES),
    (
        Change::Copy,
        [
            ".   | -- SSSSSS SSSSSS SS SS",
            ".s  | -- SSSSOO SSSSOO SS SS",
            ".sd | -- DROROO DROROO DO DO",
            "x   | OO SSSSSS SSSSSS SS SS",
            "xs  | OO SSSS-- SSSSOO SS SS",
            "xsd | OO OR-R-- DROROO O- DO",
        ],
    ),
    (
        Change::Delete,
        [
            ".   | -- OOOOOO OOOOOO OO OO",
            ".s  | -- OOOOOO OOOOOO OO OO",
            ".sd | -- OOOOOO OOOOOO OO OO",
            "x   | DD ------ OOOOOO -- OO",
            "xs  | DD ------ OOOOOO -- OO",
            "xsd | DD ------ OOOOOO -- OO",
        ],
    ),
    (
        Change::Properties,
        [
            ".   | -- OOOOOO OOOOOO OO OO",
            ".s  | -- OOOOOO OOOOOO OO OO",
            ".sd | -- OOOOOO OOOOOO DO DO",
            "x   | OO ------ OOOOOO DD OO",
            "xs  | OO ------ OOOOOO DD OO",
            "xsd | OO ------ OOOOOO DD DO",
        ],
    ),
    (Change::CreateSpace, ["-D DDDDDD DDDDDD DD DD"; 6]),
    (Change::DeleteSpace, ["D- ------ ------ -- --"; 6]),
];

const WRITES: [&str; 6] = [
    ".   | -- ------ ------ -- --",
    ".s  | -- OOOOOO OOOOOO OO OO",
    ".sd | -- DROROO DROROO DO DO",
    "x   | -- ------ ------ -- --",
    "xs  | OO OOOO-- OOOOOO OO OO",
    "xsd | OO OR-R-- DROROO O- DO",
];

#[test]
fn each_combination_of_an_intent_and_what_is_there_has_its_decision() {
    assert_eq!(TABLE.map(|(change, _)| change), Change::ALL);
    let recorded = [(false, false), (true, false), (true, true)];
    let rows: Vec<_> =
        [false, true].into_iter().flat_map(|seen| recorded.map(|(size, known)| (seen, size, known))).collect();
    for (change, expected) in TABLE {
        for ((seen, size, known), expected) in rows.iter().zip(expected) {
            let intent = intent(change, *seen, *size, *known);
            let found: String = columns().iter().map(|found| letter(&decide(&intent, found))).collect();
            let expected = expected.rsplit('|').next().unwrap().replace(' ', "");
            assert_eq!(found, expected, "{change:?}, seen: {seen}, size: {size}, digests: {known}");
        }
    }
}

#[test]
fn what_is_settled_says_what_is_there() {
    let there = found("new", WRITTEN, &[Algorithm::Md5, Algorithm::Sha256], false);
    let etag = Some(EntityTag("new".to_owned()));
    let (size, all) = (Some(WRITTEN.len() as u64), digests(WRITTEN, &[Algorithm::Md5, Algorithm::Sha256]));
    let done = Settlement::Done { change: Change::Update, etag: etag.clone(), size, digests: all.clone() };
    assert_eq!(decide(&intent(Change::Update, true, true, true), &there), Decision::Settle(done));

    let why = "it was written again, by another client, and may have been deleted before".to_owned();
    let observed = Settlement::Observed { etag, size, digests: all, why };
    assert_eq!(decide(&intent(Change::Delete, true, false, false), &there), Decision::Settle(observed));

    let gone = Settlement::Done { change: Change::Delete, etag: None, size: None, digests: Digests::default() };
    assert_eq!(decide(&intent(Change::Delete, true, false, false), &Found::Nothing), Decision::Settle(gone));
}
