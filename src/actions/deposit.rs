//! Deposits: from a request to a batch in the queue, with a record of who made it.
//!
//! A payload is a URL, or an upload that may come in parts: what has come is on the disk, and a request that was broken
//! off is followed by one that goes on where it was. The batch is created when all of it is there.

mod intake;
mod quota;
mod receive;
mod request;
mod resubmit;
mod shared;
mod upload;
mod withdraw;

use std::collections::BTreeSet;

use queuekeeper_ingest::deposit::Receipt;
use uuid::Uuid;

pub use request::{DepositRequest, read_digest, read_notification};
pub use shared::Intake;
pub(crate) use shared::is_refused;
pub use upload::Uploading;

/// The namespace of the UUIDs of deposits that have a key.
const KEYS: Uuid = Uuid::from_u128(0x2f0c_9d1e_57a4_4b8e_8c3a_6d90_b1e7_42f5);

/// What a depositor may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The profiles that may be deposited for; `None` for all.
    pub profiles: Option<BTreeSet<String>>,
    /// How many bytes may be uploaded in 24 hours; `None` for any number.
    pub bytes_per_day: Option<u64>,
    /// How many objects may be deposited in 24 hours; likewise.
    pub objects_per_day: Option<u64>,
    /// How many deposits may be made in 24 hours; likewise.
    pub deposits_per_day: Option<u64>,
    /// How many deposits may be made in a minute; likewise.
    pub deposits_per_minute: Option<u64>,
}

/// How a deposit has ended of which no other one may have the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// It was withdrawn.
    Withdrawn,
    /// Its batch ended, and was removed from the queue since.
    Removed,
}

impl Past {
    /// Why it is not made again, and what to do.
    #[must_use]
    pub fn why(self, id: &str) -> String {
        let what = match self {
            Self::Withdrawn => "was withdrawn",
            Self::Removed => "was made before, and its batch has since been removed from the queue",
        };
        format!("{id} {what}; deposit it again, with another key or without one")
    }
}

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The batch exists.
    Made(Receipt),
    /// The deposit of this key, by its id, was withdrawn: it is not made again.
    Withdrawn(String),
    /// Content is to be uploaded, from an offset on.
    Uploading(Uploading),
    /// It would have been taken.
    WouldBeTaken {
        /// How many URLs of its manifest were not requested.
        unrequested: u64,
        /// How many batches the rows of its manifest become, where it lies at a URL.
        batches: Option<u64>,
    },
}

/// The UUID of a deposit: the same for the same key of the same depositor, for ever; a new one without a key.
#[must_use]
pub fn uuid_for(depositor: &str, key: Option<&str>) -> Uuid {
    match key {
        // With the length of the name, or another name could begin where it ends.
        Some(key) => Uuid::new_v5(&KEYS, format!("{} {depositor} {key}", depositor.len()).as_bytes()),
        None => Uuid::new_v4(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_of_the_same_depositor_is_the_same_deposit() {
        assert_eq!(uuid_for("alice", Some("1")), uuid_for("alice", Some("1")));
        assert_ne!(uuid_for("alice", Some("1")), uuid_for("bob", Some("1")));
        assert_ne!(uuid_for("alice 1", Some("1")), uuid_for("alice", Some("1 1")));
        assert_ne!(uuid_for("alice", None), uuid_for("alice", None));
    }
}
