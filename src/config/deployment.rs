//! The names of queues, where one server serves several.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use queuekeeper_zookeeper::{Servers, ServersError};

use super::TelemetryPath;
use super::telemetry_path::RESERVED;

/// The longest name, in characters, as of a label of DNS.
const LONGEST: usize = 63;

/// The name of a queue: the first part of its addresses, and the value of the label `deployment` of its series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeploymentName(Arc<str>);

/// A text that is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the name of a queue: {why}; a name has at most 63 lower-case letters, digits and hyphens, and no hyphen at its ends"
)]
pub struct DeploymentNameError {
    text: String,
    why: &'static str,
}

impl DeploymentName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeploymentName {
    type Err = DeploymentNameError;

    fn from_str(text: &str) -> Result<Self, DeploymentNameError> {
        let refuse = |why| Err(DeploymentNameError { text: text.to_owned(), why });
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.len() > LONGEST {
            return refuse("it is too long");
        }
        if !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            return refuse("it has an invalid character");
        }
        if text.starts_with('-') || text.ends_with('-') {
            return refuse("it has a hyphen at an end");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for DeploymentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where pages are among several queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployments {
    /// All names, in the order in which they are shown.
    pub all: Arc<[DeploymentName]>,
    /// That of the queue whose pages they are; `None` for the pages of all.
    pub this: Option<DeploymentName>,
}

/// A connect string, with or without the name of its queue: `zk1:2181/merritt` or `prod=zk1:2181/merritt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAddress {
    /// The name of the queue; `None` where there is only one.
    pub name: Option<DeploymentName>,
    /// Its ZooKeeper.
    pub servers: Servers,
}

impl FromStr for QueueAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, servers) = split_name(text).map_or((None, text), |(name, servers)| (Some(name), servers));
        let name = name.map(|name| name.trim().parse().map_err(|error: DeploymentNameError| error.to_string()));
        let servers = servers.parse().map_err(|error: ServersError| error.to_string())?;
        Ok(Self { name: name.transpose()?, servers })
    }
}

/// The addresses in a text: each word with a name begins another. One without a name is the whole text, since a chroot
/// may have white space.
///
/// # Errors
/// When one of them is not valid.
pub fn addresses(text: &str) -> Result<Vec<QueueAddress>, String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match found.last_mut() {
            None if split_name(word).is_none() => return Ok(vec![text.parse()?]),
            Some(last) if split_name(word).is_none() => last.extend([" ", word]),
            _ => found.push(word.to_owned()),
        }
    }
    if found.is_empty() {
        return Ok(vec![text.parse()?]);
    }
    found.iter().map(|one| one.parse()).collect()
}

/// The name before a connect string, and that. A host has no equals sign, but a chroot may have one.
fn split_name(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| !name.contains(['/', ':', ',']))
}

/// Why a configuration is not one of several queues: what it names belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} belongs to one queue; serve that queue in a separate process")]
pub struct OfOneQueue {
    /// The flag.
    pub flag: &'static str,
    /// What it names.
    pub what: &'static str,
}

/// The queues of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queues {
    /// One without a name, which has no addresses of its own.
    One(Servers),
    /// Queues with names, at least one.
    Named(Vec<(DeploymentName, Servers)>),
}

impl Queues {
    /// Checks that queues can be distinguished, and from the pages beside them.
    ///
    /// # Errors
    /// One line that says which cannot.
    pub fn check(addresses: Vec<QueueAddress>, telemetry_path: &TelemetryPath) -> Result<Self, String> {
        if let [QueueAddress { name: None, servers }] = &addresses[..] {
            return Ok(Self::One(servers.clone()));
        }
        let metrics = telemetry_path.as_str().split('/').nth(1).unwrap_or_default();
        let mut named: Vec<(DeploymentName, Servers)> = Vec::new();
        for QueueAddress { name, servers } in addresses {
            let Some(name) = name else {
                return Err(format!("each of several queues needs a name; give {servers} one, as in prod={servers}"));
            };
            if name.as_str() == metrics || RESERVED.contains(&name.as_str()) {
                return Err(format!("no queue can be named {name}: the name is reserved for a page"));
            }
            if named.iter().any(|(known, _)| *known == name) {
                return Err(format!("two queues are named {name}"));
            }
            if let Some((known, _)) = named.iter().find(|(_, known)| known.overlaps(&servers)) {
                return Err(format!(
                    "{known} and {name} are the same queue: they have a server and the chroot in common"
                ));
            }
            named.push((name, servers));
        }
        Ok(Self::Named(named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queues of several flags, which a bar separates.
    fn checked(flags: &str) -> Result<Queues, String> {
        let read: Result<Vec<_>, _> = flags.split('|').map(addresses).collect();
        read.and_then(|read| Queues::check(read.concat(), &"/figures/all".parse().unwrap()))
    }

    #[test]
    fn queues_are_read_with_and_without_names() {
        for text in ["zk1", "zk1:2181,zk2:2181/merritt", "zk1:2181/a=b", "zk1 , zk2/merritt", "zk1/a b", "zk1/a x=b"] {
            assert_eq!(checked(text), Ok(Queues::One(text.parse().unwrap())), "{text}");
        }
        let named = |pairs: &[(&str, &str)]| {
            Ok(Queues::Named(pairs.iter().map(|(name, at)| (name.parse().unwrap(), at.parse().unwrap())).collect()))
        };
        assert_eq!(checked("prod=zk1/merritt"), named(&[("prod", "zk1/merritt")]));
        assert_eq!(
            checked(" prod=zk1:2181,zk2/merritt\n stage-2=zk1/stage=b "),
            named(&[("prod", "zk1,zk2/merritt"), ("stage-2", "zk1/stage=b")])
        );
        assert_eq!(checked("a=zk1 , zk2/x y b=zk1|c=zk3"), named(&[("a", "zk1,zk2/x y"), ("b", "zk1"), ("c", "zk3")]));
    }

    #[test]
    fn queues_that_cannot_be_distinguished_are_refused_in_one_line() {
        for (text, why) in [
            ("", "it is empty"),
            ("prod=zk1|zk2/a", "each of several queues needs a name; give zk2:2181/a one, as in prod=zk2:2181/a"),
            ("zk1/a|zk2/b", "each of several queues needs a name"),
            ("prod=zk1 prod=zk2", "two queues are named prod"),
            ("prod=zk1,zk2/a stage=zk3,zk2/a/", "prod and stage are the same queue"),
            ("jobs=zk1", "no queue can be named jobs: the name is reserved for a page"),
            ("figures=zk1", "no queue can be named figures"),
            ("=zk1", "it is empty"),
            ("Prod=zk1", "it has an invalid character"),
            ("pr.od=zk1", "it has an invalid character"),
            ("-prod=zk1", "a hyphen at an end"),
            ("prod-=zk1", "a hyphen at an end"),
            ("prod=", "is not an address of ZooKeeper: it is empty"),
            ("prod=zk1:x", "is not a port"),
        ] {
            let error = checked(text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{text}: {error}");
        }
        assert!("a".repeat(63).parse::<DeploymentName>().is_ok());
        assert!("a".repeat(64).parse::<DeploymentName>().unwrap_err().to_string().contains("it is too long"));
        assert!(checked("prod=zk1/a stage=zk1/b dev=zk2/a").is_ok());
    }
}
