//! Which hosts are ours.
//!
//! A page of somebody else whose name suddenly points at this machine would otherwise be read by us as our own: the
//! browser believes that both are one site.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::extract::{Request, State as FromState};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::layers::Refused;
use super::problem::Problem;
use crate::config::{self, Authority, ExternalUrl};
use crate::web::State;

/// A request that is refused is logged no more often, so that nobody fills the log from outside.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// The ends of the connection that a request came on; an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Ends {
    /// Our own.
    pub(in crate::web) local: SocketAddr,
    /// The client's, or a proxy's.
    pub(in crate::web) peer: IpAddr,
}

/// What counts as one address: of IPv6, everybody has 2^64 to himself.
pub(in crate::web) fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        IpAddr::V4(_) => peer,
    }
}

/// The hosts that are ours whichever address a connection was made to.
#[derive(Debug)]
pub(in crate::web) struct Hosts {
    external: Option<Authority>,
    is_external_https: bool,
    /// The names in the addresses to listen on.
    given: Vec<String>,
    /// What the machine calls itself, where others may reach it.
    machine: Vec<String>,
    logged: Mutex<Option<Instant>>,
}

impl Hosts {
    pub(in crate::web) fn new(config: &config::Web) -> Self {
        let uname = rustix::system::uname();
        let machine = uname.nodename().to_string_lossy();
        Self::with_machine(config, &machine)
    }

    fn with_machine(config: &config::Web, machine: &str) -> Self {
        let normal = |name: &str| name.parse::<Authority>().ok().map(|authority| authority.host);
        // An IPv6 address in an address to listen on has lost its brackets.
        let given = config.names.iter().filter_map(|name| normal(name).or_else(|| normal(&format!("[{name}]"))));
        let machine = normal(machine).into_iter().flat_map(|name| {
            let short = name.split('.').next().unwrap_or_default().to_owned();
            [name, short]
        });
        Self {
            external: config
                .external_url
                .as_ref()
                .map(|url| Authority { host: url.host().to_owned(), port: Some(url.port()) }),
            is_external_https: config.external_url.as_ref().is_some_and(ExternalUrl::is_https),
            given: given.collect(),
            machine: machine.collect(),
            logged: Mutex::new(None),
        }
    }

    /// Whether a host is ours, on a connection that was made to `local`.
    fn has(&self, asked: &Authority, local: Option<SocketAddr>) -> bool {
        // A proxy may leave the port out, whatever it is; nobody is deceived by that.
        let is_port = |port: Option<u16>| asked.port.is_none() || asked.port == port;
        let local_port = local.map(|local| local.port());
        if self.external.as_ref().is_some_and(|ours| ours.host == asked.host && is_port(ours.port)) {
            return true;
        }
        let Some(local) = local.filter(|_| is_port(local_port)) else { return false };
        let local_ip = local.ip().to_canonical();
        let host = asked.host.as_str();
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
            || host == text(local_ip)
            || self.given.iter().any(|given| given == host)
            || self.external.as_ref().is_some_and(|ours| ours.host == host)
            || (!local_ip.is_loopback() && self.machine.iter().any(|machine| machine == host))
    }

