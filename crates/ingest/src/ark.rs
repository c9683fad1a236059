//! ARKs: their normal form, and names that are made here.
//!
//! An ARK is `ark:/NAAN/NAME`. Hyphens mean nothing in it, the label may lack its slash and be in any case (ARK
//! specification, draft-kunze-ark-40), so ARKs are compared and kept in one form. Names that are made here consist of
//! the letters and digits of NOID, and end with its check character, which finds every single wrong character and every
//! two that changed places.

use std::fmt;
use std::str::FromStr;

use queuekeeper_store::{Algorithm, Digest, Hashers};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::name;

/// The digits of NOID: no vowels, which would make words, and no `l`, which looks like a 1.
const ALPHABET: &[u8; 29] = b"0123456789bcdfghjkmnpqrstvwxz";

/// How many digits a name has behind its shoulder, before the check character: among 10^8 objects, one new name in four
/// million is taken.
const DIGITS: usize = 10;

/// The longest ARK, in bytes: what the specification requires every resolver to accept.
const MOST_BYTES: usize = 255;

/// An ARK in normal form: `ark:/NAAN/NAME` without hyphens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ark(Box<str>);

/// Why a text is no ARK.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an ARK: {why}; write ark:/NAAN/NAME")]
pub struct ArkError {
    text: String,
    why: &'static str,
}

/// The parts of an ARK without its hyphens.
fn parts(text: &str) -> Result<(String, String), &'static str> {
    if text.len() > 4 * MOST_BYTES {
        return Err("it is too long");
    }
    let label = text.get(..4).filter(|label| label.eq_ignore_ascii_case("ark:"));
    let rest = label.map(|_| &text[4..]).ok_or("it does not begin with 'ark:'")?;
    // Those that the specification takes for hyphens.
    let is_hyphen = |char| matches!(char, '-' | '\u{ad}' | '\u{2010}'..='\u{2015}');
    let rest: String = rest.strip_prefix('/').unwrap_or(rest).chars().filter(|char| !is_hyphen(*char)).collect();
    let (naan, name) = rest.split_once('/').ok_or("it has no name after the NAAN")?;
    let naan = naan.to_ascii_lowercase();
    if !(1..=16).contains(&naan.len()) || !naan.bytes().all(|byte| ALPHABET.contains(&byte)) {
        return Err("the NAAN is not one of digits and consonants");
    }
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"=~*+@_$./".contains(&byte);
    if !name.bytes().all(is_of_name) {
        return Err("the name has a character that is not a letter, a digit or one of = ~ * + @ _ $ . /");
    }
    Ok((naan, name.to_owned()))
}

impl Ark {
    /// The normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Ark {
    type Err = ArkError;

    fn from_str(text: &str) -> Result<Self, ArkError> {
        let wrong = |why| ArkError { text: name::shown(text), why };
        let (naan, name) = parts(text).map_err(wrong)?;
        // These mean nothing at the end.
        let name = name.trim_end_matches(['/', '.']);
        if name.is_empty() {
            return Err(wrong("it has no name after the NAAN"));
        }
        if name.split('/').any(|part| part.is_empty() || part.bytes().all(|byte| byte == b'.')) {
            return Err(wrong("the name has an empty part"));
        }
        let ark = format!("ark:/{naan}/{name}");
        if ark.len() > MOST_BYTES { Err(wrong("it is too long")) } else { Ok(Self(ark.into())) }
    }
}

impl fmt::Display for Ark {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl fmt::Debug for Ark {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Serialize for Ark {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Ark {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// The check character of a text, `NAAN/NAME` without it (NOID, `noidcheckdigit`): the sum of its digits' values times
/// their places, from 1, in the alphabet of 29.
#[must_use]
pub fn check_character(text: &str) -> char {
    let value = |byte| ALPHABET.iter().position(|digit| *digit == byte).unwrap_or(0);
    let sum: usize = text.bytes().enumerate().map(|(at, byte)| (at + 1) * value(byte)).sum();
    char::from(ALPHABET[sum % ALPHABET.len()])
}

/// Where names are made: a NAAN and the first characters of each name, `ark:/99999/fk4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shoulder {
    naan: String,
    prefix: String,
}

impl Shoulder {
    /// The ARK of a job: the same for the same job and derivation, whichever process makes it. Where the catalogue has
    /// it for another job, the next derivation is taken, from 0.
    #[must_use]
    pub fn derive(&self, job: Uuid, derivation: u32) -> Ark {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        hashers.update(job.as_bytes());
        hashers.update(&derivation.to_be_bytes());
        let digests = hashers.finish();
        let bytes = digests.get(Algorithm::Sha256).map(Digest::as_bytes).unwrap_or_default();
        let mut number = bytes.iter().take(16).fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        let mut body = format!("{}/{}", self.naan, self.prefix);
        for _ in 0..DIGITS {
            let digit = usize::try_from(number % 29).unwrap_or(0);
            body.push(char::from(ALPHABET[digit]));
            number /= 29;
        }
        Ark(format!("ark:/{body}{}", check_character(&body)).into())
    }
}

impl FromStr for Shoulder {
    type Err = ArkError;

