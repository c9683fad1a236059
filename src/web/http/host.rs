//! Validation of the `Host` header.
//!
//! It defends against DNS rebinding: a page of another site, whose name suddenly resolves to this machine, would be
//! same-origin with this server for the browser.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Version, header};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::address::ConnectionAddresses;
use super::problem::Problem;
use crate::config::{self, Authority, ExternalUrl};

/// Refused requests are logged at most this often, so that no client can fill the log.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// The names of this server, whichever address a connection was made to.
#[derive(Debug)]
pub(in crate::web) struct Hosts {
    external: Option<Authority>,
    is_external_https: bool,
    /// The names in the addresses to listen on.
    listen: Vec<String>,
    /// The name of the machine, accepted on addresses that other machines can reach.
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
        let listen = config.names.iter().filter_map(|name| normal(name).or_else(|| normal(&format!("[{name}]"))));
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
            listen: listen.collect(),
            machine: machine.collect(),
            logged: Mutex::new(None),
        }
    }

    /// Whether a host names this server, on a connection that was made to `local`.
    fn has(&self, requested: &Authority, local: Option<SocketAddr>) -> bool {
        // A proxy may leave the port out; the name decides.
        let is_port = |port: Option<u16>| requested.port.is_none() || requested.port == port;
        let local_port = local.map(|local| local.port());
        if self.external.as_ref().is_some_and(|ours| ours.host == requested.host && is_port(ours.port)) {
            return true;
        }
        let Some(local) = local.filter(|_| is_port(local_port)) else { return false };
        let local_ip = local.ip().to_canonical();
        let host = requested.host.as_str();
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
            || host == text(local_ip)
            || self.listen.iter().any(|name| name == host)
            || self.external.as_ref().is_some_and(|ours| ours.host == host)
            || (!local_ip.is_loopback() && self.machine.iter().any(|machine| machine == host))
    }

    /// Whether an origin is this server, at the host that the request names, on a connection to `local`. Unlike a host,
    /// an origin has a scheme and a port. That it is one of this server's names is not enough: `localhost` in a browser
    /// is the reader's machine.
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
        let Ok(requested) = authority.parse::<Authority>() else { return false };
        let requested = Authority { port: requested.port.or(Some(port)), ..requested };
        if self.external.as_ref() == Some(&requested) && self.is_external_https == is_https {
            return true;
        }
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let is_same_host = host.is_some_and(|host| host.host == requested.host);
        let is_local_port = local.is_some_and(|local| requested.port == Some(local.port()));
        is_same_host && is_local_port && is_https == is_tls && self.has(&requested, local)
    }

    /// Why a request is refused; `None` for one to a host of this server.
    pub(super) fn refusal(&self, request: &Request) -> Option<Problem> {
        let local = request.extensions().get::<ConnectionAddresses>().map(|addresses| addresses.local);
        let bad = |why: &'static str| Some(Problem::new(StatusCode::BAD_REQUEST, why));
        let mut headers = request.headers().get_all(header::HOST).iter();
        let host = match (headers.next(), headers.next()) {
            (Some(_), Some(_)) => return bad("The request has more than one Host header. Send one."),
            // An HTTP/1.0 client without a Host header is no browser, so that there is nothing to rebind.
            (None, _) if request.version() >= Version::HTTP_11 => {
                return bad("The Host header is missing. HTTP/1.1 requires it.");
            }
            (host, _) => host,
        };
        // The absolute form of a request has a host in its first line too, which takes precedence: both are checked.
        let in_line = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for requested in [host.map(HeaderValue::as_bytes), in_line].into_iter().flatten() {
            let requested = std::str::from_utf8(requested).ok().filter(|requested| requested.len() <= 255);
            let Some(requested) = requested.and_then(|requested| requested.parse::<Authority>().ok()) else {
                return bad("The Host header is invalid. It is a name or an address, and optionally a port.");
            };
            if !self.has(&requested, local) {
                self.log(&requested);
                let why = format!(
                    "{} is not a name of this server. Use an address it listens on, or set --web.external-url to the \
                     address that clients use.",
                    shown(&requested)
                );
                return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, why));
            }
        }
        None
    }

    /// Prometheus shows only the status of a failed scrape: the reason must be in the log.
    fn log(&self, requested: &Authority) {
        let mut logged = self.logged.lock();
        if logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            tracing::warn!(
                host = shown(requested),
                "refused a request: its host is not a name of this server, see --web.external-url"
            );
        }
    }
}

fn text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn shown(requested: &Authority) -> String {
    requested.port.map_or_else(|| requested.host.clone(), |port| format!("{}:{port}", requested.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_server_are_accepted() {
        let config = config::Web {
            external_url: Some("https://Ops.example.org/queue".parse().unwrap()),
            names: vec!["queue.internal".to_owned(), "fd00::0:1".to_owned()],
            ..config::Web::default()
        };
        let hosts = Hosts::with_machine(&config, "Merritt7.cdlib.example");
        let (near, far, six) = ("127.0.0.1:12181", "10.1.2.3:12181", "[fd00::2]:12181");
        let mapped = "[::ffff:10.1.2.3]:12181";
        for (requested, local, is_ours) in [
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
            let authority = requested.parse::<Authority>().unwrap();
            assert_eq!(hosts.has(&authority, Some(local.parse().unwrap())), is_ours, "{requested} at {local}");
        }
    }
}
