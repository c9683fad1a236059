//! Who acts: of those that want to, the one whose ephemeral znode was made first.

use std::time::Duration;

use tokio::sync::{Notify, watch};
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix};

use super::nodes::{ELECTION, PAUSED};
use crate::zookeeper::Write;

/// How long is waited before somebody who could not stand for election tries it again.
const PAUSE: Duration = Duration::from_secs(1);

/// The right to act, as long as its znode is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    candidate: String,
}

impl Lead {
    /// What every transaction of somebody who acts contains: it is refused when he does not lead any more, or when
    /// everything is paused.
    #[must_use]
    pub fn writes(&self) -> [Write; 2] {
        [Write::Present(self.candidate.clone()), Write::Absent(PAUSED.to_owned())]
    }

    /// What a transaction contains that only writes down how things stand, which goes on while everything is paused.
    #[must_use]
    pub fn check(&self) -> Write {
        Write::Present(self.candidate.clone())
    }

    /// Whether a path is that of the znode by which it leads.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        self.candidate == path
    }
}

/// Stands for election, and leads whenever it is the first, until it is dropped. `resign` has it stand anew.
pub(super) async fn stand(client: &Client, acls: Acls<'_>, lead: &watch::Sender<Option<Lead>>, resign: &Notify) {
    loop {
        let elected = async {
            let options = LockOptions::new(acls).with_ancestor_options(CreateMode::Persistent.with_acls(acls))?;
            client.lock(LockPrefix::new_curator(ELECTION, "candidate-")?, b"", options).await
        };
        match elected.await {
            Ok(lock) => {
                tracing::info!(candidate = lock.lock_path(), "this process carries out what alerts set off");
                lead.send_replace(Some(Lead { candidate: lock.lock_path().to_owned() }));
                // Until the session is over, when this is dropped, or it is seen that the znode is gone.
                resign.notified().await;
                lead.send_replace(None);
                tracing::warn!("this process does not lead any more, and stands for election anew");
            }
            Err(error) => tracing::debug!(%error, "standing for election failed"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
