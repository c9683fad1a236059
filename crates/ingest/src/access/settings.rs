//! What an operator sets for access requests.

use std::time::Duration;

use queuekeeper_store::{SpaceName, StoreName};

/// What an operator sets for access requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSettings {
    /// The store that archives are delivered to.
    pub store: StoreName,
    /// The space of it that they lie in, which holds nothing else.
    pub space: SpaceName,
    /// The number that Merritt's programs know that store by.
    pub node: u32,
    /// The URL of the server that answers links, which ends with a slash.
    pub url: String,
    /// Whether the store signs links in advance, and answers them itself.
    pub is_presigned: bool,
    /// How long an archive is kept, and links to it are valid.
    pub lifetime: Duration,
    /// The most bytes of a small request.
    pub small: u64,
}

impl AccessSettings {
    /// How long archives are kept, and links to them are valid, unless set otherwise.
    pub const LIFETIME: Duration = Duration::from_hours(7 * 24);

    /// What holds where only the store is named: archives are kept in the space `access`, requests are small up to
    /// 1 GiB, and links lead to a server on this machine.
    ///
    /// # Panics
    /// Never: the name of the space is one.
    #[must_use]
    pub fn new(store: StoreName) -> Self {
        Self {
            store,
            space: "access".parse().expect("it is the name of a space"),
            node: 1,
            url: "http://127.0.0.1:12181/".to_owned(),
            is_presigned: false,
            lifetime: Self::LIFETIME,
            small: 1 << 30,
        }
    }
}
