//! The folders that a transaction lacks, made together with it.

use std::collections::BTreeSet;

use super::{Committed, Operation, Transaction};
use crate::path::Path;

/// The operations that are sent: a transaction's own, and those that make missing folders for them.
pub(super) struct Sent {
    pub(super) transaction: Transaction,
    /// For each operation its index in the transaction itself; `None` for a folder's.
    pub(super) origin: Vec<Option<usize>>,
}

impl Sent {
    pub(super) fn new(transaction: &Transaction, folders: &BTreeSet<Path>) -> Self {
        let mut sent = Self { transaction: Transaction::new(), origin: Vec::new() };
        let mut missing = folders.clone();
        for (index, operation) in transaction.operations.iter().enumerate() {
            let mut above: Vec<Path> = std::iter::successors(operation.path().parent(), Path::parent).collect();
            above.retain(|path| missing.remove(path));
            for folder in above.into_iter().rev() {
                sent.transaction.create(folder, Vec::new());
                sent.origin.push(None);
            }
            sent.transaction.push(operation.clone());
            sent.origin.push(Some(index));
        }
        sent
    }

    /// The outcome of the transaction's own operations.
    pub(super) fn own(&self, committed: Committed) -> Committed {
        let stats = committed.stats.into_iter().zip(&self.origin);
        let stats = stats.filter_map(|(stat, origin)| origin.map(|_| stat)).collect();
        Committed { stats, recovered: committed.recovered }
    }
}

/// The folder that a creation lacked.
pub(super) fn missing_folder(refused: &Operation) -> Option<Path> {
    match refused {
        Operation::Create { path, .. } => path.parent().filter(Path::is_folder),
        Operation::Check { .. } | Operation::Set { .. } | Operation::Delete { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stat;

    #[test]
    fn each_missing_folder_is_made_once_before_the_first_znode_below_it() {
        let mut transaction = Transaction::new();
        for path in ["/batches/bid0000000007", "/jobs/states/pending/05-jid0000000001", "/jobs/jid0000000001"] {
            transaction.create(Path::parse(path), "x");
        }
        let folders = ["/jobs", "/jobs/states", "/jobs/states/pending", "/locks"].map(Path::parse);
        let sent = Sent::new(&transaction, &BTreeSet::from(folders));
        let paths: Vec<_> =
            sent.transaction.operations().iter().map(|operation| operation.path().to_string()).collect();
        let made = ["/jobs", "/jobs/states", "/jobs/states/pending"];
        assert_eq!(paths[..4], [&["/batches/bid0000000007"], &made[..]].concat());
        assert_eq!(paths[4..], ["/jobs/states/pending/05-jid0000000001", "/jobs/jid0000000001"]);
        assert_eq!(sent.origin, [Some(0), None, None, None, Some(1), Some(2)]);
        assert_eq!(sent.transaction.operations()[1].to_string(), "create /jobs");

        let stats = (0..6).map(|version| Some(zookeeper_client::Stat { version, ..stat() })).collect();
        let own = sent.own(Committed { stats, recovered: true });
        let versions: Vec<_> = own.stats.iter().flatten().map(|stat| stat.version).collect();
        assert_eq!((versions, own.recovered), (vec![0, 4, 5], true));
    }

    #[test]
    fn only_a_creation_lacks_a_folder() {
        let path = Path::parse("/jobs/states/pending/05-jid0000000001");
        let create = |path: &Path| Operation::Create { path: path.clone(), data: Vec::new(), ephemeral: false };
        assert_eq!(missing_folder(&create(&path)), path.parent());
        // A job is no folder: without it, nothing is made below it.
        assert_eq!(missing_folder(&create(&Path::parse("/jobs/jid0000000001/bid"))), None);
        assert_eq!(missing_folder(&Operation::Delete { path, version: None }), None);
    }
}
