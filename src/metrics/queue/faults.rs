//! Faults.

use std::fmt;

use crate::metrics::encode::Families;
use crate::mirror::Summary;
use queuekeeper_queue::fault::Fault;

pub(super) fn write(families: &mut Families<'_>, summary: &Summary) -> fmt::Result {
    let faults = Fault::ALL.into_iter().map(|fault| ([("fault", fault.label())], summary.faults(fault).count));
    families.gauges("merritt_faults", "Number of items by fault.", faults)
}
