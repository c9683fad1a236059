//! The addresses to listen on.

use std::fmt;
use std::str::FromStr;

use tokio::net::TcpListener;

/// An address to listen on: `host:port`, or `:port` for every interface, as in Prometheus' own flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// A name or an address, an IPv6 one without its brackets; `None` for every interface.
    host: Option<String>,
    port: u16,
}

/// A text that is not a listen address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{why}; an address is host:port, [IPv6]:port, or :port for every interface, such as {}",
    ListenAddress::DEFAULT
)]
pub struct ListenAddressError {
    why: &'static str,
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        let refuse = |why| ListenAddressError { why };
        let (host, port) = text.rsplit_once(':').ok_or(refuse("the port is missing"))?;
        // `parse` alone would accept a sign.
        let port = Some(port)
            .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|port| port.parse().ok())
            .ok_or(refuse("the port is not a number from 0 to 65535"))?;
        let host = match host.strip_prefix('[').map(|inner| inner.strip_suffix(']')) {
            Some(inner) => inner.filter(|inner| !inner.is_empty()).ok_or(refuse("a bracket is not closed or empty"))?,
            None if host.contains(':') => return Err(refuse("an IPv6 address needs brackets")),
            None => host,
        };
        if host.contains(|c: char| c.is_whitespace() || "/[]@".contains(c)) {
            return Err(refuse("the host has an invalid character"));
        }
        Ok(Self { host: Some(host.to_owned()).filter(|host| !host.is_empty()), port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Some(host) => write!(f, "{host}:{}", self.port),
            None => write!(f, ":{}", self.port),
        }
    }
}

impl ListenAddress {
    /// Where the pages are served, and looked for, unless set otherwise: on this machine alone.
    pub const DEFAULT: &str = "127.0.0.1:12181";

    /// The name or address, an IPv6 one without its brackets; `None` for every interface.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Binds the address; port 0 takes any free port.
    ///
    /// # Errors
    /// When the name does not resolve, or none of its addresses can be bound.
    pub async fn bind(&self) -> std::io::Result<TcpListener> {
        match &self.host {
            Some(host) => TcpListener::bind((host.as_str(), self.port)).await,
            // The IPv6 wildcard includes IPv4 if the machine has IPv6.
            None => match TcpListener::bind(("::", self.port)).await {
                Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
                    TcpListener::bind(("0.0.0.0", self.port)).await
                }
                bound => bound,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_parsed_and_displayed_again() {
        for text in ["127.0.0.1:12181", ":12181", "[::1]:0", "localhost:80", "[fe80::1%eth0]:80"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_valid_forms_in_the_error() {
        for (text, why) in [
            ("12181", "port is missing"),
            ("localhost", "port is missing"),
            ("localhost:", "not a number"),
            ("localhost:http", "not a number"),
            (":+80", "not a number"),
            (":65536", "not a number"),
            ("::1:80", "needs brackets"),
            ("[::1:80", "bracket"),
            ("[]:80", "bracket"),
            ("http://localhost:80", "needs brackets"),
            ("a b:80", "invalid character"),
        ] {
            let error = text.parse::<ListenAddress>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("host:port"), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn a_bare_port_listens_on_every_interface() {
        let listener = ":0".parse::<ListenAddress>().unwrap().bind().await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_unspecified());
        let port = listener.local_addr().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    }
}
