//! Content in an archive: it is read once a copy of it was restored, which is asked for and takes hours.

use std::str::FromStr;
use std::time::Duration;

/// What is asked of a store to have archived content restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreRequest {
    /// For how many days the restored copy can be read.
    pub days: u32,
    /// How fast, and at what price.
    pub tier: RestoreTier,
}

/// How fast content is restored: the retrieval tiers of S3 (API reference, `RestoreObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreTier {
    /// In 5 to 12 hours, from a deep archive 48, at the lowest price.
    #[default]
    Bulk,
    /// In 3 to 5 hours, from a deep archive 12.
    Standard,
    /// In minutes, at the highest price; never from a deep archive.
    Expedited,
}

impl RestoreTier {
    /// All of them, the cheapest first.
    pub const ALL: [Self; 3] = [Self::Bulk, Self::Standard, Self::Expedited];

    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Standard => "standard",
            Self::Expedited => "expedited",
        }
    }
}

impl FromStr for RestoreTier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|tier| tier.as_str() == text);
        known.ok_or_else(|| format!("expected bulk, standard or expedited, not {text:?}"))
    }
}

/// Why content cannot be read yet, and when to try again. As text, the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotYet {
    /// What it waits for, as the predicate of a sentence without a full stop.
    pub why: String,
    /// After what time to try again.
    pub after: Duration,
    /// Whether other content of the store has to wait as well.
    pub is_of_store: bool,
}
