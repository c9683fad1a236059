//! The faults of a batch, and of the entries below `/batch-uuids`.

use super::facts::BatchLook;
use super::{Mend, MendOrder, gone};
use crate::queue::batch::BatchTarget;
use crate::queue::error::Error;
use crate::queue::fault::{Fault, UuidFacts, judge_batch, judge_uuid};
use crate::queue::handle::{Found, Queue};
use crate::queue::id::BatchId;
use crate::queue::path::{BatchNode, Path};
use crate::queue::record;
use crate::queue::state::{BatchState, Outcome};
use crate::queue::transaction::Transaction;

impl Queue {
    pub(super) async fn mend_batch(&self, fault: Fault, id: BatchId, order: MendOrder<'_>) -> Result<Mend, Error> {
        let item = Path::Batch(id);
        let look = self.look_at_batch(id).await?;
        order.confirm(fault, &item, |limits, sink| judge_batch(&look.facts(), limits, sink))?;
        let invalid = |reason: &str| Err(Error::Invalid { path: item.clone(), reason: reason.to_owned() });
        let processing = Path::BatchOutcome(id, Outcome::Processing);
        let mut changes = Transaction::new();
        let summary = match (fault, look.batch.state()) {
            (Fault::DeletedBatchBlocksReporting, _) => {
                changes.delete(processing, None);
                format!("Removes the empty batch-processing of batch {id}, which is Deleted and can be purged then.")
            }
            (Fault::BatchWithoutEnd, Some(BatchState::Failed))
                if look.batch.references(Outcome::Processing).is_none() =>
            {
                changes.create(processing, Vec::new());
                format!("Makes an empty batch-processing for batch {id}, which can be reported again then.")
            }
            (Fault::BatchWithoutEnd, Some(BatchState::Deleted)) => return invalid("purge it: a clean-up takes it"),
            (Fault::BatchWithoutEnd, _) => {
                return invalid("look at the daemon that reports, and at what stands at its head; break a leaked lock");
            }
            (Fault::UnloadableBatch, Some(BatchState::Held)) if look.batch.check_loadable().is_ok() => {
                changes.create(Path::BatchNode(id, BatchNode::States), Vec::new());
                format!("Makes the states that batch {id} lacks, which is Held.")
            }
            (Fault::UnloadableBatch | Fault::UnfinishedCreation, _) => {
                return self.remove_batch(fault, &look, order).await;
            }
            (Fault::DanglingUuid, _) => {
                let Some(summary) = look.link(&mut changes)? else { return Err(gone(fault, &item)) };
                summary
            }
            (_, _) => return Err(gone(fault, &item)),
        };
        let target = BatchTarget::from(id);
        let mut transaction = Transaction::new();
        // The entry of a UUID lies beside its batch, and nobody who works on that writes it.
        let needs_lock = fault != Fault::DanglingUuid;
        if needs_lock {
            target.check(&look.batch)?;
            target.open(&mut transaction);
        }
        match look.batch.version() {
            Some(version) => transaction.check(Path::BatchNode(id, BatchNode::Status), version),
            None => transaction.check_exists(item.clone()),
        };
        transaction.append(changes);
        if needs_lock {
            target.close(&mut transaction);
        }
        Ok(Mend::harmless(fault, item, summary, transaction))
    }

    pub(super) async fn mend_uuid(&self, item: &Path, order: MendOrder<'_>) -> Result<Mend, Error> {
        let fault = Fault::DanglingUuid;
        let Some((data, stat)) = self.read_data(item.clone()).await?.data() else {
            return Err(gone(fault, item));
        };
        let leads_to_batch = match record::bid(&data) {
            Ok(batch) => self.read_data(Path::Batch(batch)).await?.exists(),
            Err(_) => false,
        };
        let facts = UuidFacts { written_ms: stat.mtime, leads_to_batch };
        order.confirm(fault, item, |limits, sink| judge_uuid(item, facts, limits, sink))?;
        let mut transaction = Transaction::new();
        transaction.delete(item.clone(), Some(stat.version));
        let summary = format!("Removes {item}, which leads to no batch.");
        Ok(Mend::harmless(fault, item.clone(), summary, transaction))
    }
}

impl BatchLook {
    /// Makes the entry of its UUID lead to it; `None` where it has none or that does already.
    fn link(&self, changes: &mut Transaction) -> Result<Option<String>, Error> {
        let Some((path, found)) = &self.entry else { return Ok(None) };
        let id = self.batch.id;
        match found {
            Found::Data(data, stat) => match record::bid(data) {
                Ok(other) if other == id => return Ok(None),
                Ok(other) => {
                    let reason = format!(
                        "it leads to {other}; two batches carry one UUID, unless that one is gone and its entry is \
                         removed first"
                    );
                    return Err(Error::Invalid { path: path.clone(), reason });
                }
                Err(_) => changes.set(path.clone(), id.to_string(), stat.version),
            },
            Found::Nothing | Found::Children(_) => changes.create(path.clone(), id.to_string()),
        };
        Ok(Some(format!("Makes {path} lead to batch {id}.")))
    }
}
