//! From where the sessions of a server's clients are connected.
//!
//! ZooKeeper reports it by the four-letter command `cons`, where `4lw.commands.whitelist` allows that. A server knows
//! only its own connections, so each is queried. Session ids are no secret to a client that may do so: they are those
//! of ephemeral znodes.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use super::address::Host;
use super::connect::Config;
use super::diagnose::{self, Symptom};
use super::tls::Tls;

/// The longest answer that is read, in bytes: a connection takes some 200.
const MOST_ANSWER: u64 = 16 << 20;

/// Where the sessions are connected from, as far as the servers report it.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// The address of the client of each session.
    pub addresses: HashMap<i64, SocketAddr>,
    /// The servers that reported none or not all, and why.
    pub failures: Vec<(Host, NoConnections)>,
}

/// Why a server reports no connections, or not all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoConnections {
    /// The command is not allowed there.
    NotAllowed,
    /// It has so many connections that its answer was cut; those of the rest are not known.
    TooMany,
    /// It does not answer as it should.
    Unanswered(Symptom),
}

impl fmt::Display for NoConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => {
                f.write_str("the command cons is not allowed; add cons to its 4lw.commands.whitelist and restart it")
            }
            Self::TooMany => write!(f, "the list of its connections is longer than {} MiB", MOST_ANSWER >> 20),
            Self::Unanswered(symptom) => symptom.fmt(f),
        }
    }
}

impl Config {
    /// Asks every server for its connections; takes some seconds at most.
    pub async fn connections(&self) -> Connections {
        let tls = match self.tls.as_ref().map(Tls::load).transpose() {
            Ok(tls) => tls,
            Err(error) => {
                let why = NoConnections::Unanswered(Symptom::Unreachable(error.to_string()));
                let failures = self.servers.hosts().iter().map(|host| (host.clone(), why.clone())).collect();
                return Connections { failures, ..Connections::default() };
            }
        };
        let tls = tls.as_ref();
        let asked = self
            .servers
            .hosts()
            .iter()
            .map(|host| async move { (host, diagnose::command(host, tls, b"cons", MOST_ANSWER).await) });
        let mut found = Connections::default();
        for (host, answer) in futures::future::join_all(asked).await {
            match answer {
                Ok(answer) if answer.contains("not in the whitelist") => {
                    found.failures.push((host.clone(), NoConnections::NotAllowed));
                }
                Ok(answer) => {
                    found.addresses.extend(answer.lines().filter_map(connection));
                    if answer.len() as u64 >= MOST_ANSWER {
                        found.failures.push((host.clone(), NoConnections::TooMany));
                    }
                }
                Err(symptom) => found.failures.push((host.clone(), NoConnections::Unanswered(symptom))),
            }
        }
        found
    }
}

/// The session and the address of a line such as ` /10.0.0.5:40834[1](queued=0,sid=0x100005a3c2e0001,lop=PING)`; `None`
/// for a connection without a session, as that of the question itself, and for any other text.
fn connection(line: &str) -> Option<(i64, SocketAddr)> {
    let (address, rest) = line.trim_start().strip_prefix('/')?.split_once("](")?;
    let (address, _) = address.rsplit_once('[')?;
    // Java writes an IPv6 address without brackets, all groups of it, and maybe a scope.
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']).split('%').next()?;
    let (_, session) = rest.split_once("sid=0x")?;
    let session = session.split([',', ')']).next()?;
    let session = u64::from_str_radix(session, 16).ok().filter(|session| *session != 0)?;
    Some((session.cast_signed(), SocketAddr::new(host.parse().ok()?, port.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_session_and_the_address_of_a_connection() {
        let found = |line: &str| connection(line).map(|(session, address)| format!("{session:x} {address}"));
        assert_eq!(
            found(" /127.0.0.1:52036[1](queued=0,recved=9,sent=9,sid=0x100003d2b6c0001,lop=PING,est=1700000000000)"),
            Some("100003d2b6c0001 127.0.0.1:52036".to_owned())
        );
        assert_eq!(
            found(" /0:0:0:0:0:0:0:1:40834[1](queued=0,sid=0xff00000000000001)").as_deref(),
            Some("ff00000000000001 [::1]:40834")
        );
        assert_eq!(found(" /[fe80:0:0:0:0:0:0:1%eth0]:7[0](sid=0x1)").as_deref(), Some("1 [fe80::1]:7"));
        for nothing in [
            "",
            " /127.0.0.1:52038[0](queued=0,recved=1,sent=0)",
            " /127.0.0.1:52038[0](sid=0x0)",
            " /evil:1[0](sid=0x1)",
            " /127.0.0.1:99999[0](sid=0x1)",
            "/127.0.0.1:1[0](sid=0x1ffffffffffffffff)",
            "cons is not executed because it is not in the whitelist.",
        ] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
    }
}
