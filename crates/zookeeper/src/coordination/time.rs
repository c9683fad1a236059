//! The servers' time, which ZooKeeper reports only as the date of a write.

use jiff::Timestamp;
use tokio::time::timeout;
use zookeeper_client::{Client, CreateMode, Error};

use super::connection::{Coordination, CoordinationError, LIMIT};
use super::nodes::{CLOCK, ROOT};
use crate::within;

impl Coordination {
    /// The servers' time: the date of a write that was requested after this was called and answered before it returns.
    ///
    /// All processes write to the same znode, [`CLOCK`], and none of them minds the others: the answer to each write
    /// has its own date. Waits for the connection for some seconds.
    ///
    /// # Errors
    /// When there is no connection, or the write is refused.
    pub async fn time(&self) -> Result<Timestamp, CoordinationError> {
        let mut connected = self.connected();
        let connected = timeout(LIMIT, connected.wait_for(Option::is_some)).await;
        let client = connected.ok().and_then(|found| found.ok()?.clone()).ok_or(CoordinationError::NotConnected)?;
        let mtime = within(LIMIT, self.touch(&client)).await.map_err(|error| Self::failed(CLOCK, error))?;
        Ok(Timestamp::from_millisecond(mtime).unwrap_or_default())
    }

    /// Makes the write, creating the znode where it is missing. Returns its date, in milliseconds.
    async fn touch(&self, client: &Client) -> Result<i64, Error> {
        match client.set_data(CLOCK, b"", None).await {
            Err(Error::NoNode) => {}
            touched => return Ok(touched?.mtime),
        }
        let options = CreateMode::Persistent.with_acls(self.acls());
        client.mkdir(ROOT, &options).await?;
        match client.create(CLOCK, b"", &options).await {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(error) => return Err(error),
        }
        Ok(client.set_data(CLOCK, b"", None).await?.mtime)
    }
}
