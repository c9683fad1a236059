//! Which hosts and addresses a daemon may fetch from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use super::address::{AddressClass, classify};
use crate::name;

/// A host of a profile's list: `example.edu`, `*.example.edu` (any host below it, not itself), `192.0.2.7`, `[::1]`;
/// each with or without `:PORT`, without one for all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    host: Host<String>,
    is_below: bool,
    port: Option<u16>,
}

/// A text that is no pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a host: {why}; expected example.edu, *.example.edu, 192.0.2.7 or [2001:db8::7], with or without :PORT"
)]
pub struct HostPatternError {
    text: String,
    why: &'static str,
}

impl HostPattern {
    pub(crate) fn matches(&self, host: &Host<&str>, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.matches_host(host)
    }

    /// The same for any port.
    fn matches_host(&self, host: &Host<&str>) -> bool {
        match (&self.host, host) {
            (Host::Domain(own), Host::Domain(host)) => {
                let host = host.strip_suffix('.').unwrap_or(host);
                if self.is_below { is_below(host, own) } else { host == own }
            }
            (Host::Ipv4(own), Host::Ipv4(host)) => own == host,
            (Host::Ipv6(own), Host::Ipv6(host)) => own == host,
            _ => false,
        }
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.')).is_some_and(|labels| !labels.is_empty())
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let wrong = |why| HostPatternError { text: name::shown(text), why };
        if text.contains(['/', '@', '?', '#', '\\']) || text.contains(char::is_whitespace) {
            return Err(wrong("it has more than a host and a port"));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| wrong("the port is not a number up to 65535"))?))
            }
            _ => (text, None),
        };
        let (is_below, host) = host.strip_prefix("*.").map_or((false, host), |domain| (true, domain));
        let host = Host::parse(host.strip_suffix('.').unwrap_or(host)).map_err(|_| wrong("no host has such a name"))?;
        match &host {
            Host::Domain(name) if name.contains('*') => {
                return Err(wrong("'*' is only allowed in place of the first labels"));
            }
            Host::Ipv4(_) | Host::Ipv6(_) if is_below => return Err(wrong("an address has no hosts below it")),
            _ => {}
        }
        Ok(Self { host, is_below, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", if self.is_below { "*." } else { "" }, self.host)?;
        self.port.map_or(Ok(()), |port| write!(to, ":{port}"))
    }
}

/// Why something is not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheme is not one that is fetched.
    #[error("the scheme {0} is not supported; use https or http")]
    Scheme(String),
    /// It has a user or password.
    #[error("the URL has a user name or password; credentials come from the profile's file")]
    UserInfo,
    /// The host is not in the profile's list.
    #[error(
        "host {0} is not allowed for this collection's content; add it to hosts of the profile, or to internal_hosts if it has a private address and is yours"
    )]
    Host(String),
    /// The address is not that of a public host.
    #[error("host {host} has the {class} address {address}{}", advice(*class))]
    Address {
        /// The host.
        host: String,
        /// Its address.
        address: IpAddr,
        /// What the address is.
        class: AddressClass,
    },
}

/// What a profile lets daemons fetch.
///
/// A host of the internal list may have any address but that of a link or of a metadata service: for these the address
/// itself has to be in the list, because the name's server could choose them. Where the list names a port, no
/// other port of that host is reached.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    hosts: Option<Vec<HostPattern>>,
    internal: Vec<HostPattern>,
}

/// How an address is allowed, where that may be right: what gives machines their credentials is no origin of content.
fn advice(class: AddressClass) -> &'static str {
    if class == AddressClass::Metadata { "" } else { "; add it to internal_hosts of the profile if it is yours" }
}

impl Guard {
    /// A guard that lets pass these hosts (`None` for all) where their addresses are public, and internal ones.
    #[must_use]
    pub fn new(hosts: Option<Vec<HostPattern>>, internal: Vec<HostPattern>) -> Self {
        Self { hosts, internal }
    }

