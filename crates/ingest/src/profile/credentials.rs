//! Users and passwords for hosts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use url::{Host, Url};

use super::ProfileError;
use super::file::yaml;
use crate::name::shown;
use crate::url::HostPattern;

/// Users and passwords for hosts, from a file such as
/// ```yaml
/// data.example.edu: {username: merritt, password: secret}
/// "*.example.org:8443": {username: other, password: secret}
/// ```
#[derive(Clone, Default)]
pub struct Credentials(Vec<(HostPattern, Login)>);

/// A user and a password, which is never shown.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    username: String,
    password: String,
}

impl Login {
    /// The name of the user.
    #[must_use]
    pub fn username(&self) -> &str {
        &self.username
    }

    /// The password: to send it, and never to show it.
    #[must_use]
    pub fn reveal_password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Login(..)")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Credentials({} hosts)", self.0.len())
    }
}

impl Credentials {
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ProfileError> {
        let keys: BTreeMap<String, Login> = yaml(path, bytes)?;
        let mut all = Vec::new();
        for (host, login) in keys {
            let pattern = host.parse().map_err(|error| ProfileError::new(path, 0, format!("{error}")))?;
            if login.username.contains(':') || login.username.contains(char::is_control) {
                let why = format!("the username of {:?} has a colon or a control character", shown(&host));
                return Err(ProfileError::new(path, 0, why));
            }
            all.push((pattern, login));
        }
        Ok(Self(all))
    }

    /// The login for the host of a URL, for this host alone: after a redirect to another one, that one's login counts.
    #[must_use]
    pub fn login(&self, url: &Url) -> Option<&Login> {
        let (host, port) = (url.host()?, url.port_or_known_default()?);
        let found = self.0.iter().find(|(pattern, _)| pattern.matches(&host, port));
        found.map(|(_, login)| login).filter(|_| url.scheme() == "https" || is_loopback(&host))
    }
}

/// Whether what is sent stays on this machine; a password is sent over no network in the clear.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}
