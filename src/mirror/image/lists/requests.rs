//! The list of access requests.

use jiff::Timestamp;

use super::{began, has_digits};
use crate::mirror::clock::Offset;
use crate::mirror::image::figures::is_final;
use crate::mirror::image::requests::Entry;
use crate::mirror::image::{Image, Request};
use crate::mirror::lists::{RequestOrder, RequestQuery};
use crate::mirror::page::{InvalidCursor, Page, PageRequest, Picker};
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::AccessQueue;

impl Image {
    /// A page of the access requests that fit a filter.
    pub(in crate::mirror) fn request_page(
        &self,
        query: &RequestQuery,
        order: RequestOrder,
        part: &PageRequest,
        now: Timestamp,
        offset: Offset,
    ) -> Result<Page<Request>, InvalidCursor> {
        let mut picker = Picker::<(Rank, usize, u32)>::new(part.key(order.label())?, part.size);
        let folded = query.text.as_ref().map(|text| text.to_lowercase());
        let began = began(query.age, now, offset);
        for (at, queue) in AccessQueue::ALL.iter().enumerate() {
            if query.queue.is_some_and(|wanted| wanted != *queue) {
                continue;
            }
            for (id, entry) in self.access.queue(*queue).iter() {
                let is_in = query.state.is_none_or(|state| state == entry.item.state);
                if is_in
                    && began.contains(&entry.item.entered_ms)
                    && folded.as_ref().is_none_or(|text| has_text(id, entry, text))
                {
                    picker.offer((rank(id, entry, order), at, id.number()));
                }
            }
        }
        let request = |(_, queue, number): &(Rank, usize, u32)| {
            let (queue, id) = (AccessQueue::ALL[*queue], RequestId::new(*number));
            self.access.queue(queue).get(id).map(|entry| self.request_view(queue, id, entry, offset))
        };
        Ok(picker.page(order.label(), request).flatten())
    }
}

fn has_text(request: RequestId, entry: &Entry, folded: &str) -> bool {
    entry.token.to_lowercase().contains(folded) || has_digits(RequestId::PREFIX, request.number(), folded)
}

/// Whether it comes behind all others for which this is false, and what it is ordered by then, smallest first.
type Rank = (bool, i64);

fn rank(request: RequestId, entry: &Entry, order: RequestOrder) -> Rank {
    let bytes = i64::try_from(entry.requested_bytes).unwrap_or(i64::MAX);
    let number = match order {
        RequestOrder::Waiting => entry.item.entered_ms,
        RequestOrder::Changed => entry.item.entered_ms.saturating_neg(),
        RequestOrder::Newest => -i64::from(request.number()),
        RequestOrder::Oldest => i64::from(request.number()),
        RequestOrder::Largest => -bytes,
        RequestOrder::Smallest => bytes,
    };
    (order == RequestOrder::Waiting && is_final(entry.item.state), number)
}
