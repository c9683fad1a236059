//! What logical paths may be, and which content paths files are written under.

use std::io;

use uuid::Uuid;

use crate::digest::{Algorithm, Digest, Hashers};
use crate::sorted::{Map, changed};

/// The longest logical path, in bytes: a bound of ours.
const MOST_PATH_BYTES: usize = 4096;

/// The longest key of content in its space, in bytes. Keys have 1,024 at most in S3; the rest is left for the prefix
/// that a space may be.
pub(super) const MOST_KEY_BYTES: usize = 800;

/// How many folders deep a content path may be below its job's.
const MOST_DEPTH: usize = 32;

/// Why a version cannot have a logical path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is not in the form that OCFL requires.
    #[error("invalid path {path:?}: {why}")]
    Form {
        /// The path, cut off where it is long.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is there already.
    #[error("there is a file {0:?} already")]
    Exists(String),
    /// It is not there.
    #[error("there is no file {0:?}")]
    Missing(String),
    /// One path is a file, and a folder of the other.
    #[error("{file:?} is a file, so there can be no {inside:?}")]
    Conflict {
        /// The file.
        file: String,
        /// The path for which it would have to be a folder.
        inside: String,
    },
}

/// Checks the form of a path, logical or of content: parts joined by single slashes, none of them `.` or `..`.
pub(super) fn check(path: &str) -> Result<(), PathError> {
    let why = if path.is_empty() {
        "it is empty"
    } else if path.len() > MOST_PATH_BYTES {
        "it is longer than 4,096 bytes"
    } else if path.starts_with('/') || path.ends_with('/') {
        "it begins or ends with a slash"
    } else if path.split('/').any(str::is_empty) {
        "it has two slashes in a row"
    } else if path.split('/').any(|part| matches!(part, "." | "..")) {
        "it has a part '.' or '..'"
    } else {
        return Ok(());
    };
    Err(PathError::Form { path: shown(path), why })
}

/// A path as an error names it.
pub(super) fn shown(path: &str) -> String {
    path.chars().take(200).collect()
}

/// The folders of a path, the deepest first: `a/b`, `a` for `a/b/c`.
pub(super) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(at, _)| &path[..at])
}

/// Why a path cannot come beside others, the keys of a map: it is one of them, or a folder of one, or one is a folder
/// of it.
pub(super) fn refusal(path: &str, others: &Map) -> io::Result<Option<PathError>> {
    if others.has(path.as_bytes())? {
        return Ok(Some(PathError::Exists(shown(path))));
    }
    Ok(conflict(path, others)?.map(|other| {
        let (file, inside) = if other.len() < path.len() { (&*other, path) } else { (path, &*other) };
        PathError::Conflict { file: shown(file), inside: shown(inside) }
    }))
}

/// A path of these that is a folder of another one, or of which that is a folder.
pub(super) fn conflict(path: &str, others: &Map) -> io::Result<Option<String>> {
    for folder in folders(path) {
        if others.has(folder.as_bytes())? {
            return Ok(Some(folder.to_owned()));
        }
    }
    let inner = others.first_in(format!("{path}/").as_bytes())?;
    inner.map(|inner| text(&inner).map(str::to_owned)).transpose()
}

/// A path that was kept as bytes.
pub(super) fn text(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| changed())
}

/// Paths in ascending order of their bytes, each compared with those before it.
#[derive(Default)]
pub(super) struct Ascending {
    last: String,
    /// The lengths of those paths that the last one begins with, itself among them, in ascending order.
    starts: Vec<usize>,
}

/// Why a path cannot come beside one before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Clash {
    /// It is the same.
    Twice,
    /// That one is a folder of it.
    Inside(String),
}

impl Ascending {
    /// Takes the next path.
    pub(super) fn next(&mut self, path: &str) -> Result<(), Clash> {
        while let Some(start) = self.starts.pop() {
            if path.starts_with(&self.last[..start]) {
                self.starts.push(start);
                break;
            }
        }
        if self.starts.last() == Some(&path.len()) {
            return Err(Clash::Twice);
        }
        if let Some(folder) = self.starts.iter().find(|start| path.as_bytes()[**start] == b'/') {
            return Err(Clash::Inside(self.last[..*folder].to_owned()));
        }
        self.last.clear();
        self.last.push_str(path);
        self.starts.push(path.len());
        Ok(())
    }
}

/// Where a job's content of a version lies, with a slash at the end: `v2/content/UUID/`, most often with the job's
/// UUID.
pub(super) fn content_folder(version: u32, content: Uuid) -> String {
    format!("v{version}/content/{content}/")
}

