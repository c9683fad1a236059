//! The fault of a znode whose name the daemons cannot read.

use super::{Repair, RepairOptions, gone, too_large_to_lose};
use crate::error::Error;
use crate::fault::{Fault, detect_name};
use crate::handle::Queue;
use crate::path::Path;
use crate::transaction::Transaction;

impl Queue {
    /// Removes what is not a queue entry from the folder of a state: nothing refers to it. A job or batch stays,
    /// whatever its name is.
    pub(super) async fn repair_name(&self, item: &Path, options: RepairOptions<'_>) -> Result<Repair, Error> {
        let fault = Fault::MalformedName;
        let Some((data, stat)) = self.read_data(item.clone()).await?.data() else { return Err(gone(fault, item)) };
        options.confirm(fault, item, |limits, sink| detect_name(item, limits, sink))?;
        let refused = |reason: String| Err(Error::Invalid { path: item.clone(), reason });
        if stat.num_children > 0 {
            return refused("it has children: inspect them, and delete it by hand".to_owned());
        }
        if let Some(why) = too_large_to_lose(&data) {
            return refused(format!("it {why}: inspect it, and delete it by hand"));
        }
        let mut transaction = Transaction::new();
        transaction.delete(item.clone(), Some(stat.version));
        let summary = format!("Removes {item}, which is not a queue entry.");
        Ok(Repair::new(fault, item.clone(), summary, transaction)
            .losing((!data.is_empty()).then(|| (item.clone(), data))))
    }
}
