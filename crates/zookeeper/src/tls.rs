//! Certificates for TLS to ZooKeeper.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use zookeeper_client::TlsOptions;

use super::config_error::ConfigError;
use crate::files;

/// No file of certificates is larger, in bytes; what systems trust takes a few hundred KiB.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Where systems keep the certificates of the authorities they trust, as one PEM file: Debian and Alpine, Fedora and
/// its kin, and what is left.
const SYSTEM_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// TLS to ZooKeeper: which servers to trust, and who we are to them.
///
/// The server's certificate must name the host as the connect string does; the client library offers no safe way to
/// leave that check out, and neither do we. The files are read for each connection attempt, so renewed certificates
/// serve from the next session on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the authorities whose servers are trusted; `None` for those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate, for servers that want one (`ssl.clientAuth=need` is ZooKeeper's default).
    pub identity: Option<Identity>,
}

/// A client certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PEM file of the certificate, followed by those of its intermediate authorities.
    pub cert_file: PathBuf,
    /// PEM file of its private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key_file: PathBuf,
}

impl Tls {
    /// TLS by the command line: `wanted` switches it on with the system's authorities, and each file switches it on
    /// too. `None` when nothing enables it.
    ///
    /// # Errors
    /// When one of certificate and key is there without the other.
    pub fn from_flags(
        wanted: bool,
        ca_file: Option<PathBuf>,
        cert_file: Option<PathBuf>,
        key_file: Option<PathBuf>,
    ) -> Result<Option<Self>, ConfigError> {
        let identity = match (cert_file, key_file) {
            (Some(cert_file), Some(key_file)) => Some(Identity { cert_file, key_file }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(ConfigError::HalfAnIdentity),
        };
        let on = wanted || ca_file.is_some() || identity.is_some();
        Ok(on.then_some(Self { ca_file, identity }))
    }

    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    /// When a file cannot be read or does not hold what it should, or the key is not the certificate's.
    pub(super) fn load(&self) -> Result<Loaded, ConfigError> {
        let ca_file = match &self.ca_file {
            Some(path) => path.as_path(),
            None => {
                SYSTEM_BUNDLES.iter().map(Path::new).find(|path| path.exists()).ok_or(ConfigError::NoSystemRoots)?
            }
        };
        let ca = read(ca_file)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(ca_file, &ca)?);
        if roots.is_empty() {
            return Err(bad(ca_file, "contains no usable CA certificate"));
        }
        let mut options = TlsOptions::new().with_pem_ca(&ca).map_err(|error| bad(ca_file, error.to_string()))?;
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(Identity { cert_file, key_file }) => {
                let (cert, key) = (read(cert_file)?, read(key_file)?);
                let chain = certificates(cert_file, &cert)?;
                // The reason is left out: a parser's error may quote what it read, and this is the private key.
                let private = PrivateKeyDer::from_pem_slice(key.as_bytes())
                    .map_err(|_| bad(key_file, "it contains no private key that can be read without a password"))?;
                options = options.with_pem_identity(&cert, &key).map_err(|error| bad(cert_file, error.to_string()))?;
                builder.with_client_auth_cert(chain, private).map_err(|error| {
                    bad(cert_file, format!("it does not match the key {}: {error}", key_file.display()))
                })?
            }
        };
        Ok(Loaded { options, config: Arc::new(config) })
    }
}

/// Certificates as read: once for the client library, once for our own diagnosis of a server that the library fails on.
pub(super) struct Loaded {
    pub(super) options: TlsOptions,
    pub(super) config: Arc<ClientConfig>,
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let refuse = |source| ConfigError::ReadFile { path: path.to_owned(), source };
    let bytes = files::read(path, MOST_BYTES).map_err(refuse)?;
    String::from_utf8(bytes).map_err(|_| refuse(std::io::Error::other("it is not text")))
}

fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(path, error.to_string()))?;
    if found.is_empty() {
        return Err(bad(path, "it contains no certificate in PEM format"));
    }
    Ok(found)
}

fn bad(path: &Path, why: impl Into<String>) -> ConfigError {
    ConfigError::BadCertificate { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_a_certificate_or_an_authority_that_everyone_may_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let write = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let files = [
            write("ca.pem", pair.cert.pem()),
            write("cert.pem", pair.cert.pem()),
            write("key.pem", pair.signing_key.serialize_pem()),
        ];
        let [ca_file, cert_file, key_file] = files.clone();
        let tls = Tls { ca_file: Some(ca_file), identity: Some(Identity { cert_file, key_file }) };
        let refused = || tls.load().err().map(|error| error.to_string());
        let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(refused(), None);
        for path in &files {
            set(path, 0o646);
            let why = refused().unwrap_or_else(|| panic!("{} is taken", path.display()));
            assert!(why.contains("may write it") && why.contains(path.to_str().unwrap()), "{why}");
            set(path, 0o640);
        }
        set(directory.path(), 0o777);
        assert!(refused().unwrap().contains("may write to the directory"));
    }
}
