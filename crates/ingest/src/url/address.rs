//! Which addresses belong to the public internet, by IANA's registries of special-purpose addresses (RFC 6890 and its
//! successors, read 2026-11), and those of cloud providers' metadata services.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// This machine.
    Loopback,
    /// Only valid on one link.
    LinkLocal,
    /// Of a private network, or shared by a provider's customers.
    Private,
    /// Of a service that gives machines their credentials.
    Metadata,
    /// Of no single host: unspecified, multicast, reserved, for documentation, or of a transition mechanism.
    Special,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Private => "private",
            Self::Metadata => "metadata service",
            Self::Special => "special-purpose",
        })
    }
}

use AddressClass::{LinkLocal, Loopback, Metadata, Private, Special};

/// Networks of IPv4 with the number of their leading bits. The first that fits counts.
const V4: &[([u8; 4], u32, AddressClass)] = &[
    ([169, 254, 169, 254], 32, Metadata),
    ([169, 254, 170, 0], 24, Metadata),
    ([100, 100, 100, 200], 32, Metadata),
    ([168, 63, 129, 16], 32, Metadata),
    ([192, 0, 0, 192], 32, Metadata),
    ([127, 0, 0, 0], 8, Loopback),
    ([169, 254, 0, 0], 16, LinkLocal),
    ([10, 0, 0, 0], 8, Private),
    ([172, 16, 0, 0], 12, Private),
    ([192, 168, 0, 0], 16, Private),
    ([100, 64, 0, 0], 10, Private),
    ([0, 0, 0, 0], 8, Special),
    ([192, 0, 0, 0], 24, Special),
    ([192, 0, 2, 0], 24, Special),
    ([192, 88, 99, 0], 24, Special),
    ([198, 18, 0, 0], 15, Special),
    ([198, 51, 100, 0], 24, Special),
    ([203, 0, 113, 0], 24, Special),
    ([224, 0, 0, 0], 3, Special),
];

/// Networks of IPv6. What is not below `2000::/3` is none of a public host.
const V6: &[([u16; 8], u32, AddressClass)] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Metadata),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Metadata),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, LinkLocal),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Private),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Private),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Special),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special),
];

/// What an address is where it is not that of a public host.
///
/// An address of IPv6 that stands for one of IPv4 (mapped, 6to4, NAT64) is what that one is.
#[must_use]
pub fn classify(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => classify_v4(inner),
            None => classify_v6(address),
        },
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<AddressClass> {
    let bits = address.to_bits();
    let is_in = |network: [u8; 4], length: u32| (bits ^ u32::from_be_bytes(network)) >> (32 - length) == 0;
    V4.iter().find(|(network, length, _)| is_in(*network, *length)).map(|(_, _, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> Option<AddressClass> {
    let bits = address.to_bits();
    let is_in = |network: [u16; 8], length: u32| (bits ^ Ipv6Addr::from(network).to_bits()) >> (128 - length) == 0;
    let known = V6.iter().find(|(network, length, _)| is_in(*network, *length)).map(|(_, _, class)| *class);
    let is_global = is_in([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
    known.or((!is_global).then_some(Special))
}

/// The address of IPv4 that a router or gateway would send a packet on to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Mapped; NAT64 by the well-known prefix; 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(joined(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_addresses_of_public_hosts_have_no_class() {
        for (address, class) in [
            ("8.8.8.8", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("100.63.255.255", None),
            ("223.255.255.255", None),
            ("2606:4700::1111", None),
            ("2001:4860:4860::8888", None),
            ("64:ff9b::8.8.8.8", None),
            ("2002:808:808::1", None),
            ("::ffff:8.8.8.8", None),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.255", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("169.254.0.1", Some(LinkLocal)),
            ("fe80::1", Some(LinkLocal)),
            ("febf::1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("169.254.170.2", Some(Metadata)),
            ("168.63.129.16", Some(Metadata)),
            ("::ffff:169.254.169.254", Some(Metadata)),
            ("fd00:ec2::254", Some(Metadata)),
            ("10.1.2.3", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.168.0.1", Some(Private)),
            ("100.127.0.1", Some(Private)),
            ("fc00::1", Some(Private)),
            ("fdff::1", Some(Private)),
            ("fec0::1", Some(Private)),
            ("0.0.0.0", Some(Special)),
            ("0.1.2.3", Some(Special)),
            ("198.19.0.1", Some(Special)),
            ("224.0.0.1", Some(Special)),
            ("255.255.255.255", Some(Special)),
            ("::", Some(Special)),
            ("::8.8.8.8", Some(Special)),
            ("64:ff9b:1::8.8.8.8", Some(Special)),
            ("2001::1", Some(Special)),
            ("2001:db8::1", Some(Special)),
            ("ff02::1", Some(Special)),
            ("100::1", Some(Special)),
        ] {
            assert_eq!(classify(address.parse().unwrap()), class, "{address}");
        }
    }

    proptest! {
        /// The standard library's own predicates are the oracle.
        #[test]
        fn no_way_of_writing_an_address_of_ipv4_changes_its_class(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let is_local = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_documentation()
                || address.is_unspecified();
            let class = classify(address.into());
            prop_assert!(!is_local || class.is_some());
            let [a, b] = [bits >> 16, bits & 0xffff].map(|half| u16::try_from(half).unwrap());
            for v6 in [address.to_ipv6_mapped(), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, 1, 2, 3, 4, 5)] {
                prop_assert_eq!(classify(v6.into()), class, "{}", v6);
            }
        }
    }
}
