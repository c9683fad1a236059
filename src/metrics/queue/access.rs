//! Access requests.

use std::fmt;

use crate::metrics::encode::{Families, seconds};
use crate::mirror::{ItemFigures, Summary, state_label};
use queuekeeper_queue::path::{AccessQueue, QueueName};

/// The queue's label value is that of `merritt_queue_paused`, so that one can be matched with the other.
fn label(queue: AccessQueue) -> &'static str {
    QueueName::from(queue).label()
}

pub(super) fn write(families: &mut Families<'_>, summary: &Summary) -> fmt::Result {
    let each = || {
        AccessQueue::ALL.iter().flat_map(|&queue| {
            summary
                .access(queue)
                .iter()
                .map(move |(state, figures)| ([("queue", label(queue)), ("state", state_label(state))], figures))
        })
    };
    let mut figures = |name: &str, help: &str, figure: fn(&ItemFigures) -> u64| {
        families.gauges(name, help, each().map(|(labels, figures)| (labels, figure(figures))))
    };
    figures("merritt_access_requests", "Number of access requests by queue and state.", |requests| requests.count)?;
    figures(
        "merritt_access_requested_bytes",
        "Size of the requested objects in bytes, by queue and state.",
        |requests| requests.requested_bytes,
    )?;
    families.gauges(
        "merritt_access_oldest_entered_timestamp_seconds",
        "Unix time at which the access request longest in the state entered it.",
        each().filter_map(|(labels, figures)| Some((labels, seconds(figures.oldest?)))),
    )
}
