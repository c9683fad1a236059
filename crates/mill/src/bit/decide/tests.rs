//! The table is stated here a second time: by which sources agree (`=`), differ (`!`) or cannot be compared (`-`).

use queuekeeper_store::{Algorithm, Digest};

use super::*;

/// One content: the letters of what its MD5 and its SHA-256 are of, where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letters {
    size: u64,
    md5: Option<char>,
    sha256: Option<char>,
}

/// What a source says, in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Not looked; no record.
    None,
    Missing,
    Says(Letters),
}

const fn letters(size: u64, md5: Option<char>, sha256: Option<char>) -> Source {
    Source::Says(Letters { size, md5, sha256 })
}

/// Two contents of the same size, one of another, one of which the digests are of different contents, and sizes alone.
const SAYS: [Source; 12] = [
    letters(7, None, None),
    letters(8, None, None),
    letters(7, Some('x'), None),
    letters(7, None, Some('x')),
    letters(7, Some('x'), Some('x')),
    letters(7, Some('y'), None),
    letters(7, None, Some('y')),
    letters(7, Some('y'), Some('y')),
    letters(8, Some('z'), None),
    letters(8, None, Some('z')),
    letters(8, Some('z'), Some('z')),
    letters(7, Some('x'), Some('y')),
];

const X: Source = letters(7, Some('x'), Some('x'));
const Y: Source = letters(7, Some('y'), Some('y'));
const Z: Source = letters(8, Some('z'), Some('z'));
const MD5_OF_X: Source = letters(7, Some('x'), None);
const NO_CHECKSUM: Source = letters(7, None, None);
const NONE: Source = Source::None;
const GONE: Source = Source::Missing;

fn fixity(source: Source) -> Option<Fixity> {
    let Source::Says(Letters { size, md5, sha256 }) = source else { return None };
    let digest = |letter: Option<char>, algorithm, bytes| {
        letter.map(|letter| Digest::new(algorithm, &vec![u8::try_from(letter).unwrap(); bytes]).unwrap())
    };
    let digests = [digest(md5, Algorithm::Md5, 16), digest(sha256, Algorithm::Sha256, 32)];
    Some(Fixity { size, digests: digests.into_iter().flatten().collect() })
}

fn sighting(source: Source) -> Sighting {
    match source {
        Source::None => Sighting::NotLooked,
        Source::Missing => Sighting::Missing,
        Source::Says(_) => Sighting::Present(fixity(source).unwrap()),
    }
}

fn sources([content, store, index, audit]: [Source; 4]) -> Sources {
    Sources { content: sighting(content), store: sighting(store), index: fixity(index), audit: fixity(audit) }
}

/// Whether it states a size alone.
fn is_bare(source: Source) -> bool {
    matches!(source, Source::Says(Letters { md5: None, sha256: None, .. }))
}

/// What one says of the other.
fn relation(one: Source, other: Source) -> char {
    let (Source::Says(one), Source::Says(other)) = (one, other) else { return '-' };
    let pairs = [(one.md5, other.md5), (one.sha256, other.sha256)];
    let common: Vec<_> = pairs.into_iter().filter(|(one, other)| one.is_some() && other.is_some()).collect();
    match one.size != other.size || common.iter().any(|(one, other)| one != other) {
        true => '!',
        false if common.is_empty() => '-',
        false => '=',
    }
}

/// Whether characters fit a pattern: `.` any, `u` all but `=`, `n` all but `!`.
fn fits(pattern: &str, text: &str) -> bool {
    pattern.chars().zip(text.chars()).all(|(pattern, char)| match pattern {
        '.' => true,
        'u' => char != '=',
        'n' => char != '!',
        other => other == char,
    })
}

