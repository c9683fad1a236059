//! What was granted of a volume of working storage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `/queuekeeper/space/VOLUME`: the grants on a volume, written by version with the change that lets a job pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct GrantsNote {
    /// The grants by the id of their job, in any form that a client may have left there.
    pub grants: BTreeMap<String, GrantNote>,
}

/// What a job was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct GrantNote {
    /// How many bytes it may write.
    pub bytes: u64,
    /// When it was granted, in milliseconds since 1970.
    pub since: i64,
    /// How many bytes its job needs beyond that, and waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<u64>,
}

impl GrantsNote {
    /// Reads the znode's data.
    ///
    /// # Errors
    /// For what is not in this form.
    pub fn decode(data: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }

    /// The znode's data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // It holds texts and numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// How many bytes are granted together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.grants.values().fold(0, |sum, grant| sum.saturating_add(grant.bytes))
    }
}
