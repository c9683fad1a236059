//! What stands below `/queuekeeper/held` and should not.

use zookeeper_client::{Client, Error, MultiReadResult};

use super::{ForeignReason, Snapshot, read_all};
use crate::coordination::nodes::HELD;

/// How many items that are worked on are looked at. What ends with its session comes and goes; what stays is
/// of a lower number sooner or later, and those are looked at first.
const MOST_HELD: usize = 256;

impl Snapshot {
    /// Finds what keeps sessions off an item for ever.
    pub(super) async fn check_held(
        &mut self,
        client: &Client,
        folder: (&str, Result<Vec<String>, Error>),
    ) -> Result<(), Error> {
        let names = self.listed(folder);
        let paths: Vec<_> = names.iter().take(MOST_HELD).map(|name| format!("{HELD}/{name}")).collect();
        for (path, answer) in paths.iter().zip(read_all(client, &paths).await?) {
            let stat = match answer {
                MultiReadResult::Data { stat, .. } => Some(stat),
                MultiReadResult::Error { err: Error::NoNode } => None,
                // Everybody may ask for the stat.
                _ => client.check_stat(path).await?,
            };
            if stat.is_some_and(|stat| stat.ephemeral_owner == 0) {
                self.add_foreign(path.clone(), ForeignReason::PersistentHold);
            }
        }
        Ok(())
    }
}
