//! The keys that are taken.

use std::collections::BTreeMap;
use std::path::Path;

use axum::http::HeaderValue;
use serde::Deserialize;
use serde_saphyr::{Error as YamlError, Spanned};

use super::tls::TlsSection;
use super::{Users, WebFileError};

/// The file, with everything checked that needs no other file.
pub(super) struct Document {
    pub(super) tls: Option<TlsSection>,
    pub(super) users: Users,
    pub(super) strict_transport_security: Option<HeaderValue>,
}

#[derive(Default, Deserialize)]
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

/// Refuses what stands at a line.
pub(super) fn refuse(path: &Path, line: u64, why: impl Into<String>) -> WebFileError {
    WebFileError::Format { path: path.to_owned(), line: Some(line).filter(|line| *line > 0), why: why.into() }
}

impl Document {
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Self, WebFileError> {
        let text = std::str::from_utf8(bytes).map_err(|_| refuse(path, 0, "it is not UTF-8"))?;
        let options = serde_saphyr::options! { with_snippet: false };
        // A file without a key is a document that is null.
        let keys: Option<Keys> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| refuse(path, error.location().map_or(0, |location| location.line()), explain(&error)))?;
        let keys = keys.unwrap_or_default();

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
    fn check(self, path: &Path) -> Result<Option<HeaderValue>, WebFileError> {
        if let Some(http2) = self.http2.filter(|http2| http2.value) {
            let why = "http2: only HTTP/1.1 is spoken here; write false, or leave it out";
            return Err(refuse(path, http2.referenced.line(), why));
        }
        let mut strict_transport_security = None;
        for (name, value) in self.headers.unwrap_or_default() {
            let line = value.referenced.line();
            match name.to_ascii_lowercase().as_str() {
                "strict-transport-security" => {
                    let value = HeaderValue::from_str(&value.value);
                    let value = value.map_err(|_| refuse(path, line, format!("{name}: no header holds that")))?;
                    strict_transport_security = Some(value);
                }
                // What is sent in any case may stand there.
                "x-content-type-options" if value.value.eq_ignore_ascii_case("nosniff") => {}
                "x-frame-options" if value.value.eq_ignore_ascii_case("deny") => {}
                _ => {
                    let why = format!(
                        "the header {name} is not taken: the server sends the one that its pages need; \
                         Strict-Transport-Security is taken"
                    );
                    return Err(refuse(path, line, why));
                }
            }
        }
        Ok(strict_transport_security)
    }
}

/// What is wrong, without the value: it may be a password's hash or a key.
fn explain(error: &YamlError) -> String {
    match error {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            format!("the key {field} is not taken; taken are {}", expected.join(", "))
        }
        YamlError::SerdeInvalidType { expected, .. } | YamlError::SerdeInvalidValue { expected, .. } => {
            let expected = if expected.starts_with("struct") { "keys and values" } else { expected };
            format!("something else was expected here: {expected}")
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => format!("the key {key} is there twice"),
        other => other.render().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}
