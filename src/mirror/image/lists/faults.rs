//! The list of faults: by kind, and of each kind those first that count for the longest time; or by time.

use super::PathKey;
use crate::mirror::faults::{FoundFault, Suspicion};
use crate::mirror::image::{FaultQuery, Image};
use crate::mirror::lists::FaultOrder;
use crate::mirror::page::{InvalidCursor, Page, PageRequest, Picker};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::Path;

/// What faults are ordered by: two ranks, their kind, and what shows them.
type Key = (i64, i64, usize, PathKey);

/// The name of an order in cursors.
fn name(order: FaultOrder) -> String {
    format!("faults {}", order.label())
}

fn key(kind: Fault, item: &Path, suspicion: &Suspicion, order: FaultOrder) -> Key {
    let ranks = match order {
        FaultOrder::Kind => (number(kind), suspicion.due_ms),
        FaultOrder::Oldest => (suspicion.since_ms, 0),
        FaultOrder::Newest => (suspicion.since_ms.saturating_neg(), 0),
    };
    (ranks.0, ranks.1, kind as usize, PathKey(item.clone()))
}

/// The rank of a kind.
fn number(kind: Fault) -> i64 {
    i64::try_from(kind as usize).unwrap_or(i64::MAX)
}

impl Image {
    /// A page of the faults of one kind, or of all of them. One that has just been repaired and is still to be
    /// evaluated is counted and not shown.
    pub(in crate::mirror) fn fault_page(
        &self,
        fault: Option<Fault>,
        order: FaultOrder,
        part: &PageRequest,
        fault_query: FaultQuery<'_>,
    ) -> Result<Page<FoundFault>, InvalidCursor> {
        let after: Option<Key> = part.key(&name(order))?;
        let mut picker = Picker::new(after.clone(), part.size);
        let (mut total, mut skipped) = (0, 0);
        let suspects = &self.faults.suspects;
        for kind in Fault::ALL.into_iter().filter(|kind| fault.is_none_or(|wanted| wanted == *kind)) {
            let of_kind = suspects.count(kind, fault_query.now_ms).0;
            total += of_kind;
            if order != FaultOrder::Kind {
                // What is due lies in the order of its kind alone, so that all are looked at.
                for (item, suspicion) in suspects.items(kind, fault_query.now_ms) {
                    picker.offer(key(kind, item, suspicion, order));
                }
                continue;
            }
            let from = match &after {
                Some((of, ..)) if *of > number(kind) => {
                    skipped += of_kind;
                    continue;
                }
                Some((of, due_ms, ..)) if *of == number(kind) => {
                    // No fault counts from the first instant on that there is.
                    skipped += suspects.count_due(kind, i64::MIN..=due_ms.saturating_sub(1));
                    *due_ms
                }
                Some(_) | None => i64::MIN,
            };
            for (item, suspicion) in suspects.due(kind, from..=fault_query.now_ms) {
                let is_behind = |limit: &Key| (number(kind), suspicion.due_ms) > (limit.0, limit.1);
                if picker.limit().is_some_and(is_behind) {
                    break;
                }
                picker.offer(key(kind, item, suspicion, order));
            }
        }
        let found = |(_, _, kind, PathKey(item)): &Key| self.fault_of(item, Fault::ALL[*kind], fault_query);
        Ok(picker.of(total, skipped).page(&name(order), found).flatten())
    }
}
