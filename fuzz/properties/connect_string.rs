//! `--zookeeper`, the chroot in it, and `--zookeeper.acl`.

use queuekeeper_zookeeper::{Servers, acl};

use super::shown;

/// Reads the text as a connect string, as a chroot and as a list of permissions.
///
/// # Panics
/// When what is accepted is not written in a form that is accepted again.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let any: Servers = "localhost".parse().expect("this is a host");
    for (read, most) in [(text.parse::<Servers>(), text.len()), (any.with_chroot(text), text.len())] {
        match read {
            Ok(servers) => {
                shown::again(&servers);
                assert!(!servers.hosts().is_empty(), "there is a server");
                for host in servers.hosts() {
                    assert!(host.port() > 0 && !host.name().is_empty(), "{host} can be connected to");
                }
                let is_path =
                    |chroot: &str| chroot.starts_with('/') && !chroot.ends_with('/') && !chroot.contains("//");
                assert!(servers.chroot().is_none_or(is_path), "{servers} has an absolute chroot or none");
                assert!(!servers.to_string().chars().any(char::is_control), "{servers:?} goes to logs and pages");
            }
            // It says twice what it was, in escapes of up to ten characters.
            Err(error) => shown::error(error, 500 + 20 * most),
        }
    }
    match acl::parse(text) {
        Ok(list) => {
            let written: Vec<_> = list.iter().map(|acl| (acl.scheme().to_owned(), acl.id().to_owned())).collect();
            assert!(!written.is_empty(), "a list has an entry");
            let letters: usize = written.iter().map(|(scheme, id)| scheme.len() + id.len()).sum();
            assert!(letters < text.len(), "nothing comes from nowhere");
        }
        Err(error) => shown::error(error, 1_000),
    }
}
