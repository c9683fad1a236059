//! Keys as paths: each part of a key between slashes is a file name, and what no file name can hold is written with a
//! percent sign.
//!
//! Names are kept as they are wherever that is possible, so that content can be read without this program. Only these
//! differ:
//!
//! | in a key | in the directory |
//! |---|---|
//! | an empty part, as in `a//b`, `/a`, `a/` | `%2F` |
//! | a part `.` or `..` | `%2E`, `%2E%2E` |
//! | a NUL | `%00` |
//! | a percent sign before `00`, `25`, `2E`, `2F`, `3D` or `3E` | `%25` |
//! | a part whose name has more than 255 bytes | cut in pieces; all but the last end with `%3E`, and are directories |
//! | `d` where there is `d/e`, too | `d/%3D` |
//!
//! The codes are in capitals; percent-encoded names in OCFL's layouts are in lower case and stay as they are.

use crate::key::Key;

/// The longest file name, in bytes, of all usual file systems of Linux.
const MOST_BYTES: usize = 255;

/// The name of content whose path is a directory.
pub(super) const SELF: &[u8] = b"%3D";

/// What a piece ends with that is continued by the names in it.
pub(super) const CONTINUED: &[u8] = b"%3E";

/// What an empty part is called.
const EMPTY: &[u8] = b"%2F";

/// The codes, and what they stand for. `=` and `>` stand for nothing: [`SELF`] and [`CONTINUED`] are made of them.
const CODES: [(&[u8], u8); 6] = [(b"00", 0), (b"25", b'%'), (b"2E", b'.'), (b"2F", b'/'), (b"3D", b'='), (b"3E", b'>')];

/// The names of the directories that lead to a key's content, and that of the file.
pub(super) fn names(key: &Key) -> Vec<Vec<u8>> {
    key.as_bytes().split(|byte| *byte == b'/').flat_map(part_names).collect()
}

/// The names of the directories that lead to the one in which all keys are that begin so; `prefix` ends with a slash.
pub(super) fn names_of_folder(prefix: &[u8]) -> Vec<Vec<u8>> {
    let parts = prefix.strip_suffix(b"/").unwrap_or(prefix);
    parts.split(|byte| *byte == b'/').flat_map(part_names).collect()
}

/// The names that stand for one part of a key.
fn part_names(part: &[u8]) -> Vec<Vec<u8>> {
    let name = encode(part);
    if name.len() <= MOST_BYTES {
        return vec![name];
    }
    // Pieces of one length, so that none is `.` or `..`.
    let pieces = name.len().div_ceil(MOST_BYTES - CONTINUED.len());
    let mut names: Vec<_> = name.chunks(name.len().div_ceil(pieces)).map(<[u8]>::to_vec).collect();
    let last = names.len() - 1;
    names[..last].iter_mut().for_each(|name| name.extend_from_slice(CONTINUED));
    names
}

fn encode(part: &[u8]) -> Vec<u8> {
    match part {
        b"" => return EMPTY.to_vec(),
        b"." => return b"%2E".to_vec(),
        b".." => return b"%2E%2E".to_vec(),
        _ => {}
    }
    let mut name = Vec::with_capacity(part.len());
    for (at, byte) in part.iter().enumerate() {
        match byte {
            0 => name.extend_from_slice(b"%00"),
            b'%' if CODES.iter().any(|(code, _)| part[at + 1..].starts_with(code)) => name.extend_from_slice(b"%25"),
            byte => name.push(*byte),
        }
    }
    name
}

/// The part of a key that a name stands for; `None` if it stands for none. Pieces of one part are joined before,
/// without their [`CONTINUED`].
pub(super) fn decode(name: &[u8]) -> Option<Vec<u8>> {
    let mut part = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((byte, behind)) = rest.split_first() {
        let code = CODES.iter().find(|(code, _)| *byte == b'%' && behind.starts_with(code));
        part.push(code.map_or(*byte, |(_, stands_for)| *stands_for));
        rest = &behind[code.map_or(0, |(code, _)| code.len())..];
    }
    if name == EMPTY {
        part.clear();
    }
    // One name for each part, else two files had one key.
    (encode(&part) == name).then_some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(key: &[u8]) -> String {
        let names = names(&Key::new(key).unwrap());
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_file_name_can_hold_is_kept_and_what_not_is_encoded() {
        for (key, expected) in [
            ("a/b.txt", "a b.txt"),
            ("a//b", "a %2F b"),
            ("/a", "%2F a"),
            ("a/", "a %2F"),
            ("/", "%2F %2F"),
            (".", "%2E"),
            ("../..a/...", "%2E%2E ..a ..."),
            ("%", "%"),
            ("%zz%2f%20%41", "%zz%2f%20%41"),
            ("%2F%2E%25", "%252F%252E%2525"),
            ("%3D/a%3E", "%253D a%253E"),
            ("%%00", "%%2500"),
            ("ark%3a%2f99999%2ffk4", "ark%3a%2f99999%2ffk4"),
            ("a\0b\n\u{202e}", "a%00b\n\u{202e}"),
            ("e\u{301}/\u{e9}", "e\u{301} \u{e9}"),
        ] {
            assert_eq!(path(key.as_bytes()), expected, "{key:?}");
        }
    }

    #[test]
    fn a_long_part_is_cut_into_names_that_every_file_system_takes() {
        for key in [vec![b'.'; 1024], vec![0; 1024], b"%2E".repeat(341), vec![b'a'; 256]] {
            let names = names(&Key::new(key.clone()).unwrap());
            assert!(names.iter().all(|name| (3..=MOST_BYTES).contains(&name.len())), "{names:?}");
            let (last, firsts) = names.split_last().unwrap();
            let mut joined: Vec<u8> =
                firsts.iter().flat_map(|name| name.strip_suffix(CONTINUED).unwrap()).copied().collect();
            joined.extend_from_slice(last);
            assert_eq!(decode(&joined), Some(key));
            assert!(!last.ends_with(CONTINUED));
        }
        assert_eq!(names(&Key::new(vec![b'a'; 255]).unwrap()), [vec![b'a'; 255]]);
    }

    #[test]
    fn a_name_that_no_key_leads_to_is_none() {
        for name in ["%3D", "%3E", "a%3E", "%2F%2F", "a%2Fb", "%2Ea", "%41%2E", "%25", "%25zz"] {
            assert_eq!(decode(name.as_bytes()), None, "{name}");
        }
        assert_eq!(decode(b"%"), Some(b"%".to_vec()));
    }

    proptest! {
        #[test]
        fn every_part_has_a_name_of_its_own(part in prop_oneof![
            proptest::collection::vec(any::<u8>().prop_filter("no slash", |byte| *byte != b'/'), 0..40),
            "(%|2|5|0|E|F|D|3|\\.|a){0,12}".prop_map(String::into_bytes),
        ]) {
            let name = encode(&part);
            prop_assert!(!name.is_empty() && name != b"." && name != b".." && !name.contains(&0) && !name.contains(&b'/'));
            prop_assert!(name != SELF && !name.ends_with(CONTINUED));
            prop_assert_eq!(decode(&name), Some(part));
        }
    }
}
