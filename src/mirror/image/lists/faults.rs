//! The list of faults: by kind, and of each kind those first that count for the longest time.

use super::PathKey;
use crate::mirror::faults::FoundFault;
use crate::mirror::image::{FaultQuery, Image};
use crate::mirror::page::{InvalidCursor, Page, Part, Picker};
use queuekeeper_queue::fault::Fault;

/// The order of the list, as its cursors name it.
const ORDER: &str = "faults";

/// What faults are ordered by: their kind, from when on they count, and what shows them.
type Key = (usize, i64, PathKey);

impl Image {
    /// A page of the faults of one kind, or of all of them. One that has just been repaired and is still to be
    /// evaluated is counted and not shown.
    pub(in crate::mirror) fn fault_page(
        &self,
        fault: Option<Fault>,
        part: &Part,
        asked: FaultQuery<'_>,
    ) -> Result<Page<FoundFault>, InvalidCursor> {
        let after: Option<Key> = part.key(ORDER)?;
        let mut picker = Picker::new(after.clone(), part.size);
        let (mut total, mut skipped) = (0, 0);
        let suspects = &self.faults.suspects;
        for kind in Fault::ALL.into_iter().filter(|kind| fault.is_none_or(|wanted| wanted == *kind)) {
            let of_kind = suspects.count(kind, asked.now_ms).0;
            total += of_kind;
            let from = match &after {
                Some((of, ..)) if *of > kind as usize => {
                    skipped += of_kind;
                    continue;
                }
                Some((of, due_ms, _)) if *of == kind as usize => {
                    // No fault counts from the first instant on that there is.
                    skipped += suspects.count_due(kind, i64::MIN..=due_ms.saturating_sub(1));
                    *due_ms
                }
                Some(_) | None => i64::MIN,
            };
            for (item, suspicion) in suspects.due(kind, from..=asked.now_ms) {
                let is_behind = |limit: &Key| (kind as usize, suspicion.due_ms) > (limit.0, limit.1);
                if picker.limit().is_some_and(is_behind) {
                    break;
                }
                picker.offer((kind as usize, suspicion.due_ms, PathKey(item.clone())));
            }
        }
        let found = |(kind, _, PathKey(item)): &Key| self.fault_of(item, Fault::ALL[*kind], asked);
        Ok(picker.of(total, skipped).page(ORDER, found).flatten())
    }
}
