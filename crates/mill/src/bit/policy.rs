//! Which proof of its content the policy of a store asks for.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use queuekeeper_store::Key;

use super::verdict::Proof;

/// Which proof each check of a copy is to bring. As text, `read`, `provider`, or `read 1/12`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofPolicy {
    /// By reading the content.
    #[default]
    Read,
    /// By the checksum that the store keeps of the whole content: nothing is read.
    Provider,
    /// By reading the content of one in so many items in each loop, so that each item has its turn. Of the others it is
    /// only seen that the store lists them as they are recorded.
    Sample(NonZeroU32),
}

impl ProofPolicy {
    /// Whether content may be read.
    #[must_use]
    pub fn may_read(self) -> bool {
        match self {
            Self::Read | Self::Sample(_) => true,
            Self::Provider => false,
        }
    }

    /// The least proof that it asks for, of each item that has its turn.
    #[must_use]
    pub fn proof(self) -> Proof {
        if self.may_read() { Proof::Read } else { Proof::Provider }
    }

    /// Whether an item has its turn in a loop.
    #[must_use]
    pub fn has_turn(self, key: &Key, number: u64) -> bool {
        match self {
            Self::Read | Self::Provider => true,
            Self::Sample(of) => hash(key) % u64::from(of.get()) == number % u64::from(of.get()),
        }
    }
}

/// FNV-1a of 64 bits: the same in every program that reads the same catalogue.
fn hash(key: &Key) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    key.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl fmt::Display for ProofPolicy {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => to.write_str("read"),
            Self::Provider => to.write_str("provider"),
            Self::Sample(of) => write!(to, "read 1/{of}"),
        }
    }
}

impl FromStr for ProofPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sample = || text.strip_prefix("read 1/")?.parse().ok().map(Self::Sample);
        match text {
            "read" => Ok(Self::Read),
            "provider" => Ok(Self::Provider),
            _ => sample()
                .ok_or_else(|| format!("expected read, provider, or a fraction such as read 1/12, not {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_its_turn_once_in_as_many_loops_as_the_sample_says() {
        let policy: ProofPolicy = "read 1/12".parse().unwrap();
        assert_eq!(policy.to_string(), "read 1/12");
        let turns: Vec<usize> = (0..1000)
            .map(|number| {
                let key = Key::new(format!("object-{number}/file").into_bytes()).unwrap();
                let turns: Vec<u64> = (0..12).filter(|number| policy.has_turn(&key, *number)).collect();
                assert_eq!(turns.len(), 1);
                usize::try_from(turns[0]).unwrap()
            })
            .collect();
        // None of the loops reads much more than its share.
        let shares: Vec<_> = (0..12).map(|turn| turns.iter().filter(|other| **other == turn).count()).collect();
        assert!(shares.iter().all(|share| (40..140).contains(share)), "{shares:?}");
        // It is the published function: the hash of "a".
        assert_eq!(hash(&Key::new(*b"a").unwrap()), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn policies_are_read_as_they_are_written_and_nothing_else_is() {
        for policy in [ProofPolicy::Read, ProofPolicy::Provider] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for wrong in ["", "Read", "read 1/0", "read 1/", "read 2/3", "1/12", "read 1/x"] {
            assert!(wrong.parse::<ProofPolicy>().is_err(), "{wrong}");
        }
    }
}
