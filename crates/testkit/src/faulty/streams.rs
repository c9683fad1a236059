//! Streams that break, end, stall, or have a page too many or too few.

use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use queuekeeper_store::store::{Chunks, Listed, Listing};
use queuekeeper_store::{Error, ErrorKind};

use super::fault::{Fault, PageKind, WrongPage};
use super::faults::Faults;

/// What ends in the middle.
const CUT: &str = "the connection was cut, on purpose";

/// Content with a fault.
pub(super) fn content(chunks: Chunks, fault: Option<Fault>, faults: Faults) -> Chunks {
    let Some(fault @ (Fault::StallAt(at) | Fault::BreakAt(at) | Fault::EndAt(at))) = fault else { return chunks };
    let cut = || io::Error::new(io::ErrorKind::ConnectionReset, CUT);
    at_position(split(chunks, at), at, fault, faults, |chunk| chunk.as_ref().map_or(0, |chunk| chunk.len() as u64), cut)
}

/// The chunks, one of which ends at this position.
fn split(chunks: Chunks, at: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let mut left = at;
    chunks.flat_map(move |chunk| {
        let pieces = match chunk {
            Ok(mut chunk) if left > 0 && left < chunk.len() as u64 => {
                let head = chunk.split_to(usize::try_from(left).expect("less than its length"));
                vec![Ok(head), Ok(chunk)]
            }
            other => vec![other],
        };
        let length = pieces.iter().flatten().map(|piece| piece.len() as u64).sum();
        left = left.saturating_sub(length);
        stream::iter(pieces)
    })
}

/// A listing with a fault.
pub(super) fn listing(
    listing: Listing,
    fault: Option<Fault>,
    faults: Faults,
    error: impl Fn(ErrorKind) -> Error + Send + 'static,
) -> Listing {
    match fault {
        Some(fault @ (Fault::StallAt(at) | Fault::BreakAt(at) | Fault::EndAt(at))) => {
            let cut = move || error(ErrorKind::Unavailable(CUT.to_owned()));
            at_position(listing, at, fault, faults, |_| 1, cut)
        }
        Some(Fault::Stall) => at_position(
            listing,
            0,
            Fault::StallAt(0),
            faults,
            |_| 1,
            move || error(ErrorKind::Unavailable(CUT.to_owned())),
        ),
        Some(Fault::Page(page)) => wrong_page(listing, page),
        _ => listing,
    }
}

/// A stream that stalls, breaks or ends behind so many units.
fn at_position<T, E, L, C>(
    items: impl Stream<Item = Result<T, E>> + Send + 'static,
    at: u64,
    fault: Fault,
    faults: Faults,
    length: L,
    cut: C,
) -> BoxStream<'static, Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    L: Fn(&Result<T, E>) -> u64 + Send + 'static,
    C: Fn() -> E + Send + 'static,
{
    let mut left = Some(at);
    let position = items.map(move |item| {
        let is_there = left == Some(0);
        left = if is_there { None } else { left.map(|left| left.saturating_sub(length(&item))) };
        (item, is_there)
    });
    let faulted = position.then(move |(item, is_there)| {
        let faults = faults.clone();
        let item = match fault {
            Fault::EndAt(_) if is_there => None,
            Fault::BreakAt(_) if is_there => Some(Err(cut())),
            _ => Some(item),
        };
        async move {
            if is_there && matches!(fault, Fault::StallAt(_)) {
                faults.stall().await;
            }
            item
        }
    });
    let mut is_over = false;
    let ends = faulted.take_while(move |item| {
        let goes_on = item.is_some() && !is_over;
        is_over = matches!(item, Some(Err(_)));
        std::future::ready(goes_on)
    });
    ends.filter_map(std::future::ready).boxed()
}

/// A listing of which one page is wrong; that page, and the one beside it, are held.
fn wrong_page(listing: Listing, page: WrongPage) -> Listing {
    let WrongPage { kind, at, items } = page;
    let pages = async move {
        let mut rest = listing;
        let mut head: Vec<Result<Listed, Error>> = rest.by_ref().take(at).collect().await;
        match kind {
            PageKind::Repeated => {
                let again = head.iter().skip(at.saturating_sub(items)).flatten().cloned().map(Ok).collect::<Vec<_>>();
                head.extend(again);
            }
            PageKind::Skipped => drop(rest.by_ref().take(items).collect::<Vec<_>>().await),
            PageKind::Swapped => {
                let first: Vec<_> = rest.by_ref().take(items).collect().await;
                head.extend(rest.by_ref().take(items).collect::<Vec<_>>().await);
                head.extend(first);
            }
        }
        stream::iter(head).chain(rest)
    };
    stream::once(pages).flatten().boxed()
}
