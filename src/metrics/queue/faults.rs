//! Faults, what each of them stops, and the limits after which an item counts as faulty.

use std::fmt;

use crate::metrics::encode::{Families, truth};
use crate::mirror::Summary;
use queuekeeper_queue::fault::{Blocks, Fault, FaultLimit};

pub(super) fn write(families: &mut Families<'_>, summary: &Summary) -> fmt::Result {
    let faults = Fault::ALL.into_iter().map(|fault| ([("fault", fault.label())], summary.faults(fault).count));
    families.gauges("merritt_faults", "Number of items with each fault.", faults)?;
    let info = Fault::ALL.into_iter().map(|fault| {
        let labels = [
            ("fault", fault.label()),
            ("severity", fault.severity().label()),
            ("blocks_head", truth(fault.blocks(Blocks::Head))),
            ("own_alert", truth(fault.has_own_alert())),
        ];
        (labels, 1_u64)
    });
    families.gauges(
        "merritt_fault_info",
        "Severity of each fault, whether it blocks the head of its queue, and whether an alert is about it alone; always 1.",
        info,
    )
}

pub(super) fn write_limits(families: &mut Families<'_>, limits: &[FaultLimit]) -> fmt::Result {
    let limits = limits.iter().map(|limit| {
        let labels = [("item", limit.item), ("state", limit.state)];
        let labels = labels.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let labels: Vec<_> = std::iter::once(("fault", limit.fault.label())).chain(labels).collect();
        (labels, limit.limit.as_secs_f64())
    });
    families.gauges(
        "queuekeeper_fault_limit_seconds",
        "Time after which an item counts as faulty, by fault, kind of item and state.",
        limits,
    )
}
