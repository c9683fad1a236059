//! Looking up the addresses of hosts, each checked before a connection is made to it.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use crate::url::{Guard, Refusal};

/// The system's resolver behind a guard.
pub(super) struct GuardedResolver {
    guard: Arc<Guard>,
}

impl GuardedResolver {
    pub(super) fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let (mut allowed, mut refused): (Vec<SocketAddr>, Option<Refusal>) = (Vec::new(), None);
            // The connector sets the port.
            for address in tokio::net::lookup_host((name.as_str(), 0)).await? {
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
