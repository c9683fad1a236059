//! The kill switch: while its znode is there, nothing acts by itself.

use zookeeper_client::{Client, Error as ClientError};

use super::connection::{Coordination, CoordinationError, LIMIT};
use super::nodes::{MOST_BELOW, PAUSED};
use crate::{Write, within};

/// How often it is tried while others put something below it.
const TRIES: usize = 3;

impl Coordination {
    /// Sets the kill switch. `data` records who and why.
    ///
    /// # Errors
    /// [`CoordinationError::Changed`] where it is set already; when it cannot be written.
    pub async fn pause(&self, data: Vec<u8>) -> Result<(), CoordinationError> {
        self.make_folders().await?;
        self.commit(&[Write::Create(PAUSED.to_owned(), data)]).await
    }

    /// Removes the kill switch, whatever its data, with all znodes below it, in one transaction.
    ///
    /// # Errors
    /// [`CoordinationError::Changed`] where it is not set; [`CoordinationError::Crowded`] where more than
    /// [`MOST_BELOW`] znodes are below it; when it cannot be written.
    pub async fn unpause(&self) -> Result<(), CoordinationError> {
        let mut below = Vec::new();
        for _ in 1..TRIES {
            match self.delete_all(&below).await {
                // Something was put below it, or is gone from there.
                Err(CoordinationError::Refused { why: ClientError::NotEmpty, .. }) => {}
                Err(CoordinationError::Changed { path, .. }) if path != PAUSED => {}
                done => return done,
            }
            below = self.below(&self.client()?).await?;
        }
        match self.delete_all(&below).await {
            // It is not that the kill switch is not set.
            Err(CoordinationError::Changed { path, why }) if path != PAUSED => {
                Err(CoordinationError::Refused { path, why })
            }
            done => done,
        }
    }

    /// Deletes the kill switch, and before it what is below it, children first.
    async fn delete_all(&self, below: &[String]) -> Result<(), CoordinationError> {
        let paths = below.iter().rev().cloned().chain([PAUSED.to_owned()]);
        self.commit(&paths.map(|path| Write::Delete(path, -1)).collect::<Vec<_>>()).await
    }

    /// All znodes below the kill switch, parents first.
    async fn below(&self, client: &Client) -> Result<Vec<String>, CoordinationError> {
        let mut found = vec![PAUSED.to_owned()];
        let mut at = 0;
        while at < found.len() {
            let parent = found[at].clone();
            let listed = within(LIMIT, client.list_children(&parent)).await;
            let names = match listed.map_err(|error| Self::failed(&parent, error)) {
                Err(CoordinationError::Changed { .. }) => Vec::new(),
                names => names?,
            };
            found.extend(names.iter().map(|name| format!("{parent}/{name}")));
            if found.len() > MOST_BELOW + 1 {
                return Err(CoordinationError::Crowded { path: PAUSED });
            }
            at += 1;
        }
        found.remove(0);
        Ok(found)
    }
}
