//! Which queues are served, on the command line.

use clap::Args;

use crate::cli::UsageError;
use crate::cli::zookeeper::{ConnectionArgs, DEFAULT};
use crate::config::{QueueAddress, Queues, TelemetryPath, addresses};

/// The queues of one flag, or of its variable.
type Addresses = std::sync::Arc<Vec<QueueAddress>>;

/// Where ZooKeeper is, of each queue.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "ZooKeeper")]
pub(super) struct QueueArgs {
    /// Where ZooKeeper is: host:port[,host:port...][/chroot]. To serve several queues, give each a name, as in
    /// prod=zk1:2181/merritt, and repeat the option or separate them by spaces
    #[arg(
        long = "zookeeper",
        value_name = "CONNECT-STRING",
        default_value = DEFAULT,
        value_parser = queues
    )]
    queues: Vec<Addresses>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

fn queues(text: &str) -> Result<Addresses, String> {
    addresses(text).map(Addresses::new)
}

impl QueueArgs {
    /// The queues, and the connection to the ZooKeeper of the first of them.
    ///
    /// # Errors
    /// Says what is wrong and what is allowed.
    pub(super) fn config(
        self,
        telemetry_path: &TelemetryPath,
    ) -> Result<(queuekeeper_zookeeper::Config, Queues), UsageError> {
        let all: Vec<_> = self.queues.iter().flat_map(|queues| queues.iter().cloned()).collect();
        let first = all.first().map(|queue| queue.servers.clone());
        let queues = Queues::check(all, telemetry_path).map_err(|why| UsageError::flag("--zookeeper", why))?;
        let first = first.ok_or_else(|| UsageError::flag("--zookeeper", "no queue is named"))?;
        Ok((self.connection.config(first)?, queues))
    }
}
