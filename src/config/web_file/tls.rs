//! TLS configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde::Deserialize;
use serde_saphyr::Spanned;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::config::source::{FileError, Files, refuse};

/// `tls_server_config`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsSection {
    cert_file: Option<Spanned<String>>,
    key_file: Option<Spanned<String>>,
    cert: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    client_auth_type: Option<Spanned<String>>,
    client_ca_file: Option<Spanned<String>>,
    client_ca: Option<Spanned<String>>,
    min_version: Option<Spanned<String>>,
    max_version: Option<Spanned<String>>,
}

/// The validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first instant at which it is valid.
    pub not_before: Timestamp,
    /// The last one.
    pub not_after: Timestamp,
}

impl Validity {
    /// Why clients refuse the certificate at that time; `None` if it is valid.
    #[must_use]
    pub fn refusal(&self, now: Timestamp) -> Option<&'static str> {
        if now > self.not_after {
            Some("has expired")
        } else if now < self.not_before {
            Some("is not valid yet")
        } else {
            None
        }
    }
}

/// Which clients are accepted, by Go's names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientAuth {
    /// `NoClientCert`: no certificate is requested.
    None,
    /// `VerifyClientCertIfGiven`: a certificate is verified if one is sent.
    IfGiven,
    /// `RequireAndVerifyClientCert`: each client must send a valid certificate.
    Required,
}

/// PEM text, and its name for errors.
struct Pem {
    what: String,
    bytes: Vec<u8>,
}

impl TlsSection {
    /// The TLS configuration, and the validity of the server's certificate.
    pub(super) fn load(self, path: &Path, files: &mut Files) -> Result<(ServerConfig, Validity), FileError> {
        let versions = versions(path, self.min_version.as_ref(), self.max_version.as_ref())?;
        let client_auth = client_auth(path, self.client_auth_type.as_ref())?;
        let mut pem = |names: [&str; 2], file, text| Pem::take(path, files, names, file, text);
        let cert = pem(["cert_file", "cert"], self.cert_file, self.cert)?;
        let key = pem(["key_file", "key"], self.key_file, self.key)?;
        let client_ca = pem(["client_ca_file", "client_ca"], self.client_ca_file, self.client_ca)?;
        let missing = |why: &str| refuse(path, 0, format!("tls_server_config: {why}"));
        let cert = cert.ok_or_else(|| missing("cert_file is missing"))?;
        let key = key.ok_or_else(|| missing("key_file is missing"))?;

        // Named explicitly: a process has no default if two libraries have one each.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| missing(&error.to_string()))?;
        let builder = match (client_auth, client_ca) {
            (ClientAuth::None, None) => builder.with_no_client_auth(),
            (ClientAuth::None, Some(_)) => {
                return Err(missing("client_ca_file is set, but client_auth_type does not request certificates"));
            }
            (ClientAuth::IfGiven | ClientAuth::Required, None) => {
                return Err(missing("client_auth_type requires client_ca_file"));
            }
            (ClientAuth::IfGiven | ClientAuth::Required, Some(ca)) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(ca.roots()?.into(), provider);
                let verifier =
                    if client_auth == ClientAuth::IfGiven { verifier.allow_unauthenticated() } else { verifier };
                builder.with_client_cert_verifier(verifier.build().map_err(|error| ca.unusable(error.to_string()))?)
            }
        };
        let chain = cert.certificates()?;
        let validity = cert.validity(&chain)?;
        // The cause is omitted: a parser's error may quote its input, which is the private key.
        let private = PrivateKeyDer::from_pem_slice(&key.bytes)
            .map_err(|_| key.unusable("it does not contain a private key that is readable without a password"))?;
        let mut config = builder
            .with_single_cert(chain, private)
            .map_err(|error| cert.unusable(format!("it does not match the key of {}: {error}", key.what)))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((config, validity))
    }
}