/// The content path of a file below its job's folder: the logical path, where every store holds it literally, else a
/// name made of its digest. `prefix_bytes` is the length of what stands before it in the key.
///
/// A path is kept if each of its parts has at most 255 bytes, all of them letters, digits, spaces and `-_.,=@()+` of
/// ASCII (letters beyond it are normalized by some file systems), begins with a letter, a digit, `_`, `-`, `=`, `@` or
/// `(`, ends neither with a dot nor with a space, and is not a device of Windows.
pub(super) fn content_name(logical: &str, prefix_bytes: usize) -> String {
    let fits = prefix_bytes + logical.len() <= MOST_KEY_BYTES && logical.split('/').count() <= MOST_DEPTH;
    if fits && logical.split('/').all(is_literal) {
        return logical.to_owned();
    }
    digest_name(logical)
}

/// A name made of the digest of the logical path. It begins with `~`, which no part of a kept path does.
pub(super) fn digest_name(logical: &str) -> String {
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(logical.as_bytes());
    let digest = hashers.finish().strongest().map(Digest::hex).expect("one algorithm was requested");
    format!("~{digest}")
}

/// A name made of the digest of the content, for where the other name is taken by other content.
pub(super) fn other_name(sha512: &Digest) -> String {
    format!("~~{sha512}")
}

fn is_literal(part: &str) -> bool {
    let has_plain_start =
        part.starts_with(|char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '=' | '@' | '('));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.,=@()+".contains(&byte);
    has_plain_start
        && part.len() <= 255
        && part.bytes().all(is_plain)
        && !part.ends_with(['.', ' '])
        && !is_device(part)
}

/// Whether Windows takes a name for a device, whatever its extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_lowercase();
    let numbered = |name: &str| {
        stem.strip_prefix(name)
            .is_some_and(|number| number.len() == 1 && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_have_the_form_that_ocfl_asks_for() {
        for path in ["a", "producer/a b", "a/...", "..a/b", "%2e/é\n", &"a".repeat(4096)] {
            assert_eq!(check(path), Ok(()), "{path:?}");
        }
        for path in ["", "/", "/a", "a/", "a//b", ".", "a/./b", "a/..", "../a", &"a".repeat(4097)] {
            assert!(check(path).is_err(), "{path:?}");
        }
        assert_eq!(folders("a/b/c").collect::<Vec<_>>(), ["a/b", "a"]);
    }

    #[test]
    fn a_path_is_a_file_or_a_folder() {
        let mut others = Map::new(&Arc::from(std::env::temp_dir()));
        for path in ["a/b", "a-b", "c"] {
            others.insert(path.as_bytes(), b"").unwrap();
        }
        for path in ["a/c", "a.b", "d", "a-b2", "a/b2/c"] {
            assert_eq!(refusal(path, &others).unwrap(), None, "{path}");
        }
        for path in ["a", "a/b", "a/b/c/d", "c/d", "c"] {
            assert!(refusal(path, &others).unwrap().is_some(), "{path}");
        }
    }

    #[test]
    fn among_paths_in_order_a_file_that_is_a_folder_is_found_wherever_it_comes() {
        let next = |paths: &[&str]| {
            let mut ascending = Ascending::default();
            paths.iter().try_for_each(|path| ascending.next(path))
        };
        assert_eq!(next(&["a", "a-", "a.b", "aa", "ab/c", "b/a", "b/a-", "b/aa/c"]), Ok(()));
        assert_eq!(next(&["a", "a-", "a.b", "a/b"]), Err(Clash::Inside("a".to_owned())));
        assert_eq!(next(&["a/b", "a/b-c", "a/b/c"]), Err(Clash::Inside("a/b".to_owned())));
        assert_eq!(next(&["a", "b", "b"]), Err(Clash::Twice));
    }

    #[test]
    fn names_that_some_store_cannot_hold_are_replaced() {
        for kept in ["producer/a.txt", "a b/(1)=@,+c_d-E", "console", "com10", "a/.b".trim_start_matches("a/.")] {
            assert_eq!(content_name(kept, 100), kept);
        }
        let long_part = "a".repeat(256);
        let long_path = ["a".repeat(200).as_str(); 4].join("/");
        let deep = ["a"; 33].join("/");
        let replaced = [
            "é", "a%20b", ".hidden", "a/.git", "a.", "a ", " a", "a/ ", "CON", "nul.txt", "Com1.a", "~a", "a\\b",
            "a:b", "a\n", "a*", "a?", "<", "|", "\"", &long_part, &long_path, &deep,
        ];
        for path in replaced {
            let name = content_name(path, 100);
            assert!(name.starts_with('~') && name.len() == 65, "{path:?}: {name}");
        }
    }

    proptest! {
        #[test]
        fn each_path_has_a_name_of_its_own(one in "[a-c~./é ]{1,6}", other in "[a-c~./é ]{1,6}") {
            prop_assume!(one != other && check(&one).is_ok() && check(&other).is_ok());
            prop_assert_ne!(content_name(&one, 60), content_name(&other, 60));
        }
    }
}