/// The one row of a table that a text fits.
fn row<'a, T: Copy + std::fmt::Debug>(table: &'a [(&'a str, T)], text: &str) -> T {
    let rows: Vec<_> = table.iter().filter(|(pattern, _)| fits(pattern, text)).collect();
    assert_eq!(rows.len(), 1, "{text} fits {rows:?}");
    rows[0].1
}

/// Which of two records is right, by index to audit log, content to both, store to both, content to store: `I`, `A`,
/// both, none since something else is there, or an error.
const RECORD: &[(&str, &str)] = &[
    // They agree.
    ("=nn...", "both"),
    ("=!u...", "both"),
    ("=-!...", "both"),
    ("==!...", "error"),
    ("=!=...", "error"),
    // They have no common algorithm.
    ("-==...", "both"),
    ("-=u...", "error"),
    ("-u....", "error"),
    // They differ.
    ("!u=.n.", "A"),
    ("!==!n.", "A"),
    ("!=un..", "I"),
    ("!==n!.", "I"),
    ("!==nn.", "error"),
    ("!==!!.", "error"),
    ("!u=.!.", "error"),
    ("!=u!..", "error"),
    ("!!!uu=", "other"),
    ("!!!uuu", "error"),
    ("!!!=..", "error"),
    ("!!!u=.", "error"),
    ("!-u...", "error"),
    ("!!-...", "error"),
];

/// The same where the content was not read: by index to audit log, store to both.
const RECORD_UNREAD: &[(&str, &str)] = &[
    ("=nn", "both"),
    ("=!u", "both"),
    ("=-!", "both"),
    ("==!", "error"),
    ("=!=", "error"),
    ("-..", "error"),
    ("!u=", "A"),
    ("!=u", "I"),
    ("!==", "error"),
    ("!uu", "error"),
];

/// What the bytes are, by content to record, store to record, content to store; `2` is repaired automatically, `2?`
/// not.
const BYTES: &[(&str, &str)] = &[
    ("===", "read"),
    ("==-", "read"),
    ("==!", "3"),
    ("=!.", "3"),
    ("=-n", "read"),
    ("=-!", "3"),
    ("!==", "error"),
    ("!=u", "2"),
    ("!!=", "10"),
    ("!!u", "error"),
    ("!-=", "10"),
    ("!-u", "2?"),
    ("-=n", "provider"),
    ("-=!", "error"),
    ("-!n", "4"),
    ("-!!", "error"),
    ("--n", "unproven"),
    ("--!", "error"),
];

/// The verdict in words: the result, the rows, the proof.
fn expected([content, store, index, audit]: [Source; 4]) -> String {
    let audit = if is_bare(audit) { NONE } else { audit };
    let of_record = match (index, audit) {
        (NONE, Source::Says(_)) => " 5",
        (Source::Says(_), NONE) => " 7",
        _ => "",
    };
    let is_read = matches!(content, Source::Says(_));
    match (content, store) {
        (NONE, NONE) if of_record.is_empty() => return "unproven".to_owned(),
        (NONE, NONE) => return format!("failure{of_record}"),
        (GONE, GONE | NONE) | (NONE, GONE) => {
            let is_recorded = index != NONE || audit != NONE;
            return if is_recorded { format!("failure{of_record} 8") } else { "nothing 11".to_owned() };
        }
        (GONE, _) | (_, GONE) => return format!("error{of_record}"),
        _ => {}
    }
    // A size alone says nothing of a record once the content was read.
    let of_store = |record| if is_read && is_bare(store) { '-' } else { relation(store, record) };
    let consistent = relation(content, store);
    let between = relation(index, audit);
    let (right, of_record) = match (index, audit) {
        (NONE, NONE) if consistent == '!' => return "error".to_owned(),
        (NONE, NONE) => return "failure 9".to_owned(),
        (_, NONE) => ("I", " 7"),
        (NONE, _) => ("A", " 5"),
        _ => {
            let [ci, ca] = [index, audit].map(|record| relation(content, record));
            let [si, sa] = [index, audit].map(of_store);
            let right = if is_read {
                row(RECORD, &String::from_iter([between, ci, ca, si, sa, consistent]))
            } else {
                row(RECORD_UNREAD, &String::from_iter([between, si, sa]))
            };
            let wrong = [("A", " 5"), ("I", " 6")].into_iter().find(|(record, _)| *record == right);
            (right, wrong.map_or("", |(_, row)| row))
        }
    };
    let of_right = |of: &dyn Fn(Source) -> char| {
        let of_both = [of(index), of(audit)];
        match right {
            "I" => of_both[0],
            "A" => of_both[1],
            _ => ['!', '='].into_iter().find(|char| of_both.contains(char)).unwrap_or('-'),
        }
    };
    let bytes = match right {
        "error" => "error",
        "other" => "10",
        _ => {
            let content = of_right(&|record| relation(content, record));
            row(BYTES, &String::from_iter([content, of_right(&of_store), consistent]))
        }
    };
    match (bytes, of_record) {
        ("read" | "provider", "") => format!("success 1 {bytes}"),
        ("read" | "provider", wrong) => format!("failure{wrong} {bytes}"),
        ("unproven", "") => "unproven".to_owned(),
        ("unproven", wrong) => format!("failure{wrong}"),
        ("error", wrong) => format!("error{wrong}"),
        ("2" | "2?", wrong) => format!("failure 2{wrong}"),
        ("3", wrong) => format!("failure 3{wrong} read"),
        ("4", wrong) => format!("failure 4{wrong}"),
        (other, wrong) => format!("failure{wrong} {other}"),
    }
}

fn in_words(verdict: &CheckVerdict) -> String {
    let mut words = vec![verdict.result.as_str().to_owned()];
    words.extend(verdict.findings.iter().map(|finding| finding.row().to_string()));
    words.extend(verdict.proof.map(|proof| proof.as_str().to_owned()));
    words.join(" ")
}

fn all() -> impl Iterator<Item = [Source; 4]> {
    let with = |others: &[Source]| [others, &SAYS[..]].concat();
    let (seen, recorded) = (with(&[NONE, GONE]), with(&[NONE]));
    seen.clone().into_iter().flat_map(move |content| {
        let recorded = recorded.clone();
        seen.clone().into_iter().flat_map(move |store| {
            let recorded = recorded.clone();
            recorded
                .clone()
                .into_iter()
                .flat_map(move |index| recorded.clone().into_iter().map(move |audit| [content, store, index, audit]))
        })
    })
}

const FIRST: Look = Look { may_read: true, is_second: false, is_last_round: false };

#[test]
fn each_combination_has_the_verdict_of_the_table() {
    let mut number = 0;
    for of in all() {
        assert_eq!(in_words(&verdict(&sources(of))), expected(of), "{of:?}");
        number += 1;
    }
    assert_eq!(number, 14 * 14 * 13 * 13);
}

#[test]
fn nothing_is_a_success_without_proof_and_no_remedy_is_offered_that_is_not_certain() {
    let mut remedies = BTreeSet::new();
    for of in all() {
        let found = verdict(&sources(of));
        let [content, store, index, audit] = of;
        let bytes = |letter| [content, store].map(|seen| [index, audit].map(|record| relation(seen, record) == letter));
        let any = |letter| bytes(letter).as_flattened().contains(&true);
        let is_agreed = index != NONE && audit != NONE && relation(index, audit) == '=';
        if found.result == CheckResult::Success {
            assert!(any('=') && found.proof.is_some() && found.offers.is_empty(), "{of:?}");
            assert!(!bytes('!')[0].contains(&true), "the content differs from a record: {of:?}");
        }
        let finds = |finding| found.findings == BTreeSet::from([finding]);
        assert_eq!(found.result == CheckResult::Success, finds(CopyFinding::Proven), "{of:?}");
        assert_eq!(found.result == CheckResult::Nothing, finds(CopyFinding::Absent), "{of:?}");
        assert_eq!(found.result == CheckResult::Unproven, found.findings.is_empty() && !found.is_bit_error(), "{of:?}");
        for Offer { remedy, only_by_asking } in found.offers {
            remedies.insert((remedy, only_by_asking));
            match remedy {
                Remedy::RepairFromCopy => assert!(only_by_asking || is_agreed, "{of:?}"),
                Remedy::CorrectIndex | Remedy::AppendEvent => {
                    assert_eq!(found.proof, Some(Proof::Read), "{of:?}");
                    assert!(bytes('=')[0].contains(&true), "{of:?}");
                }
                Remedy::Adopt => assert!(index == NONE && (audit == NONE || is_bare(audit)), "{of:?}"),
                Remedy::RewriteInPlace | Remedy::WriteToProvider | Remedy::AcceptChange => {
                    assert!(only_by_asking, "{of:?}");
                }
            }
            if found.findings.contains(&CopyFinding::ChangedOutside) {
                assert!(only_by_asking, "{of:?}");
                assert!(matches!(remedy, Remedy::AcceptChange | Remedy::RepairFromCopy), "{of:?}");
            }
        }
    }
    let automatic: Vec<_> = remedies.iter().filter(|(_, only_by_asking)| !only_by_asking).map(|one| one.0).collect();
    assert_eq!(automatic, [Remedy::RepairFromCopy, Remedy::CorrectIndex, Remedy::AppendEvent, Remedy::Adopt]);
}

#[test]
fn the_eleven_rows() {
    for (of, words, next_at_first) in [
        ([X, X, X, X], "success 1 read", Next::End),
        ([X, NO_CHECKSUM, X, X], "success 1 read", Next::End),
        ([NONE, X, X, X], "success 1 provider", Next::End),
        ([Y, X, X, X], "failure 2", Next::Read),
        ([Y, NO_CHECKSUM, X, X], "failure 2", Next::Read),
        ([Z, NO_CHECKSUM, X, X], "failure 2", Next::Read),
        ([X, Y, X, X], "failure 3 read", Next::End),
        ([NONE, Y, X, X], "failure 4", Next::Read),
        ([X, X, Y, X], "failure 5 read", Next::End),
        ([X, X, NONE, X], "failure 5 read", Next::End),
        ([NONE, X, Y, X], "failure 5 provider", Next::Read),
        ([X, X, X, Y], "failure 6 read", Next::End),
        ([X, X, X, NONE], "failure 7 read", Next::End),
        ([NONE, X, X, NONE], "failure 7 provider", Next::Read),
        ([GONE, GONE, X, X], "failure 8", Next::Later),
        ([NONE, GONE, X, NONE], "failure 7 8", Next::Later),
        ([GONE, NONE, NONE, X], "failure 5 8", Next::Later),
        ([X, X, NONE, NONE], "failure 9", Next::Later),
        ([Y, Y, X, X], "failure 10", Next::Later),
        ([Z, Z, X, Y], "failure 10", Next::Later),
        ([GONE, GONE, NONE, NONE], "nothing 11", Next::End),
        // Findings add up.
        ([Y, X, NONE, X], "failure 2 5", Next::Read),
        ([Y, X, X, NONE], "failure 2 7", Next::Read),
        ([X, Y, NONE, X], "failure 3 5 read", Next::End),
        ([Y, Y, NONE, X], "failure 5 10", Next::Later),
        // What is listed nowhere.
        ([NONE, NO_CHECKSUM, X, X], "unproven", Next::End),
        ([NONE, MD5_OF_X, letters(7, None, Some('x')), letters(7, None, Some('x'))], "unproven", Next::End),
        ([Y, Z, X, X], "error", Next::Read),
        ([GONE, X, X, X], "error", Next::Read),
        ([X, GONE, X, X], "error", Next::Read),
        ([X, Y, NONE, NONE], "error", Next::Read),
        ([NONE, Z, X, Y], "error", Next::Read),
    ] {
        let answer = decide(&sources(of), FIRST);
        assert_eq!((in_words(&answer.verdict).as_str(), answer.next), (words, next_at_first), "{of:?}");
    }
}

#[test]
fn what_is_wrong_counts_after_a_second_reading_or_at_the_last_round() {
    let looks = [0, 1, 2, 3, 4, 5, 6, 7].map(|bits| Look {
        may_read: bits & 1 != 0,
        is_second: bits & 2 != 0,
        is_last_round: bits & 4 != 0,
    });
    // By what may be read, what is the second look and what is the last round, in the order of their bits.
    for (of, answers) in [
        ([X, X, X, X], "EEEEEEEE"),
        ([NONE, NO_CHECKSUM, X, X], "EEEEEEEE"),
        ([GONE, GONE, NONE, NONE], "EEEEEEEE"),
        ([Y, X, X, X], "RREERREE"),
        ([X, Y, X, X], "EEEEEEEE"),
        ([NONE, Y, X, X], "LRLRERER"),
        ([NONE, X, Y, X], "ERERERER"),
        ([X, X, Y, X], "EEEEEEEE"),
        ([GONE, GONE, X, X], "LLLLEEEE"),
        ([NONE, GONE, X, NONE], "LLLLEEEE"),
        ([X, X, NONE, NONE], "LLLLEEEE"),
        ([Y, Y, X, X], "LLLLEEEE"),
        ([Y, Y, NONE, X], "LLLLEEEE"),
        ([Y, X, NONE, X], "RREERREE"),
        ([Y, Z, X, X], "RREERREE"),
        ([GONE, X, X, X], "RREERREE"),
        ([NONE, Z, X, Y], "LRLRERER"),
    ] {
        let found = looks.map(|look| match decide(&sources(of), look).next {
            Next::End => 'E',
            Next::Read => 'R',
            Next::Later => 'L',
        });
        assert_eq!(String::from_iter(found), answers, "{of:?}");
    }
}