impl Pem {
    /// The PEM text of a file or an inline value, under two keys of which only one may be set.
    fn take(
        path: &Path,
        files: &mut Files,
        [file_name, name]: [&str; 2],
        file: Option<Spanned<String>>,
        text: Option<Spanned<String>>,
    ) -> Result<Option<Self>, FileError> {
        match (file, text) {
            (None, None) => Ok(None),
            (Some(_), Some(text)) => {
                Err(refuse(path, text.referenced.line(), format!("{file_name} and {name} must not both be set")))
            }
            (Some(file), None) if file.value.is_empty() => {
                Err(refuse(path, file.referenced.line(), format!("{file_name} is empty")))
            }
            (Some(file), None) => {
                let file: PathBuf = path.parent().unwrap_or(Path::new("")).join(file.value);
                Ok(Some(Self { bytes: files.read(&file)?, what: file.display().to_string() }))
            }
            (None, Some(text)) => {
                let what = format!("{}, line {}, {name}", path.display(), text.referenced.line());
                Ok(Some(Self { what, bytes: text.value.into_bytes() }))
            }
        }
    }

    fn unusable(&self, why: impl Into<String>) -> FileError {
        FileError::Unusable { what: self.what.clone(), why: why.into() }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, FileError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        found
            .ok()
            .filter(|found| !found.is_empty())
            .ok_or_else(|| self.unusable("it contains no valid certificate in PEM format"))
    }

    /// The validity of the first certificate. Times that are not representable are replaced by the nearest:
    /// `99991231235959Z` means that a certificate does not expire (RFC 5280, 4.1.2.5).
    fn validity(&self, chain: &[CertificateDer<'_>]) -> Result<Validity, FileError> {
        let first = chain.first().and_then(|first| X509Certificate::from_der(first).ok());
        let (_, first) = first.ok_or_else(|| self.unusable("the validity of its first certificate cannot be read"))?;
        let [not_before, not_after] = [first.validity().not_before, first.validity().not_after].map(|time| {
            let nearest = if time.timestamp() < 0 { Timestamp::MIN } else { Timestamp::MAX };
            Timestamp::from_second(time.timestamp()).unwrap_or(nearest)
        });
        Ok(Validity { not_before, not_after })
    }

    fn roots(&self) -> Result<RootCertStore, FileError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            // Ignoring an invalid one would silently lock out its clients.
            roots
                .add(certificate)
                .map_err(|error| self.unusable(format!("it contains an invalid CA certificate: {error}")))?;
        }
        Ok(roots)
    }
}

fn versions(
    path: &Path,
    min: Option<&Spanned<String>>,
    max: Option<&Spanned<String>>,
) -> Result<Vec<&'static SupportedProtocolVersion>, FileError> {
    let number = |name: &str, version: Option<&Spanned<String>>, default: u8| {
        let Some(version) = version else { return Ok(default) };
        match version.value.as_str() {
            "TLS12" => Ok(2),
            "TLS13" => Ok(3),
            _ => Err(refuse(path, version.referenced.line(), format!("{name}: expected TLS12 or TLS13"))),
        }
    };
    let (least, most) = (number("min_version", min, 2)?, number("max_version", max, 3)?);
    let all = [(2, &rustls::version::TLS12), (3, &rustls::version::TLS13)];
    let versions: Vec<_> =
        all.into_iter().filter(|(number, _)| (least..=most).contains(number)).map(|(_, version)| version).collect();
    if versions.is_empty() {
        let line = max.map_or(0, |max| max.referenced.line());
        return Err(refuse(path, line, "max_version is below min_version"));
    }
    Ok(versions)
}

fn client_auth(path: &Path, kind: Option<&Spanned<String>>) -> Result<ClientAuth, FileError> {
    let Some(kind) = kind else { return Ok(ClientAuth::None) };
    match kind.value.as_str() {
        "" | "NoClientCert" => Ok(ClientAuth::None),
        "VerifyClientCertIfGiven" => Ok(ClientAuth::IfGiven),
        "RequireAndVerifyClientCert" => Ok(ClientAuth::Required),
        // Go's RequestClientCert and RequireAnyClientCert request a certificate and accept any.
        _ => {
            let why = "client_auth_type: expected NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert";
            Err(refuse(path, kind.referenced.line(), why))
        }
    }
}
