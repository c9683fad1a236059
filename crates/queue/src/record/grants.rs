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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_as_they_are_written_and_their_sum_is_cut_at_the_largest_number() {
        let note = |grants: &[(&str, u64, Option<u64>)]| {
            let grant = |(job, bytes, extension): &(&str, u64, Option<u64>)| {
                ((*job).to_owned(), GrantNote { bytes: *bytes, since: 7, extension: *extension })
            };
            GrantsNote { grants: grants.iter().map(grant).collect() }
        };
        let two = note(&[("jid0000000001", 30, None), ("odd", 12, Some(5))]);
        let text = r#"{"grants":{"jid0000000001":{"bytes":30,"since":7},"odd":{"bytes":12,"since":7,"extension":5}}}"#;
        assert_eq!(String::from_utf8(two.encode()).unwrap(), text);
        assert_eq!(GrantsNote::decode(text.as_bytes()).unwrap(), two);
        // What a job waits for is not granted yet.
        assert_eq!([note(&[]), two].map(|note| note.total()), [0, 42]);
        assert_eq!(note(&[("a", u64::MAX, None), ("b", 1, None)]).total(), u64::MAX);
        for wrong in [&b""[..], b"[]", b"{}", br#"{"grants":{"a":{"bytes":-1,"since":7}}}"#] {
            assert!(GrantsNote::decode(wrong).is_err());
        }
    }
}
