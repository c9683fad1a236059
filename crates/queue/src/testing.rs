//! What the unit tests of several modules have in common.

use zookeeper_client::Stat;

/// The stat of a persistent znode without children at version 3, made in transaction 10 and changed in 11, of which no
/// two times are the same.
pub(crate) fn stat() -> Stat {
    Stat {
        czxid: 10,
        mzxid: 11,
        pzxid: 10,
        ctime: 1_000,
        mtime: 2_000,
        version: 3,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 0,
        num_children: 0,
    }
}
