//! Which spaces of an account are copied, from which store to which.
//!
//! A policy is a file `{account}-duplication-policy.json`, and the accounts that have one are in
//! `duplication-accounts.json`, as the `DuraCloud` Mill keeps them. Both are read tolerantly and written strictly. What
//! cannot be carried out (a circle, two sources of one copy, a store that does not exist) is refused when it is read.

mod check;
mod drift;
mod edit;
mod file;
mod force;
mod source;
mod store_id;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use queuekeeper_store::SpaceName;
use serde::{Deserialize, Serialize};

pub use check::{Problem, check};
pub use drift::{Drift, WaitingChange, drift};
pub use edit::{Editable, NewPolicy, PairChange, Plan, SaveError, open, plan, save};
pub use file::{
    ACCOUNTS_FILE, FileError, is_account_name, other_keys, policy_file, read_accounts, read_policy, write_accounts,
    write_policy,
};
pub use force::{InForce, Policies, PolicyError, apply, in_force, read, stray_accounts};
pub use source::PolicySource;
pub use store_id::StoreId;

/// That what one store has is copied to another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// The store to copy from.
    #[serde(rename = "srcStoreId")]
    pub source: StoreId,
    /// The store to copy to.
    #[serde(rename = "destStoreId")]
    pub destination: StoreId,
}

/// `1 to 2`.
impl fmt::Display for Pair {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} to {}", self.source, self.destination)
    }
}

/// The policy of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Of the spaces that are not named.
    pub defaults: BTreeSet<Pair>,
    /// Of those that are.
    pub spaces: BTreeMap<SpaceName, BTreeSet<Pair>>,
    /// Those that are not copied.
    pub ignored: BTreeSet<SpaceName>,
}

/// No pairs at all.
static NONE: BTreeSet<Pair> = BTreeSet::new();

impl Policy {
    /// The pairs of a space: none where it is ignored or reserved, else its own, else the default ones.
    #[must_use]
    pub fn pairs(&self, space: &SpaceName) -> &BTreeSet<Pair> {
        if space.is_reserved() || self.ignored.contains(space) {
            return &NONE;
        }
        self.spaces.get(space).unwrap_or(&self.defaults)
    }

    /// All spaces that the policy names.
    pub(crate) fn named(&self) -> BTreeSet<&SpaceName> {
        self.spaces.keys().chain(&self.ignored).collect()
    }
}
