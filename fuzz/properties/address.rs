//! `--web.external-url`, `--web.route-prefix`, `--web.telemetry-path`, `--web.listen-address`, and the host of a
//! request.

use queuekeeper::config::{Authority, ExternalUrl, ListenAddress, RoutePrefix, TelemetryPath};

use super::shown;

/// Reads the text as each of them.
///
/// # Panics
/// When what is accepted is not written in a form that is accepted again, or could not stand in an address.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<ExternalUrl>() {
        Ok(url) => {
            shown::again(&url);
            is_plain(&url.to_string());
            assert!(!url.host().is_empty(), "it names a host");
        }
        Err(error) => shown::error(error, 500),
    }
    match text.parse::<RoutePrefix>() {
        Ok(prefix) => {
            shown::again(&prefix);
            is_plain(prefix.as_str());
            assert!(prefix.as_str().is_empty() || prefix.as_str().starts_with('/'), "it is empty or a path");
            assert!(!prefix.as_str().ends_with('/') && !prefix.as_str().contains(['{', '}', '*']), "no pattern");
        }
        Err(error) => shown::error(error, 500),
    }
    match text.parse::<TelemetryPath>() {
        Ok(path) => {
            shown::again(&path);
            is_plain(path.as_str());
            assert!(path.as_str().len() > 1 && !path.as_str().contains(['{', '}', '*']), "no page and no pattern");
        }
        Err(error) => shown::error(error, 500),
    }
    match text.parse::<ListenAddress>() {
        Ok(address) => shown::again(&address),
        Err(error) => shown::error(error, 500),
    }
    match text.parse::<Authority>() {
        Ok(authority) => {
            is_plain(&authority.host);
            let again = format!("{}:{}", authority.host, authority.port.unwrap_or(80)).parse::<Authority>();
            assert_eq!(again.map(|again| again.host).as_ref(), Ok(&authority.host), "a host is the same again");
        }
        Err(why) => shown::error(why, 500),
    }
}

/// Checks that a text can stand in an address, a header and a page as it is.
fn is_plain(text: &str) {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"'&\\%?#".contains(&byte));
    assert!(is_plain, "{text:?} has a character with a meaning of its own");
}
