//! Credentials for nodes that are not open to everyone.

use std::fmt;
use std::path::Path;

use super::config_error::ConfigError;
use crate::files;

/// No file of credentials is larger, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// One set of credentials, shown to the server with every new connection.
///
/// The server does not refuse wrong ones of the scheme `digest`: they show as `NoAuth` at each node that wants others.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    scheme: String,
    credentials: Vec<u8>,
}

/// The credentials are left out: a debug print ends up in logs.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Auth {
    /// Credentials of the scheme `digest`, the one every server knows.
    #[must_use]
    pub fn digest(user: &str, password: &str) -> Self {
        Self { scheme: "digest".to_owned(), credentials: format!("{user}:{password}").into_bytes() }
    }

    /// The scheme, as `digest`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// What is sent to the server, as `user:password`. A secret: never for a log or a page.
    #[must_use]
    pub fn credentials(&self) -> &[u8] {
        &self.credentials
    }

    /// Reads an auth file: one `scheme:credentials` a line, as `digest:user:password`.
    ///
    /// Empty lines and lines that begin with `#` are ignored. Credentials are taken to the end of the line as they are,
    /// spaces included.
    ///
    /// # Errors
    /// When the file cannot be read, contains no credentials, or a line is not of that form. An error names the file
    /// and the line, never its content.
    pub fn read_file(path: &Path) -> Result<Vec<Self>, ConfigError> {
        let refuse = |source| {
            // If the flag was given the credentials themselves, they must not end up in a log.
            let is_file = !path.to_string_lossy().starts_with("digest:");
            let path = if is_file { path.to_owned() } else { "digest:…, which is not a file".into() };
            ConfigError::ReadFile { path, source }
        };
        let text = files::read(path, MOST_BYTES).map_err(refuse)?;
        let mut all = Vec::new();
        for (n, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let auth =
                parse_line(line).map_err(|why| ConfigError::AuthLine { path: path.to_owned(), line: n + 1, why })?;
            all.push(auth);
        }
        if all.is_empty() {
            return Err(ConfigError::NoCredentials { path: path.to_owned() });
        }
        Ok(all)
    }
}

fn parse_line(line: &[u8]) -> Result<Auth, &'static str> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or("it has no colon")?;
    let (scheme, credentials) = (&line[..colon], &line[colon + 1..]);
    let scheme = std::str::from_utf8(scheme)
        .ok()
        .filter(|scheme| {
            !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
        .ok_or("the text before the first colon is not a scheme")?;
    if credentials.is_empty() {
        return Err("nothing follows the scheme");
    }
    if scheme == "digest" {
        let colon = credentials.iter().position(|&byte| byte == b':').ok_or("digest needs user:password")?;
        if colon == 0 || colon + 1 == credentials.len() {
            return Err("digest needs a user and a password, neither of them empty");
        }
    }
    Ok(Auth { scheme: scheme.to_owned(), credentials: credentials.to_vec() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read(text: &[u8]) -> Result<Vec<Auth>, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth");
        std::fs::write(&path, text).unwrap();
        Auth::read_file(&path)
    }

    #[test]
    fn an_auth_file_gives_its_credentials_in_order() {
        let all = read(b"# for the queue\n\n  digest:keeper:a:b #c \r\nx509:CN=q\n").unwrap();
        assert_eq!(all[0], Auth::digest("keeper", "a:b #c "));
        assert_eq!((all[1].scheme(), all[1].credentials()), ("x509", &b"CN=q"[..]));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn a_file_that_everyone_may_write_is_refused_and_credentials_in_place_of_one_are_not_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "digest:keeper:hunter2").unwrap();
        assert!(Auth::read_file(file.path()).is_ok());
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o602)).unwrap();
        assert!(Auth::read_file(file.path()).unwrap_err().to_string().contains("may write it"));
        let error = Auth::read_file(Path::new("digest:keeper:hunter2")).unwrap_err().to_string();
        assert!(error.contains("not a file") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_bad_auth_file_is_refused_by_line_without_its_secret() {
        for (text, reason) in [
            (&b"#x\nhunter2"[..], "line 2: it has no colon"),
            (b"\n\nkeeper hunter2:x", "line 3: the text before the first colon is not a scheme"),
            (b"\xff:hunter2", "line 1: the text before the first colon is not a scheme"),
            (b"digest:", "line 1: nothing follows the scheme"),
            (b"digest:hunter2", "line 1: digest needs user:password"),
            (b"digest::hunter2", "neither of them empty"),
            (b"digest:hunter2:", "neither of them empty"),
            (b"# nothing\n", "contains no credentials"),
        ] {
            let error = read(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(reason), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let missing = Auth::read_file(Path::new("/nonexistent/auth")).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent/auth"), "{missing}");
    }

    #[test]
    fn a_debug_print_keeps_the_secret() {
        let shown = format!("{:?}", Auth::digest("keeper", "hunter2"));
        assert!(shown.contains("digest") && !shown.contains("hunter2") && !shown.contains("keeper"), "{shown}");
    }
}
