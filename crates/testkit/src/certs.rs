//! Certificates for servers and clients on the loopback interface, created for each test.

use std::path::{Path, PathBuf};

use queuekeeper_zookeeper::tls::Identity;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A day by year, month and number.
type Day = (i32, u8, u8);

/// An authority and the files of those it vouches for.
pub struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// PEM file of its own certificate.
    pub ca_file: PathBuf,
}

/// The files of one certificate.
pub struct Certified {
    /// PEM file of the certificate.
    pub cert_file: PathBuf,
    /// PEM file of the key.
    pub key_file: PathBuf,
    /// PEM file of both, the key first: what ZooKeeper calls a key store.
    pub key_store: PathBuf,
}

impl Certified {
    /// The same for a client of ours.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { cert_file: self.cert_file.clone(), key_file: self.key_file.clone() }
    }
}

impl Authority {
    /// Makes one whose files are in `directory` and begin with `name`.
    #[must_use]
    pub fn new(directory: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let ca_file = directory.join(format!("{name}.pem"));
        std::fs::write(&ca_file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { directory: directory.to_owned(), issuer: Issuer::new(params, key), ca_file }
    }

    /// Makes a certificate for `127.0.0.1`, `localhost`, and the hosts below `s3.localhost` that buckets are.
    #[must_use]
    pub fn certify(&self, name: &str) -> Certified {
        self.certify_between(name, (1975, 1, 1), (4096, 1, 1))
    }

    /// The same, valid from the beginning of one day until that of another.
    #[must_use]
    pub fn certify_between(&self, name: &str, from: Day, until: Day) -> Certified {
        let date = |(year, month, day)| rcgen::date_time_ymd(year, month, day);
        let mut params =
            CertificateParams::new(["127.0.0.1", "localhost", "*.s3.localhost"].map(str::to_owned)).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (date(from), date(until));
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap().pem();
        let write = |ending: &str, text: String| {
            let path = self.directory.join(format!("{name}{ending}.pem"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let key = key.serialize_pem();
        Certified {
            key_store: write("-store", format!("{key}{cert}")),
            cert_file: write("", cert),
            key_file: write("-key", key),
        }
    }
}
