//! Algorithms, digests, and the computation of several in one pass.

mod hashers;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use hashers::Hashers;

/// An algorithm of digests or checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is its own name")]
pub enum Algorithm {
    Adler32,
    Crc32,
    Crc32c,
    Crc64Nvme,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// What is fixed for an algorithm.
struct Spec {
    name: &'static str,
    /// The length of a digest in bytes.
    bytes: usize,
    /// Whether no one can make other content with the same digest.
    is_strong: bool,
}

impl Algorithm {
    /// All of them, from the weakest to the strongest.
    pub const ALL: [Self; 9] = [
        Self::Adler32,
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Md5,
        Self::Sha1,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
    ];

    fn spec(self) -> Spec {
        let (name, bytes, is_strong) = match self {
            Self::Adler32 => ("adler32", 4, false),
            Self::Crc32 => ("crc32", 4, false),
            Self::Crc32c => ("crc32c", 4, false),
            Self::Crc64Nvme => ("crc64nvme", 8, false),
            Self::Md5 => ("md5", 16, false),
            Self::Sha1 => ("sha1", 20, false),
            Self::Sha256 => ("sha256", 32, true),
            Self::Sha384 => ("sha384", 48, true),
            Self::Sha512 => ("sha512", 64, true),
        };
        Spec { name, bytes, is_strong }
    }

    /// The name: lower case, without hyphens.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.spec().name
    }

    /// Whether no one can make other content with the same digest, as far as is known.
    #[must_use]
    pub fn is_strong(self) -> bool {
        self.spec().is_strong
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// What is wrong with the name of an algorithm or with a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// No algorithm has that name.
    #[error(
        "unknown algorithm {0:?}; expected one of adler32, crc32, crc32c, crc64nvme, md5, sha1, sha256, sha384 and sha512"
    )]
    Algorithm(String),
    /// It has not the form or length that the algorithm's digests have.
    #[error("{algorithm} digests have {} hexadecimal digits", 2 * bytes)]
    Form {
        /// The algorithm.
        algorithm: Algorithm,
        /// How many bytes its digests have.
        bytes: usize,
    },
}

/// Takes the name in any case, with or without a hyphen or underscore: `SHA-256`.
impl FromStr for Algorithm {
    type Err = DigestError;

    fn from_str(name: &str) -> Result<Self, DigestError> {
        let plain = name.chars().filter(|char| !matches!(char, '-' | '_')).collect::<String>().to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == plain);
        found.ok_or_else(|| DigestError::Algorithm(name.chars().take(32).collect()))
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// A digest: its algorithm and its bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: Box<[u8]>,
}

impl Digest {
    /// A digest of these bytes.
    ///
    /// # Errors
    /// When the algorithm's digests have another length.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, DigestError> {
        let Spec { bytes: length, .. } = algorithm.spec();
        if bytes.len() != length {
            return Err(DigestError::Form { algorithm, bytes: length });
        }
        Ok(Self { algorithm, bytes: bytes.into() })
    }

    /// A digest in hexadecimal digits of either case.
    ///
    /// # Errors
    /// When it has not that form.
    pub fn from_hex(algorithm: Algorithm, hex: &str) -> Result<Self, DigestError> {
        let form = || DigestError::Form { algorithm, bytes: algorithm.spec().bytes };
        if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
            return Err(form());
        }
        let byte = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok().filter(|_| !hex[at..].starts_with('+'));
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        Self::new(algorithm, &bytes.ok_or_else(form)?)
    }

    /// The algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest in hexadecimal digits of lower case.
    #[must_use]
    pub fn hex(&self) -> String {
        self.bytes.iter().fold(String::with_capacity(2 * self.bytes.len()), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// The digits alone.
impl fmt::Display for Digest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.algorithm, self.hex())
    }
}

/// The digests of one content, at most one of each algorithm. As JSON: `{"sha256": "9f86d0.."}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests(BTreeMap<Algorithm, Digest>);

impl Digests {
    /// Adds a digest, in place of one of the same algorithm.
    pub fn insert(&mut self, digest: Digest) {
        self.0.insert(digest.algorithm, digest);
    }

    /// The digest of an algorithm.
    #[must_use]
    pub fn get(&self, algorithm: Algorithm) -> Option<&Digest> {
        self.0.get(&algorithm)
    }

    /// All of them, the weakest first.
    pub fn iter(&self) -> impl Iterator<Item = &Digest> {
        self.0.values()
    }

    /// The strongest of them.
    #[must_use]
    pub fn strongest(&self) -> Option<&Digest> {
        self.0.values().next_back()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of these digests that differs from that of the same algorithm in others, with the other one.
    #[must_use]
    pub fn difference<'a>(&'a self, others: &'a Self) -> Option<(&'a Digest, &'a Digest)> {
        let both = self.0.values().filter_map(|digest| Some((digest, others.get(digest.algorithm)?)));
        both.into_iter().find(|(one, other)| one != other)
    }

