//! `--serve-working.allow`: the networks whose clients are served.

use std::net::IpAddr;

use queuekeeper::config::Network;

use super::shown;

/// Reads the text before the first blank as a network, and what follows it as an address.
///
/// # Panics
/// When what is accepted is not written in a form that is accepted again, a network has an address of the other family,
/// or is not the addresses with its first bits.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, address) = text.split_once(' ').unwrap_or((text, ""));
    let network: Network = match text.parse() {
        Ok(network) => network,
        Err(error) => return shown::error(error, 200),
    };
    shown::again(&network);
    let written = network.to_string();
    let (first, bits) = written.split_once('/').expect("a network is written with its bits");
    let (first, bits): (IpAddr, u32) =
        (first.parse().expect("it is an address"), bits.parse().expect("it is a number"));
    assert!(network.contains(first), "{network} has the address that it is written with");
    let Ok(address) = address.parse::<IpAddr>() else { return };
    let expected = match (first, address) {
        (IpAddr::V4(first), IpAddr::V4(address)) => {
            begins_alike(first.to_bits().into(), address.to_bits().into(), 32, bits)
        }
        (IpAddr::V6(first), IpAddr::V6(address)) => begins_alike(first.to_bits(), address.to_bits(), 128, bits),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    };
    assert_eq!(network.contains(address), expected, "{network} and {address}");
}

/// Whether two addresses of so many bits have the same first ones.
fn begins_alike(one: u128, other: u128, of: u32, bits: u32) -> bool {
    assert!(bits <= of, "a network has no more bits than an address");
    (one ^ other).checked_shr(of - bits).unwrap_or(0) == 0
}
