//! The client of the AWS SDK of a configuration.

use std::error::Error as StdError;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_smithy_http_client::Builder as HttpBuilder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::ErrorKind;
use crate::s3::config::{Addressing, S3Config};
use crate::s3::credentials::Credentials;

/// The longest time that the SDK is given: it calculates with them, and panics where they overflow.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// Makes the client. It connects to nothing yet, unless the usual chain of credentials queries a service for the
/// region.
pub(super) async fn client(config: &S3Config) -> Result<Client, ErrorKind> {
    let http = http_client(config.ca_pem.as_deref())?;
    let region = config.region.clone().map(Region::new);
    let mut builder = match &config.credentials {
        Credentials::Key(key) => Builder::new().credentials_provider(key.signer()).region(region),
        Credentials::Chain => {
            let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http.clone());
            if let Some(region) = region {
                loader = loader.region(region);
            }
            Builder::from(&loader.load().await)
        }
    };
    match &config.endpoint {
        Some(url) if is_endpoint(url) => builder = builder.endpoint_url(url),
        // It is not shown: it may contain a password.
        Some(_) => {
            return Err(ErrorKind::Refused("invalid endpoint; set it as https://HOST or https://HOST:PORT".to_owned()));
        }
        None => {}
    }
    if builder.clone().build().region().is_none() {
        if config.endpoint.is_none() {
            return Err(ErrorKind::Refused("no region is known; set region, such as us-west-2".to_owned()));
        }
        builder = builder.region(Region::from_static("us-east-1"));
    }
    let is_path_style = match config.addressing {
        Addressing::Path => true,
        Addressing::VirtualHost => false,
        Addressing::Auto => config.endpoint.is_some(),
    };
    let [connect, progress] = [config.timeouts.connect, config.timeouts.progress].map(|time| time.min(LONGEST));
    // Answers and bodies that are read are timed where the request is made, which knows how large it is.
    let uploads = StalledStreamProtectionConfig::enabled().download_enabled(false).grace_period(progress);
    let built = builder
        .behavior_version(BehaviorVersion::latest())
        .http_client(http)
        .force_path_style(is_path_style)
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(connect).build())
        .stalled_stream_protection(uploads.build())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
        .build();
    Ok(Client::from_conf(built))
}

fn is_endpoint(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', '@', ' ']))
}

fn http_client(ca_pem: Option<&[u8]>) -> Result<SharedHttpClient, ErrorKind> {
    let mut trust = TrustStore::default();
    if let Some(pem) = ca_pem {
        check_certificates(pem)?;
        trust = trust.with_pem_certificate(pem);
    }
    let invalid = |error: &dyn StdError| ErrorKind::Refused(format!("the CA file is invalid: {error}"));
    let tls = TlsContext::builder().with_trust_store(trust).build().map_err(|error| invalid(&error))?;
    Ok(HttpBuilder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(tls).build_https())
}

/// The SDK panics at the first connection where a certificate cannot be read.
fn check_certificates(pem: &[u8]) -> Result<(), ErrorKind> {
    let refused = |why: String| ErrorKind::Refused(format!("the CA file has no valid certificate in PEM{why}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| refused(format!(": {error}")))?;
        roots.add(certificate).map_err(|error| refused(format!(": {error}")))?;
    }
    if roots.is_empty() { Err(refused(String::new())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::credentials::AccessKey;

    #[tokio::test]
    async fn what_no_request_could_be_made_with_is_refused_in_one_line() {
        let mut config = S3Config::new("cold".parse().unwrap(), "s3://bucket".parse().unwrap());
        config.credentials = Credentials::Key(AccessKey::new("AKIA", "hidden"));
        let why = async |config: &S3Config| client(config).await.map(drop).unwrap_err().to_string();
        assert!(why(&config).await.contains("set region"));
        config.region = Some("us-west-2".to_owned());
        assert!(client(&config).await.is_ok());
        for endpoint in ["s3.example.edu", "https://", "ftp://host", "http://user:secret@host"] {
            config.endpoint = Some(endpoint.to_owned());
            assert!(why(&config).await.contains("https://HOST"), "{endpoint}");
        }
        config.endpoint = Some("http://127.0.0.1:9000".to_owned());
        config.region = None;
        assert!(client(&config).await.is_ok_and(|client| client.config().region().is_some()));
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in [&b""[..], b"no certificate", broken] {
            config.ca_pem = Some(pem.to_vec());
            assert!(why(&config).await.contains("CA file"));
        }
    }
}
