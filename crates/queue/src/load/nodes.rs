//! Making znodes, many in one transaction.

use super::LoadError;
use crate::error::{ConflictKind, Error};
use crate::handle::{Found, Queue, Read};
use crate::path::Path;
use crate::transaction::{Operation, REQUEST_LIMIT_BYTES, Transaction};

/// How large a transaction becomes, but for an item that is larger: others' requests wait behind it.
const CHUNK_BYTES: usize = 256 << 10;

/// A znode to be made, and the number of the item whose znodes belong together.
#[derive(Debug)]
pub(super) struct DumpNode {
    pub(super) path: Path,
    pub(super) data: Vec<u8>,
    pub(super) unit: u64,
}

/// Gathers znodes into transactions. The znodes of an item stay together where they fit.
pub(super) struct Chunks {
    overhead: usize,
    full: Transaction,
    full_bytes: usize,
    /// The znodes of the item that is being read.
    item: Transaction,
    item_bytes: usize,
    unit: u64,
}

impl Chunks {
    /// None yet; chroot and ACL add that many bytes to each operation.
    pub(super) fn new(operation_overhead: usize) -> Self {
        Self {
            overhead: operation_overhead + 25,
            full: Transaction::new(),
            full_bytes: 0,
            item: Transaction::new(),
            item_bytes: 0,
            unit: 0,
        }
    }

    /// Adds a znode, and gives what is to be made by then.
    pub(super) fn add(&mut self, path: Path, data: Vec<u8>, unit: u64) -> Option<Transaction> {
        let bytes = data.len() + path.to_string().len() + self.overhead;
        if unit != self.unit || self.item_bytes + bytes > REQUEST_LIMIT_BYTES {
            // What is larger than any transaction is cut: parents still come first, and the queue is paused.
            let chunk = self.close_item();
            self.unit = unit;
            self.item.create(path, data);
            self.item_bytes = bytes;
            return chunk;
        }
        self.item.create(path, data);
        self.item_bytes += bytes;
        None
    }

    /// Adds the item to the transaction, or gives the one before it where both would be too large.
    fn close_item(&mut self) -> Option<Transaction> {
        let item = std::mem::take(&mut self.item);
        let fits = self.full_bytes + self.item_bytes <= CHUNK_BYTES;
        let chunk = if fits { None } else { Some(std::mem::take(&mut self.full)) };
        self.full_bytes = if fits { self.full_bytes + self.item_bytes } else { self.item_bytes };
        self.full.append(item);
        self.item_bytes = 0;
        chunk.filter(|chunk| !chunk.is_empty())
    }

    /// What is left at the end.
    pub(super) fn rest(&mut self) -> Vec<Transaction> {
        let mut rest: Vec<_> = self.close_item().into_iter().collect();
        rest.push(std::mem::take(&mut self.full));
        rest.retain(|chunk| !chunk.is_empty());
        rest
    }
}

impl Queue {
    /// Makes the znodes of a transaction, and gives how many were made and how many there already.
    pub(super) async fn make(&self, chunk: Transaction, is_resumed: bool) -> Result<(u64, u64), LoadError> {
        let (chunk, found) = if is_resumed { self.missing(chunk).await? } else { (chunk, 0) };
        if chunk.is_empty() {
            return Ok((0, found));
        }
        let made = chunk.operations().len() as u64;
        if let [Operation::Create { path, data, .. }] = chunk.operations()
            && chunk.size_bytes() + self.operation_overhead() > REQUEST_LIMIT_BYTES
        {
            self.make_large(path, data).await?;
        } else {
            self.commit(&chunk).await.map_err(explained)?;
        }
        Ok((made, found))
    }

    /// Makes one znode whose value is nearly as large as ZooKeeper takes it: the dump was checked for larger ones.
    async fn make_large(&self, path: &Path, data: &[u8]) -> Result<(), LoadError> {
        let failed = |cause| Error::Commit { operation: format!("create {path}"), cause };
        let options = zookeeper_client::CreateMode::Persistent.with_acls(self.acls());
        let name = path.to_string();
        match self.within(self.client().create(&name, data, &options)).await {
            Ok(_) => Ok(()),
            Err(cause) => {
                // Whether a lost request was done is to be seen.
                self.within(self.client().sync("/")).await.map_err(failed)?;
                match self.read_data(path.clone()).await?.data() {
                    Some((found, _)) if found == data => Ok(()),
                    Some(_) => Err(LoadError::Differs(name)),
                    None => Err(failed(cause).into()),
                }
            }
        }
    }

