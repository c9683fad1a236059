//! Where a program listens whose pages are for this machine.

use clap::Args;
use tokio::net::TcpListener;

use crate::config::ListenAddress;
use crate::server;

/// The addresses.
#[derive(Clone, Debug, Args)]
pub(super) struct ListenArgs {
    /// The address to listen on: host:port, or :port for every interface; may be repeated
    #[arg(
        long = "web.listen-address",
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = ListenAddress::DEFAULT,
        help_heading = "Web"
    )]
    listen_address: Vec<ListenAddress>,
}

impl ListenArgs {
    /// Binds the addresses.
    ///
    /// # Errors
    /// When one of them cannot be bound.
    pub(super) async fn listen(&self) -> anyhow::Result<Vec<TcpListener>> {
        server::listen(&self.listen_address).await
    }

    /// The hosts that they name.
    pub(super) fn names(&self) -> Vec<String> {
        self.listen_address.iter().filter_map(ListenAddress::host).map(str::to_owned).collect()
    }
}
