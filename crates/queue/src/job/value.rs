//! The values of a job, and what its znodes hold of them.

use serde_json::json;

use crate::path::JobNode;
use crate::record::{self, Malformed};

/// A value of a job. Keys that are not named here are kept as they are in the znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobValue {
    /// How many bytes of working storage it needs; `None` for not known.
    SpaceNeeded(Option<u64>),
    /// What it is called.
    Identifiers {
        /// The ARK; empty until it is minted.
        ark: String,
        /// The depositor's own names.
        local_ids: Vec<String>,
    },
    /// Its kernel metadata.
    Metadata {
        /// Who made it.
        who: String,
        /// What it is.
        what: String,
        /// When it was made.
        when: String,
        /// Where it is.
        location: String,
    },
    /// What the storage service is to do.
    Store {
        /// Where the manifest is.
        manifest_url: String,
        /// As `action/node/ark`.
        mode: String,
        /// What is to be deleted, if the daemon reports it, in its own form.
        delete: Option<serde_json::Value>,
    },
    /// What the inventory is to do.
    Inventory {
        /// Where the manifest is.
        manifest_url: String,
        /// What to do with it.
        mode: String,
    },
}

impl JobValue {
    pub(super) fn node(&self) -> JobNode {
        match self {
            Self::SpaceNeeded(_) => JobNode::SpaceNeeded,
            Self::Identifiers { .. } => JobNode::Identifiers,
            Self::Metadata { .. } => JobNode::Metadata,
            Self::Store { .. } => JobNode::Store,
            Self::Inventory { .. } => JobNode::Inventory,
        }
    }

    /// The znode's new data over its old; empty for a new znode.
    pub(crate) fn data(&self, old: &[u8]) -> Result<Vec<u8>, Malformed> {
        match self {
            Self::SpaceNeeded(bytes) => Ok(bytes.unwrap_or(0).to_string().into_bytes()),
            Self::Identifiers { ark, local_ids } => {
                let local_ids: Vec<&str> = local_ids.iter().map(String::as_str).collect();
                record::identifiers(old, ark, &local_ids)
            }
            Self::Metadata { who, what, when, location } => record::merged(
                old,
                [
                    ("erc_who", json!(who)),
                    ("erc_what", json!(what)),
                    ("erc_when", json!(when)),
                    ("erc_where", json!(location)),
                ],
            ),
            Self::Store { manifest_url, mode, delete } => {
                let delete = delete.clone().map(|delete| ("delete", delete));
                let keys = [("manifest_url", json!(manifest_url)), ("mode", json!(mode))];
                record::merged(old, keys.into_iter().chain(delete))
            }
            Self::Inventory { manifest_url, mode } => {
                record::merged(old, [("manifest_url", json!(manifest_url)), ("mode", json!(mode))])
            }
        }
    }
}
