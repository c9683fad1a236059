//! The connect string: which servers, and below which znode.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::ServerName;

/// The port that ZooKeeper's own clients take where the connect string names none.
pub const DEFAULT_PORT: u16 = 2181;

/// One server of the connect string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    /// The host's name or IP address, an IPv6 address without its brackets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// A checked connect string: `host:port[,host:port...][/chroot]`.
///
/// `Display` gives it back in one canonical form, with every port and without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Servers {
    hosts: Vec<Host>,
    chroot: Option<String>,
}

impl Servers {
    /// The servers in the order given; never empty.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The znode that all paths are relative to, as `/merritt`; `None` for the root of the tree.
    #[must_use]
    pub fn chroot(&self) -> Option<&str> {
        self.chroot.as_deref()
    }

    /// Whether both are of one tree as far as their names show: with a server and the chroot in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.chroot == other.chroot && self.hosts.iter().any(|host| other.hosts.contains(host))
    }

    /// The same servers with another chroot, as an operator's `--zookeeper` with the demo's own znode below it.
    ///
    /// # Errors
    /// When `chroot` is not an absolute znode path.
    pub fn with_chroot(&self, chroot: &str) -> Result<Self, ServersError> {
        let refuse = |why: String| ServersError { text: chroot.to_owned(), why };
        Ok(Self { hosts: self.hosts.clone(), chroot: parse_chroot(chroot).map_err(refuse)? })
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, host) in self.hosts.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        f.write_str(self.chroot().unwrap_or_default())
    }
}

/// An invalid connect string, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address of ZooKeeper: {why}; expected host:port[,host:port...][/chroot]")]
pub struct ServersError {
    text: String,
    why: String,
}

impl FromStr for Servers {
    type Err = ServersError;

    fn from_str(text: &str) -> Result<Self, ServersError> {
        if let Some((_, behind)) = text.rsplit_once('@') {
            // This may be meant as a URL, and the part before the @ may be a password.
            let why = "credentials are read from the file of --zookeeper.auth-file".to_owned();
            return Err(ServersError { text: format!("…@{behind}"), why });
        }
        parse(text.trim()).map_err(|why| ServersError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Servers, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(format!("it has a scheme ({}://); TLS has its own flags", scheme.escape_debug()));
    }
    let (hosts, chroot) = match text.find('/') {
        Some(at) => text.split_at(at),
        None => (text, "/"),
    };
    let hosts = hosts.split(',').map(|host| parse_host(host.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(Servers { hosts, chroot: parse_chroot(chroot)? })
}

fn parse_host(text: &str) -> Result<Host, String> {
    if text.is_empty() {
        return Err("a host is missing".to_owned());
    }
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or_else(|| format!("{text:?} lacks its closing bracket"))?;
            if name.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("{name:?} in brackets is not an IPv6 address"));
            }
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':').ok_or_else(|| format!("{rest:?} follows the bracket"))?),
            };
            (name, port)
        }
        None if text.matches(':').count() > 1 => {
            return Err(format!(
                "{text:?} has more than one colon; write an IPv6 address in brackets, such as [::1]:2181"
            ));
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    // The client library parses the host again when it makes a TLS connection, and panics on an invalid name.
    if ServerName::try_from(name).is_err() {
        return Err(format!("{name:?} is neither a host name nor an IP address"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => number,
            Ok(_) | Err(_) => return Err(format!("{port:?} is not a port; a port is a number from 1 to 65535")),
        },
    };
    Ok(Host { name: name.to_owned(), port })
}

/// Checks a chroot as the server would check a path; `/` means none.
fn parse_chroot(text: &str) -> Result<Option<String>, String> {
    let path = text.strip_suffix('/').unwrap_or(text);
    if path.is_empty() {
        return Ok(None);
    }
    if path.contains(',') {
        return Err(format!("the chroot {path:?} has a comma; write it once, after the last host"));
    }
    if path.contains('@') {
        return Err(format!("the chroot {path:?} has an @, before which a connect string is taken for a password"));
    }
    // Readers of a connect string trim white space at its ends.
    if path.trim_end() != path {
        return Err(format!("the chroot {path:?} ends with white space"));
    }
    let names = path.strip_prefix('/').ok_or_else(|| format!("the chroot {path:?} does not begin with a slash"))?;
    for name in names.split('/') {
        if name.is_empty() {
            return Err(format!("the chroot {path:?} has an empty name in it"));
        }
        if name == "." || name == ".." {
            return Err(format!("the chroot {path:?} has a relative name in it"));
        }
        if name.chars().any(is_forbidden) {
            return Err(format!("the chroot {path:?} has a character that ZooKeeper does not allow"));
        }
    }
    Ok(Some(path.to_owned()))
}

/// The characters that ZooKeeper refuses in a path, by its programmer's guide ("The ZooKeeper Data Model").
fn is_forbidden(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_strings_are_read_and_said_canonically() {
        for (text, canonical, chroot) in [
            ("127.0.0.1:2181", "127.0.0.1:2181", None),
            ("zk1", "zk1:2181", None),
            ("zk1/", "zk1:2181", None),
            ("zk1:2182,zk2", "zk1:2182,zk2:2181", None),
            (" zk1 , zk2.example.org:99 ", "zk1:2181,zk2.example.org:99", None),
            ("zk1:2181,zk2:2181/merritt", "zk1:2181,zk2:2181/merritt", Some("/merritt")),
            ("zk1/merritt/prod/", "zk1:2181/merritt/prod", Some("/merritt/prod")),
            ("[::1]", "[::1]:2181", None),
            ("[2001:db8::7]:2281,zk_2/m\u{e9}", "[2001:db8::7]:2281,zk_2:2181/m\u{e9}", Some("/m\u{e9}")),
        ] {
            let servers: Servers = text.parse().unwrap();
            assert_eq!(servers.to_string(), canonical);
            assert_eq!(servers.chroot(), chroot, "{text}");
            assert_eq!(canonical.parse::<Servers>().unwrap(), servers);
        }
        assert_eq!("[::1]:7".parse::<Servers>().unwrap().hosts()[0].name(), "::1");
    }

    #[test]
    fn malformed_connect_strings_are_refused_with_the_reason_and_the_form() {
        for (text, reason) in [
            ("", "it is empty"),
            ("/merritt", "a host is missing"),
            ("zk1,,zk2", "a host is missing"),
            ("zk1:2181,", "a host is missing"),
            (":2181", "neither a host name nor an IP address"),
            ("zk1:", "not a port"),
            ("zk1:0", "not a port"),
            ("zk1:+80", "not a port"),
            ("zk1:65536", "not a port"),
            ("zk1:abc", "not a port"),
            ("zk 1:2181", "neither a host name nor an IP address"),
            ("zk1/a,zk2/a", "write it once, after the last host"),
            ("::1:2181", "in brackets"),
            ("[::1", "closing bracket"),
            ("[::1]2181", "follows the bracket"),
            ("[zk1]:2181", "not an IPv6 address"),
            ("tcp://zk1:2181", "scheme"),
            ("zk1//a", "empty name"),
            ("zk1/a/../b", "relative name"),
            ("zk1/a\u{7}", "does not allow"),
            ("zk1/a\t/", "white space"),
            ("t\u{7}cp\n://zk1", "a scheme (t\\u{7}cp\\n://)"),
        ] {
            let error = text.parse::<Servers>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?} gave {error}");
            assert!(error.contains("host:port[,host:port...][/chroot]"), "{error}");
        }
    }
}
