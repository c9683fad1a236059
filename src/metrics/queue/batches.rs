//! Batches.

use std::fmt;

use crate::metrics::encode::{Families, seconds};
use crate::mirror::{Summary, state_label};

pub(super) fn write(families: &mut Families<'_>, summary: &Summary) -> fmt::Result {
    let counts = summary.batches.iter().map(|(state, batches)| ([("state", state_label(state))], batches.count));
    families.gauges("merritt_batches", "Number of batches by state.", counts)?;
    let oldest = summary
        .batches
        .iter()
        .filter_map(|(state, batches)| Some(([("state", state_label(state))], seconds(batches.oldest?))));
    families.gauges(
        "merritt_batch_oldest_entered_timestamp_seconds",
        "Unix time at which the batch longest in the state entered it.",
        oldest,
    )
}