    fn from_str(text: &str) -> Result<Self, ArkError> {
        let wrong = |why| ArkError { text: name::shown(text), why };
        let (naan, prefix) = parts(text).map_err(wrong)?;
        if prefix.len() > 32 || !prefix.bytes().all(|byte| ALPHABET.contains(&byte)) {
            return Err(wrong("a shoulder has digits and consonants of lower case, up to 32"));
        }
        Ok(Self { naan, prefix })
    }
}

impl fmt::Display for Shoulder {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ark:/{}/{}", self.naan, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Whether its last character is the check character of those before it. ARKs that others made need not have one.
    fn has_check_character(ark: &Ark) -> bool {
        let text = &ark.as_str()["ark:/".len()..];
        text.split_at_checked(text.len() - 1).is_some_and(|(body, last)| last.starts_with(check_character(body)))
    }

    #[test]
    fn the_check_character_is_that_of_noid() {
        // The example of NOID's documentation.
        assert_eq!(check_character("13030/xf93gt2"), 'q');
        assert!(has_check_character(&"ark:/13030/xf93gt2q".parse().unwrap()));
        assert!(!has_check_character(&"ark:/13030/xf93gt2r".parse().unwrap()));
    }

    #[test]
    fn every_way_of_writing_an_ark_has_one_normal_form() {
        for text in
            ["ark:/13030/xf93gt2q", "ark:13030/xf93gt2q", "ARK:/13030/xf-93-gt2q", "ark:/130-30/xf93\u{2010}gt2q/."]
        {
            assert_eq!(text.parse::<Ark>().unwrap().as_str(), "ark:/13030/xf93gt2q", "{text}");
        }
        let with_parts: Ark = "ark:/B5060/Xf9/c2.v1".parse().unwrap();
        assert_eq!(with_parts.as_str(), "ark:/b5060/Xf9/c2.v1");
        let long = format!("ark:/13030/{}", "x".repeat(245));
        let hyphens = format!("ark:/13030/x{}", "-".repeat(2_000));
        for text in [
            "",
            "ark:",
            "ark:/",
            "ark:/13030",
            "ark:/13030/",
            "ark:/13030/-",
            "ark:/13030/./",
            "ark:/130a30/x",
            "ark://x",
            "13030/x",
            "doi:10.1/x",
            "ark:/13030/x y",
            "ark:/13030/x\n",
            "ark:/13030/x?info",
            "ark:/13030/é",
            "ark:/13030/x%2f",
            "ark:/13030//x",
            "ark:/13030/a/../b",
            "ark:/13030/../x",
            " ark:/13030/x",
            "ark",
            "arké",
            &long,
            &hyphens,
        ] {
            assert!(text.parse::<Ark>().is_err(), "{text:?}");
        }
        assert_eq!(deserialized("ark:/13030/x-y").map(|ark| ark.to_string()).as_deref(), Ok("ark:/13030/xy"));
        assert!(deserialized("13030/x").is_err());
    }

    fn deserialized(text: &str) -> Result<Ark, de::value::Error> {
        use serde::de::IntoDeserializer as _;
        Ark::deserialize(text.into_deserializer() as de::value::StrDeserializer<'_, de::value::Error>)
    }

    #[test]
    fn a_job_has_one_ark_for_each_derivation() {
        let shoulder: Shoulder = "ark:/99999/fk4".parse().unwrap();
        let job = Uuid::from_u128(7);
        // Fixed for ever: a job that was begun by an older version goes on with the same name.
        assert_eq!(shoulder.derive(job, 0), shoulder.derive(job, 0));
        let arks: BTreeSet<Ark> = (0..1_000).map(|derivation| shoulder.derive(job, derivation)).collect();
        assert_eq!(arks.len(), 1_000);
        for ark in &arks {
            assert!(ark.as_str().starts_with("ark:/99999/fk4") && has_check_character(ark), "{ark}");
            assert_eq!(ark.as_str().parse::<Ark>().as_ref(), Ok(ark));
        }
        assert_eq!("ark:99999/".parse::<Shoulder>().unwrap().to_string(), "ark:/99999/");
        assert!(
            ["ark:/99999/FK4", "ark:/99999/a", "99999/fk4", "ark:/99999"]
                .iter()
                .all(|text| text.parse::<Shoulder>().is_err())
        );
    }

    proptest! {
        #[test]
        fn one_wrong_character_or_two_that_changed_places_are_found(bits: u128, at in 0usize..10, to in 0usize..29) {
            let ark = Shoulder { naan: "99999".to_owned(), prefix: "fk4".to_owned() }.derive(Uuid::from_u128(bits), 0);
            let mut bytes = ark.as_str().as_bytes().to_vec();
            let place = "ark:/99999/fk4".len() + at;
            bytes.swap(place, place - 1);
            let is_found = |bytes: &[u8]| {
                let other: Ark = std::str::from_utf8(bytes).unwrap().parse().unwrap();
                other == ark || !has_check_character(&other)
            };
            prop_assert!(is_found(&bytes));
            bytes.swap(place, place - 1);
            bytes[place] = ALPHABET[to];
            prop_assert!(is_found(&bytes));
        }

        #[test]
        fn the_normal_form_is_its_own_normal_form(text in "(?i:ark):/?[0-9b-]{1,6}/[a-z0-9./\u{2010}-]{0,12}") {
            if let Ok(ark) = text.parse::<Ark>() {
                prop_assert_eq!(ark.as_str().parse::<Ark>(), Ok(ark.clone()));
                prop_assert!(!ark.as_str().contains('-'));
            }
        }
    }
}
