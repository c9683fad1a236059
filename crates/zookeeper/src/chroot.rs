//! The chroot: whether its znode is there, and what to do where it is not.

use std::fmt::Write as _;
use std::time::Duration;

use zookeeper_client::{Client, Error};

use super::address::Servers;
use super::request::RequestError;

/// The pause after a request that a lost connection has failed.
const PAUSE: Duration = Duration::from_millis(500);

/// The znode that a connect string names as its chroot does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "ZooKeeper has no znode {}: create it ({}), or correct the chroot in --zookeeper",
    servers.chroot().unwrap_or("/"),
    commands(servers)
)]
pub struct NoChroot {
    servers: Servers,
}

impl NoChroot {
    /// The chroot of these servers is missing.
    #[must_use]
    pub fn of(servers: &Servers) -> Self {
        Self { servers: servers.clone() }
    }
}

/// What is known of a chroot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is there; or the server does not say, and the requests below it will show.
    Present,
    /// It is not.
    Missing,
    /// The session ended before it was known.
    SessionOver,
}

/// Looks for the chroot of a client.
pub(super) async fn look(client: &Client, servers: &Servers) -> Presence {
    if servers.chroot().is_none() {
        return Presence::Present;
    }
    loop {
        match client.check_stat("/").await {
            Ok(None) => return Presence::Missing,
            Ok(Some(_)) => return Presence::Present,
            Err(error) => match failed(client, error) {
                Some(presence) => return presence,
                None => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// Waits until the chroot is there, or the session is over.
pub(super) async fn created(client: &Client) -> Presence {
    loop {
        match client.check_and_watch_stat("/").await {
            Ok((None, changed)) => drop(changed.changed().await),
            Ok((Some(_), _unused)) => return Presence::Present,
            Err(error) => match failed(client, error) {
                Some(presence) => return presence,
                None => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// Waits until the chroot of a client is not there any more; for ever where there is none, or when the session is over.
/// The client has no recursive watch on it, which this one would end.
pub async fn removed(client: &Client, servers: &Servers) {
    while servers.chroot().is_some() {
        match client.check_and_watch_stat("/").await {
            Ok((Some(_), changed)) => drop(changed.changed().await),
            Ok((None, _unused)) => return,
            Err(error) => match failed(client, error) {
                Some(_) => break,
                None => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    std::future::pending::<()>().await;
}

/// What an error shows of a chroot; `None` where the request is worth another attempt.
fn failed(client: &Client, error: Error) -> Option<Presence> {
    if client.state().is_terminated() {
        return Some(Presence::SessionOver);
    }
    (!RequestError::Refused(error).is_connection()).then_some(Presence::Present)
}

/// The commands that create a chroot: ZooKeeper's own program creates one level at a time.
fn commands(servers: &Servers) -> String {
    let chroot = servers.chroot().unwrap_or_default();
    let hosts: Vec<_> = servers.hosts().iter().map(ToString::to_string).collect();
    let mut commands = String::new();
    let ends = chroot.match_indices('/').map(|(at, _)| at).skip(1).chain([chroot.len()]);
    for (n, end) in ends.enumerate() {
        let between = if n == 0 { "" } else { "; " };
        write!(commands, "{between}zkCli.sh -server {} create {}", hosts.join(","), quoted(&chroot[..end]))
            .expect("writing to a String does not fail");
    }
    commands
}

/// A path as a word of the shell.
fn quoted(path: &str) -> String {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_chroot_is_one_line_with_its_path_and_the_commands_that_create_it() {
        for (servers, line) in [
            (
                "zk1,zk2:2182/merritt",
                "ZooKeeper has no znode /merritt: create it (zkCli.sh -server zk1:2181,zk2:2182 create /merritt), or \
                 correct the chroot in --zookeeper",
            ),
            (
                "[::1]/a/it's",
                "ZooKeeper has no znode /a/it's: create it (zkCli.sh -server [::1]:2181 create /a; zkCli.sh -server \
                 [::1]:2181 create '/a/it'\\''s'), or correct the chroot in --zookeeper",
            ),
        ] {
            assert_eq!(NoChroot::of(&servers.parse().unwrap()).to_string(), line);
        }
    }
}