    /// Checks a URL before it is requested, at first and after each redirect: scheme, credentials, host, and the
    /// address where the host is one.
    ///
    /// # Errors
    /// Why it is not requested.
    pub fn check(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "https" | "http") {
            return Err(Refusal::Scheme(name::shown(url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Refusal::Host(String::new()));
        };
        let is_internal = self.internal.iter().any(|one| one.matches(&host, port));
        let is_listed = match &self.hosts {
            Some(hosts) => hosts.iter().any(|one| one.matches(&host, port)),
            None => !self.is_internal_host(&host),
        };
        if !is_listed && !is_internal {
            return Err(Refusal::Host(name::shown(&format!("{host}:{port}"))));
        }
        let address: IpAddr = match host {
            Host::Ipv4(address) => address.into(),
            Host::Ipv6(address) => address.into(),
            Host::Domain(_) => return Ok(()),
        };
        match classify(address) {
            Some(class) if !is_internal => {
                Err(Refusal::Address { host: name::shown(&host.to_string()), address, class })
            }
            _ => Ok(()),
        }
    }

    /// Checks an address that the host of a URL has, as the resolver of a connection finds it. The URL itself was
    /// checked before; a resolver does not know its port.
    ///
    /// # Errors
    /// When the address is not that of a public host, and neither it (for all ports) nor the host is in the internal
    /// list.
    pub fn check_address(&self, host: &Host<&str>, address: IpAddr) -> Result<(), Refusal> {
        let Some(class) = classify(address) else { return Ok(()) };
        let literal = match address {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        };
        let is_chosen = matches!(class, AddressClass::LinkLocal | AddressClass::Metadata);
        let is_free = self.internal.iter().any(|one| one.port.is_none() && one.matches_host(&literal));
        let is_named = self.is_internal_host(host);
        if is_free || is_named && (!is_chosen || self.is_internal_host(&literal)) {
            return Ok(());
        }
        Err(Refusal::Address { host: name::shown(&host.to_string()), address, class })
    }

    fn is_internal_host(&self, host: &Host<&str>) -> bool {
        self.internal.iter().any(|pattern| pattern.matches_host(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: Option<&[&str]>, internal: &[&str]) -> Guard {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        Guard::new(hosts.map(parse), parse(internal))
    }

    fn passes(guard: &Guard, url: &str) -> bool {
        guard.check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn literal_addresses_are_found_in_every_way_of_writing_them() {
        let guard = guard(None, &[]);
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://１２７.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "file:///etc/passwd",
            "ftp://example.edu/",
            "http://user@example.edu/",
        ] {
            assert!(!passes(&guard, url), "{url}");
        }
        for url in ["https://example.edu/", "http://8.8.8.8:8080/", "https://[2606:4700::1]/"] {
            assert!(passes(&guard, url), "{url}");
        }
    }

    #[test]
    fn hosts_are_those_of_the_list_and_ports_too_where_it_names_them() {
        let listed = guard(Some(&["data.example.edu", "*.Example.org", "8.8.8.8", "files.example.edu:8443"]), &[]);
        for url in [
            "https://data.example.edu/",
            "http://DATA.example.edu.:8080/",
            "https://a.b.example.org/",
            "http://8.8.8.8/",
            "https://files.example.edu:8443/",
        ] {
            assert!(passes(&listed, url), "{url}");
        }
        for url in [
            "https://example.edu/",
            "https://xdata.example.edu/",
            "https://data.example.edu.evil.com/",
            "https://example.org/",
            "https://badexample.org/",
            "http://8.8.4.4/",
            "https://files.example.edu/",
        ] {
            assert!(!passes(&listed, url), "{url}");
        }
        assert!(!passes(&guard(Some(&[]), &[]), "https://example.edu/"));
        for text in ["", "a b", "a/b", "user@a", "*", "a.*.b", "*.127.0.0.1", "a:b", "a:70000", "[::1", "http://a"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        }
        for text in ["example.edu", "*.example.edu:80", "127.0.0.1:8080", "[::1]", "[::1]:443"] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn internal_hosts_may_have_private_addresses_and_no_host_may_choose_those_of_metadata() {
        let hosts = ["working.internal:8080", "127.0.0.1:9", "10.0.0.9", "169.254.7.7:80"];
        let at =
            |guard: &Guard, host, address: &str| guard.check_address(&Host::Domain(host), address.parse().unwrap());
        for guard in [guard(Some(&[]), &hosts), guard(None, &hosts)] {
            for url in ["http://working.internal:8080/", "http://127.0.0.1:9/", "https://10.0.0.9/"] {
                assert!(passes(&guard, url), "{url}");
            }
            // Neither another port of an internal host, nor the same port of another one.
            for url in
                ["http://working.internal/", "http://127.0.0.1/", "http://127.0.0.2:9/", "http://169.254.7.7:81/"]
            {
                assert!(!passes(&guard, url), "{url}");
            }
            assert_eq!(at(&guard, "working.internal", "10.0.0.1"), Ok(()));
            assert!(at(&guard, "working.internal", "169.254.169.254").is_err());
            assert_eq!(at(&guard, "working.internal", "169.254.7.7"), Ok(()));
            assert!(at(&guard, "evil.example", "10.0.0.1").is_err());
            assert!(at(&guard, "evil.example", "127.0.0.1").is_err());
            assert_eq!(at(&guard, "evil.example", "10.0.0.9"), Ok(()));
            assert_eq!(at(&guard, "evil.example", "8.8.8.8"), Ok(()));
            let refused = at(&guard, "evil.example", "::1").unwrap_err().to_string();
            assert!(refused.contains("evil.example has the loopback address ::1"), "{refused}");
        }
    }
}
