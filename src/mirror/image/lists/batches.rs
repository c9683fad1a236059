//! The list of batches.

use super::has_digits;
use crate::mirror::clock::Offset;
use crate::mirror::image::Image;
use crate::mirror::image::batches::Entry;
use crate::mirror::image::figures::is_final;
use crate::mirror::image::view::own;
use crate::mirror::lists::{BatchDetail, BatchOrder, BatchQuery, CollectionBatches};
use crate::mirror::page::{InvalidCursor, Page, PageRequest, Picker};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::JobOutcome;

impl Image {
    /// A page of the batches that fit a filter.
    pub(in crate::mirror) fn batch_page(
        &self,
        query: &BatchQuery,
        order: BatchOrder,
        part: &PageRequest,
        offset: Offset,
    ) -> Result<Page<BatchDetail>, InvalidCursor> {
        let mut picker = Picker::<(Rank, u32)>::new(part.key(order.label())?, part.size);
        let folded = query.text.as_ref().map(|text| text.to_lowercase());
        let mut offer = |batch: BatchId, entry: &Entry| {
            let is_of = query.collection.as_ref().is_none_or(|collection| **collection == *entry.collection);
            if is_of && folded.as_ref().is_none_or(|text| has_text(batch, entry, text)) {
                picker.offer((rank(batch, entry, order), batch.number()));
            }
        };
        if let Some(state) = query.state {
            for (_, batch) in self.batches.entered.get(state) {
                self.batches.get(*batch).inspect(|entry| offer(*batch, entry));
            }
        } else {
            let known = self.batches.iter().filter(|(_, entry)| !entry.item.nodes.is_empty());
            known.for_each(|(batch, entry)| offer(batch, entry));
        }
        let page = picker.page(order.label(), |(_, number)| self.batch(BatchId::new(*number), offset));
        Ok(page.flatten())
    }

    /// One batch; `None` for one that is not there, whatever refers to it.
    pub(in crate::mirror) fn batch(&self, id: BatchId, offset: Offset) -> Option<BatchDetail> {
        let entry = self.batches.get(id).filter(|entry| !entry.item.nodes.is_empty())?;
        Some(BatchDetail {
            batch: self.batch_view(id, entry, offset),
            created: own(entry.item.created_ms, offset),
            jobs: self.jobs.beside.of(id),
        })
    }

    /// The batch that a UUID leads to, or else the first one whose submission has it.
    pub(in crate::mirror) fn batch_of_uuid(&self, uuid: &str) -> Option<BatchId> {
        let is_there = |batch: &BatchId| self.batches.get(*batch).is_some_and(|entry| !entry.item.nodes.is_empty());
        let led = self.uuids.get(uuid).and_then(|(leads, _)| leads.batch());
        let named = || self.batches.named(uuid).filter(is_there).min();
        // No batch has the empty UUID, though many may have none.
        led.filter(is_there).or_else(named).filter(|_| !uuid.is_empty())
    }

    /// The collections that batches have, by mnemonic.
    pub(in crate::mirror) fn batch_collections(&self) -> Vec<CollectionBatches> {
        self.batches.collections.iter().map(|(collection, count)| (collection.clone(), *count)).collect()
    }
}

fn has_text(batch: BatchId, entry: &Entry, folded: &str) -> bool {
    entry.folded.contains(folded) || has_digits(BatchId::PREFIX, batch.number(), folded)
}

/// Whether it comes behind all others for which this is false, and what it is ordered by then: a number, and a text
/// where that is alike.
type Rank = (bool, i64, String);

/// The rank of a batch, the smallest first.
fn rank(batch: BatchId, entry: &Entry, order: BatchOrder) -> Rank {
    let references = |outcome: JobOutcome| i64::from(entry.references[outcome as usize]);
    let number = match order {
        BatchOrder::Newest => -i64::from(batch.number()),
        BatchOrder::Oldest => i64::from(batch.number()),
        BatchOrder::Waiting => entry.item.entered_ms,
        BatchOrder::Changed => entry.item.entered_ms.saturating_neg(),
        BatchOrder::Jobs => -JobOutcome::ALL.into_iter().map(references).sum::<i64>(),
        BatchOrder::Failed => -references(JobOutcome::Failed),
        BatchOrder::Collection => {
            return (entry.collection.is_empty(), 0, entry.collection.to_string());
        }
    };
    (order == BatchOrder::Waiting && is_final(entry.item.state), number, String::new())
}
