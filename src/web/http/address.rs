//! The addresses of a connection.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The addresses of the connection that a request came on; an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct ConnectionAddresses {
    /// This server's.
    pub(in crate::web) local: SocketAddr,
    /// The client's, or a proxy's.
    pub(in crate::web) peer: IpAddr,
}

/// What counts as one client address: of IPv6, the /64 network, since one host may use all of it.
pub(in crate::web) fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        IpAddr::V4(_) => peer,
    }
}
