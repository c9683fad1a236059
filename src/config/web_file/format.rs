//! The keys of the file.

use std::collections::BTreeMap;
use std::path::Path;

use axum::http::HeaderValue;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::Users;
use super::tls::TlsSection;
use crate::config::source::{FileError, refuse, yaml};

/// The file, after all checks that need no other file.
pub(super) struct Document {
    pub(super) tls: Option<TlsSection>,
    pub(super) users: Users,
    pub(super) strict_transport_security: Option<HeaderValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    tls_server_config: Option<TlsSection>,
    http_server_config: Option<HttpSection>,
    basic_auth_users: Option<BTreeMap<String, Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpSection {
    http2: Option<Spanned<bool>>,
    headers: Option<BTreeMap<String, Spanned<String>>>,
}

impl Document {
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let keys: Keys = yaml(path, bytes)?;
        let mut users = Users::default();
        for (name, hash) in keys.basic_auth_users.unwrap_or_default() {
            let line = hash.referenced.line();
            users.add(name, hash.value).map_err(|why| refuse(path, line, why))?;
        }
        let strict_transport_security = keys.http_server_config.map_or(Ok(None), |http| http.check(path))?;
        Ok(Self { tls: keys.tls_server_config, users, strict_transport_security })
    }
}

impl HttpSection {
    fn check(self, path: &Path) -> Result<Option<HeaderValue>, FileError> {
        if let Some(http2) = self.http2.filter(|http2| http2.value) {
            let why = "http2: only HTTP/1.1 is supported; set it to false or omit it";
            return Err(refuse(path, http2.referenced.line(), why));
        }
        let mut strict_transport_security = None;
        for (name, value) in self.headers.unwrap_or_default() {
            let line = value.referenced.line();
            match name.to_ascii_lowercase().as_str() {
                "strict-transport-security" => {
                    let value = HeaderValue::from_str(&value.value);
                    let value = value.map_err(|_| refuse(path, line, format!("{name}: not valid in a header")))?;
                    strict_transport_security = Some(value);
                }
                // Headers that are always sent may be listed.
                "x-content-type-options" if value.value.eq_ignore_ascii_case("nosniff") => {}
                "x-frame-options" if value.value.eq_ignore_ascii_case("deny") => {}
                _ => {
                    let why = format!(
                        "the header {name} is not supported: the server sets it as its pages require; Strict-Transport-Security is supported"
                    );
                    return Err(refuse(path, line, why));
                }
            }
        }
        Ok(strict_transport_security)
    }
}
