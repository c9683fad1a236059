//! Networks whose clients are served.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, `10.0.0.0/8` or `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many of its first bits all addresses of the network have.
    bits: u8,
}

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a network is an address, or an address and a number of bits, as 10.0.0.0/8")]
pub struct NetworkError;

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let most = width(address);
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().map_err(|_| NetworkError)?,
            Some(_) => return Err(NetworkError),
        };
        if bits > most { Err(NetworkError) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// Whether an address is one of the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let width = width(self.address);
        if width != self::width(address) {
            return false;
        }
        let rest = u32::from(width - self.bits);
        // A shift by all bits is none.
        let first = |address| number(address).checked_shr(rest).unwrap_or(0);
        first(self.address) == first(address)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/31", "10.1.2.2", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true),
            ("::/0", "10.0.0.1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::1", "::1", true),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(parsed.contains(address.parse().unwrap()), expected, "{network} {address}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/+8", "host", "10.0.0.0/8/8"] {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
    }
}
