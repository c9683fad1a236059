//! Looking up the addresses of hosts, each checked before a connection is made to it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use crate::url::{Guard, Refusal};

/// Looks a name up.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Looks names up as the system does.
pub(super) fn system() -> Lookup {
    // The connector sets the port.
    Arc::new(|name| Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) }))
}

/// A resolver behind a guard.
pub(super) struct GuardedResolver {
    guard: Arc<Guard>,
    lookup: Lookup,
}

impl GuardedResolver {
    pub(super) fn new(guard: Arc<Guard>, lookup: Lookup) -> Self {
        Self { guard, lookup }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, found) = (Arc::clone(&self.guard), (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let (mut allowed, mut refused): (Vec<SocketAddr>, Option<Refusal>) = (Vec::new(), None);
            for address in found.await? {
                match guard.check_address(&Host::Domain(name.as_str()), address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(refusal) => refused = Some(refusal),
                }
            }
            match refused {
                Some(refusal) if allowed.is_empty() => Err(refusal.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