    /// Whether a page of that origin is ours, and the one that the request was made to, as the server is reached on a
    /// connection to `local`. Other than a host, an origin is of one scheme and of one port; and it is not enough that it
    /// is one of ours: what a reader has at his own localhost is somebody else's.
    pub(in crate::web) fn has_origin(
        &self,
        origin: &str,
        host: Option<&HeaderValue>,
        local: Option<SocketAddr>,
        is_tls: bool,
    ) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let (is_https, port) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return false,
        };
        let Ok(asked) = authority.parse::<Authority>() else { return false };
        let asked = Authority { port: asked.port.or(Some(port)), ..asked };
        if self.external.as_ref() == Some(&asked) && self.is_external_https == is_https {
            return true;
        }
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let is_same_host = host.is_some_and(|host| host.host == asked.host);
        let is_local_port = local.is_some_and(|local| asked.port == Some(local.port()));
        is_same_host && is_local_port && is_https == is_tls && self.has(&asked, local)
    }

    /// Why a request is refused; `None` for one that is meant for us.
    fn judge(&self, request: &Request) -> Option<Problem> {
        let local = request.extensions().get::<Ends>().map(|ends| ends.local);
        let bad = |why: &'static str| Some(Problem::new(StatusCode::BAD_REQUEST, why));
        let mut headers = request.headers().get_all(header::HOST).iter();
        let host = match (headers.next(), headers.next()) {
            (Some(_), Some(_)) => return bad("The header Host is there twice. Send it once."),
            // Whoever speaks HTTP/1.0 and names no host is no browser, and cannot be deceived.
            (None, _) if request.version() >= Version::HTTP_11 => {
                return bad("The header Host is missing. HTTP/1.1 asks for it.");
            }
            (host, _) => host,
        };
        // A proxy's form of the request has the host in its first line too; there it counts, and both must be ours.
        let in_line = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for asked in [host.map(HeaderValue::as_bytes), in_line].into_iter().flatten() {
            let asked = std::str::from_utf8(asked).ok().filter(|asked| asked.len() <= 255);
            let Some(asked) = asked.and_then(|asked| asked.parse::<Authority>().ok()) else {
                return bad("The host of the request cannot be understood. It is a name or an address, and a port.");
            };
            if !self.has(&asked, local) {
                self.log(&asked);
                let why = format!(
                    "This server is not known as {}. Ask it by an address that it listens on, or have it started with \
                     --web.external-url set to the one that it is reached by.",
                    shown(&asked)
                );
                return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, why));
            }
        }
        None
    }

    /// A scraper shows its operator the status and no more: the reason must be found here.
    fn log(&self, asked: &Authority) {
        let mut logged = self.logged.lock();
        if logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            tracing::warn!(host = shown(asked), "refused a request for a host that --web.external-url does not name");
        }
    }
}

fn text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn shown(asked: &Authority) -> String {
    asked.port.map_or_else(|| asked.host.clone(), |port| format!("{}:{port}", asked.host))
}

/// Lets those requests in that are meant for us.
pub(in crate::web) async fn check(FromState(state): FromState<State>, request: Request, next: Next) -> Response {
    match state.shared.hosts.judge(&request) {
        None => next.run(request).await,
        Some(problem) => {
            let mut response = problem.into_response();
            response.extensions_mut().insert(Refused);
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_hosts_are_ours() {
        let config = config::Web {
            external_url: Some("https://Ops.example.org/queue".parse().unwrap()),
            names: vec!["queue.internal".to_owned(), "fd00::0:1".to_owned()],
            ..config::Web::default()
        };
        let hosts = Hosts::with_machine(&config, "Merritt7.cdlib.example");
        let (near, far, six) = ("127.0.0.1:12181", "10.1.2.3:12181", "[fd00::2]:12181");
        let mapped = "[::ffff:10.1.2.3]:12181";
        for (asked, local, is_ours) in [
            ("localhost:12181", near, true),
            ("LocalHost.:12181", near, true),
            ("localhost", near, true),
            ("localhost:12182", near, false),
            ("127.0.0.1:12181", far, true),
            ("[::1]:12181", far, true),
            ("[0:0::1]:12181", far, true),
            ("10.1.2.3:12181", far, true),
            ("10.1.2.3:12181", mapped, true),
            ("10.1.2.3", far, true),
            ("10.1.2.3:80", far, false),
            ("10.1.2.4:12181", far, false),
            ("10.1.2.3:12181", near, false),
            ("[fd00::2]:12181", six, true),
            ("[fd00::1]:12181", six, true),
            ("[fd00::3]:12181", six, false),
            ("queue.internal:12181", far, true),
            ("queue.internal", near, true),
            ("merritt7.cdlib.example:12181", far, true),
            ("merritt7:12181", far, true),
            ("merritt7:12181", near, false),
            ("merritt7.evil.example:12181", far, false),
            ("ops.example.org", near, true),
            ("ops.example.org.", near, true),
            ("ops.example.org:443", near, true),
            ("ops.example.org:12181", near, true),
            ("ops.example.org:8443", near, false),
            ("ops.example.org.evil.example", near, false),
            ("evil.example:12181", near, false),
            ("127.1:12181", near, false),
            ("2130706433:12181", near, false),
            ("127.0.0.1.evil.example:12181", near, false),
        ] {
            let authority = asked.parse::<Authority>().unwrap();
            assert_eq!(hosts.has(&authority, Some(local.parse().unwrap())), is_ours, "{asked} at {local}");
        }
    }
}