    /// Whether both are of the same content, as far as they tell: `None` where no algorithm is in both.
    #[must_use]
    pub fn agree(&self, others: &Self) -> Option<bool> {
        let has_common = self.0.keys().any(|algorithm| others.0.contains_key(algorithm));
        has_common.then(|| self.difference(others).is_none())
    }
}

impl FromIterator<Digest> for Digests {
    fn from_iter<T: IntoIterator<Item = Digest>>(digests: T) -> Self {
        Self(digests.into_iter().map(|digest| (digest.algorithm, digest)).collect())
    }
}

impl Extend<Digest> for Digests {
    fn extend<T: IntoIterator<Item = Digest>>(&mut self, digests: T) {
        self.0.extend(digests.into_iter().map(|digest| (digest.algorithm, digest)));
    }
}

impl Serialize for Digests {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.values().map(|digest| (digest.algorithm.as_str(), digest.hex())))
    }
}

impl<'de> Deserialize<'de> for Digests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let texts = BTreeMap::<String, String>::deserialize(from)?;
        let digest = |(name, hex): (&String, &String)| Digest::from_hex(name.parse()?, hex);
        texts.iter().map(digest).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the definitions of the algorithms, and for the CRCs their catalogue: the digest of `123456789`.
    const KNOWN: [(Algorithm, &str); 9] = [
        (Algorithm::Adler32, "091e01de"),
        (Algorithm::Crc32, "cbf43926"),
        (Algorithm::Crc32c, "e3069283"),
        (Algorithm::Crc64Nvme, "ae8b14860a799888"),
        (Algorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
        (Algorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        (Algorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        (
            Algorithm::Sha384,
            "eb455d56d2c1a69de64e832011f3393d45f3fa31d6842f21af92d2fe469c499da5e3179847334a18479c8d1dedea1be3",
        ),
        (
            Algorithm::Sha512,
            "d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274ad27fcd5811b313d681f7e55ec02d73d4\
             99c95455b6b5bb503acf574fba8ffe85",
        ),
    ];

    #[test]
    fn all_algorithms_are_computed_in_one_pass_in_pieces_of_any_size() {
        let mut hashers = Hashers::new(Algorithm::ALL.into_iter().chain([Algorithm::Md5]));
        for piece in [&b""[..], b"1", b"2345", b"", b"6789"] {
            hashers.update(piece);
        }
        assert_eq!(hashers.bytes(), 9);
        let digests = hashers.finish();
        let found: Vec<_> = digests.iter().map(|digest| (digest.algorithm(), digest.hex())).collect();
        assert_eq!(found, KNOWN.map(|(algorithm, hex)| (algorithm, hex.to_owned())));
        let text = serde_json::to_string(&digests).unwrap();
        assert_eq!(serde_json::from_str::<Digests>(&text).unwrap(), digests);
    }

    #[test]
    fn digests_agree_by_what_they_have_in_common() {
        use Algorithm::{Md5, Sha1, Sha256};
        let of = |bytes: &[u8], algorithms: &[Algorithm]| {
            let mut hashers = Hashers::new(algorithms.iter().copied());
            hashers.update(bytes);
            hashers.finish()
        };
        assert_eq!(of(b"a", &[Md5, Sha1]).agree(&of(b"a", &[Sha1, Sha256])), Some(true));
        assert_eq!(of(b"a", &[Md5, Sha1]).agree(&of(b"b", &[Sha1])), Some(false));
        assert_eq!(of(b"a", &[Md5]).agree(&of(b"a", &[Sha1])), None);
        assert_eq!(of(b"a", &[Md5, Sha1]).strongest().map(Digest::algorithm), Some(Sha1));
    }

    #[test]
    fn names_and_digests_are_taken_in_their_usual_forms_and_no_other() {
        for name in ["sha256", "SHA-256", "Sha_256"] {
            assert_eq!(name.parse(), Ok(Algorithm::Sha256));
        }
        assert!("md2".parse::<Algorithm>().is_err() && "".parse::<Algorithm>().is_err());
        assert!(Digest::from_hex(Algorithm::Crc32, "CBF43926").is_ok_and(|digest| digest.hex() == "cbf43926"));
        for wrong in ["", "cbf4392", "cbf439261", "cbf4392g", "+bf43926", "cb+43926", "cbf43é", " bf43926"] {
            assert!(Digest::from_hex(Algorithm::Crc32, wrong).is_err(), "{wrong:?}");
        }
    }
}