    /// Leaves out what is there already, with the same value.
    async fn missing(&self, chunk: Transaction) -> Result<(Transaction, u64), LoadError> {
        let reads: Vec<_> = chunk.operations().iter().map(|operation| Read::Data(operation.path().clone())).collect();
        let found = self.read(&reads).await?.into_iter().map(Found::data);
        let mut missing = Transaction::new();
        let mut there = 0;
        for (operation, found) in chunk.operations().iter().zip(found) {
            let Operation::Create { path, data, .. } = operation else { continue };
            match found {
                None => {
                    missing.create(path.clone(), data.clone());
                }
                Some((found, _)) if found == *data => there += 1,
                Some(_) => return Err(LoadError::Differs(path.to_string())),
            }
        }
        Ok((missing, there))
    }
}

/// Says what it means that something is there already in a chroot that was empty.
fn explained(error: Error) -> LoadError {
    match error {
        Error::Conflict(conflict) if matches!(conflict.kind, ConflictKind::Exists { .. } | ConflictKind::Moved) => {
            LoadError::Differs(conflict.path.to_string())
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use crate::path::JobNode;

    /// What an operation adds to path and value, in these tests.
    const OVERHEAD: usize = 25;

    fn chunks() -> Chunks {
        Chunks::new(0)
    }

    /// Adds a znode of so many bytes, path and overhead among them, as one of the unit. Gives how many operations the
    /// transaction has that is to be committed by then.
    fn add(chunks: &mut Chunks, unit: u64, bytes: usize) -> Option<usize> {
        let path = Path::JobNode(JobId::new(1), JobNode::Bid);
        let data = vec![b'x'; bytes - path.to_string().len() - OVERHEAD];
        chunks.add(path, data, unit).map(|chunk| chunk.operations().len())
    }

    fn rest(chunks: &mut Chunks) -> Vec<usize> {
        chunks.rest().iter().map(|chunk| chunk.operations().len()).collect()
    }

    #[test]
    fn items_are_gathered_until_a_transaction_is_full() {
        let mut all = chunks();
        let half = CHUNK_BYTES / 2;
        assert_eq!([(1, 100), (1, half - 100), (2, half)].map(|(unit, bytes)| add(&mut all, unit, bytes)), [None; 3]);
        // The three are exactly what fits, and the next item is looked at only when it is whole.
        assert_eq!([add(&mut all, 3, 50), add(&mut all, 3, 50)], [None; 2]);
        assert_eq!(add(&mut all, 4, half), Some(3));
        assert_eq!(add(&mut all, 5, half), None);
        // That of unit 3 and 4 leaves no room for unit 5.
        assert_eq!(rest(&mut all), [3, 1]);
        assert_eq!(rest(&mut all), [0; 0]);
    }

    #[test]
    fn an_item_stays_whole_up_to_the_limit_of_a_request() {
        let mut all = chunks();
        let half = REQUEST_LIMIT_BYTES / 2;
        assert_eq!([add(&mut all, 1, 100), add(&mut all, 2, half), add(&mut all, 2, half)], [None; 3]);
        assert_eq!(add(&mut all, 3, 100), Some(1), "what came before the large item");
        assert_eq!(rest(&mut all), [2, 1]);
        assert_eq!([add(&mut all, 4, half), add(&mut all, 4, half)], [None; 2]);
        assert_eq!(add(&mut all, 4, 100), None, "one more is too many, and nothing came before");
        assert_eq!(add(&mut all, 4, 100), None);
        assert_eq!(rest(&mut all), [2, 2]);
    }

    #[test]
    fn what_is_there_already_differs_and_any_other_error_is_itself() {
        let path = Path::parse("/jobs");
        let since = jiff::Timestamp::UNIX_EPOCH;
        for (kind, differs) in [
            (ConflictKind::Exists { since }, true),
            (ConflictKind::Moved, true),
            (ConflictKind::NotEmpty, false),
            (ConflictKind::LockLost { now: None }, false),
        ] {
            let found = explained(Error::conflict(path.clone(), kind.clone()));
            assert_eq!(matches!(&found, LoadError::Differs(path) if path == "/jobs"), differs, "{kind:?}");
            assert_eq!(matches!(found, LoadError::Queue(_)), !differs, "{kind:?}");
        }
        assert!(matches!(explained(Error::Missing(path)), LoadError::Queue(Error::Missing(_))));
    }
}
