//! How policies name the stores of an account.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a store within an account, as Mill has it: any text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub String);

impl fmt::Display for StoreId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}
