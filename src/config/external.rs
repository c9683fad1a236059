//! The external address of the server, as in Prometheus' own flags.

use std::fmt;
use std::str::FromStr;

use super::DeploymentName;

/// The address under which users reach the server, such as a proxy's: `https://ops.example.org/queue/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalUrl {
    is_https: bool,
    /// In lower case; an IPv6 address in its brackets.
    host: String,
    port: Option<u16>,
    path: RoutePrefix,
}

/// A text that is not an external address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; expected https://host[:port][/path]")]
pub struct ExternalUrlError {
    why: String,
}

impl ExternalUrl {
    /// Whether the scheme is https.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host in lower case, an IPv6 address in its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, by default the one of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_https { 443 } else { 80 })
    }

    /// The path, which is the default of the route prefix.
    #[must_use]
    pub fn path(&self) -> &RoutePrefix {
        &self.path
    }
}

impl FromStr for ExternalUrl {
    type Err = ExternalUrlError;

    fn from_str(text: &str) -> Result<Self, ExternalUrlError> {
        let refuse = |why: &str| ExternalUrlError { why: why.to_owned() };
        let (scheme, rest) = text.split_once("://").ok_or(refuse("the scheme is missing"))?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(refuse("the scheme is neither http nor https")),
        };
        if rest.contains(['?', '#']) {
            return Err(refuse("it has a query or a fragment"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(refuse("it has credentials"));
        }
        let authority: Authority = authority.parse().map_err(|why: &str| refuse(why))?;
        let path = path.parse().map_err(|error: RoutePrefixError| refuse(error.why))?;
        Ok(Self { is_https, host: authority.host, port: authority.port, path })
    }
}

impl fmt::Display for ExternalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http{}://{}", if self.is_https { "s" } else { "" }, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "{}/", self.path)
    }
}

/// A host with or without a port, as in a URL or in the header `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// In lower case and without a trailing dot; an IPv6 address in its brackets and in its shortest form.
    pub host: String,
    /// The port, where there is one.
    pub port: Option<u16>,
}

impl FromStr for Authority {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let port_at = text.rfind(':').filter(|at| text.rfind(']').is_none_or(|bracket| bracket < *at));
        let (host, port) = match port_at {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let port = match port {
            // `host:` is a host with the scheme's default port (RFC 3986, 3.2.3).
            None | Some("") => None,
            // `parse` alone would accept a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().map_err(|_| "the port is not a number from 0 to 65535")?)
            }
            Some(_) => return Err("the port is not a number from 0 to 65535"),
        };
        if let Some(inner) = host.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok());
            let address = address.ok_or("the text in brackets is not an IPv6 address")?;
            return Ok(Self { host: format!("[{address}]"), port });
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.is_empty() {
            return Err("the host is missing");
        }
        if host.split('.').any(str::is_empty) {
            return Err("the host has an empty part");
        }
        if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err("the host has an invalid character");
        }
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

/// The prefix of all routes: empty, or as `/queue`, without a slash at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePrefix(String);

/// A text that is not a route prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; expected a prefix such as /queue, of letters, digits and - _ . ~ /, or / for none")]
pub struct RoutePrefixError {
    why: &'static str,
}

impl RoutePrefix {
    /// The prefix: empty, or with a slash at its beginning and none at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix of the pages of one queue of several.
    #[must_use]
    pub fn of_deployment(&self, name: &DeploymentName) -> Self {
        Self(format!("{self}/{name}"))
    }
}

impl FromStr for RoutePrefix {
    type Err = RoutePrefixError;

    /// Ignores slashes at both ends, as Prometheus does.
    fn from_str(text: &str) -> Result<Self, RoutePrefixError> {
        let refuse = |why| Err(RoutePrefixError { why });
        let inner = text.trim_matches('/');
        if inner.is_empty() {
            return Ok(Self::default());
        }
        if !inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte)) {
            return refuse("the path has a character with a special meaning");
        }
        if inner.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return refuse("the path has an empty segment, or a . or .. segment");
        }
        Ok(Self(format!("/{inner}")))
    }
}

impl fmt::Display for RoutePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_external_url_is_parsed_and_displayed_again() {
        for (text, host, port, path, shown) in [
            ("https://ops.example.org/queue/", "ops.example.org", 443, "/queue", "https://ops.example.org/queue/"),
            ("HTTP://Ops.Example.org.:8080", "ops.example.org", 8080, "", "http://ops.example.org:8080/"),
            ("http://[::1]:12181//a/b", "[::1]", 12181, "/a/b", "http://[::1]:12181/a/b/"),
            ("http://host:/", "host", 80, "", "http://host/"),
        ] {
            let url = text.parse::<ExternalUrl>().unwrap();
            assert_eq!((url.host(), url.port(), url.path().as_str()), (host, port, path), "{text}");
            assert_eq!(url.to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_external_url_is_refused_with_the_valid_form_in_the_error() {
        for (text, why) in [
            ("", "scheme is missing"),
            ("ops.example.org/queue", "scheme is missing"),
            ("ftp://host", "neither http nor https"),
            ("http:///queue", "host is missing"),
            ("http://../queue", "empty part"),
            ("http://user:word@host/", "credentials"),
            ("http://host:port/", "not a number"),
            ("http://host:+80/", "not a number"),
            ("http://host:65536/", "not a number"),
            ("http://[::1", "not an IPv6 address"),
            ("http://[fe80::1%25eth0]/", "not an IPv6 address"),
            ("http://a b/", "invalid character"),
            ("\"http://host/\"", "neither http nor https"),
            ("http://host/?a=b", "query"),
            ("http://host/a%2Fb", "special meaning"),
            ("http://host/a/../b", ".. segment"),
            ("http://host/{a}", "special meaning"),
        ] {
            let error = text.parse::<ExternalUrl>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("https://host"), "{text}: {error}");
        }
    }

    #[test]
    fn a_prefix_is_equal_with_and_without_slashes() {
        for (text, prefix) in [("", ""), ("/", ""), ("queue", "/queue"), ("/a/b/", "/a/b"), ("//a", "/a")] {
            assert_eq!(text.parse::<RoutePrefix>().unwrap().as_str(), prefix, "{text}");
        }
        for text in ["/a b", "/{a}", "/a//b", "/..", "/é", "http://host/a", "/a?b"] {
            assert!(text.parse::<RoutePrefix>().unwrap_err().to_string().contains("/queue"), "{text}");
        }
    }
}
