//! Where an object lies in its storage root: OCFL community extension 0003, *hash and id n-tuple storage layout*, with
//! SHA-256 and three tuples of three digits.

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use crate::digest::{Algorithm, Digest, Hashers};
use crate::ocfl::error::OcflError;

/// The registered name of the extension.
pub(super) const EXTENSION: &str = "0003-hash-and-id-n-tuple-storage-layout";

/// Where its parameters are kept in a storage root.
pub(super) const CONFIG_KEY: &str = "extensions/0003-hash-and-id-n-tuple-storage-layout/config.json";

const TUPLE_DIGITS: usize = 3;
const TUPLES: usize = 3;

/// From this length on, in characters, an encoded identifier is cut off and its digest appended.
const MOST_ENCODED: usize = 100;

/// The longest identifier, in bytes: a bound of ours, since it is in every inventory.
const MOST_ID_BYTES: usize = 1024;

/// The key of an object's root, without a slash at its end: `c1c/8c5/5ab/ark%3a%2f99999%2ffk4000`.
pub(super) fn object_root(id: &str) -> Result<String, OcflError> {
    let invalid = |why| OcflError::Id { id: id.chars().take(100).collect(), why };
    match id.len() {
        0 => return Err(invalid("it is empty")),
        1..=MOST_ID_BYTES => {}
        _ => return Err(invalid("it is longer than 1,024 bytes")),
    }
    if id.chars().any(char::is_control) {
        return Err(invalid("it has control characters"));
    }
    if id.contains('%') {
        // It becomes `%25`, which a directory store escapes once more.
        return Err(invalid("it has a percent sign, which not every store holds literally"));
    }
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(id.as_bytes());
    let digest = hashers.finish().strongest().map(ToString::to_string).expect("one algorithm was requested");

    let mut path = String::with_capacity(TUPLES * (TUPLE_DIGITS + 1) + MOST_ENCODED);
    for tuple in 0..TUPLES {
        path.push_str(&digest[tuple * TUPLE_DIGITS..][..TUPLE_DIGITS]);
        path.push('/');
    }
    let name = encode(id);
    match name.get(..MOST_ENCODED) {
        Some(start) if name.len() > MOST_ENCODED => {
            let _ = write!(path, "{start}-{digest}");
        }
        _ => path.push_str(&name),
    }
    Ok(path)
}

/// The root of the object that a key lies in, if it lies as deep as in one.
pub(super) fn root_of(key: &str) -> Option<&str> {
    let (end, _) = key.match_indices('/').nth(TUPLES)?;
    Some(&key[..end])
}

/// The identifier of the object with this root, where the name of its folder has all of it.
pub(super) fn id_of(root: &str) -> Option<String> {
    let (_, name) = root.rsplit_once('/')?;
    let id = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (object_root(&id).ok()? == root).then_some(id)
}

/// Whether the name of an object's folder is the beginning of an identifier with a digest.
pub(super) fn is_cut_off(root: &str) -> bool {
    let name = root.rsplit_once('/').map_or(root, |(_, name)| name);
    let digest = name.get(MOST_ENCODED..).and_then(|rest| rest.strip_prefix('-'));
    digest.is_some_and(|digest| Digest::from_hex(Algorithm::Sha256, digest).is_ok())
}

/// Letters, digits, `-` and `_` as they are; every other byte as `%` and two hexadecimal digits of lower case.
fn encode(id: &str) -> String {
    id.bytes().fold(String::new(), |mut name, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the extension's text.
    #[test]
    fn objects_lie_where_the_extension_says() {
        let longest = "abcdefghij".repeat(10);
        let cases = [
            ("object-01", "3c0/ff4/240/object-01".to_owned()),
            ("..hor/rib:le-$id", "487/326/d8c/%2e%2ehor%2frib%3ale-%24id".to_owned()),
            ("..Hor/rib:lè-$id", "373/529/21a/%2e%2eHor%2frib%3al%c3%a8-%24id".to_owned()),
            (
                &format!("{longest}a"),
                format!("5cc/73e/648/{longest}-5cc73e648fbcff136510e330871180922ddacf193b68fdeff855683a01464220"),
            ),
        ];
        for (id, path) in cases {
            assert_eq!(object_root(id).unwrap(), path, "{id}");
            let is_whole = id.len() <= 100;
            assert_eq!((id_of(&path).as_deref(), is_cut_off(&path)), (is_whole.then_some(id), !is_whole), "{id}");
            assert_eq!(root_of(&format!("{path}/v1/inventory.json")), Some(&path[..]));
        }
        assert_eq!(id_of("3c0/ff4/241/object-01"), None);
        assert_eq!(root_of("3c0/ff4/240/object-01"), None);
        assert!(object_root(&longest).unwrap().ends_with(&format!("/{longest}")));
        assert!(object_root("ark:/99999/fk4000").unwrap().ends_with("/ark%3a%2f99999%2ffk4000"));
    }

    #[test]
    fn identifiers_that_no_object_can_have_are_refused() {
        for id in ["", "a\nb", "100%", &"a".repeat(1025)] {
            assert!(object_root(id).is_err(), "{id:?}");
        }
    }
}
