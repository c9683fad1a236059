//! What an operator allows an account in one of its stores.

mod cold;
mod hours;

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use glob::Pattern;
use queuekeeper_store::{Key, StoreName};

pub use cold::{ByteAmount, ColdStore, RestoreSettings};
pub use hours::Hours;

use crate::bit::policy::ProofPolicy;
use crate::bit::repair::RepairMode;

/// The units of bytes, the largest first.
const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// What an operator allows an account in one of its stores; by default, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// When tasks are begun that read from the store or write to it; `None` for always.
    pub hours: Option<Hours>,
    /// How many bytes a second all workers of a process read from it and write to it.
    pub bandwidth: Option<Bandwidth>,
    /// How many requests a second they send to it.
    pub requests: Option<NonZeroU64>,
    /// Which keys are not copied to it.
    pub leave_out: Vec<KeyPattern>,
    /// The store that is read in its place when its content is copied to others.
    pub read_from: Option<StoreName>,
    /// Which proof of its content a check is to bring.
    pub proof: ProofPolicy,
    /// Who starts the repairs of its copies.
    pub repair: RepairMode,
    /// Whether it is written once: the mill never starts a repair there.
    pub is_write_once: bool,
    /// Who takes what it has into the record where that has nothing of it.
    pub adopt: RepairMode,
    /// What may be asked of it where reading costs: of all accounts together, as the store is configured.
    pub cold: ColdStore,
}

impl StoreLimits {
    /// The first pattern that leaves a key out; `None` where it is copied.
    #[must_use]
    pub fn leaves_out(&self, key: &Key) -> Option<&KeyPattern> {
        self.leave_out.iter().find(|pattern| pattern.matches(key))
    }
}

/// `begins tasks Sat,Sun 00:00-24:00 (UTC); at most 20 MiB a second`: what is limited, on one line.
impl fmt::Display for StoreLimits {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<_> = self.leave_out.iter().map(ToString::to_string).collect();
        let parts = [
            self.hours.as_ref().map(|hours| format!("tasks start {hours}")),
            self.bandwidth.map(|bandwidth| format!("at most {bandwidth} a second")),
            self.requests.map(|requests| format!("at most {requests} requests a second")),
            (!patterns.is_empty()).then(|| format!("leaves out {}", patterns.join(", "))),
            self.read_from.as_ref().map(|store| format!("is read from {store}")),
            (self.proof != ProofPolicy::Read).then(|| format!("is checked by {}", self.proof)),
            (self.repair == RepairMode::Automatic).then(|| "is repaired automatically".to_owned()),
            self.is_write_once.then(|| "is written once".to_owned()),
            (self.adopt == RepairMode::Automatic).then(|| "has what it stores adopted automatically".to_owned()),
        ];
        to.write_str(&parts.into_iter().flatten().chain(self.cold.words()).collect::<Vec<_>>().join("; "))
    }
}

/// A number of bytes a second, at least one. As text, `20 MiB`, `512KiB` or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth(NonZeroU64);

impl Bandwidth {
    /// How many bytes a second.
    #[must_use]
    pub fn bytes(self) -> NonZeroU64 {
        self.0
    }
}

impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        cold::read(text)
            .map(Self)
            .ok_or_else(|| format!("expected bytes per second, such as 20MiB or 512KiB, not {text:?}"))
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        cold::show(self.0, to)
    }
}

/// A pattern of keys: `*` stands for any characters, `/` among them, `?` for one, `[a-z]` for one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern(Pattern);

impl KeyPattern {
    /// Whether a key is as the pattern says. What is no UTF-8 in it counts as `U+FFFD`.
    #[must_use]
    pub fn matches(&self, key: &Key) -> bool {
        self.0.matches(&String::from_utf8_lossy(key.as_bytes()))
    }
}

impl FromStr for KeyPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern has at least one character; expected one such as *.tmp".to_owned());
        }
        let pattern = Pattern::new(text).map_err(|error| error.msg);
        pattern.map(Self).map_err(|why| format!("{text:?} is not a pattern: {why}; expected one such as *.tmp"))
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_read_in_its_units_and_written_in_the_largest_that_fits() {
        for (text, bytes, shown) in [
            ("20MiB", 20 << 20, "20 MiB"),
            ("512 KiB", 512 << 10, "512 KiB"),
            ("1500", 1500, "1500 B"),
            ("7B", 7, "7 B"),
        ] {
            let bandwidth: Bandwidth = text.parse().unwrap();
            assert_eq!((bandwidth.bytes().get(), bandwidth.to_string().as_str()), (bytes, shown));
        }
        for wrong in ["", "0", "0MiB", "-1", "1.5MiB", "20MB", "MiB", "99999999999GiB"] {
            assert!(wrong.parse::<Bandwidth>().unwrap_err().contains("such as 20MiB"), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_is_of_whole_keys_and_its_star_goes_across_folders() {
        let matches =
            |pattern: &str, key: &[u8]| pattern.parse::<KeyPattern>().unwrap().matches(&Key::new(key).unwrap());
        assert!(matches("*.tmp", b"a.tmp") && matches("*.tmp", b"a/b/.c.tmp") && matches("cache/*", b"cache/x/y"));
        assert!(!matches("*.tmp", b"a.tmp/b") && !matches("cache/*", b"a/cache/x") && !matches("*.TMP", b"a.tmp"));
        assert!(matches("*.t[im]p", b"\xff/a.tmp") && matches("page-?.tif", b"page-1.tif"));
        for wrong in ["", "a[", "a**b"] {
            assert!(wrong.parse::<KeyPattern>().unwrap_err().contains("such as *.tmp"), "{wrong}");
        }
    }
}
