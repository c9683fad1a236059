//! A znode as it is in ZooKeeper.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror;

/// A znode as it is in ZooKeeper.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TreeNode {
    /// Its path below the chroot.
    #[schema(example = "/jobs/jid0000000042/status")]
    pub(crate) path: String,
    /// Its data as text, the first 64 KiB of it; invalid UTF-8 is replaced by U+FFFD.
    pub(crate) data: String,
    /// Whether the data that was read is valid UTF-8.
    pub(crate) is_utf8: bool,
    /// Whether `data` is truncated.
    pub(crate) is_cut: bool,
    /// Its stat.
    pub(crate) stat: Stat,
}

/// The stat of a znode.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct Stat {
    /// The transaction that created it.
    pub(crate) czxid: i64,
    /// The transaction that last wrote its data.
    pub(crate) mzxid: i64,
    /// The transaction that last added or removed a child.
    pub(crate) pzxid: i64,
    /// When it was created.
    pub(crate) created: Timestamp,
    /// When its data was last written.
    pub(crate) modified: Timestamp,
    /// How often its data was written.
    pub(crate) version: i32,
    /// How often children were added or removed.
    pub(crate) cversion: i32,
    /// How often its ACL was changed.
    pub(crate) aversion: i32,
    /// The session that owns it if it is ephemeral, in the notation of ZooKeeper's log; null for a persistent znode.
    #[schema(value_type = Option<String>)]
    pub(crate) ephemeral_owner: Option<crate::views::Session>,
    /// The length of its data in bytes.
    pub(crate) data_length_bytes: u64,
    /// How many children it has.
    pub(crate) children: u64,
}

/// A znode and some of its children.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TreePage {
    /// The znode.
    pub(crate) node: TreeNode,
    /// The names of some of its children, sorted.
    pub(crate) children: Vec<String>,
    /// How many come before this page.
    pub(crate) children_before: u64,
    /// How many there are in all.
    pub(crate) children_total: u64,
    /// The value of `after` for the next page; null on the last page.
    pub(crate) next: Option<String>,
}

impl From<&mirror::Node> for TreeNode {
    fn from(node: &mirror::Node) -> Self {
        let is_cut = (node.data.len() as u64) < node.stat.data_length;
        let is_utf8 = match std::str::from_utf8(&node.data) {
            Ok(_) => true,
            Err(error) => is_cut && error.error_len().is_none(),
        };
        Self {
            path: node.path.to_string(),
            data: String::from_utf8_lossy(&node.data).into_owned(),
            is_utf8,
            is_cut,
            stat: Stat::from(&node.stat),
        }
    }
}

impl From<&mirror::NodeStat> for Stat {
    fn from(stat: &mirror::NodeStat) -> Self {
        Self {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            created: stat.created,
            modified: stat.modified,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            ephemeral_owner: super::Session::of(stat.ephemeral_owner),
            data_length_bytes: stat.data_length,
            children: stat.children,
        }
    }
}

impl TreePage {
    /// A znode and these of its children.
    pub(crate) fn new(node: &mirror::Node, children: mirror::Children) -> Self {
        let mirror::Children { names, before, total } = children;
        let is_last = before + names.len() >= total;
        Self {
            node: TreeNode::from(node),
            children_before: before as u64,
            children_total: total as u64,
            next: names.last().filter(|_| !is_last).cloned(),
            children: names,
        }
    }
}
