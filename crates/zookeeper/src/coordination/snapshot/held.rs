//! What exists below `/queuekeeper/held` and should not.

use zookeeper_client::{Client, Error, MultiReadResult};

use super::{ForeignReason, Snapshot, read_all};
use crate::coordination::nodes::HELD;

/// How many held items are checked, lowest numbers first. Ephemeral znodes come and go, so a persistent one sooner or
/// later has one of the lowest numbers.
const MOST_HELD: usize = 256;

impl Snapshot {
    /// Finds persistent znodes, which block an item forever.
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
                // Any client may read the stat.
                _ => client.check_stat(path).await?,
            };
            if stat.is_some_and(|stat| stat.ephemeral_owner == 0) {
                self.add_foreign(path.clone(), ForeignReason::PersistentHold);
            }
        }
        Ok(())
    }
}
